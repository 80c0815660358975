/** The backlog: as a board or a table, filtered as one types, with the task that is looked at beside it. */
import "../backlog.css";

import { useEffect } from "preact/hooks";

import { countAll, counts, countsFeed, filter, openTask, setFilter, view } from "../state/backlog";
import { addTask } from "../state/taskActions";
import { TaskBoard } from "./TaskBoard";
import { TaskForm } from "./TaskForm";
import { TaskImport } from "./TaskImport";
import { TaskPanel } from "./TaskPanel";
import { TaskTable } from "./TaskTable";

export function BacklogScreen() {
  useEffect(() => countsFeed.watch(), []);
  return (
    <div class={openTask.value === null ? "columns" : "columns with-detail"}>
      <section aria-labelledby="backlog">
        <h2 id="backlog">Backlog</h2>
        <TaskImport>
          <details>
            <summary>Add a task</summary>
            <TaskForm button="Add it" send={addTask} />
          </details>
          <div class="filter">
            <label>
              Filter <input type="search" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
            </label>
            <span class="dim" role="status">
              {counts.value !== null && `${countAll()} ${countAll() === 1 ? "task" : "tasks"}`}
            </span>
            <div class="switch" role="group" aria-label="How to see it">
              {(["board", "table"] as const).map((name) => (
                <button key={name} type="button" aria-pressed={view.value === name} onClick={() => (view.value = name)}>
                  {name === "board" ? "Board" : "Table"}
                </button>
              ))}
            </div>
          </div>
          {counts.value !== null && countAll() === 0 ? (
            <p class="empty">
              {filter.value === "" ? (
                <>
                  The backlog is empty. Add a task above, drop a file of tasks here, or type <code>coord task import tasks.yaml</code>.
                </>
              ) : (
                "No task says this in its id, title, holder or resources."
              )}
            </p>
          ) : view.value === "board" ? (
            <TaskBoard />
          ) : (
            <TaskTable />
          )}
        </TaskImport>
      </section>
      {openTask.value !== null && <TaskPanel name={openTask.value} />}
    </div>
  );
}
