"""Write windows: who writes a file of which several agents hold regions, from the permission to the
end.

A tool reads and writes the whole file by itself. Meanwhile it holds the key `edit:PATH`, which is
an ordinary lease: durable, queued for, and ended by itself. Nobody can take it by name. When the
window closes, the file is compared with its former content, and regions of others that changed are
flagged. Nothing is put back.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from coordinator.kernel.core import Actor, Service, family, listed
from coordinator.kernel.holders import notices
from coordinator.kernel.leasing import agreements, grant, leases, partial_work
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.looking.facts import Between, Content, Ignored
from coordinator.slices.guard import read_versions, sub_agents
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow, VersionRow
from coordinator.words import purposes, resource_names
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import (
    WINDOW,
    Located,
    Resource,
    path_of,
    path_scope,
    region_of,
    resource,
    write_window,
)


def is_window(row: LeaseRow) -> bool:
    """Whether a lease is a write window."""
    return resource_names.is_window(row.kind, row.file_path)


def path(row: LeaseRow) -> str:
    """The file that a lease is on, by name: of a write window, the one that is being written."""
    if is_window(row):
        return row.file_path.removeprefix(WINDOW)
    return path_of(row.file_path, row.kind)


def list_windows(view: View, agent: str) -> list[LeaseRow]:
    """The windows that this agent has."""
    return view.each(LeaseRow, "windows_of_holder", agent)


def other(tx: Tx, name: str, agent: str, fold_case: bool) -> LeaseRow | None:
    """The live window of somebody else on this file.

    Raises:
        Unready: the file was not looked at since the last window on it closed.
    """
    scope = write_window(name, fold_case).scope
    for row in tx.each(LeaseRow, "leases_at_scope", scope):
        if row.locked_by != agent and row.expires_at > tx.now:
            return row
    ended = tx.ended_since("key", scope)
    if ended:
        tx.looked.fresh(ended)
    return None


def open_one(svc: Service, tx: Tx, actor: Actor, agent: str, located: Located,
             wait_s: float) -> Refusal | None:
    """Take the window of a file. LOCKED if another has it; then the agent is queued for `wait_s`
    seconds and no longer, because an agent that gets it later would not be there to write.

    Raises:
        Unready: the file was not looked at.
    """
    content = tx.looked.content(str(located.path))
    asked = Located(write_window(located.resource.name, svc.fold_case), None, None)
    for row in list_windows(tx, agent):
        if row.scope == asked.resource.scope and row.content_hash is None:  # granted from the queue
            tx.record(ev.LeasePlaced(
                fencing_token=row.fencing_token, agent=agent, resource=row.file_path,
                lease_kind=row.kind, worktree=None, content_hash=content.hash,
            ))
    request = rq.Acquire(
        agent=agent, resources=[asked.resource.name], wait_s=wait_s, retry=False,
        ttl_s=svc.settings.leases.window_s, description="is writing it",
    )
    answer = leases.acquire_located(svc, tx, actor, request, [asked], leases.How(
        held_before=grant.Before(content.hash), purpose=purposes.WINDOW))
    if isinstance(answer, Refusal):
        return answer
    tx.keep_found(content)
    return None


def wait_for_parent(svc: Service, tx: Tx, actor: Actor, agent: str, located: Sequence[Located],
                    edits: Collection[str], wait_s: float) -> Refusal | None:
    """LOCKED for a sub-agent that wants to write what its parent is writing (`edits`, files by
    name). The parent gets the window now, if it has none because it holds the file whole. The
    sub-agent is queued for `wait_s` seconds.

    Raises:
        Unready: the file was not looked at.
    """
    parent = sub_agents.find_parent(tx, agent)
    busy = sorted((other_located for other_located in located if other_located.resource.name
                   in edits),
                  key=lambda located: located.resource.name)
    for located_resource in busy if parent is not None else ():
        assert parent is not None
        asked = Located(write_window(located_resource.resource.name, svc.fold_case), None, None)
        tx.looked.require([Content(str(located_resource.path))])
        leases.acquire_located(svc, tx, Actor(), rq.Acquire(
            agent=parent, resources=[asked.resource.name], retry=False,
            ttl_s=svc.settings.leases.window_s, description="is writing it"), [asked],
            leases.How(purpose=purposes.WINDOW))
        refusal = open_one(svc, tx, actor, agent, located_resource, wait_s)
        if refusal is not None:
            return refusal
    return None


def noted(svc: Service, tx: Tx, agent: str) -> set[str]:
    """The files of the agent's windows of which it is noted what it wrote when these close."""
    return {path(row) for row in list_windows(tx, agent) if row.content_hash is not None
            or agreements.by_which(tx, agent, _file(svc, row)) is not None}


def drop(tx: Tx, agent: str, but: Collection[str]) -> None:
    """Close the agent's windows, but those of these files: it does not write the others now."""
    for row in list_windows(tx, agent):
        if path(row) not in but:
            grant.end(tx, row)


