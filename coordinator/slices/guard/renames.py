"""A rename belongs to the work of the agent that holds one of the two names, which leases the
other, too.

The module owns that rule, and the rule for two leases that a rename brings together
(architecture.md). A link that appears at a leased name, or above it, renames nothing: the lease
stays on its name. The disk is never looked at in a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from coordinator.kernel.core import Service
from coordinator.kernel.holders import notices
from coordinator.kernel.leasing import (
    changed_parts,
    earlier_content,
    lapse,
    other_names,
    partial_work,
)
from coordinator.kernel.leasing.grant import end, free_slot, in_its_place
from coordinator.kernel.leasing.located import place
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.looking.facts import Content, Lapsed, Unready
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource, both_shared, conflicts
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, VersionRow
from coordinator.words import resource_names
from coordinator.words.clock import from_iso
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import Resource, path_scope

#: How far (ms) the kernel's clock for files may run behind.
CLOCK_MS = 20
#: Names beside its first one under which one thing is leased, for it was renamed again and again.
NAMES_MAX = 16


def follow(svc: Service, tx: Tx, old: str, new: str, by: str | None = None, *,
           is_dir: bool = False) -> None:
    """Give both names to the holder of `old`, of what was below it, or of what contains one of the
    two (invariant 10). `by`: when the rename was heard of (ISO text). A later lease on the old name
    is on the file that replaced it. `is_dir`: it was a directory. The renamed file may have moved
    again meanwhile.

    Raises:
        Unready: lapsed leases there have to be closed before, or files to be looked at.
    """
    was, now = path_scope(old, svc.fold_case), path_scope(new, svc.fold_case)
    if was == now:
        return
    leases = _list_below(tx, old, was, by)
    if not leases:
        _out_of(svc, tx, old, new, by, is_dir)
        _into(svc, tx, old, new, by)
        return
    names = {lease.fencing_token: new + lease.file_path[len(old):] for lease in leases}
    files = [lease for lease in leases if lease.kind == "file"]
    tx.looked.require(place(name, lease.kind) for lease in files
                      for name in (lease.file_path, names[lease.fencing_token]))
    leases = [lease for lease in leases if not _is_there(tx, lease)]
    over = earlier_content.stood_there(svc, tx, [
        resource_names.path_of(names[lease.fencing_token], lease.kind)
        for lease in leases if lease.kind != "dir" and partial_work.is_written(lease)])
    for lease in leases:
        _arrive(svc, tx, lease, names[lease.fencing_token], now + lease.scope[len(was):], over)


def is_leased(svc: Service, view: View, name: str) -> bool:
    """Whether a name, or something below it, is leased in the main working tree."""
    scope = path_scope(name, svc.fold_case)
    return any(row.scope.startswith(scope) and row.worktree is None
               for row in leases_near(view, as_resource(name, "file", scope)))


def _is_later(lease: LeaseRow, by: str | None) -> bool:
    """Whether a lease was taken after the rename was heard of. A lease that a rename made belongs
    to an earlier one, whenever it was recorded."""
    return by is not None and lease.goes_with is None and lease.locked_at > by


def _is_there(tx: Tx, lease: LeaseRow) -> bool:
    """Whether the very file that was leased is at its name. Then another file was moved, before the
    lease."""
    if lease.kind != "file" or lease.inode is None:
        return False
    try:
        located = tx.looked.located(place(lease.file_path, lease.kind))
    except Refusal:
        return False
    return located.inode == lease.inode and located.resource.scope == lease.scope


def _list_below(tx: Tx, old: str, scope: str, by: str | None) -> list[LeaseRow]:
    """The leases that go with what was renamed."""
    return [lease for lease in leases_near(tx, as_resource(old, "file", scope))
            if lease.scope.startswith(scope) and lease.worktree is None
            and lease.kind not in ("glob", "key") and not _is_later(lease, by)]


def _arrive(svc: Service, tx: Tx, lease: LeaseRow, name: str, scope: str,
            over: Mapping[str, str | None]) -> None:
    """The leased file has another name now. If that name belongs to another holder, the holder of
    the place keeps it: the arriving lease ends, its changes are flagged, and both are told. There
    is one exception. If nothing was at that name, or at a name below it, when the other took it,
    and the other took it later than this lease, then the file there is this holder's, and the other
    lease ends. `over`: what was there, by path."""
    kind = as_resource(lease.file_path, lease.kind, lease.scope).kind
    asked = as_resource(name, kind, scope)
    there = [row for row in leases_near(tx, asked) if row.fencing_token != lease.fencing_token]
    others = [row for row in there if conflicts(
        asked, lease.mode, lease.locked_by, row, lease.agreed_as)]
    # Only the main tree is watched. A lease on a copy elsewhere is on another file.
    own = [row for row in there if row.locked_by == lease.locked_by and row.worktree is None]
    same = [row for row in own if _has_it(row, lease, asked)]
    _check_live(tx, (*others, *same, lease))
    if others and not _end_unused(svc, tx, lease, name, scope, others):
        if _hits_no_part(svc, tx, lease, name, others):
            end(tx, lease)
        else:
            _give_way(svc, tx, lease, name, others[0], over)
        return
    if same:  # its holder has both names: what was at this one when it was leased stays known
        return
    linked = _linked(tx, lease, name)
    if linked is not None:
        notices.post(
            tx, lease.locked_by, "moved",
            f"{lease.file_path} was renamed to {name}. That is {linked.file_path}, which "
            f"{linked.locked_by} holds, under one more name (a hard link): your lease did not "
            "follow; do not write there.", resource=name,
        )
        return
    _have_both(tx, lease, asked, over.get(resource_names.path_of(name, kind)), bool(others))


def _check_live(tx: Tx, rows: Sequence[LeaseRow]) -> None:
    lapsed = [Lapsed(row.locked_by, row.task_id) for row in rows if row.expires_at <= tx.now]
    if lapsed:
        raise Unready(lapsed=dict.fromkeys(lapsed))


def _end_unused(svc: Service, tx: Tx, lease: LeaseRow, name: str, scope: str,
                others: Sequence[LeaseRow]) -> bool:
    """End others' leases on the new name, if all of them came to nothing there."""
    if not all(_came_to_nothing(svc, tx, row, lease, scope) for row in others):
        return False
    for row in others:
        _end_for(tx, row, lease, name)
    return True


