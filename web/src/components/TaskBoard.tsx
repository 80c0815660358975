/** The backlog as a board: a column for each state that any task is in. */
import { counts, STATES } from "../state/backlog";
import { TaskColumn } from "./TaskColumn";

export function TaskBoard() {
  return (
    <div class="board">
      {STATES.map((state) => {
        const total = counts.value?.[state] ?? 0;
        return total > 0 && <TaskColumn key={state} state={state} total={total} />;
      })}
    </div>
  );
}
