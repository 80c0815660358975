/** What is leased, by whom, why and for how long: a tree, filtered as one types. Only rows in view are drawn. */
import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";

import type { Lease, Waiter } from "../api/shapes";
import { status } from "../state/store";
import { treeRows } from "../state/leaseTree";
import { FolderRow } from "./FolderRow";
import { LeaseRow, ROW_PX } from "./LeaseRow";
import { LockForm } from "./LockForm";

/** Rows above and below what is in view, so that scrolling shows no gap. */
const SPARE_ROWS = 8;
const VIEW_PX = 480;

export function LeaseTable() {
  const filter = useSignal("");
  const scrolled = useSignal(0);
  const box = useRef<HTMLDivElement>(null);
  const snapshot = status.value;
  const leases = snapshot?.leases ?? [];
  const wanted = filter.value.toLowerCase();
  const closed = useSignal<ReadonlySet<string>>(new Set());
  const matching = useMemo(
    () =>
      leases.filter((lease) =>
        [lease.resource, lease.locked_by, lease.description, lease.task ?? ""].some((text) => text.toLowerCase().includes(wanted)),
      ),
    [leases, wanted],
  );
  const tree = useMemo(() => treeRows(matching, closed.value), [matching, closed.value]);
  const toggle = (folder: string) => {
    const next = new Set(closed.value);
    if (!next.delete(folder)) {
      next.add(folder);
    }
    closed.value = next;
  };
  const queued = useMemo(() => countQueued(snapshot?.waiters ?? []), [snapshot]);
  const first = Math.max(0, Math.floor(scrolled.value / ROW_PX) - SPARE_ROWS);
  const rows = tree.slice(first, first + Math.ceil(VIEW_PX / ROW_PX) + 2 * SPARE_ROWS);
  return (
    <section aria-labelledby="leases">
      <h2 id="leases">Leases</h2>
      <LockForm />
      {leases.length === 0 ? (
        <p class="empty">Nothing is leased. An agent's edits lease what they write by themselves.</p>
      ) : (
        <>
          <label class="filter">
            Filter <input type="search" value={filter} onInput={(event) => (filter.value = event.currentTarget.value)} />
            <span class="dim">
              {matching.length} of {leases.length}
            </span>
          </label>
          <div
            class="leases"
            ref={box}
            tabIndex={0}
            role="group"
            aria-label="List of leases, scrolled by the arrow keys"
            onScroll={(event) => (scrolled.value = event.currentTarget.scrollTop)}
          >
            <ul style={{ height: `${tree.length * ROW_PX}px` }}>
              {rows.map((row, place) =>
                row.kind === "folder" ? (
                  <FolderRow
                    key={row.folder}
                    folder={row.folder}
                    count={row.count}
                    open={row.open}
                    top={(first + place) * ROW_PX}
                    toggle={() => toggle(row.folder)}
                  />
                ) : (
                  <LeaseRow
                    key={keyOf(row.lease)}
                    lease={row.lease}
                    label={row.label}
                    depth={row.depth}
                    top={(first + place) * ROW_PX}
                    queued={queued.get(row.lease.resource) ?? 0}
                  />
                ),
              )}
            </ul>
          </div>
        </>
      )}
    </section>
  );
}

function keyOf(lease: Lease): string {
  return `${lease.resource}\0${lease.locked_by}\0${lease.worktree ?? ""}\0${lease.fencing_token}`;
}

function countQueued(waiters: readonly Waiter[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const resource of waiters.flatMap((waiter) => waiter.resources)) {
    counts.set(resource, (counts.get(resource) ?? 0) + 1);
  }
  return counts;
}
