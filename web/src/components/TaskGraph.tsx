/** What a task comes after and what comes after it, drawn from left to right. */
import type { TaskLink } from "../api/shapes";
import { openTask } from "../state/backlog";
import { Words } from "./Words";

/** Of a task's box, and between two (px); the style sheet has the same width and height. */
const BOX = { width: 150, height: 44 };
const GAP = { across: 36, down: 12 };

interface Placed {
  link: TaskLink;
  x: number;
  y: number;
}

export function TaskGraph({ links, task }: { links: readonly TaskLink[]; task: string }) {
  const placed = place(links);
  const boxOf = new Map(placed.map((box) => [box.link.task, box]));
  const width = Math.max(...placed.map((box) => box.x)) + BOX.width;
  const height = Math.max(...placed.map((box) => box.y)) + BOX.height;
  return (
    <div class="graph" role="group" aria-label="What comes before and after it" tabIndex={0}>
      <div style={{ width: `${width}px`, height: `${height}px` }}>
        <svg width={width} height={height} aria-hidden="true">
          {placed.flatMap((end) =>
            end.link.after.flatMap((name) => {
              const begin = boxOf.get(name);
              return begin ? [<path key={`${name} ${end.link.task}`} d={curve(begin, end)} />] : [];
            }),
          )}
        </svg>
        <ul class="plain">
          {placed.map(({ link, x, y }) => (
            <li key={link.task} style={{ left: `${x}px`, top: `${y}px` }}>
              <button type="button" class={`state ${link.state}`} aria-current={link.task === task ? "true" : undefined} onClick={() => (openTask.value = link.task)}>
                <strong>{link.task}</strong> {link.state}
                {link.after.length > 0 && <span class="visually-hidden">, after {link.after.join(", ")}:</span>}
                <br />
                <Words text={link.title} />
              </button>
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}

/** Each task to the right of all that it comes after, those of one column below one another. */
function place(links: readonly TaskLink[]): Placed[] {
  const linkOf = new Map(links.map((link) => [link.task, link]));
  const columns = new Map<string, number>();
  const columnOf = (link: TaskLink): number => {
    const known = columns.get(link.task);
    if (known !== undefined) {
      return known;
    }
    const before = link.after.flatMap((name) => linkOf.get(name) ?? []);
    const column = before.length === 0 ? 0 : 1 + Math.max(...before.map(columnOf));
    columns.set(link.task, column);
    return column;
  };
  const rows = new Map<number, number>();
  return links.map((link) => {
    const column = columnOf(link);
    const row = rows.get(column) ?? 0;
    rows.set(column, row + 1);
    return { link, x: column * (BOX.width + GAP.across), y: row * (BOX.height + GAP.down) };
  });
}

/** From the right edge of one box to the left edge of another. */
function curve(begin: Placed, end: Placed): string {
  const [x1, y1, x2, y2] = [begin.x + BOX.width, begin.y + BOX.height / 2, end.x, end.y + BOX.height / 2];
  const middle = (x1 + x2) / 2;
  return `M${x1} ${y1} C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
}