def _has_it(row: LeaseRow, lease: LeaseRow, asked: Resource) -> bool:
    """Whether another lease of its holder (`row`) gives what this one would at its new name."""
    if row.scope == asked.scope and row.mode == lease.mode and row.kind != "glob":
        return True
    return (row.mode == "exclusive" and row.kind != "region" and asked.scope.startswith(row.scope)
            and overlaps(asked, as_resource(row.file_path, row.kind, row.scope)))


def _have_both(tx: Tx, lease: LeaseRow, asked: Resource, over: str | None, free: bool) -> None:
    """The lease follows to its new name, or its holder has that, too. `over`: what was there;
    `free`: others had leased it, and nothing was."""
    name = asked.name
    if _moves_whole(tx, lease) and over is None:
        tx.record(ev.LeaseMoved(
            fencing_token=lease.fencing_token, agent=lease.locked_by, resource=name,
            old_scope=lease.scope, scope=asked.scope, moved_from=lease.file_path,
            slot=free_slot(tx, lease.locked_by, asked, lease.mode, lease.worktree,
                           lease.purpose),
        ))
        tx.free(lease.file_path, lease.kind, lease.scope)
        text = "your lease followed"
    else:
        began = None if free else over
        # A file that arrived with leased regions is all new there.
        _lease_too(tx, lease, asked, None if asked.kind == "region" else lease.inode, began,
                   lease.goes_with or lease.file_path)
        text = "you hold both names until you are done with it"
    notices.post(
        tx, lease.locked_by, "moved", f"{lease.file_path} was renamed to {name}; {text}.",
        resource=name,
    )


def _linked(tx: Tx, lease: LeaseRow, name: str) -> LeaseRow | None:
    """The holder, under another name, of the file that is now at this one. A hard link to it
    replaced the leased file, which nobody reports, and was moved away from there."""
    if lease.kind != "file":
        return None
    try:
        located = tx.looked.located(place(name, lease.kind))
    except Refusal:
        return None
    for row in tx.each(LeaseRow, "rivals_by_inode", located.inode) if located.links > 1 else ():
        if (row.locked_by != lease.locked_by and row.expires_at > tx.now
                and not both_shared(lease.mode, row, lease.agreed_as)):
            return row
    return None


