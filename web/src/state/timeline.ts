/**
 * What is seen of a time of work: the window, and the moment in it. It asks nobody: the page's
 * `timelineSource.ts` asks the coordinator, and a saved report brings its own data.
 */
import { computed, signal } from "@preact/signals";

import type { Span, Timeline } from "../api/shapes";
import { describeSpan } from "../words/spans";
import { harmless } from "../words/texts";
import type { Then } from "./then";

export interface Window {
  readonly from: number;
  readonly to: number;
}

/** No work is looked at more closely than this, and a longer silence (ms) divides two stretches of work. */
const CLOSEST_MS = 5;
const SILENCE_MS = 30 * 60_000;
/** A window ends so much after the last that is in it. */
const MARGIN = 0.02;

export const timeline = signal<Timeline | null>(null);
/** From the first event to the last instant that is known. */
export const bounds = signal<Window>({ from: 0, to: 1 });
export const view = signal<Window>({ from: 0, to: 1 });
/** The moment that the scrubber is at; null: the end. */
export const moment = signal<number | null>(null);
/** State at that moment; null: it is asked for. */
export const then = signal<Then | null>(null);

/** A span with its instants as numbers and its sentence, made once: it is drawn at each move of the window. */
export interface TimedSpan extends Omit<Span, "since" | "until"> {
  readonly since: number;
  readonly until: number;
  readonly title: string;
}

/** The spans of each agent that has a lane, by its name. */
export const lanes = computed(() => {
  const byAgent = new Map<string, TimedSpan[]>();
  for (const span of timeline.value?.spans ?? []) {
    const timed = { ...span, since: Date.parse(span.since), until: Date.parse(span.until), title: harmless(describeSpan(span)) };
    const lane = byAgent.get(span.agent);
    if (lane === undefined) {
      byAgent.set(span.agent, [timed]);
    } else {
      lane.push(timed);
    }
  }
  return [...byAgent].sort(([a], [b]) => (a < b ? -1 : 1));
});
/** Instants at which something begins or ends, in order. */
const changes = computed(() => {
  const instants = lanes.value.flatMap(([, spans]) => spans.flatMap((span) => (span.open ? [span.since] : [span.since, span.until])));
  return [...new Set(instants)].sort((a, b) => a - b);
});

/** Where an instant is in the window: 0 at its beginning, 1 at its end. */
export function place(ms: number): number {
  const { from, to } = view.value;
  return (ms - from) / (to - from);
}

export function show(window: Window): void {
  const all = bounds.value;
  const length = Math.min(Math.max(window.to - window.from, CLOSEST_MS), Math.max(all.to - all.from, CLOSEST_MS));
  const from = Math.max(all.from, Math.min(window.from, all.to - length));
  view.value = { from, to: from + length };
}

export function showAll(): void {
  show(bounds.value);
}

/** Zoom by a factor (below 1: in) around an instant, which stays where it is. */
export function zoom(factor: number, around?: number): void {
  const { from, to } = view.value;
  const middle = (from + to) / 2;
  const marked = moment.value !== null && moment.value >= from && moment.value <= to ? moment.value : middle;
  const fixed = around ?? marked;
  show({ from: fixed - (fixed - from) * factor, to: fixed + (to - fixed) * factor });
}

/** Move the window by a share of its length. */
export function pan(share: number): void {
  const { from, to } = view.value;
  const by = (to - from) * share;
  show({ from: from + by, to: to + by });
}

/** Go to a moment; the window follows where it lies outside. */
export function goTo(ms: number): void {
  const all = bounds.value;
  moment.value = Math.round(Math.max(all.from, Math.min(ms, all.to)));
  const { from, to } = view.value;
  if (moment.value < from || moment.value > to) {
    const half = (to - from) / 2;
    show({ from: moment.value - half, to: moment.value + half });
  }
}

/** Go to the next instant at which something begins or ends; of -1: to the one before. */
export function goToChange(direction: 1 | -1): void {
  const at = moment.value ?? bounds.value.to;
  const next = direction > 0 ? changes.value.find((ms) => ms > at) : changes.value.findLast((ms) => ms < at);
  if (next !== undefined) {
    goTo(next);
  }
}

/** The last stretch of work: before it was a long silence, or nothing. */
export function lastStretch(spans: readonly Span[], all: Window): Window {
  let from = all.from;
  let reach = all.from;
  for (const span of [...spans].sort((a, b) => Date.parse(a.since) - Date.parse(b.since))) {
    const since = Date.parse(span.since);
    if (since - reach > SILENCE_MS) {
      from = since;
    }
    reach = Math.max(reach, Date.parse(span.until));
  }
  const margin = (reach - from) * MARGIN;
  return all.to - reach > SILENCE_MS ? { from: from - margin, to: reach + margin } : { from: from - margin, to: all.to };
}
