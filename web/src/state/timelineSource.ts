/**
 * The time line of the live page: asked for when the screen opens, when the window has changed, and
 * after events; the moment whenever the scrubber has moved. One question at a time.
 */
import { batch, effect } from "@preact/signals";

import { api, ask } from "../api/client";
import { Refusal } from "../api/refusal";
import { connection } from "./connection";
import { lastSeq, news, status } from "./store";
import { readState } from "./then";
import { bounds, lastStretch, moment, then, timeline, view } from "./timeline";

/** Parts of the window that demand is told for, and spans at most. */
const PARTS = 120;
const SPANS = 2000;
/** A window that changes is asked for when it rests; after events no more often than this (ms). */
const RESTED_MS = 250;
const GATHERED_MS = 1500;
/** A part of the time is the coordinator's: a long answer is asked for less often. */
const TIMES_AS_LONG = 10;

/** Follow the work from now until the function that comes back is called. */
export function followWork(): () => void {
  let ended = false;
  let asking = false;
  let again = false;
  let tookMs = 0;
  let timer = 0;

  const refresh = async (): Promise<void> => {
    if (asking) {
      again = true;
      return;
    }
    asking = true;
    again = false;
    const began = performance.now();
    await askTimeline();
    tookMs = performance.now() - began;
    asking = false;
    if (again && !ended) {
      gather(RESTED_MS);
    }
  };
  const gather = (ms: number): void => {
    clearTimeout(timer);
    timer = window.setTimeout(() => void refresh(), ms);
  };

  let seen = -1;
  const stops = [
    effect(() => {
      const seq = lastSeq.value;
      if (connection.value === "live" && seq !== seen) {
        const first = timeline.peek() === null;
        seen = seq;
        gather(first ? 0 : Math.max(GATHERED_MS, TIMES_AS_LONG * tookMs));
      }
    }),
    effect(() => {
      void view.value;
      if (timeline.peek() !== null && !isShown()) {
        gather(RESTED_MS);
      }
    }),
    followMoment(),
  ];
  return () => {
    ended = true;
    clearTimeout(timer);
    stops.forEach((stop) => stop());
  };
}

/** Whether what was answered last is of the window that is seen. */
function isShown(): boolean {
  const reply = timeline.peek();
  const { from, to } = view.peek();
  return reply?.since != null && Math.abs(Date.parse(reply.since) - from) < 2 && Math.abs(Date.parse(reply.until) - to) < 2;
}

async function askTimeline(): Promise<void> {
  const first = timeline.peek() === null;
  const all = bounds.peek();
  const seen = view.peek();
  const atEnd = first || seen.to >= all.to;
  const query = {
    spans: SPANS,
    parts: PARTS,
    ...(first ? {} : { since: new Date(seen.from).toISOString() }),
    ...(atEnd ? {} : { until: new Date(seen.to).toISOString() }),
  };
  try {
    const reply = await ask(api.GET("/v1/timeline", { params: { query } }));
    const until = Date.parse(reply.until);
    batch(() => {
      const moved = !first && (view.peek().from !== seen.from || view.peek().to !== seen.to);
      timeline.value = reply;
      if (first) {
        const since = reply.since === null ? until - 60_000 : Date.parse(reply.since);
        bounds.value = { from: since, to: Math.max(until, since + 1000) };
        view.value = lastStretch(reply.spans, bounds.value);
      } else if (atEnd) {
        bounds.value = { ...bounds.peek(), to: Math.max(until, all.to) };
        if (!moved) {
          view.value = { from: seen.from, to: Math.max(until, seen.to) };
        }
      }
    });
  } catch (bad) {
    tell(bad);
  }
}

/** Ask how all was whenever the moment changes; of a crowd of moments the last one counts. */
function followMoment(): () => void {
  let asking = false;
  let ended = false;
  const refresh = async (): Promise<void> => {
    if (asking) {
      return;
    }
    asking = true;
    while (!ended && moment.peek() !== null && then.peek()?.at !== moment.peek()) {
      const at = moment.peek() as number;
      try {
        const reply = await ask(api.GET("/v1/moment", { params: { query: { at: new Date(at).toISOString() } } }));
        then.value = readState(reply.state, at, reply.event);
      } catch (bad) {
        tell(bad);
        break;
      }
    }
    asking = false;
  };
  const stop = effect(() => {
    if (moment.value === null) {
      const now = status.value;
      then.value = now === null ? null : readState(now, Date.parse(now.at), null);
    } else if (connection.value === "live") {
      void refresh();
    }
  });
  return () => {
    ended = true;
    stop();
  };
}

function tell(bad: unknown): void {
  if (!(bad instanceof Refusal)) {
    throw bad;
  }
  if (bad.code !== "DAEMON_DOWN") {
    news.value = { text: bad.message, next: bad.next, refused: true };
  }
}
