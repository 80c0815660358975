/** One agent's lane. Each kind of span has a height of its own, so that none hides another. */
import type { Span } from "../api/shapes";
import { place } from "../state/timeline";
import { cutMiddle } from "../words/instants";
import { describeSpan } from "../words/spans";
import { harmless } from "../words/texts";

export const LANE_HEIGHT = 58;
/** Where each kind is drawn in the lane: its top, and its height. */
const ROWS: Record<Span["kind"], readonly [number, number]> = {
  task: [18, 14],
  thinking: [33, 5],
  wait: [39, 7],
  lease: [47, 4],
  review: [52, 4],
  refusal: [37, 10],
};
/** Refusals are drawn last: nothing may hide them. */
const ORDER: readonly Span["kind"][] = ["task", "thinking", "lease", "review", "wait", "refusal"];
const LEAST_WIDTH = 1.5;
const LETTER_WIDTH = 7;

export function Lane({ agent, spans, top, width }: { agent: string; spans: readonly Span[]; top: number; width: number }) {
  const seen = spans.filter((span) => place(Date.parse(span.until)) >= 0 && place(Date.parse(span.since)) <= 1);
  seen.sort((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind));
  const name = harmless(agent);
  return (
    <g class="lane" transform={`translate(0 ${top})`} data-agent={agent}>
      <line class="lane-edge" x1={0} x2={width} y1={0.5} y2={0.5} />
      <text class="lane-name" x={2} y={13}>
        {cutMiddle(name, Math.floor(width / LETTER_WIDTH))}
        <title>{name}</title>
      </text>
      {seen.map((span) => (
        <SpanSign key={`${span.kind} ${span.event} ${span.subject} ${span.since}`} span={span} width={width} />
      ))}
    </g>
  );
}

function SpanSign({ span, width }: { span: Span; width: number }) {
  const [y, height] = ROWS[span.kind];
  const begin = Math.max(0, place(Date.parse(span.since)) * width);
  const end = Math.min(width, place(Date.parse(span.until)) * width);
  const title = <title>{harmless(describeSpan(span))}</title>;
  if (span.kind === "refusal") {
    const x = Math.min(begin, width - 4);
    return (
      <path class="span-refusal" d={`M${x - 4} ${y} L${x + 4} ${y} L${x} ${y + height} Z`}>
        {title}
      </path>
    );
  }
  const long = Math.max(LEAST_WIDTH, end - begin);
  const letters = Math.floor((long - 6) / LETTER_WIDTH);
  return (
    <g class={`span-${span.kind}`} data-subject={span.subject}>
      <rect x={begin} y={y} width={long} height={height}>
        {title}
      </rect>
      {span.kind === "task" && letters >= 4 && (
        <text x={begin + 4} y={y + 11}>
          {cutMiddle(harmless(span.count > 1 ? `${span.count} tasks` : [span.subject, span.text].filter(Boolean).join(" ")), letters)}
        </text>
      )}
    </g>
  );
}
