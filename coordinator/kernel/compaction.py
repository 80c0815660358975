"""Compaction in small steps: a snapshot replaces the old part of the log, and unneeded bytes go.

Each step is a small transaction of its own, so nobody waits for it. daemon/compaction.py takes the
steps and makes the snapshot beside them. Between two steps the log always gives the state, because
the snapshot is there before the first event goes.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.kernel.core import Service, ms
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.words import requests as rq

#: More days than this are for ever.
DAYS_MAX = 36_500.0


def cut(svc: Service, view: View, req: rq.Compact) -> int:
    """The last event that the log can do without: older than is to be kept, and needed by no open
    review and no unfinished task; 0 for none."""
    days = req.keep_days if req.keep_days is not None else svc.settings.database.keep_days
    ago = min(ms(min(days, DAYS_MAX) * 86_400), view.now_ms)  # the log begins later than time does
    last = int(view.value("events_older_than", view.later(-ago)) or 0)
    needed = view.value("oldest_needed")
    return min(last, int(needed) - 1) if needed is not None else last


def covered(view: View) -> int:
    """The last event that a snapshot stands for already; 0 for none."""
    return int(view.value("snapshot_seq") or 0)


def put_snapshot(tx: Tx, upto: int, body: bytes) -> None:
    """From now on the log begins with this snapshot of the state after event `upto`."""
    tx.write_beside("snapshot_put", upto, tx.now, body)
    tx.write_beside("snapshots_delete_before", upto)
    tx.write_beside("waypoints_delete_before", upto)


def remove_events(tx: Tx, upto: int, most: int) -> int:
    """Remove some of the events that the snapshot stands for; how many."""
    tx.write_beside("events_delete_some", upto, most)
    return tx.db.changes()


def remove_blobs(tx: Tx, digests: Sequence[str], kept: set[str]) -> int:
    """Remove contents that nothing referred to when they were looked for, but for those that were
    `kept` since; how many."""
    gone = [digest for digest in digests if digest not in kept]
    for digest in gone:
        tx.write_beside("blob_delete", digest)
    return len(gone)


def note_removed(tx: Tx, events: int, blobs: int) -> None:
    """Say in the log what was removed."""
    if events or blobs:
        tx.record(ev.Noted(what="compacted", facts={"events": events, "blobs": blobs}))
