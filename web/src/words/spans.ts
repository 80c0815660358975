/** A span of a lane in a sentence. */
import type { Span } from "../api/shapes";
import { exactSpan } from "./instants";

const PLURALS: Record<Span["kind"], string> = {
  task: "tasks", lease: "leases", wait: "waits", thinking: "times of thinking", refusal: "refusals", review: "reviews",
};

/** Who was at what, for how long. */
export function describeSpan(span: Span): string {
  return `${span.agent} ${describeWork(span)}`;
}

/** The same without the agent. */
export function describeWork(span: Span): string {
  const time = exactSpan((Date.parse(span.until) - Date.parse(span.since)) / 1000);
  const until = span.open ? `${time} until now` : time;
  if (span.count > 1) {
    return `had ${span.count} ${PLURALS[span.kind]} near each other, ${until}`;
  }
  const holders = span.holders.length > 0 ? `, held by ${span.holders.join(", ")}` : "";
  const about = span.text === "" ? "" : ` (${span.text})`;
  switch (span.kind) {
    case "task":
      return `worked on ${span.subject}${about}, ${until}`;
    case "lease":
      return `held ${span.subject}${about}, ${until}`;
    case "wait":
      return `waited for ${span.subject}${holders}, ${until}`;
    case "thinking":
      return `thought, or ran a program, ${until}`;
    case "refusal":
      return `was refused ${span.subject}${holders} (${span.text})`;
    case "review":
      return `left ${span.subject}${about}, which waited ${until}`;
  }
}
