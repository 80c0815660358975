/** What can be done with a task where it stands: what the coordinator says that a person may do with it. */
import type { Task } from "../api/shapes";
import { cancelTask, editTask, retryTask } from "../state/taskActions";

export function TaskButtons({ task }: { task: Task }) {
  const may = new Set(task.may ?? []);
  return (
    <div class="task-buttons">
      {may.has("edit") && (
        <>
          <button type="button" aria-label={`Raise the priority of ${task.task}`} title="Give it out earlier" onClick={() => void editTask(task, { priority: task.priority + 1 })}>
            ↑
          </button>
          <button type="button" aria-label={`Lower the priority of ${task.task}`} title="Give it out later" onClick={() => void editTask(task, { priority: task.priority - 1 })}>
            ↓
          </button>
        </>
      )}
      {may.has("retry") && (
        <button type="button" aria-label={`Retry ${task.task}`} title="Put it back, with its attempts counted afresh" onClick={() => void retryTask(task)}>
          ↻
        </button>
      )}
      {may.has("cancel") && (
        <button
          type="button"
          aria-label={`Cancel ${task.task}`}
          title={task.claimed_by === null ? "Take it out of the backlog" : "End its claim: what its agent has changed is kept as a review"}
          onClick={() => void cancelTask(task)}
        >
          ×
        </button>
      )}
    </div>
  );
}
