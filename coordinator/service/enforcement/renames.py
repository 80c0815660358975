"""Leases follow what they are on when that gets another name by a rename.

Owns the rule for two leases that come together so (architecture.md, 4.3.1). A link that comes to
stand at a leased name, or above it, renames nothing: the lease stays on its name. Never looks at
the disk in a transaction.
"""

from __future__ import annotations

from coordinator.looking.facts import Content, Lapsed, Unready
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource, conflicts, slot
from coordinator.service import repository_files
from coordinator.service.core import Service
from coordinator.service.holders import notices
from coordinator.service.leasing import lapse, partial_work
from coordinator.service.leasing.conflicts import place
from coordinator.service.leasing.grant import end
from coordinator.service.leasing.overlapping import near
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import path_scope


def follow(svc: Service, tx: Tx, old: str, new: str, by: str | None = None) -> None:
    """Leases on `old`, and on what lay below it, now mean `new` (invariant 10). `by`: when that was
    heard of (ISO text): what was leased later is what stands at the old name since.

    Raises:
        Unready: lapsed leases there have to be closed before, or files to be looked at.
    """
    was, now = path_scope(old, svc.fold_case), path_scope(new, svc.fold_case)
    leases = [lease for raw in near(tx, "rivals", as_resource(old, "file", was))
              if (lease := LeaseRow(*raw)).scope.startswith(was) and lease.worktree is None
              and lease.kind not in ("glob", "key") and not (by and lease.locked_at > by)]
    tx.looked.require(place(one.file_path, one.kind) for one in leases if one.kind == "file")
    for lease in leases:
        if not _is_there(tx, lease):
            _arrive(svc, tx, lease, new + lease.file_path[len(old):], now + lease.scope[len(was):])
    _out_of_directories(svc, tx, old, new)


def _is_there(tx: Tx, lease: LeaseRow) -> bool:
    """Whether the very file that was leased stands at its name: then another was moved, before."""
    if lease.kind != "file" or lease.inode is None:
        return False
    try:
        found = tx.looked.located(place(lease.file_path, lease.kind))
    except Refusal:
        return False
    return found.inode == lease.inode and found.resource.scope == lease.scope


def _arrive(svc: Service, tx: Tx, lease: LeaseRow, name: str, scope: str) -> None:
    """What this lease is on has another name now. The rule where that name lies within what another
    holds: who holds the place keeps it. The lease that came ends; what its holder had changed is
    flagged, and both are told. But where nothing was at that name, or at one below it, when the
    other took it, later than this one, what stands there now is this one's: the other ends."""
    kind = as_resource(lease.file_path, lease.kind, lease.scope).kind
    asked = as_resource(name, kind, scope)
    place = slot(kind, name, lease.mode, lease.locked_by)
    there = [row for row in (LeaseRow(*raw) for raw in near(tx, "rivals", asked))
             if row.fencing_token != lease.fencing_token]
    others = [row for row in there if conflicts(
        asked, lease.mode, lease.locked_by, row, lease.agreed_as)]
    same = [row for row in there if row.scope == scope and row.slot == place]
    lapsed = [Lapsed(row.locked_by, row.task_id) for row in (*others, *same, lease)
              if row.expires_at <= tx.now]
    if lapsed:
        raise Unready(lapsed=dict.fromkeys(lapsed))
    if others and all(_came_to_nothing(tx, row, lease, scope) for row in others):
        for row in others:
            _end_for(tx, row, lease, name)
        same = [row for row in same if row not in others]
    elif others:
        _give_way(svc, tx, lease, name, others[0])
        return
    if same:  # its holder has both names: what was at this one when it was leased stays known
        return
    was_at = _was_at(tx, lease, name)
    # (At the name that it was called by when the work began stood nothing else.)
    over = None if (others or lease.kind != "file"
                    or name == (lease.was_at or lease.file_path)) else _stood_there(svc, tx, name)
    tx.record(
        ev.LeaseMoved(
            fencing_token=lease.fencing_token, agent=lease.locked_by, resource=name,
            old_scope=lease.scope, scope=scope, slot=place, moved_from=lease.file_path,
            was_at=was_at, over=over,
        )
    )
    tx.free(lease.file_path, lease.kind, lease.scope)
    notices.post(
        tx, lease.locked_by, "moved", f"{lease.file_path} was renamed to {name}; your lease "
        "followed.", resource=name,
    )


