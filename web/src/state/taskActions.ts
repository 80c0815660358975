/** What a person can do with tasks: each is one operation of the documented door, and is taken back by another. */
import { api, ask } from "../api/client";
import { person } from "../api/entrance";
import { Refusal } from "../api/refusal";
import type { Task } from "../api/shapes";
import { act, type Undo } from "./news";
import type { Beside } from "./placing";

/** What a person says of a task. */
export interface Said {
  title: string;
  prompt: string;
  resources: string[];
  after: string[];
  priority: number;
}

export function addTask(said: Said): Promise<boolean> {
  return act(
    () => ask(api.POST("/v1/tasks", { body: said })),
    (task) => `${task.task} is added, and ${task.state}.`,
    (task) => () => cancelTask(task),
  );
}

/** Only what is given is changed. Based on what is known of the task: who changed it meanwhile is not overwritten. */
export function editTask(task: Task, changes: Partial<Said>): Promise<boolean> {
  return act(
    () => ask(api.PATCH("/v1/tasks/{task}", { params: { path: { task: task.task } }, body: { ...changes, seen: task.updated_at } })),
    (edited) => `${edited.task} is changed.`,
    (edited) => () => editTask(edited, pick(task, Object.keys(changes) as (keyof Said)[])),
  );
}

/** Give it another place in the order in which tasks are given out; `back` is the one that it has. */
export function placeTask(task: Task, beside: Beside, back: Beside | null): Promise<boolean> {
  return act(
    () => ask(api.PATCH("/v1/tasks/{task}", { params: { path: { task: task.task } }, body: { ...beside, seen: task.updated_at } })),
    (placed) => `${placed.task} is given out ${"before" in beside ? `before ${beside.before}` : `after ${beside.behind}`} now.`,
    (placed) => (back === null ? undefined : () => placeTask(placed, back, null)),
  );
}

/** Of a task that an agent is at, its claim ends, and what it has changed is kept as a review. */
export function cancelTask(task: Task): Promise<boolean> {
  return act(
    () =>
      ask(
        api.POST("/v1/tasks/{task}/cancel", {
          params: { path: { task: task.task } },
          body: { force: task.claimed_by !== null, reason: `cancelled by ${person()}` },
        }),
      ),
    (cancelled) => `${cancelled.task} is cancelled.`,
    (cancelled) => () => retryTask(cancelled),
  );
}

/** Its attempts are counted afresh. */
export function retryTask(task: Task): Promise<boolean> {
  return act(
    () => ask(api.POST("/v1/tasks/{task}/retry", { params: { path: { task: task.task } } })),
    (retried) => `${retried.task} is ${retried.state} again.`,
    // Dead and failed are no states that a person can put a task in.
    (retried) => (task.state === "cancelled" ? () => cancelTask(retried) : undefined),
  );
}

/** The coordinator reads the file: its name and its text tell what it is. */
export function importTasks(file: File): Promise<boolean> {
  return act(
    async () => ask(api.POST("/v1/tasks/import", { body: { text: await readText(file), name: file.name } })),
    ({ items, warnings }) => [`${items.length === 1 ? "1 task is" : `${items.length} tasks are`} added from ${file.name}.`, ...(warnings ?? [])].join(" "),
    ({ items }) => () => cancelAll(items),
  );
}

/** The file's text. Throws a `Refusal` where it has none. */
async function readText(file: File): Promise<string> {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Refusal("INVALID", `${file.name} cannot be read as text. Nothing was added.`, "Save it as UTF-8, and drop the file itself.", 0);
  }
}

/** The last first: those that come after others. Stops at the first that is refused. */
async function cancelAll(tasks: readonly Task[]): ReturnType<Undo> {
  for (const task of [...tasks].reverse()) {
    if (!(await cancelTask(task))) {
      return false;
    }
  }
  return act(
    () => Promise.resolve(tasks.length),
    (count) => `${count === 1 ? "1 task is" : `${count} tasks are`} cancelled.`,
  );
}

function pick(task: Task, names: readonly (keyof Said)[]): Partial<Said> {
  return Object.fromEntries(names.map((name) => [name, task[name]]));
}
