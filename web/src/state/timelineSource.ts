/**
 * The time line of the live page: asked for when the screen opens, when the window has changed, and
 * after events; the moment whenever the scrubber has moved.
 */
import { batch, effect } from "@preact/signals";

import { api, ask } from "../api/client";
import { Refusal } from "../api/refusal";
import { connection } from "./connection";
import { Feed } from "./feed";
import { say } from "./news";
import { readState } from "./then";
import { bounds, lastStretch, moment, then, timeline, view } from "./timeline";

/** Parts of the window that demand is told for, and spans at most. */
const PARTS = 120;
const SPANS = 2000;
/** A window that changes is asked for when it rests (ms). */
const RESTED_MS = 250;
/** A connection that broke at a restart is made again after this (ms). */
const RETRIED_MS = 300;
const LEASES = 5000;

const timelineFeed = new Feed(askTimeline, /./);
/** How all is at the end: that changes with every event. */
const endFeed = new Feed(async () => {
  const now = await ask(api.GET("/v1/status", { params: { query: { events: 0, leases: LEASES } } }));
  if (moment.peek() === null) {
    then.value = readState(now, Date.parse(now.at), null);
  }
}, /./);

/** Follow the work from now until the function that comes back is called. */
export function followWork(): () => void {
  let timer = 0;
  const stops = [
    timelineFeed.watch(),
    endFeed.watch(),
    effect(() => {
      void view.value;
      clearTimeout(timer);
      if (timeline.peek() !== null && !isShown()) {
        timer = window.setTimeout(() => timelineFeed.ask(), RESTED_MS);
      }
    }),
    followMoment(),
  ];
  return () => {
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
    // The end, which has no event's number, may have been at this very instant.
    while (!ended && moment.peek() !== null && (then.peek()?.at !== moment.peek() || then.peek()?.event === null)) {
      const at = moment.peek() as number;
      try {
        const reply = await ask(api.GET("/v1/moment", { params: { query: { at: new Date(at).toISOString() } } }));
        then.value = readState(reply.state, at, reply.event);
      } catch (bad) {
        if (!(bad instanceof Refusal && bad.code === "DAEMON_DOWN")) {
          say(bad);
          break;
        }
        if (connection.peek() !== "live") {
          break; // it is asked again when somebody answers
        }
        await new Promise((done) => setTimeout(done, RETRIED_MS));
      }
    }
    asking = false;
  };
  const stop = effect(() => {
    if (moment.value === null) {
      endFeed.ask();
    } else if (connection.value === "live") {
      void refresh();
    }
  });
  return () => {
    ended = true;
    stop();
  };
}
