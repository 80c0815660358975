/**
 * The page's one store. Signals hold what the coordinator last said; events tell when to ask again.
 * No rule of the coordinator is repeated here: what is shown is what it answered.
 */
import { computed, effect, signal, untracked } from "@preact/signals";

import { api, ask } from "../api/client";
import { forget } from "../api/entrance";
import type { DeadLetter, Message, Status } from "../api/shapes";
import { follow } from "../api/stream";
import { type Connection, connection } from "./connection";
import { askAgain, Feed, noteEvent } from "./feed";
import { jumps, readClocks, setClock } from "./now";

export const status = signal<Status | null>(null);
/** Messages to people that nobody has read. */
export const messages = signal<readonly Message[]>([]);
export const deadLetters = signal<readonly DeadLetter[]>([]);

/** Live agents that cannot go on by themselves, and those whose provider's limit is reached. */
export const silentAgents = computed(() => (status.value?.agents ?? []).filter((agent) => agent.state === "stale"));
export const restingAgents = computed(() => (status.value?.agents ?? []).filter((agent) => agent.rests_until !== null));
/** The coordinator's warnings: guards that are gone, a disk that is full. */
export const warnings = computed<readonly string[]>(() => {
  const lines = (status.value?.health as Record<string, unknown> | undefined)?.["warnings"];
  return Array.isArray(lines) ? lines.map(String) : [];
});
/** How many things wait for a person. */
export const waiting = computed(
  () =>
    (status.value?.reviews.length ?? 0) +
    (status.value?.requests.length ?? 0) +
    messages.value.length +
    silentAgents.value.length +
    restingAgents.value.length +
    warnings.value.length +
    deadLetters.value.length,
);

/** Each is asked again after events of these kinds. */
const FEEDS = [
  new Feed(async () => {
    const asked = readClocks();
    const reply = await ask(api.GET("/v1/status", { params: { query: { events: 0, leases: 0 } } }));
    setClock(reply.at, asked);
    status.value = reply;
  }, /./),
  new Feed(async () => {
    const reply = await ask(api.GET("/v1/messages", { params: { query: { reader: "human", unread: true } } }));
    // What a person wrote to himself does not wait for him.
    messages.value = reply.items.filter((message) => message.to === "human");
  }, /^message/),
  new Feed(
    async () => (deadLetters.value = (await ask(api.GET("/v1/dead", { params: { query: {} } }))).items),
    /^(task_changed|step_moved|change_moved)$/,
  ),
];

/** Follow the coordinator, from now until the page's token ends. */
export function begin(): void {
  FEEDS.forEach((feed) => feed.watch());
  effect(() => {
    void jumps.value;
    untracked(askAgain);
  });
  void follow({ onEvent: (event) => noteEvent(event.kind), onConnection: setConnection });
}

function setConnection(now: Connection): void {
  connection.value = now;
  if (now === "ended") {
    forget();
  } else if (now === "live") {
    askAgain();
  }
}
