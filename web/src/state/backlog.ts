/**
 * The backlog as it is seen: the columns of the board, the rows of the table, and the task whose panel
 * is open. The coordinator filters, sorts and counts; the rows that are in view are asked for.
 */
import { signal } from "@preact/signals";

import { api, ask } from "../api/client";
import type { Task, TaskShown, TaskState } from "../api/shapes";
import { Feed } from "./feed";
import { WindowedList } from "./windowedList";

export type Order = "arrival" | "priority";

/** In the order in which a task goes through them; what has ended comes last. */
export const STATES: readonly TaskState[] = ["pending", "ready", "claimed", "review", "failed", "blocked", "dead", "done", "cancelled"];

const KINDS = /^task_/;
/** What the panel tells of a task follows from leases, attempts and reviews, too. */
const KINDS_OF_PANEL = /^(task|lease|leases|candidate|review)_/;

export const view = signal<"board" | "table">("board");
export const filter = signal("");
/** The order of the table; a column of the board begins with what is given out first. */
export const order = signal<Order>("arrival");
export const openTask = signal<string | null>(null);
/** What is known of the task whose panel is open; null: nothing yet. */
export const shownTask = signal<TaskShown | null>(null);
/** State -> how many tasks are in it, of those that the filter leaves; null: not known yet. */
export const counts = signal<Readonly<Record<string, number>> | null>(null);

/** Rows of the backlog; what is counted is kept. */
async function listTasks(skip: number, limit: number, by: Order, state?: TaskState): Promise<readonly Task[]> {
  const query = { filter: filter.value, brief: true, order: by, skip, limit, ...(state && { state }) };
  const reply = await ask(api.GET("/v1/tasks", { params: { query } }));
  counts.value = reply.counts;
  return reply.items;
}

export const countsFeed = new Feed(() => listTasks(0, 1, "arrival"), KINDS);
export const tableRows = new WindowedList<Task>((skip, limit) => listTasks(skip, limit, order.value), KINDS);
const columns = new Map(STATES.map((state) => [state, new WindowedList<Task>((skip, limit) => listTasks(skip, limit, "priority", state), KINDS)]));
const panelFeed = new Feed(async () => {
  const task = openTask.value;
  if (task !== null) {
    const reply = await ask(api.GET("/v1/tasks/{task}", { params: { path: { task } } }));
    if (task === openTask.value) {
      shownTask.value = reply;
    }
  }
}, KINDS_OF_PANEL);

/** The column of a state on the board. */
export function columnOf(state: TaskState): WindowedList<Task> {
  return columns.get(state) as WindowedList<Task>;
}

export function countAll(): number {
  return Object.values(counts.value ?? {}).reduce((sum, count) => sum + count, 0);
}

export function setFilter(text: string): void {
  filter.value = text;
  askForAll();
}

export function setOrder(by: Order): void {
  order.value = by;
  tableRows.feed.ask();
}

/** Follow the task whose panel is opened; call what is returned when it is closed. */
export function followTask(task: string): () => void {
  if (shownTask.value?.task !== task) {
    shownTask.value = null;
  }
  const leave = panelFeed.watch();
  panelFeed.ask();
  return leave;
}

function askForAll(): void {
  countsFeed.ask();
  tableRows.feed.ask();
  columns.forEach((column) => column.feed.ask());
}
