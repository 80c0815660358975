/** How instants, spans and somebody's words are shown. */
import { now } from "../state/now";

/** Signs that turn the direction of writing, cannot be seen, or steer a terminal: those of `words/texts.py`. */
export const UNSAFE = /[\0-\x08\x0b\x0c\x0d\x0e-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\u{13430}-\u{1345f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/** The text with each sign that could deceive written out, like `\u202e`. */
export function harmless(text: string): string {
  return text.replace(UNSAFE, (sign) => `\\u${(sign.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`);
}

/** A span as people say it: `45 s`, `3 min`, `2 h`. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 90) {
    return `${whole} s`;
  }
  return whole < 5400 ? `${Math.round(whole / 60)} min` : `${Math.round(whole / 3600)} h`;
}

/** How long ago an instant was. */
export function ago(instant: string, nowMs: number): string {
  return `${span((nowMs - Date.parse(instant)) / 1000)} ago`;
}

/** How much time is left until an instant. */
export function left(instant: string, nowMs: number): string {
  const seconds = (Date.parse(instant) - nowMs) / 1000;
  return seconds > 0 ? `${span(seconds)} left` : "over";
}

/** The instant in this browser's own time. */
export function clock(instant: string): string {
  return new Date(instant).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

/** A sentence of the coordinator's log, whose instants are UTC, in this browser's own time. */
export function localise(sentence: string): string {
  const stamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/.exec(sentence)?.[0];
  if (stamp === undefined) {
    return sentence;
  }
  const at = new Date(stamp);
  const day = at.toDateString() === new Date(now.peek()).toDateString() ? "" : `${at.toLocaleDateString()} `;
  const rest = sentence.slice(stamp.length).replace(/\b(\d\d):(\d\d)Z/g, (_, hour: string, minute: string) => {
    const then = new Date(at);
    then.setUTCHours(Number(hour), Number(minute), 0);
    return clock(then.toISOString());
  });
  return `${day}${at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" })}${rest}`;
}

/** "1 review", "3 reviews". */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