def close(svc: Service, tx: Tx, agent: str, files: Collection[str]) -> list[str]:
    """The agent's edits of these files are over. Their windows close, what it wrote is recorded,
    and changes in others' regions are flagged. Returns what the agent is told. A file that cannot
    be compared stops nobody.

    Raises:
        Unready: the files have to be looked at.
    """
    rows = [row for row in list_windows(tx, agent) if path(row) in files]
    if not rows:
        return []
    # What it shares with others may be new.
    made = [row for row in rows if row.content_hash is None
            and agreements.by_which(tx, agent, _file(svc, row)) is not None]
    edits, missed = _look_at_edits(svc, tx, rows, made)
    read_versions.note_edits(tx, agent, list(edits.values()))
    result: list[str] = []
    for row in rows:
        if row.fencing_token in edits:
            result += _compare(svc, tx, agent, row, edits[row.fencing_token])
            parts = edits[row.fencing_token].parts
            if parts.hash != row.content_hash:
                agreements.tell_of_write(tx, agent, path(row), _file(svc, row), parts.names)
        if row in made:
            _note_made(svc, tx, agent, row)
        grant.end(tx, row)
    for name, why in missed.items():
        tx.record(ev.Noted(what="an edit was not compared", facts={"path": name, "why": why}))
    return result


def _look_at_edits(svc: Service, tx: Tx, rows: Sequence[LeaseRow], made: Sequence[LeaseRow]
                   ) -> tuple[dict[int, read_versions.Edited], dict[str, str]]:
    """What was done while these windows were open, by the window's token, and why it cannot be
    compared, by file."""
    looks = {row.fencing_token: Between(svc.where(None, path(row)), row.content_hash)
             # otherwise it was only granted from the queue
             for row in rows if row.content_hash is not None}
    tx.looked.require([*looks.values(), *(Content(need.path) for need in looks.values()),
                       *(Content(svc.where(None, path(row))) for row in made),
                       *(Ignored(path(row)) for row in made)])
    edits: dict[int, read_versions.Edited] = {}
    missed: dict[str, str] = {}
    for row in rows:
        need = looks.get(row.fencing_token)
        if need is None:
            continue
        try:
            parts = tx.looked.parts(need)
            tx.looked.content(need.path)
        except Refusal as refusal:
            missed[path(row)] = refusal.message
        else:
            edits[row.fencing_token] = read_versions.Edited(
                path(row), need.path, need.before, parts)
    return edits, missed


def _file(svc: Service, row: LeaseRow) -> Resource:
    return resource(path(row), "file", fold_case=svc.fold_case)


def _note_made(svc: Service, tx: Tx, agent: str, row: LeaseRow) -> None:
    """A file that was not there when the window opened: is it there, the agent has made it."""
    place = svc.where(None, path(row))
    last = tx.first(VersionRow, "version_get", path(row))
    try:
        now = tx.looked.content(place).hash
    except Refusal:
        return
    if now is not None and (last is None or last.hash != now):
        read_versions.note(tx, agent, [Located(_file(svc, row), None, place)], written=True,
                           edited=True)
        agreements.tell_of_write(tx, agent, path(row), _file(svc, row), None)


def _list_regions(svc: Service, tx: Tx, agent: str, name: str) -> list[LeaseRow]:
    """The regions of a file that others hold, and have not agreed that this agent writes them."""
    mine, rows = family(tx, agent), leases_near(tx, resource(name, "file", fold_case=svc.fold_case))
    agreed = agreements.names_of(rows, mine)
    return [row for row in rows if row.kind == "region" and row.locked_by not in mine
            and row.expires_at > tx.now and row.agreed_as not in agreed]


def _compare(svc: Service, tx: Tx, agent: str, row: LeaseRow,
             edit: read_versions.Edited) -> list[str]:
    """Flag regions of others that are not what they were before the edit."""
    name, parts = edit.name, edit.parts
    theirs = {other.file_path: other.locked_by for other in _list_regions(svc, tx, agent, name)
              if parts.names is None or any(f"{part}.".startswith(f"{region_of(other.file_path)}.")
                                            for part in parts.names)}
    if not theirs or parts.hash == row.content_hash:
        return []
    now = tx.looked.content(edit.path)
    kept = (now.hash is None or tx.keep_found(now)) and (tx.has("blob_has", row.content_hash))
    holders = sorted(set(theirs.values()))
    flagged = partial_work.flag(
        tx, [ev.FlaggedFile(
            path=name, scope=path_scope(name, svc.fold_case),
            change="deleted" if now.hash is None else "modified", kept=kept,
            baseline_hash=row.content_hash, flagged_hash=now.hash,
        )],
        partial_work.Occasion(
            reason="unleased", agent=agent,
            why=f"{listed(list(theirs))}, held by {listed(holders)}, changed while {agent} edited "
            f"{name}: by that edit, or by somebody else meanwhile."))
    for holder in holders:
        notices.post(
            tx, holder, "violated",
            f"{listed([name for name, by in theirs.items() if by == holder])}, which you hold, "
            f"changed while {agent} edited {name}: by its edit, or by somebody else meanwhile."
            f"{flagged.told('Both contents are')} Look at the file before you write it again.",
            review=flagged.review,
        )
    return [
        f"[coord] While you edited {name}, {listed(list(theirs))} changed, held by "
        f"{listed(holders)}: by your edit, if it was made on what you had read before, or by "
        f"somebody else. A person will look at it ({flagged.review}). Read the file again before "
        "you write it; do not undo it by yourself."
    ]
