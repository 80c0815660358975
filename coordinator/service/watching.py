"""What the file watcher saw, told to the coordinator: versions, renames, writes without a lease."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from coordinator.files.content import digest
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource, conflicts, slot
from coordinator.service import lapse, notices
from coordinator.service.core import Service
from coordinator.service.rivals import near
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow
from coordinator.words.clock import iso
from coordinator.words.naming import kind_of, path_scope, resource

#: Versions in one event.
VERSIONS_MAX = 500
#: A write is seen a moment after it was made; its writer may have released the file meanwhile. So
#: far back (ms; and events) the log is searched for whoever had the right to write it then.
LATE_MS = 10_000
LATE_EVENTS = 5_000
_ENDINGS = frozenset({"lease_released", "lease_lapsed"})


@dataclass(frozen=True, slots=True)
class Seen:
    """One path that changed: its content now (None: gone), and where it was moved from, if so.

    `before` is what git has of it, for policies that want to show the difference. `changed_ms` is
    when it was written (the file's own time); None: unknown, as of a file that is gone.
    """

    path: str
    hash: str | None
    data: bytes | None = None
    before: bytes | None = None
    moved_from: str | None = None
    is_dir: bool = False
    changed_ms: int | None = None


def seen(svc: Service, tx: Tx, changes: Sequence[Seen]) -> None:
    """Record what the watcher saw; leases follow renames; unleased writes are told apart."""
    for change in changes:
        if change.moved_from is not None:
            _follow(svc, tx, change.moved_from, change.path)
    tx.memo.pop("rights_ended", None)  # jobs before this one, in the same transaction, may end more
    policy = svc.settings.watch.unleased
    active = bool((tx.row("agents_active") or (0,))[0])
    versions: list[tuple[str, str | None, str | None]] = []
    for change in changes:
        if change.is_dir:
            continue
        known = tx.row("version_get", change.path)
        if known is not None and known[0] == change.hash:
            continue
        holder = _holder(svc, tx, change)
        versions.append((change.path, change.hash, holder))
        if holder is None and active and policy != "ignore" and change.moved_from is None:
            _unleased(svc, tx, change, str(known[0]) if known and known[0] else None, policy)
    for start in range(0, len(versions), VERSIONS_MAX):
        tx.record(ev.VersionsSeen(versions=versions[start : start + VERSIONS_MAX]))


def _holder(svc: Service, tx: Tx, change: Seen) -> str | None:
    """Who had the right to write this path when it was written: the writer, as far as a lease can
    tell. Of a deletion the instant is not known: whoever has the right now, or had it just before.
    """
    asked = resource(change.path, "file", fold_case=svc.tree.fold_case)
    holder = None
    for raw in near(tx, "rivals", asked):
        lease = LeaseRow(*raw)
        if (
            lease.mode == "exclusive" and lease.expires_at > tx.now
            and conflicts(asked, "exclusive", "", lease)
        ):
            holder = lease.locked_by
            if change.changed_ms is None or iso(change.changed_ms) >= lease.locked_at:
                return holder
    for ended_at, agent, name, data in _rights_ended(tx):
        if change.changed_ms is not None and iso(change.changed_ms) > ended_at:
            break  # the others ended even earlier
        if overlaps(asked, as_resource(name, kind_of(name), data["scope"])):
            return agent
    return holder


def _rights_ended(tx: Tx) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Rights that ended lately, the latest first; read once for a batch of changes."""
    if "rights_ended" not in tx.memo:
        since = tx.later(-LATE_MS)
        tx.memo["rights_ended"] = [
            (str(at), str(agent), str(name), msgspec.json.decode(data))
            for at, agent, name, data in (
                *tx.recorded_of(_ENDINGS),
                *tx.rows("rights_ended_since", max(0, tx.last_seq - LATE_EVENTS), since),
            )
        ]
    found: list[tuple[str, str, str, dict[str, Any]]] = tx.memo["rights_ended"]
    return found


def _unleased(svc: Service, tx: Tx, change: Seen, known: str | None, policy: str) -> None:
    if change.hash == _decided_hash(tx, change.path):
        return  # our own revert
    tx.record(ev.UnleasedWrite(resource=change.path, hash=change.hash))
    if policy != "review":
        return
    if change.data is not None and change.hash is not None:
        tx.keep(change.hash, change.data)
    if known is None and change.before is not None:
        known = digest(change.before)
        tx.keep(known, change.before)
        if known == change.hash:
            return  # back to what is committed
    kept = (change.hash is None or change.data is not None) and (
        known is None or tx.row("blob_has", known) is not None
    )
    kind = "created" if known is None else "deleted" if change.hash is None else "modified"
    file = ev.FlaggedFile(
        path=change.path, scope=path_scope(change.path, svc.tree.fold_case), change=kind,
        kept=kept, baseline_hash=known, flagged_hash=change.hash,
    )
    lapse.flag(
        svc, tx, reason="unleased", agent=None, task=None, files=[file], leased_at=None,
        why=f"{change.path} was changed while agents were active and nobody had leased it.",
    )


def _decided_hash(tx: Tx, path: str) -> str | None:
    row = tx.row("review_written_last", path)
    return str(row[0]) if row and row[0] else None


def _follow(svc: Service, tx: Tx, old: str, new: str) -> None:
    """Leases on `old`, and on what lay below it, now mean `new` (invariant 10)."""
    was, now = path_scope(old, svc.tree.fold_case), path_scope(new, svc.tree.fold_case)
    asked = as_resource(old, "file", was)
    for raw in near(tx, "rivals", asked):
        lease = LeaseRow(*raw)
        if not lease.scope.startswith(was) or lease.kind in ("glob", "key"):
            continue
        name = new + lease.file_path[len(old) :]
        scope = now + lease.scope[len(was) :]
        kind = as_resource(lease.file_path, lease.kind, lease.scope).kind
        place = slot(kind, name, lease.mode, lease.locked_by)
        taken = [LeaseRow(*r) for r in tx.rows("leases_at_scope", scope)]
        if any(r.slot == place for r in taken):
            notices.post(
                tx, lease.locked_by, "moved",
                f"{old} was renamed to {new}, which {taken[0].locked_by} has leased: do not write "
                "there.", resource=name,
            )
            continue
        tx.record(
            ev.LeaseMoved(
                fencing_token=lease.fencing_token, agent=lease.locked_by, resource=name,
                old_scope=lease.scope, scope=scope, slot=place, moved_from=lease.file_path,
            )
        )
        tx.free(lease.file_path, lease.kind, lease.scope)
        notices.post(
            tx, lease.locked_by, "moved", f"{lease.file_path} was renamed to {name}; your lease "
            "followed.", resource=name,
        )
