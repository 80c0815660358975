"""What an edit tool's call has to lease: the regions that it changes, or the whole file.

A call tells what it will write; a look has told which regions of the file that changes
(`looking.facts.Proposed`). Those are leased. A tool reads and writes the whole file by itself, so
from its permission to its end it has the file's *write window*, too: the key `edit:PATH`, which one
session has at a time. Another's edit of the same file waits for it, for milliseconds. Afterwards it
is looked whether regions of others have changed all the same (a tool that wrote what it had read
long before); nothing is put back, a person is told.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from coordinator.dialects.decode import HookCall
from coordinator.looking.facts import AnyNeed, Between, Content, Parts, Proposed
from coordinator.regions.languages import language_of
from coordinator.rules import globs
from coordinator.rules.edits import Edit
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.service.core import Actor, Service, listed
from coordinator.service.holders import notices
from coordinator.service.leasing import grant, leases, partial_work
from coordinator.service.leasing.git_turn import family
from coordinator.service.leasing.overlapping import near
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import (
    Located,
    Resource,
    path_of,
    path_scope,
    region_of,
    resource,
)

#: An edit that changes more regions than these is one of the whole file.
REGIONS_MAX = 40
#: What the keys of write windows begin with, and their scopes.
WINDOW = "edit:"
_SCOPE = "k/edit/"


@dataclass(slots=True)
class Wanted:
    """What one call has to lease.

    Attributes:
        resources: regions and whole files.
        regions: the names of the regions, by file.
    """

    resources: list[Located] = field(default_factory=list)
    regions: dict[str, list[str]] = field(default_factory=dict)


def window(name: str) -> Resource:
    """The write window of the file of this name."""
    parts = name.replace("\\", "\\\\").replace("/", "\\s")
    return Resource(WINDOW + name, "key", f"{_SCOPE}{parts}/")


def is_window(row: LeaseRow) -> bool:
    """Whether a lease is a write window."""
    return row.kind == "key" and row.scope.startswith(_SCOPE)


def needs(svc: Service, heard: HookCall) -> list[AnyNeed]:
    """What to look at, beside the files themselves, before a write is decided."""
    call = heard.call
    if call is None or heard.moment != "before":
        return []
    return [Proposed(path, heard.cwd, edits) for path, edits in _edits(heard)
            if edits and _divided(svc, path)]


def wanted(svc: Service, tx: Tx, agent: str, heard: HookCall, files: Sequence[Located]) -> Wanted:
    """What this write has to lease; `files` are what its paths mean.

    Raises:
        Unready: the files were not looked at.
    """
    out = Wanted()
    proposed = {}
    for path, edits in _edits(heard):
        if edits and _divided(svc, path):
            need = Proposed(path, heard.cwd, edits)
            tx.looked.require([need])
            try:
                located = tx.looked.place(path, heard.cwd, literal=True)
                proposed[located.resource.scope] = tx.looked.parts(need)
            except Refusal:
                continue  # it lies outside, or cannot be looked at: as for the file itself
    for located in files:
        parts = proposed.get(located.resource.scope)
        names = None if parts is None else _leasable(svc, tx, agent, located, parts)
        if names is None or parts is None or parts.hash is None:
            out.resources.append(located)
            continue
        name = located.resource.name
        out.regions[name] = names
        out.resources += [_region(svc, located, one) for one in names]
    return out


def open_windows(svc: Service, tx: Tx, actor: Actor, agent: str, heard: HookCall,
                 files: Sequence[Located], wait_s: float) -> Wanted | Refusal:
    """What this write has to lease, with the write windows of the files of which that is regions;
    the refusal, if another's edit of one of them is in the middle. What is half written tells
    nobody which regions an edit would change: so the window comes first.

    Raises:
        Unready: a file was not looked at since the last window of it closed.
    """
    edited = {path for path, edits in _edits(heard) if edits and _divided(svc, path)}
    chosen = [one for one in files if one.worktree is None and one.links == 1
              and one.inode is not None and _divided(svc, one.resource.name)] if edited else []
    chosen.sort(key=lambda one: one.resource.name)  # in one order for all
    for located in chosen:
        asked = window(located.resource.name)
        if any(row.locked_by != agent and row.expires_at > tx.now for row in (
                LeaseRow(*raw) for raw in tx.rows("leases_at_scope", asked.scope))):
            return _open(svc, tx, actor, agent, located, wait_s) or Wanted(list(files))
        ended = tx.ended_since("key", asked.scope)
        if ended:
            tx.looked.fresh(ended)
    out = wanted(svc, tx, agent, heard, files)
    for located in chosen:
        if located.resource.name in out.regions:
            refusal = _open(svc, tx, actor, agent, located, wait_s)
            if refusal is not None:
                return refusal
    return out


def _open(svc: Service, tx: Tx, actor: Actor, agent: str, located: Located,
          wait_s: float) -> Refusal | None:
    content = tx.looked.content(str(located.path))
    asked = Located(window(located.resource.name), None, None)
    for raw in tx.rows("leases_at_scope", asked.resource.scope):
        row = LeaseRow(*raw)
        if row.locked_by == agent and row.content_hash != content.hash:
            # It was taken in line, or another edit of its own is in the middle.
            tx.keep_found(content)
            tx.record(ev.LeasePlaced(
                fencing_token=row.fencing_token, agent=agent, resource=row.file_path,
                lease_kind=row.kind, worktree=None, content_hash=content.hash,
            ))
    request = rq.Acquire(
        agent=agent, resources=[asked.resource.name], wait_s=wait_s, retry=wait_s > 0,
        ttl_s=svc.settings.leases.window_s, description="is writing it",
    )
    answer = leases.acquire_located(svc, tx, actor, request, [asked], held_before=(content.hash,))
    if isinstance(answer, Refusal):
        return answer
    tx.keep_found(content)
    return None


def drop_windows(tx: Tx, agent: str, but: Collection[str], writing: bool) -> None:
    """Close the agent's windows, but those of these files: it does not write the others now."""
    for raw in tx.rows("leases_of_holder", agent):
        row = LeaseRow(*raw)
        if not writing and is_window(row) and row.file_path.removeprefix(WINDOW) not in but:
            grant.end(tx, row)


