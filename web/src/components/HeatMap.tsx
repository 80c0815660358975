/** Files in demand over the time: how many agents had each, and how many waited for it or were refused. */
import type { Demand } from "../api/shapes";
import { place, timeline } from "../state/timeline";
import { useWidth } from "../state/width";
import { cutMiddle, fullInstant } from "../words/instants";
import { harmless } from "../words/texts";
import { TimeAxis } from "./TimeAxis";

const AXIS_HEIGHT = 20;
const ROW_HEIGHT = 34;
const CELL_HEIGHT = 16;
const LETTER_WIDTH = 7;
/** Shades of demand: a cell with so many waiters, or more, has the darkest. */
const DARKEST = 4;

export function HeatMap() {
  const { box, width } = useWidth<HTMLDivElement>();
  const told = timeline.value;
  if (told === null || told.since === null) {
    return null;
  }
  const rows = told.demand.filter((demand) => demand.waited.some(Boolean) || demand.refused.some(Boolean) || demand.held.some(Boolean));
  const height = AXIS_HEIGHT + rows.length * ROW_HEIGHT;
  const window = { from: Date.parse(told.since), to: Date.parse(told.until) };
  return (
    <section aria-labelledby="heat">
      <h2 id="heat">Files in demand</h2>
      {rows.length === 0 && <p class="empty">No file was leased in this time.</p>}
      <div ref={box} class="heat">
        <svg width={width} height={rows.length === 0 ? 0 : height} role="img" aria-label="Demand for each file over the time; the table of files says how much in all.">
          <TimeAxis width={width} height={height} />
          {rows.map((demand, number) => (
            <HeatRow key={demand.resource} demand={demand} window={window} top={AXIS_HEIGHT + number * ROW_HEIGHT} width={width} />
          ))}
        </svg>
      </div>
    </section>
  );
}

interface RowProps {
  demand: Demand;
  window: { from: number; to: number };
  top: number;
  width: number;
}

function HeatRow({ demand, window, top, width }: RowProps) {
  const name = harmless(demand.resource);
  const step = (window.to - window.from) / demand.held.length;
  return (
    <g class="heat-row" transform={`translate(0 ${top})`} data-resource={demand.resource}>
      <text class="lane-name" x={2} y={12}>
        {cutMiddle(name, Math.floor(width / LETTER_WIDTH))}
        <title>{name}</title>
      </text>
      {demand.held.map((held, part) => {
        const waited = demand.waited[part] ?? 0;
        const refused = demand.refused[part] ?? 0;
        const from = window.from + part * step;
        const begin = Math.max(0, place(from) * width);
        const end = Math.min(width, place(from + step) * width);
        if (end <= 0 || begin >= width || (held === 0 && waited === 0 && refused === 0)) {
          return null;
        }
        // The more agents want it, the higher and the darker.
        const wanted = Math.min(DARKEST, waited + refused);
        const high = wanted === 0 ? 0 : 4 + ((CELL_HEIGHT - 4) * wanted) / DARKEST;
        return (
          <g key={part}>
            <title>{`${name}, ${fullInstant(from)}: ${held} had it, ${waited} waited for it, ${refused} refused`}</title>
            {held > 0 && <rect class="heat-held" x={begin} y={14 + CELL_HEIGHT - 3} width={end - begin + 0.5} height={3} />}
            {wanted > 0 && <rect class={`heat-wanted heat-${Math.ceil(wanted)}`} x={begin} y={14 + CELL_HEIGHT - 3 - high + 3} width={end - begin + 0.5} height={high} />}
          </g>
        );
      })}
    </g>
  );
}
