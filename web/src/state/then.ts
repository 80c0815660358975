/** State at a moment, as it is shown: told by the coordinator, or by the spans of a saved report. */
import type { Span, Status } from "../api/shapes";

/** One thing that was so: whose it was, what it was, and a remark. */
export interface Fact {
  readonly agent: string;
  readonly name: string;
  readonly remark: string;
}

export interface Then {
  readonly at: number;
  /** The last event before it; null: the spans tell no number. */
  readonly event: number | null;
  readonly leases: readonly Fact[];
  readonly waits: readonly Fact[];
  readonly tasks: readonly Fact[];
  readonly reviews: readonly Fact[];
}

/** The state as the coordinator tells it. */
export function readState(state: Status, at: number, event: number | null): Then {
  return {
    at,
    event,
    leases: state.leases.map((lease) => ({ agent: lease.locked_by, name: lease.resource, remark: lease.description })),
    waits: state.waiters.map((waiter) => ({
      agent: waiter.agent,
      name: waiter.resources.join(", "),
      remark: waiter.held_by.length > 0 ? `held by ${waiter.held_by.join(", ")}` : "",
    })),
    tasks: state.claimed.map((task) => ({ agent: task.claimed_by ?? "", name: task.task, remark: task.title })),
    reviews: state.reviews.map((review) => ({ agent: review.agent ?? "", name: review.review, remark: review.summary })),
  };
}

/** What the spans tell of a moment: each that had begun and not ended. */
export function readSpans(spans: readonly Span[], at: number): Then {
  const present = spans.filter((span) => Date.parse(span.since) <= at && (span.open || Date.parse(span.until) > at));
  const ofKind = (kind: Span["kind"]): Fact[] =>
    present.filter((span) => span.kind === kind).map((span) => ({
      agent: span.agent,
      name: span.subject,
      remark: [span.holders.length > 0 ? `held by ${span.holders.join(", ")}` : span.text, span.count > 1 ? `one of ${span.count} near each other` : ""]
        .filter(Boolean)
        .join("; "),
    }));
  return { at, event: null, leases: ofKind("lease"), waits: ofKind("wait"), tasks: ofKind("task"), reviews: ofKind("review") };
}
