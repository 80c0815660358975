/** What is leased, by whom, why and for how long: a tree, filtered as one types. Only rows in view are drawn and asked for. */
import { useEffect } from "preact/hooks";

import type { Lease, Waiter } from "../api/shapes";
import { filter, leasesFeed, rowCount, rowsFrom, setFilter, showRows, toggleFolder, total } from "../state/leases";
import { useRowWindow } from "../state/rowWindow";
import { status } from "../state/store";
import { FolderRow } from "./FolderRow";
import { LeaseRow, ROW_PX } from "./LeaseRow";
import { LockForm } from "./LockForm";

export function LeaseTable() {
  const held = status.value?.leases_held ?? 0;
  return (
    <section aria-labelledby="leases">
      <h2 id="leases">Leases</h2>
      <LockForm />
      {held === 0 ? (
        <p class="empty">Nothing is leased. A file is leased by itself when an agent edits it.</p>
      ) : (
        <>
          <label class="filter">
            Filter <input type="search" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
            <span class="dim">
              {total.value} of {held}
            </span>
          </label>
          <LeaseTree />
        </>
      )}
    </section>
  );
}

function LeaseTree() {
  const { box, onScroll, first, count } = useRowWindow(ROW_PX);
  useEffect(() => leasesFeed.watch(), []);
  useEffect(() => showRows(first, count), [first, count]);
  const queued = countQueued(status.value?.waiters ?? []);
  return (
    <div class="leases" ref={box} tabIndex={0} role="group" aria-label="List of leases, scrolled by the arrow keys" onScroll={onScroll}>
      <ul style={{ height: `${rowCount.value * ROW_PX}px` }}>
        {rowsFrom(first, count).map((row, nth) =>
          row.kind === "folder" ? (
            <FolderRow
              key={row.folder}
              folder={row.folder}
              count={row.count}
              open={row.open}
              top={(first + nth) * ROW_PX}
              toggle={() => toggleFolder(row.folder)}
            />
          ) : (
            row.lease && (
              <LeaseRow
                key={keyOf(row.lease)}
                lease={row.lease}
                label={labelOf(row.lease, row.folder)}
                depth={row.lease.resource.includes("::") ? 2 : 1}
                top={(first + nth) * ROW_PX}
                queued={queued.get(row.lease.resource) ?? 0}
              />
            )
          ),
        )}
      </ul>
    </div>
  );
}

function keyOf(lease: Lease): string {
  return `${lease.resource}\0${lease.locked_by}\0${lease.worktree ?? ""}\0${lease.fencing_token}`;
}

/** Its name below its folder. */
function labelOf(lease: Lease, folder: string): string {
  return folder !== "" && lease.resource.startsWith(folder) ? lease.resource.slice(folder.length) : lease.resource;
}

function countQueued(waiters: readonly Waiter[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const resource of waiters.flatMap((waiter) => waiter.resources)) {
    counts.set(resource, (counts.get(resource) ?? 0) + 1);
  }
  return counts;
}
