/** Files in demand over the time: how many agents had each, and how many waited for it or were refused. */
import type { Demand } from "../api/shapes";
import { place, timeline } from "../state/timeline";
import { useWidth } from "../state/width";
import { cutMiddle } from "../words/instants";
import { harmless } from "../words/texts";
import { TimeAxis } from "./TimeAxis";

const AXIS_HEIGHT = 20;
const ROW_HEIGHT = 34;
const CELL_HEIGHT = 16;
const HELD_HEIGHT = 3;
const BOTTOM = 31;
/** How high a cell is that hardly anybody wants, and how far it goes into the next (pixels): no gap may be seen. */
const LOWEST = 5;
const OVERLAP = 0.5;
const LETTER_WIDTH = 7;
/** Shades of demand: a cell with so many waiters, or more, has the darkest. */
const DARKEST = 4;

export function HeatMap() {
  const { box, width } = useWidth<HTMLDivElement>();
  const reply = timeline.value;
  if (reply === null || reply.since === null) {
    return null;
  }
  const rows = reply.demand.filter((demand) => demand.waited.some(Boolean) || demand.refused.some(Boolean) || demand.held.some(Boolean));
  const height = AXIS_HEIGHT + rows.length * ROW_HEIGHT;
  const window = { from: Date.parse(reply.since), to: Date.parse(reply.until) };
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
  // One path for all cells of a shade, and one cell for parts that are alike: there may be thousands.
  let held = "";
  const wanted: string[] = Array<string>(DARKEST).fill("");
  const wantedIn = (part: number): number => Math.min(DARKEST, (demand.waited[part] ?? 0) + (demand.refused[part] ?? 0));
  for (let part = 0, next = 0; part < demand.held.length; part = next) {
    const agents = demand.held[part] ?? 0;
    const wants = wantedIn(part);
    next = part + 1;
    while (next < demand.held.length && demand.held[next] === agents && wantedIn(next) === wants) {
      next += 1;
    }
    const begin = Math.max(0, place(window.from + part * step) * width);
    const end = Math.min(width, place(window.from + next * step) * width) + OVERLAP;
    if (end <= 0 || begin >= width) {
      continue;
    }
    if (agents > 0) {
      held += cell(begin, end, HELD_HEIGHT);
    }
    if (wants > 0) {
      // The more agents want it, the higher and the darker.
      wanted[Math.ceil(wants) - 1] += cell(begin, end, LOWEST + ((CELL_HEIGHT - LOWEST) * wants) / DARKEST);
    }
  }
  return (
    <g class="heat-row" transform={`translate(0 ${top})`} data-resource={demand.resource}>
      <title>{`${name}: at most ${Math.max(...demand.held)} had it at once, and ${Math.max(...demand.waited)} waited for it; refused ${demand.refused.reduce((sum, times) => sum + times, 0)} times`}</title>
      <text class="lane-name" x={2} y={12}>
        {cutMiddle(name, Math.floor(width / LETTER_WIDTH))}
      </text>
      {wanted.map((path, shade) => path !== "" && <path key={shade} class={`heat-wanted heat-${shade + 1}`} d={path} />)}
      {held !== "" && <path class="heat-held" d={held} />}
    </g>
  );
}

/** A rectangle from the row's bottom upward. */
function cell(begin: number, end: number, height: number): string {
  return `M${begin.toFixed(1)} ${BOTTOM}V${(BOTTOM - height).toFixed(1)}H${end.toFixed(1)}V${BOTTOM}Z`;
}
