/** Instants on a time line, in this browser's own time. */
import { span } from "./texts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Distances between two ticks that people read easily. */
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500].concat([1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  [1, 2, 5, 10, 15, 30].map((n) => n * MINUTE), [1, 2, 3, 6, 12].map((n) => n * HOUR), [1, 2, 7, 14, 28, 91, 365].map((n) => n * DAY));

/** To make a format takes a thousand times as long as to use it. */
const MINUTES = { hour: "2-digit", minute: "2-digit" } as const;
const SECONDS = { ...MINUTES, second: "2-digit" } as const;
const asDay = new Intl.DateTimeFormat([], { month: "short", day: "numeric" });
const asMinute = new Intl.DateTimeFormat([], MINUTES);
const asSecond = new Intl.DateTimeFormat([], SECONDS);
const asExact = new Intl.DateTimeFormat([], { ...SECONDS, fractionalSecondDigits: 3 });
const asFull = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "medium" });

/** The instant as exactly as a window of this length needs it. */
export function instant(ms: number, windowMs: number): string {
  const format = windowMs > 2 * DAY ? asDay : windowMs > HOUR ? asMinute : windowMs > 20 * SECOND ? asSecond : asExact;
  return format.format(ms);
}

/** The instant with its day. */
export function fullInstant(ms: number): string {
  return asFull.format(ms);
}

/** Where the ticks of a window are: round instants, no more than `most`. */
export function ticks(from: number, to: number, most: number): number[] {
  const step = STEPS.find((length) => (to - from) / length <= most) ?? (to - from) / Math.max(1, most);
  // Days begin at midnight of this browser's time, and hours with the hour.
  const shift = new Date(from).getTimezoneOffset() * MINUTE;
  const instants: number[] = [];
  for (let at = Math.ceil((from - shift) / step) * step + shift; at <= to && instants.length <= most; at += step) {
    instants.push(at);
  }
  return instants;
}

/** A span in few letters; of a short one also its tenths of a second. */
export function exactSpan(seconds: number): string {
  return seconds < 10 ? `${Number(seconds.toFixed(seconds < 1 ? 2 : 1))} s` : span(seconds);
}

/** The beginning and the end of a long text. */
export function cutMiddle(text: string, most: number): string {
  if (text.length <= most) {
    return text;
  }
  const kept = Math.max(1, Math.floor((most - 1) / 2));
  return `${text.slice(0, kept)}…${text.slice(-kept)}`;
}
