/** One agent's lane. Each kind of span has a height of its own, so that none hides another. */
import type { Span } from "../api/shapes";
import { place, type TimedSpan, view } from "../state/timeline";
import { cutMiddle } from "../words/instants";
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
/** A lane with more spans than this has its narrow ones (pixels) drawn by one path of each kind. */
const FEW = 40;
const NARROW = 4;

interface LaneProps {
  agent: string;
  spans: readonly TimedSpan[];
  top: number;
  width: number;
}

export function Lane({ agent, spans, top, width }: LaneProps) {
  const { from, to } = view.value;
  const seen = spans.filter((span) => span.until >= from && span.since <= to);
  const narrowMs = seen.length > FEW ? (NARROW * (to - from)) / width : 0;
  const isNarrow = (span: TimedSpan): boolean => span.until - span.since < narrowMs;
  const name = harmless(agent);
  return (
    <g class="lane" transform={`translate(0 ${top})`} data-agent={agent}>
      <line class="lane-edge" x1={0} x2={width} y1={0.5} y2={0.5} />
      <text class="lane-name" x={2} y={13}>
        {cutMiddle(name, Math.floor(width / LETTER_WIDTH))}
        <title>{name}</title>
      </text>
      {ORDER.map((kind) => {
        const ofKind = seen.filter((span) => span.kind === kind);
        const narrow = ofKind.filter(isNarrow);
        return (
          <g key={kind} class={`span-${kind}`}>
            {narrow.length > 0 && <path d={narrow.map((span) => outline(span, width)).join("")} />}
            {ofKind.map((span) => !isNarrow(span) && <SpanSign key={`${span.event} ${span.subject} ${span.since}`} span={span} width={width} />)}
          </g>
        );
      })}
    </g>
  );
}

/** Where a span is drawn: its left and its right edge. */
function edges(span: TimedSpan, width: number): [number, number] {
  const begin = Math.max(0, place(span.since) * width);
  return [begin, Math.max(begin + LEAST_WIDTH, Math.min(width, place(span.until) * width))];
}

/** The shape of a span: a mark of a refusal, a bar of all else. */
function outline(span: TimedSpan, width: number): string {
  const [top, height] = ROWS[span.kind];
  const [begin, end] = edges(span, width);
  if (span.kind === "refusal") {
    const x = Math.min(begin, width - 4);
    return `M${x - 4} ${top}h8l-4 ${height}Z`;
  }
  return `M${begin} ${top}H${end}v${height}H${begin}Z`;
}

function SpanSign({ span, width }: { span: TimedSpan; width: number }) {
  const [begin, end] = edges(span, width);
  const letters = Math.floor((end - begin - 6) / LETTER_WIDTH);
  return (
    <g data-subject={span.subject}>
      <path d={outline(span, width)}>
        <title>{span.title}</title>
      </path>
      {span.kind === "task" && letters >= 4 && (
        <text x={begin + 4} y={ROWS.task[0] + 11}>
          {cutMiddle(harmless(span.count > 1 ? `${span.count} tasks` : [span.subject, span.text].filter(Boolean).join(" ")), letters)}
        </text>
      )}
    </g>
  );
}
