/**
 * A lane for each agent; those in view are drawn. It is zoomed by the wheel, by keys and by buttons; a click goes to that
 * moment. Kinds differ by height and pattern, too, and not by colour alone.
 */
import { useRowWindow } from "../state/rowWindow";
import { useWidth } from "../state/width";
import { goTo, goToChange, lanes, moment, pan, place, showAll, view, zoom } from "../state/timeline";
import { LANE_HEIGHT, Lane } from "./Lane";
import { TimeAxis } from "./TimeAxis";

/** Room for the axis above the lanes, and how much a turn of the wheel zooms. */
const AXIS_HEIGHT = 20;
const WHEEL = 0.002;

const KEYS: Record<string, () => void> = {
  "+": () => zoom(0.5),
  "=": () => zoom(0.5),
  "-": () => zoom(2),
  "0": showAll,
  ArrowLeft: () => pan(-0.2),
  ArrowRight: () => pan(0.2),
  "[": () => goToChange(-1),
  "]": () => goToChange(1),
};

export function Lanes() {
  const { box, width } = useWidth<HTMLDivElement>();
  const rows = useRowWindow(LANE_HEIGHT, box);
  const agents = lanes.value;
  const height = AXIS_HEIGHT + agents.length * LANE_HEIGHT;
  const { from, to } = view.value;
  const marked = moment.value === null ? null : place(moment.value) * width;

  const instantAt = (event: MouseEvent): number => {
    const left = (box.current as HTMLElement).getBoundingClientRect().left;
    return from + ((event.clientX - left) / width) * (to - from);
  };
  const onKey = (event: KeyboardEvent): void => {
    const act = KEYS[event.key];
    if (act !== undefined && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      act();
    }
  };
  const onWheel = (event: WheelEvent): void => {
    const isMeant = event.ctrlKey || event.metaKey || document.activeElement === box.current;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      pan(event.deltaX / width);
    } else if (isMeant) {
      event.preventDefault();
      zoom(Math.exp(event.deltaY * WHEEL), instantAt(event));
    }
  };
  return (
    <section aria-labelledby="lanes">
      <h2 id="lanes">Who was at what</h2>
      <p class="dim" id="lanes-keys">
        In the lanes <kbd>+</kbd> and <kbd>-</kbd> zoom, <kbd>0</kbd> shows all, <kbd>←</kbd> and <kbd>→</kbd> move, <kbd>[</kbd> and <kbd>]</kbd> go to the change
        before and after. The wheel zooms after a click, or with <kbd>Ctrl</kbd>.
      </p>
      <div ref={box} class="lanes" role="group" aria-label="Lanes" aria-describedby="lanes-keys" tabIndex={0} onKeyDown={onKey} onWheel={onWheel} onClick={(event) => goTo(instantAt(event))} onScroll={rows.onScroll}>
        <svg width={width} height={height} role="img" aria-label={`A lane for each of ${agents.length} agents; the table at the end of the page says the same.`}>
          <Patterns />
          <TimeAxis width={width} height={height} />
          {agents.slice(rows.first, rows.first + rows.count).map(([agent, spans], number) => (
            <Lane key={agent} agent={agent} spans={spans} top={AXIS_HEIGHT + (rows.first + number) * LANE_HEIGHT} width={width} />
          ))}
          {marked !== null && <line class="moment-line" x1={marked} x2={marked} y1={0} y2={height} />}
        </svg>
      </div>
    </section>
  );
}

function Patterns() {
  return (
    <defs>
      <pattern id="hatched" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect class="hatched-ground" width="6" height="6" />
        <rect class="hatched-line" width="3" height="6" />
      </pattern>
      <pattern id="dotted" width="5" height="6" patternUnits="userSpaceOnUse">
        <circle class="dotted-dot" cx="2" cy="3" r="1.4" />
      </pattern>
    </defs>
  );
}
