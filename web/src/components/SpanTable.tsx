/** What the lanes draw, in sentences: for whoever reads better than they see. */
import { useSignal } from "@preact/signals";

import { timeline, view } from "../state/timeline";
import { instant } from "../words/instants";
import { describeSpan } from "../words/spans";
import { Words } from "./Words";

/** Sentences at most. */
const MOST = 200;

export function SpanTable() {
  const isOpen = useSignal(false);
  const { from, to } = view.value;
  const seen = isOpen.value ? (timeline.value?.spans ?? []).filter((span) => Date.parse(span.until) >= from && Date.parse(span.since) <= to) : [];
  return (
    <details class="span-table" open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>The lanes in sentences</summary>
      {seen.length > MOST && <p class="dim">The first {MOST} of {seen.length}; zoom in to see the others.</p>}
      <ol class="plain">
        {seen.slice(0, MOST).map((span) => (
          <li key={`${span.kind} ${span.event} ${span.agent} ${span.subject} ${span.since}`}>
            <time dateTime={span.since}>{instant(Date.parse(span.since), to - from)}</time> <Words text={describeSpan(span)} />
          </li>
        ))}
      </ol>
    </details>
  );
}
