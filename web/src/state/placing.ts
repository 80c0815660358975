/** The place of a task in a list that begins with what is given out first: by dragging it, or one step at a time. */
import { signal } from "@preact/signals";

import { readsOnly } from "../api/entrance";
import type { Task } from "../api/shapes";
import { placeTask } from "./taskActions";
import type { WindowedList } from "./windowedList";

/** What a task is put beside. */
export type Beside = { before: string } | { behind: string };

/** The task right before and right behind one, of those whose place can be changed. */
export interface Neighbours {
  list: WindowedList<Task>;
  previous: Task | undefined;
  next: Task | undefined;
}

/** The task that is dragged, and where a drop would put it. */
export const dragged = signal<{ task: Task; neighbours: Neighbours } | null>(null);
export const target = signal<{ task: string; side: "before" | "behind" } | null>(null);

export function findNeighbours(list: WindowedList<Task>, place: number): Neighbours {
  return { list, previous: nearest(list, place, -1), next: nearest(list, place, 1) };
}

function nearest(list: WindowedList<Task>, place: number, step: -1 | 1): Task | undefined {
  let found: Task | undefined;
  do {
    place += step;
    found = list.at(place);
  } while (found !== undefined && !canBePlaced(found));
  return found;
}

function canBePlaced(task: Task): boolean {
  return task.may?.includes("edit") ?? false;
}

/** One step earlier or later; nothing where it stands at that end. */
export function step(task: Task, neighbours: Neighbours, side: "before" | "behind"): void {
  const other = side === "before" ? neighbours.previous : neighbours.next;
  if (other !== undefined) {
    put(task, neighbours, side, other);
  }
}

function put(task: Task, { previous, next }: Neighbours, side: "before" | "behind", other: Task): void {
  const back: Beside | null = next !== undefined ? { before: next.task } : previous !== undefined ? { behind: previous.task } : null;
  void placeTask(task, side === "before" ? { before: other.task } : { behind: other.task }, back);
}

/** What makes the element of a task one that is dragged, and on which others of its list are dropped. */
export function dragging(task: Task, neighbours: Neighbours) {
  const takes = () => dragged.value?.neighbours.list === neighbours.list && dragged.value.task.task !== task.task && canBePlaced(task);
  return {
    draggable: canBePlaced(task) && !readsOnly(),
    "data-drop": target.value?.task === task.task && dragged.value !== null ? target.value.side : undefined,
    onDragStart: (event: DragEvent) => {
      dragged.value = { task, neighbours };
      event.dataTransfer?.setData("text/plain", task.task);
    },
    onDragEnd: () => (dragged.value = target.value = null),
    onDragOver: (event: DragEvent) => {
      if (takes()) {
        event.preventDefault();
        const { top, height } = (event.currentTarget as HTMLElement).getBoundingClientRect();
        const side = event.clientY < top + height / 2 ? "before" : "behind";
        if (target.value?.task !== task.task || target.value.side !== side) {
          target.value = { task: task.task, side };
        }
      }
    },
    onDrop: (event: DragEvent) => {
      if (takes() && dragged.value !== null && target.value !== null) {
        event.preventDefault();
        put(dragged.value.task, dragged.value.neighbours, target.value.side, task);
        dragged.value = target.value = null;
      }
    },
  };
}
