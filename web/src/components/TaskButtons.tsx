/** What can be done with a task where it stands: what the coordinator says that a person may do with it. */
import type { Task } from "../api/shapes";
import { cancelTask, editTask, retryTask } from "../state/taskActions";
import { type Neighbours, step } from "../state/placing";
import { TaskButton } from "./TaskButton";

interface Props {
  task: Task;
  /** In a list that begins with what is given out first. */
  neighbours?: Neighbours | undefined;
}

export function TaskButtons({ task, neighbours }: Props) {
  const may = new Set(task.may ?? []);
  return (
    <div class="task-buttons" data-acts>
      {may.has("edit") && neighbours !== undefined && (
        <>
          <TaskButton label={`Move ${task.task} up`} title="Give it out one place earlier" idle={neighbours.previous === undefined} press={() => step(task, neighbours, "before")}>
            ↑
          </TaskButton>
          <TaskButton label={`Move ${task.task} down`} title="Give it out one place later" idle={neighbours.next === undefined} press={() => step(task, neighbours, "behind")}>
            ↓
          </TaskButton>
        </>
      )}
      {may.has("edit") && neighbours === undefined && (
        <>
          <TaskButton label={`Raise the priority of ${task.task}`} title="Give it out earlier" press={() => void editTask(task, { priority: task.priority + 1 })}>
            ↑
          </TaskButton>
          <TaskButton label={`Lower the priority of ${task.task}`} title="Give it out later" press={() => void editTask(task, { priority: task.priority - 1 })}>
            ↓
          </TaskButton>
        </>
      )}
      {may.has("retry") && (
        <TaskButton label={`Retry ${task.task}`} title="Put it back, with its attempts counted afresh" press={() => void retryTask(task)}>
          ↻
        </TaskButton>
      )}
      {may.has("cancel") && (
        <TaskButton
          label={`Cancel ${task.task}`}
          title={task.claimed_by === null ? "Take it out of the backlog" : "End its claim: what its agent has changed is kept as a review"}
          press={() => void cancelTask(task)}
        >
          ×
        </TaskButton>
      )}
    </div>
  );
}
