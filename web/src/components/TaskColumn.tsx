/** The tasks in one state, the next to be given out first. Only those in view are drawn and asked for. */
import { useEffect } from "preact/hooks";

import type { TaskState } from "../api/shapes";
import { columnOf } from "../state/backlog";
import { findNeighbours } from "../state/placing";
import { useRowWindow } from "../state/rowWindow";
import { CARD_PX, TaskCard } from "./TaskCard";

interface Props {
  state: TaskState;
  total: number;
}

export function TaskColumn({ state, total }: Props) {
  const { box, onScroll, first, count } = useRowWindow(CARD_PX);
  const column = columnOf(state);
  useEffect(() => column.feed.watch(), [column]);
  useEffect(() => column.show(first, count), [column, first, count]);
  const places = Array.from({ length: Math.max(0, Math.min(count, total - first)) }, (_, nth) => first + nth);
  return (
    <section class={`column ${state}`} aria-labelledby={`column-${state}`}>
      <h3 id={`column-${state}`}>
        {state} <span class="count">{total}</span>
      </h3>
      <div class="scrolled" ref={box} tabIndex={0} role="group" aria-label={`Tasks that are ${state}, scrolled by the arrow keys`} onScroll={onScroll}>
        <ul style={{ height: `${total * CARD_PX}px` }}>
          {places.map((place) => {
            const task = column.at(place);
            return <TaskCard key={task?.task ?? place} task={task} place={place} total={total} neighbours={findNeighbours(column, place)} />;
          })}
        </ul>
      </div>
    </section>
  );
}