def _moves_whole(tx: Tx, lease: LeaseRow) -> bool:
    """Whether nothing has to be kept at the name that this lease was on: its holder only reads it,
    or earlier renames had brought it there, where nothing was, and to many names before."""
    if not partial_work.is_written(lease):
        return True
    return (lease.goes_with is not None and lease.content_hash is None
            and not tx.has("baselines_of", lease.fencing_token)
            and sum(raw_row.locked_by == lease.locked_by and raw_row.goes_with == lease.goes_with
                    for raw_row in tx.each(LeaseRow, "leases_renamed"))
            >= NAMES_MAX)


def _lease_too(tx: Tx, lease: LeaseRow, asked: Resource, inode: str | None, began: str | None,
               goes_with: str) -> None:
    """The holder of a lease has this, too, as long as that one; `began`: what was there before."""
    in_its_place(
        tx, msgspec.structs.replace(
            lease, file_path=asked.name, kind=asked.kind, scope=asked.scope, inode=inode,
            content_hash=began, goes_with=goes_with),
        [] if asked.kind == "dir" else None, lease.acquisition_id)


def _out_of(svc: Service, tx: Tx, old: str, new: str, by: str | None, is_dir: bool) -> None:
    """Handle a move out of a leased directory or glob to a place that nobody has leased."""
    was = path_scope(old, svc.fold_case)
    if not any(lease.kind in ("dir", "glob")
               for lease in leases_near(tx, as_resource(old, "dir", was))):
        return
    try:
        located = tx.looked.place(new, literal=True)
    except Refusal:
        return
    now, inode = located.resource, located.inode
    if now.scope != path_scope(new, svc.fold_case):
        return
    if not located.there:  # it has another name now, or none
        now, inode = resource_names.resource(new, "dir" if is_dir else "file",
                                             fold_case=svc.fold_case), None
    if _any(tx, now):
        return
    left = [row for row in _writers(tx, as_resource(old, now.kind, was), by)
            if row.kind == "glob" or not row.scope.startswith(was)]
    if len({row.locked_by for row in left}) != 1:
        return
    over = earlier_content.stood_there(svc, tx, [new])[new] if now.kind == "file" else None
    _lease_too(tx, left[0], now, inode, over, old)
    notices.post(
        tx, left[0].locked_by, "moved", f"{old} was moved to {new}, out of {left[0].file_path}: "
        "you hold that, too, until you are done.", resource=new)


def _into(svc: Service, tx: Tx, old: str, new: str, by: str | None) -> None:
    """Handle a move of an unleased file into a leased place. Its absence at the old place is part
    of the work."""
    was = as_resource(old, "file", path_scope(old, svc.fold_case))
    now = as_resource(new, "file", path_scope(new, svc.fold_case))
    there = [row for row in _writers(tx, now, by) if not row.goes_with]
    if len({row.locked_by for row in there}) != 1 or _any(tx, was):
        return
    try:
        located = tx.looked.place(new, literal=True)
        gone = not tx.looked.place(old, literal=True).there
    except Refusal:
        return
    born = earlier_content.born_ms(located.inode)
    if (not gone or born is None or located.resource.scope != now.scope
            or born + CLOCK_MS >= from_iso(there[0].locked_at)):
        return  # it is new, as what a program writes before it gives it its name
    tx.looked.require([Content(svc.where(None, new))])
    moved = partial_work.content(tx, svc.where(None, new))
    tx.keep_found(moved)
    _lease_too(tx, there[0], was, located.inode, moved.hash, new)
    notices.post(
        tx, there[0].locked_by, "moved", f"{old} was moved to {new}, which you hold: you hold its "
        "old name, too, until you are done.", resource=old)


def _writers(tx: Tx, asked: Resource, by: str | None) -> list[LeaseRow]:
    """The live leases of those who write this, or what contains it."""
    return [row for row in leases_near(tx, asked)
            if row.kind in ("file", "dir", "glob") and row.worktree is None
            and row.expires_at > tx.now and not _is_later(row, by)
            and partial_work.is_written(row)
            and overlaps(asked, as_resource(row.file_path, row.kind, row.scope))]


