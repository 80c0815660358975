/** The backlog as a table, in the order of arrival or of priority. Only rows in view are drawn and asked for. */
import type { Task } from "../api/shapes";
import { countAll, openTask, order, setOrder, tableRows } from "../state/backlog";
import { dragging, findNeighbours } from "../state/placing";
import { useRowWindow } from "../state/rowWindow";
import { TaskButtons } from "./TaskButtons";
import { WindowedRows } from "./WindowedRows";
import { Words } from "./Words";

/** The height of a row (px); the style sheet has the same. */
const ROW_PX = 44;

export function TaskTable() {
  const rows = useRowWindow(ROW_PX);
  const total = countAll();
  return (
    <div class="scrolled tasks" ref={rows.box} tabIndex={0} role="group" aria-label="Table of tasks, scrolled by the arrow keys" onScroll={rows.onScroll}>
      <table aria-rowcount={total + 1}>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col" aria-sort={order.value === "arrival" ? "ascending" : "none"}>
              <button type="button" class="link" onClick={() => setOrder("arrival")}>
                Task
              </button>
            </th>
            <th scope="col">State</th>
            <th scope="col">Title</th>
            <th scope="col" aria-sort={order.value === "priority" ? "descending" : "none"}>
              <button type="button" class="link" onClick={() => setOrder("priority")}>
                Priority
              </button>
            </th>
            <th scope="col">After</th>
            <th scope="col">By, or what it writes</th>
            <th scope="col">Do</th>
          </tr>
        </thead>
        <WindowedRows list={tableRows} window={rows} total={total} rowPx={ROW_PX} columns={7} keyOf={(task) => task.task} draw={(task, place) => <Row task={task} place={place} />} />
      </table>
    </div>
  );
}

function Row({ task, place }: { task: Task; place: number }) {
  const neighbours = order.value === "priority" ? findNeighbours(tableRows, place) : undefined;
  return (
    <tr aria-rowindex={place + 2} {...(neighbours && dragging(task, neighbours))}>
      <th scope="row">
        <button type="button" class="link" aria-current={openTask.value === task.task ? "true" : undefined} onClick={() => (openTask.value = task.task)}>
          {task.task}
        </button>
      </th>
      <td>
        <span class={`state ${task.state}`}>{task.state}</span>
      </td>
      <td>
        <Words text={task.title} />
      </td>
      <td>{task.priority}</td>
      <td>{task.after.join(", ")}</td>
      <td>
        <Words text={task.claimed_by ?? task.resources.join(", ")} />
      </td>
      <td>
        <TaskButtons task={task} neighbours={neighbours} />
      </td>
    </tr>
  );
}
