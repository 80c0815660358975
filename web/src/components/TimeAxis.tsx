/** Lines and times across a drawing of the window. */
import { place, view } from "../state/timeline";
import { instant, ticks } from "../words/instants";

const TICK_WIDTH = 95;

export function TimeAxis({ width, height }: { width: number; height: number }) {
  const { from, to } = view.value;
  return (
    <g class="axis">
      {ticks(from, to, Math.max(1, Math.floor(width / TICK_WIDTH))).map((at) => {
        const x = place(at) * width;
        return (
          <g key={at}>
            <line x1={x} x2={x} y1={14} y2={height} />
            {x + TICK_WIDTH <= width && (
              <text x={x + 3} y={11}>
                {instant(at, to - from)}
              </text>
            )}
          </g>
        );
      })}
    </g>
  );
}
