/**
 * Live leases as the rows of a tree: a row for each folder, the leases in it below. The coordinator
 * sorts, filters and counts; the rows that are in view are asked for.
 */
import { computed, signal } from "@preact/signals";

import { api, ask } from "../api/client";
import type { Lease, LeaseFolder } from "../api/shapes";
import { Feed } from "./feed";

export type TreeRow =
  | { kind: "folder"; folder: string; count: number; open: boolean }
  /** `lease` is undefined until it is known. */
  | { kind: "lease"; place: number; folder: string; lease: Lease | undefined };

const KINDS = /^(lease|leases)_/;
/** Rows in view that are so far apart (closed folders lie between them) are asked for one by one. */
const GAP_MAX = 50;
const TRIES_MAX = 3;

export const filter = signal("");
export const folders = signal<readonly LeaseFolder[]>([]);
/** How many leases the filter leaves. */
export const total = signal(0);
const closed = signal<ReadonlySet<string>>(new Set());
/** Place in the list by folders -> the lease; those in view, as they were last told. */
const known = signal<ReadonlyMap<number, Lease>>(new Map());
let inView = { first: 0, count: 0 };

/** All rows: those of closed folders are left out. */
export const rowCount = computed(() => folders.value.reduce((sum, folder) => sum + 1 + (closed.value.has(folder.folder) ? 0 : folder.count), 0));

export const leasesFeed = new Feed(load, KINDS);

/** These rows are in view. */
export function showRows(first: number, count: number): void {
  if (first !== inView.first || count !== inView.count) {
    inView = { first, count };
    leasesFeed.ask();
  }
}

export function setFilter(text: string): void {
  filter.value = text;
  leasesFeed.ask();
}

export function toggleFolder(folder: string): void {
  const next = new Set(closed.value);
  if (!next.delete(folder)) {
    next.add(folder);
  }
  closed.value = next;
  leasesFeed.ask();
}

/** The rows from `first` on. */
export function rowsFrom(first: number, count: number): TreeRow[] {
  const rows: TreeRow[] = [];
  let row = 0;
  let place = 0;
  for (const { folder, count: leases } of folders.value) {
    const open = !closed.value.has(folder);
    if (row >= first && row < first + count) {
      rows.push({ kind: "folder", folder, count: leases, open });
    }
    row += 1;
    if (open) {
      const begin = Math.max(0, first - row);
      const end = Math.min(leases, first + count - row);
      for (let nth = begin; nth < end; nth += 1) {
        rows.push({ kind: "lease", place: place + nth, folder, lease: known.value.get(place + nth) });
      }
      row += leases;
    }
    place += leases;
    if (row >= first + count) {
      break;
    }
  }
  return rows;
}

async function load(): Promise<void> {
  const { first, count } = inView;
  const leases = new Map<number, Lease>();
  // What is in view follows from the folders, and those are told with the answer: where they are others now, once more.
  for (let tries = 0; tries < TRIES_MAX && count > 0; tries += 1) {
    const missing = rowsFrom(first, count).filter((row) => row.kind === "lease" && !leases.has(row.place));
    if (tries > 0 && missing.length === 0) {
      break;
    }
    for (const { skip, limit } of runsOf(missing)) {
      const reply = await ask(api.GET("/v1/locks", { params: { query: { order: "folder", filter: filter.value, skip, limit } } }));
      reply.items.forEach((lease, nth) => leases.set(skip + nth, lease));
      folders.value = reply.folders ?? [];
      total.value = reply.total ?? 0;
    }
  }
  known.value = leases;
}

/** The places that these rows need, as few runs as are worth a question each; one at least. */
function runsOf(rows: readonly TreeRow[]): { skip: number; limit: number }[] {
  const runs: { skip: number; limit: number }[] = [];
  for (const row of rows) {
    if (row.kind === "lease") {
      const last = runs.at(-1);
      if (last !== undefined && row.place - last.skip - last.limit <= GAP_MAX) {
        last.limit = row.place - last.skip + 1;
      } else {
        runs.push({ skip: row.place, limit: 1 });
      }
    }
  }
  return runs.length > 0 ? runs : [{ skip: 0, limit: GAP_MAX }];
}
