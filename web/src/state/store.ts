/**
 * The page's one store. Signals hold what the coordinator last said; events tell when to ask again.
 * No rule of the coordinator is repeated here: what is shown is what it answered.
 */
import { computed, signal } from "@preact/signals";

import { api, ask } from "../api/client";
import { forget } from "../api/entrance";
import { Refusal } from "../api/refusal";
import type { DeadLetter, Message, Status } from "../api/shapes";
import { type CoordEvent, follow } from "../api/stream";
import { type Connection, connection } from "./connection";

export const status = signal<Status | null>(null);
/** Messages to people that nobody has read. */
export const messages = signal<readonly Message[]>([]);
export const deadLetters = signal<readonly DeadLetter[]>([]);
/** What was done or refused last, for the page's one line of news. */
export const news = signal<{ text: string; next: string; refused: boolean } | null>(null);
/** The newest event; lists that are asked for one by one look at it. */
export const lastSeq = signal(0);

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

/**
 * Events come in crowds: they are answered by one question each so many ms; by fewer where an answer
 * takes long (a part of the time is the coordinator's), and where nobody looks.
 */
const GATHERED_MS = 120;
const UNSEEN_MS = 2000;
const TIMES_AS_LONG = 10;
/** Kinds of events after which the two shorter lists may be others. */
const OF_MESSAGES = /^message/;
const OF_DEAD_LETTERS = /^(task_changed|step_moved|change_moved)$/;

let gathering = false;
let tookMs = 0;
let wanted = { messages: false, deadLetters: false };

/** Follow the coordinator, from now until the page's token ends. */
export function begin(): void {
  void follow({ onEvent: note, onConnection: setConnection });
}

/** Do something on the person's behalf and say how it went. Returns whether it was done. */
export async function act<T>(request: () => Promise<T>, done: (reply: T) => string): Promise<boolean> {
  try {
    const reply = await request();
    news.value = { text: done(reply), next: "", refused: false };
    return true;
  } catch (bad) {
    say(bad);
    return false;
  }
}

function note(event: CoordEvent): void {
  lastSeq.value = event.seq;
  wanted.messages ||= OF_MESSAGES.test(event.kind);
  wanted.deadLetters ||= OF_DEAD_LETTERS.test(event.kind);
  gather();
}

function setConnection(now: Connection): void {
  connection.value = now;
  if (now === "ended") {
    forget();
  } else if (now === "live") {
    wanted = { messages: true, deadLetters: true };
    gather();
  }
}

function gather(): void {
  if (!gathering) {
    gathering = true;
    const usual = Math.max(document.hidden ? UNSEEN_MS : GATHERED_MS, TIMES_AS_LONG * tookMs);
    setTimeout(() => void refresh(), status.value === null ? 0 : usual);
  }
}

async function refresh(): Promise<void> {
  const now = wanted;
  const seen = lastSeq.value;
  wanted = { messages: false, deadLetters: false };
  const began = performance.now();
  try {
    await Promise.all([
      ask(api.GET("/v1/status", { params: { query: { events: 0 } } })).then((reply) => (status.value = reply)),
      now.messages &&
        ask(api.GET("/v1/messages", { params: { query: { reader: "human", unread: true } } })).then(
          // What a person wrote to himself does not wait for him.
          (reply) => (messages.value = reply.items.filter((message) => message.to === "human")),
        ),
      now.deadLetters &&
        ask(api.GET("/v1/dead", { params: { query: {} } })).then((reply) => (deadLetters.value = reply.items)),
    ]);
  } catch (bad) {
    // Nobody answers: the stream says so, and asks again when somebody does.
    if (!(bad instanceof Refusal && bad.code === "DAEMON_DOWN")) {
      say(bad);
    }
  }
  tookMs = performance.now() - began;
  gathering = false;
  if (lastSeq.value > seen || wanted.messages || wanted.deadLetters) {
    gather(); // something has happened while it was asked
  }
}

function say(bad: unknown): void {
  if (!(bad instanceof Refusal)) {
    throw bad;
  }
  news.value = { text: bad.message, next: bad.next, refused: true };
}
