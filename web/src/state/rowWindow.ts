/** Which rows of a long list are in view: only those are drawn, and only those are asked for. */
import { useSignal } from "@preact/signals";
import { type RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** Rows above and below what is in view, so that scrolling shows no gap. */
const SPARE_ROWS = 8;
/** A list this far below or above the page's view is drawn, too. */
const SPARE_PX = 300;
/** Windows begin and end at multiples of this, so that not each row scrolled by is another window. */
const STEP_ROWS = 8;

export interface RowWindow {
  /** The element that scrolls. */
  box: RefObject<HTMLDivElement | null>;
  onScroll: () => void;
  /** The first row to be drawn, and how many; 0 where the list itself is out of view. */
  first: number;
  count: number;
}

/** Follow what is in view of a list with rows of one height. `scrolled`: the element that scrolls, where it is known already. */
export function useRowWindow(rowPx: number, scrolled?: RefObject<HTMLDivElement | null>): RowWindow {
  const own = useRef<HTMLDivElement>(null);
  const box = scrolled ?? own;
  const first = useSignal(0);
  const count = useSignal(0);
  const isInView = useRef(false);
  const measure = () => {
    const element = box.current;
    if (element === null || !isInView.current) {
      count.value = 0;
      return;
    }
    first.value = roundDown(Math.max(0, Math.floor(element.scrollTop / rowPx) - SPARE_ROWS));
    count.value = roundDown(Math.ceil(element.clientHeight / rowPx) + 2 * SPARE_ROWS + 2 * STEP_ROWS);
  };
  useLayoutEffect(() => {
    const element = box.current as HTMLDivElement;
    const size = new ResizeObserver(measure);
    const view = new IntersectionObserver(
      (entries) => {
        isInView.current = entries.at(-1)?.isIntersecting ?? false;
        measure();
      },
      { rootMargin: `${SPARE_PX}px` },
    );
    size.observe(element);
    view.observe(element);
    return () => {
      size.disconnect();
      view.disconnect();
    };
  }, []);
  return { box, onScroll: measure, first: first.value, count: count.value };
}

function roundDown(row: number): number {
  return row - (row % STEP_ROWS);
}