def _out_of_directories(svc: Service, tx: Tx, old: str, new: str) -> None:
    """What was moved out of a directory or glob that somebody writes, to where nobody has leased,
    is a part of that one's work."""
    was = as_resource(old, "file", path_scope(old, svc.fold_case))
    now = as_resource(new, "file", path_scope(new, svc.fold_case))
    left = [row for row in (LeaseRow(*raw) for raw in near(tx, "rivals", was))
            if row.kind in ("dir", "glob") and not row.scope.startswith(was.scope)
            and row.expires_at > tx.now and row.worktree is None and partial_work.is_written(row)]
    if not left or any(overlaps(now, as_resource(row.file_path, row.kind, row.scope))
                       and row.expires_at > tx.now
                       for row in (LeaseRow(*raw) for raw in near(tx, "rivals", now))):
        return
    for row in left:
        held = as_resource(row.file_path, row.kind, row.scope)
        known = [str(path) for path, _ in tx.rows("baselines_of", row.fencing_token)]
        files: list[tuple[str, str | None]] = [
            (new + path[len(old):], None) for path in known if path.startswith(f"{old}/")]
        if not files and overlaps(was, held):
            tx.looked.require([Content(svc.where(None, new))])
            if partial_work.content(tx, svc.where(None, new)).hash is not None:
                files = [(new, _stood_there(svc, tx, new))]
        files = [(path, over) for path, over in files if path not in known]
        if files:
            tx.record(ev.MovedOut(fencing_token=row.fencing_token, agent=row.locked_by,
                                  resource=row.file_path, moved_from=old, files=files))


def _was_at(tx: Tx, lease: LeaseRow, name: str) -> str | None:
    """What is moved to `name` was called so when the work on it began; None: it is called so again,
    or nothing was there then."""
    if lease.kind == "dir":
        there = bool(tx.rows("baselines_of", lease.fencing_token))
    else:
        there = lease.kind == "file" and lease.content_hash is not None
    was = lease.was_at or lease.file_path
    return was if there and was != name else None


def _stood_there(svc: Service, tx: Tx, name: str, kept: LeaseRow | None = None) -> str | None:
    """The content of the file that another was moved over, as it was last seen there; else as
    git has it. `kept`: the lease of another on that place. None: nothing, as far as is known.

    Raises:
        Unready: git has to be asked.
    """
    if kept is not None and (began := _began(tx, kept, name)) is not None:
        return began
    seen = tx.row("version_get", name)
    if seen is not None and (seen[0] is None or tx.row("blob_has", seen[0]) is not None):
        return None if seen[0] is None else str(seen[0])
    found = tx.looked.after(
        f"committed {name}", lambda: repository_files.committed(svc, [name])).get(name)
    if found is None or found.hash is None:
        return None if seen is None else str(seen[0])
    repository_files.keep(tx, found)
    return found.hash


def _began(tx: Tx, kept: LeaseRow, name: str) -> str | None:
    """What was at this name when the lease began that it lies within."""
    if kept.kind == "file":
        return kept.content_hash
    row = tx.row("baseline_get", kept.fencing_token, name)
    return str(row[0]) if row is not None else None


def _came_to_nothing(tx: Tx, row: LeaseRow, lease: LeaseRow, scope: str) -> bool:
    """Whether this lease is on the name that the other came to, on one below, or on a file's name
    that has become a directory above; and nothing was there when it was taken, later than the
    other: by a command, say, that moved what the other is on."""
    there = row.scope.startswith(scope) or (row.kind == "file" and scope.startswith(row.scope))
    return (there and row.fencing_token > lease.fencing_token
            and row.kind in ("file", "dir") and row.content_hash is None
            and not tx.rows("baselines_of", row.fencing_token))


def _end_for(tx: Tx, row: LeaseRow, lease: LeaseRow, name: str) -> None:
    end(tx, row, by=lease.locked_by)
    notices.post(
        tx, row.locked_by, "moved",
        f"{lease.file_path}, which {lease.locked_by} holds, was moved to {name}. Nothing was there "
        f"when you leased {row.file_path}, so your lease on it has ended: do not write there.",
        resource=name,
    )


def _give_way(svc: Service, tx: Tx, lease: LeaseRow, name: str, kept: LeaseRow) -> None:
    path = name.rpartition("::")[0] if lease.kind == "region" else name
    flagged = lapse.end_alone(
        svc, tx, lease, "moved", f"{lease.file_path}, which {lease.locked_by} held, was moved "
        f"to {name}, which {kept.locked_by} holds.",
        now_at=path, over=_stood_there(svc, tx, path, kept) if lease.kind == "file" else None,
    )
    said = flagged.told("What was changed is") if flagged else ""
    review = flagged.review if flagged else None
    notices.post(
        tx, lease.locked_by, "moved",
        f"{lease.file_path} is {name} now, which {kept.locked_by} has leased ({kept.file_path}). "
        f"So your lease on it has ended: do not write there.{said}", resource=name, review=review,
    )
    notices.post(
        tx, kept.locked_by, "moved",
        f"{lease.file_path}, which {lease.locked_by} held, was moved to {name}, within your lease "
        f"on {kept.file_path}. You keep it; read it before you write it.{said}", resource=name,
        review=review,
    )