def close_windows(svc: Service, tx: Tx, agent: str) -> list[str]:
    """The agent's edits are over: its windows close, and what they did to others' regions is
    flagged; what the agent is told.

    Raises:
        Unready: the files have to be looked at.
    """
    rows = [row for row in (LeaseRow(*raw) for raw in tx.rows("leases_of_holder", agent))
            if is_window(row)]
    told: list[str] = []
    looked = [(row, _look(svc, row)) for row in rows]
    tx.looked.require(need for _, need in looked if need is not None)
    tx.looked.require(Content(need.path) for _, need in looked if need is not None)
    for row, need in looked:
        if need is not None:
            told += _compare(svc, tx, agent, row, need)
        grant.end(tx, row)
    return told


def has_windows(view: View, agent: str) -> bool:
    """Whether an edit of this agent is in the middle, as far as is known."""
    return any(is_window(LeaseRow(*raw)) for raw in view.rows("leases_of_holder", agent))


# ---------------------------------------------------------------- which regions


def _edits(heard: HookCall) -> list[tuple[str, tuple[Edit, ...]]]:
    call = heard.call
    if call is None or call.kind != "write" or len(call.edits) != len(call.paths):
        return []
    return list(zip(call.paths, call.edits, strict=True))


def _divided(svc: Service, path: str) -> bool:
    """Whether files of this name are leased by region."""
    if language_of(path) is None:
        return False
    chosen = "region"
    for pattern, by in svc.settings.leases.granularity.items():
        if globs.matches(pattern, path) or globs.matches(f"**/{pattern}", path.lstrip("/")):
            chosen = by
    return chosen == "region"


def _leasable(svc: Service, tx: Tx, agent: str, located: Located,
              parts: Parts) -> list[str] | None:
    """The regions to be leased; None: the whole file. What is linked twice, or lies in a working
    tree of its own, is taken whole; so is what the agent, or its parent, holds whole already."""
    names = parts.names
    if (not names or len(names) > REGIONS_MAX or located.worktree is not None
            or located.links != 1 or located.inode is None):
        return None
    mine = family(tx, agent)
    for raw in near(tx, "rivals", located.resource):
        row = LeaseRow(*raw)
        if (row.locked_by in mine and row.mode == "exclusive" and row.expires_at > tx.now
                and row.kind in ("file", "dir", "glob")
                and overlaps(located.resource, as_resource(row.file_path, row.kind, row.scope))):
            return None
    return names


def _region(svc: Service, located: Located, name: str) -> Located:
    made = resource(f"{located.resource.name}::{name}", "region", fold_case=svc.fold_case)
    return Located(made, located.inode, located.path, located.worktree, located.links,
                   located.size, located.there)


# ---------------------------------------------------------------- after the edit


def _look(svc: Service, row: LeaseRow) -> Between | None:
    if row.content_hash is None:
        return None  # it was granted in line: nobody has looked at the file yet
    return Between(svc.where(None, row.file_path.removeprefix(WINDOW)), row.content_hash)


def _compare(svc: Service, tx: Tx, agent: str, row: LeaseRow, need: Between) -> list[str]:
    """Flag regions of others that are not what they were before the edit."""
    name = row.file_path.removeprefix(WINDOW)
    parts, mine = tx.looked.parts(need), family(tx, agent)
    theirs: dict[str, str] = {}
    asked = resource(name, "file", fold_case=svc.fold_case)
    for raw in near(tx, "rivals", asked):
        other = LeaseRow(*raw)
        if other.kind != "region" or other.locked_by in mine or other.expires_at <= tx.now:
            continue
        held = region_of(other.file_path)
        if parts.names is None or any(f"{one}.".startswith(f"{held}.") for one in parts.names):
            theirs[other.file_path] = other.locked_by
    if not theirs or parts.hash == row.content_hash:
        return []
    now = tx.looked.content(need.path)
    kept = (now.hash is None or tx.keep_found(now)) and (
        tx.row("blob_has", row.content_hash) is not None)
    holders = sorted(set(theirs.values()))
    flagged = partial_work.flag(
        tx, reason="unleased", agent=agent, task=None, leased_at=None,
        why=f"{agent} edited {name}, and {listed(list(theirs))} changed with it, held by "
        f"{listed(holders)}.",
        files=[ev.FlaggedFile(
            path=name, scope=path_scope(name, svc.fold_case),
            change="deleted" if now.hash is None else "modified", kept=kept,
            baseline_hash=row.content_hash, flagged_hash=now.hash,
        )],
    )
    for holder in holders:
        notices.post(
            tx, holder, "violated",
            f"An edit of {agent} changed "
            f"{listed([one for one, by in theirs.items() if by == holder])}, which you hold."
            f"{flagged.told('Both contents are')} Look at the file before you write it again.",
            review=flagged.review,
        )
    return [
        f"[coord] Your edit of {name} changed {listed(list(theirs))}, held by {listed(holders)}: "
        f"it was made on what you had read before. A person will look at it ({flagged.review}). "
        "Read the file again before you write it; do not undo it by yourself."
    ]


def path(row: LeaseRow) -> str:
    """The file that a lease is on, by name: of a write window, the one that is being written."""
    if is_window(row):
        return row.file_path.removeprefix(WINDOW)
    return path_of(row.file_path, row.kind)
