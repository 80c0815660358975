/** One task on the board. */
import type { Task } from "../api/shapes";
import { openTask } from "../state/backlog";
import { dragging, type Neighbours } from "../state/placing";
import { harmless } from "../words/texts";
import { TaskButtons } from "./TaskButtons";
import { Words } from "./Words";

/** The height of a card with what is below it (px); the style sheet has the same. */
export const CARD_PX = 96;

interface Props {
  /** Undefined: it is not known yet. */
  task: Task | undefined;
  place: number;
  /** How many stand in its column. */
  total: number;
  neighbours: Neighbours;
}

export function TaskCard({ task, place, total, neighbours }: Props) {
  return (
    <li class="task-card" style={{ top: `${place * CARD_PX}px` }} aria-posinset={place + 1} aria-setsize={total} {...(task && dragging(task, neighbours))}>
      {task && (
        <>
          <button type="button" class="link title" title={harmless(task.title)} aria-current={openTask.value === task.task ? "true" : undefined} onClick={() => (openTask.value = task.task)}>
            {task.task} <Words text={task.title} />
          </button>
          <span class="about dim">
            <Words text={describe(task)} />
          </span>
          <TaskButtons task={task} neighbours={neighbours} />
        </>
      )}
    </li>
  );
}

/** Who has it, its rank, what it comes after and what it writes, as far as there is any. */
function describe(task: Task): string {
  return [
    task.claimed_by ?? "",
    task.priority === 0 ? "" : `priority ${task.priority}`,
    task.after.length > 0 ? `after ${task.after.join(", ")}` : "",
    task.resources.join(", "),
  ]
    .filter(Boolean)
    .join(" · ");
}
