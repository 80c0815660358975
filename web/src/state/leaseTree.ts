/** Leases as the rows of a tree: a row for each folder, its files below it, regions below their file. */
import type { Lease } from "../api/shapes";

export type TreeRow =
  | { kind: "folder"; folder: string; count: number; open: boolean }
  | { kind: "lease"; lease: Lease; label: string; depth: number };

/** Where what has no folder stands: files of the root, and names that are no files. */
const ROOT = "./";
const KEYS = "keys and git";

/** The rows, in the order of their names; those of a closed folder are left out. */
export function treeRows(leases: readonly Lease[], closed: ReadonlySet<string>): TreeRow[] {
  const folders = new Map<string, Lease[]>();
  for (const lease of leases) {
    const folder = folderOf(lease);
    folders.set(folder, [...(folders.get(folder) ?? []), lease]);
  }
  return [...folders.keys()].sort().flatMap((folder) => {
    const inside = (folders.get(folder) ?? []).sort((a, b) => (a.resource < b.resource ? -1 : 1));
    const open = !closed.has(folder);
    const row: TreeRow = { kind: "folder", folder, count: inside.length, open };
    return open ? [row, ...inside.map((lease) => leaseRow(lease, folder))] : [row];
  });
}

function folderOf(lease: Lease): string {
  if (lease.kind === "key" || lease.kind === "git" || lease.kind === "task") {
    return KEYS;
  }
  const file = lease.resource.split("::", 1)[0] ?? lease.resource;
  // A folder that is leased itself stands in the one above it; a glob where its fixed part ends.
  const fixed = (file.split(/[*?[]/, 1)[0] ?? file).slice(0, file.endsWith("/") ? -1 : undefined);
  const end = fixed.lastIndexOf("/");
  return end < 0 ? ROOT : fixed.slice(0, end + 1);
}

function leaseRow(lease: Lease, folder: string): TreeRow {
  const label = folder !== KEYS && lease.resource.startsWith(folder) ? lease.resource.slice(folder.length) : lease.resource;
  return { kind: "lease", lease, label, depth: lease.resource.includes("::") ? 2 : 1 };
}