def _any(tx: Tx, asked: Resource) -> bool:
    """Whether there is any lease on this, above or below."""
    return any(overlaps(asked, as_resource(row.file_path, row.kind, row.scope))
               for row in leases_near(tx, asked))


def _began(tx: Tx, kept: LeaseRow, name: str) -> str | None:
    """What was at this name when the lease that contains it began."""
    if kept.kind == "file":
        return kept.content_hash
    return cast(str | None, tx.value("baseline_get", kept.fencing_token, name))


def _came_to_nothing(svc: Service, tx: Tx, row: LeaseRow, lease: LeaseRow, scope: str) -> bool:
    """Whether this lease is on the name that the other came to, on one below, or on a file's name
    that has become a directory above; and nothing was there when it was taken, later than the
    other: by a command, say, that moved what the other is on."""
    there = row.scope.startswith(scope) or (row.kind == "file" and scope.startswith(row.scope))
    return (there and row.fencing_token > _first_token(svc, tx, lease)
            and row.kind in ("file", "dir") and row.content_hash is None
            and not tx.has("baselines_of", row.fencing_token))


def _first_token(svc: Service, tx: Tx, lease: LeaseRow) -> int:
    """The first token of the lease that this one goes with."""
    if lease.goes_with is None:
        return lease.fencing_token
    rows = leases_near(tx, other_names.made_for(svc, lease))
    return min(row.fencing_token for row in (*rows, lease) if row.locked_by == lease.locked_by)


def _hits_no_part(svc: Service, tx: Tx, lease: LeaseRow, name: str,
                  others: Sequence[LeaseRow]) -> bool:
    """Whether what was moved over a file that others hold in parts is new, as what programs write
    before they put it in the place of the old, and leaves these parts as they were. Then it is a
    write to the rest of that file, which is judged as each write to it (seen_writes.py).

    Raises:
        Unready: the file has to be looked at.
    """
    if lease.kind != "file" or lease.content_hash is not None or any(
            row.kind != "region" for row in others):
        return False
    newest = max(others, key=earlier_content.age)
    seen = tx.first(VersionRow, "version_get", name)
    before = (seen.hash if seen is not None and seen.hash and seen.seen_at >= newest.began
              else _began(tx, newest, name))
    parts = changed_parts.since(svc, tx, name, before)
    return parts is not None and not any(
        overlaps(as_resource(row.file_path, row.kind, row.scope), part)
        for part in parts for row in others)


def _end_for(tx: Tx, row: LeaseRow, lease: LeaseRow, name: str) -> None:
    end(tx, row, by=lease.locked_by)
    notices.post(
        tx, row.locked_by, "moved",
        f"{lease.file_path}, which {lease.locked_by} holds, was moved to {name}. Nothing was there "
        f"when you leased {row.file_path}, so your lease on it has ended: do not write there.",
        resource=name,
    )


def _give_way(svc: Service, tx: Tx, lease: LeaseRow, name: str, kept: LeaseRow,
              over: Mapping[str, str | None]) -> None:
    path = name.rpartition("::")[0] if lease.kind == "region" else name
    was = _began(tx, kept, path) or over.get(path) if lease.kind == "file" else None
    flagged = lapse.end_alone(
        svc, tx, lease, "moved", f"{lease.file_path}, which {lease.locked_by} held, was moved "
        f"to {name}, which {kept.locked_by} holds.",
        now_at=path, over=was,
    )
    text = flagged.told("What was changed is") if flagged else ""
    review = flagged.review if flagged else None
    notices.post(
        tx, lease.locked_by, "moved",
        f"{lease.file_path} is {name} now, which {kept.locked_by} has leased ({kept.file_path}). "
        f"So your lease on it has ended: do not write there.{text}", resource=name, review=review,
    )
    notices.post(
        tx, kept.locked_by, "moved",
        f"{lease.file_path}, which {lease.locked_by} held, was moved to {name}, within your lease "
        f"on {kept.file_path}. You keep it; read it before you write it.{text}", resource=name,
        review=review,
    )
