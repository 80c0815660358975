"""What an edit tool's call has to lease: the regions that it changes, or the whole file.

A call tells what it will write, and a look tells which regions that changes
(`looking.facts.Proposed`). These regions are leased together with the file's write window
(`write_windows`). If it is uncertain, or if the policy says so, the whole file is leased.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from coordinator.dialects.decode import HookCall
from coordinator.kernel.core import Actor, Service, family, listed
from coordinator.kernel.leasing import agreements
from coordinator.kernel.leasing.overlapping import leases_near
from coordinator.looking.facts import AnyNeed, Content, Parts, Proposed
from coordinator.regions.languages import language_of
from coordinator.rules.edits import Edit
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.slices.guard import broken_callers, write_windows
from coordinator.slices.guard.broken_callers import may_be_divided, region_place
from coordinator.store.ledger import Tx
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import Located

#: An edit that changes more regions than these is one of the whole file.
REGIONS_MAX = 40


@dataclass(slots=True)
class Wanted:
    """What one call has to lease.

    Attributes:
        resources: regions and whole files.
        regions: the names of the regions, by file.
        why: of what an edit breaks elsewhere, why that is to be leased, too, by its name.
        windows: files whose write windows the agent has, by name: of several that write one.
        agreed: those of them that it writes by an agreement with others.
        unplaced: files of which nobody can tell where it would change them.
        whole: the new content of files that are replaced as a whole; None: nobody can tell it.
    """

    resources: list[Located] = field(default_factory=list)
    regions: dict[str, list[str]] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    windows: set[str] = field(default_factory=set)
    agreed: set[str] = field(default_factory=set)
    unplaced: set[str] = field(default_factory=set)
    whole: dict[str, str | None] = field(default_factory=dict)


def needs(heard: HookCall) -> list[AnyNeed]:
    """What to look at, beside the files themselves, before a write is decided."""
    call = heard.call
    if call is None or heard.moment != "before":
        return []
    return [Proposed(path, heard.cwd, edits) for path, edits in _edits(heard)
            if edits and language_of(path) is not None]


def wanted(svc: Service, tx: Tx, agent: str, heard: HookCall, files: Sequence[Located]) -> Wanted:
    """What this write has to lease. `files` are the files that its paths mean.

    Raises:
        Unready: the files were not looked at.
    """
    result = Wanted()
    proposed = {}
    beside: list[Located] = []
    result.whole = _replaced(tx, heard)
    for path, edits in _edits(heard):
        if edits and language_of(path) is not None:
            need = Proposed(path, heard.cwd, edits)
            tx.looked.require([need])
            try:
                located = tx.looked.place(path, heard.cwd, literal=True)
                proposed[located.resource.scope, located.worktree] = need, tx.looked.parts(need)
            except Refusal:
                continue  # outside, or unreadable; the look at the file itself says so
    for located in files:
        proposal = proposed.get((located.resource.scope, located.worktree))
        if proposal is None:
            _need(tx, agent, result, located, [located])
            continue
        edit, parts = proposal
        broken = broken_callers.broken(svc, tx, agent, located, edit, parts)
        result.why |= broken.why
        beside += broken.resources
        if parts.unplaced:
            result.unplaced.add(located.resource.name)
        names = None if broken.whole else _leasable(svc, tx, agent, located, parts)
        if names is None or parts.hash is None:
            _need(tx, agent, result, located, [located])
            continue
        name = located.resource.name
        result.regions[name] = names
        result.windows.add(name)
        _need(tx, agent, result, located, [region_place(svc, located, name) for name in names])
    taken = {resource.resource.name for resource in result.resources}
    result.resources += [located for located in beside if located.resource.name not in taken]
    return result


def explained(refusal: Refusal, unplaced: Collection[str]) -> Refusal:
    """The refusal of an edit whose files cannot be queued for, with the reason."""
    return Refusal(
        refusal.code, f"{refusal.message} And the text that this edit replaces is not in "
        f"{listed(sorted(unplaced))}, or not only once; so it was not put in line.",
        next="Read the file before you edit it again.", **refusal.facts)


def _need(tx: Tx, agent: str, needs: Wanted, file: Located, places: Sequence[Located]) -> None:
    """All of these have to be leased, but what the agent writes by an agreement with others."""
    for place in places:
        if agreements.by_which(tx, agent, place.resource) is None:
            needs.resources.append(place)
        else:
            needs.windows.add(file.resource.name)
            needs.agreed.add(file.resource.name)


def open_windows(svc: Service, tx: Tx, actor: Actor, agent: str, heard: HookCall,
                 files: Sequence[Located], wait_s: float) -> Wanted | Refusal:
    """What this write has to lease, with the write windows of the files that it leases by region.
    The refusal, if another's edit of one of them is in progress. A half-written file does not tell
    which regions an edit would change, so the window comes first.

    Raises:
        Unready: a file was not looked at since the last window of it closed.
    """
    chosen = _choose_by_turns(svc, tx, agent, heard, files)
    tx.looked.require([Content(str(located.path)) for located in chosen])
    chosen.sort(key=lambda located: located.resource.name)  # in one order for all
    for located in chosen:
        if write_windows.other(tx, located.resource.name, agent, svc.fold_case) is not None:
            refusal = write_windows.open_one(svc, tx, actor, agent, located, wait_s)
            if refusal is not None:
                return refusal
    result = wanted(svc, tx, agent, heard, files)
    for located in chosen:
        if located.resource.name in result.windows:
            refusal = write_windows.open_one(svc, tx, actor, agent, located, wait_s)
            if refusal is not None:
                return refusal
    return result


def _choose_by_turns(svc: Service, tx: Tx, agent: str, heard: HookCall,
                     files: Sequence[Located]) -> list[Located]:
    """The files that several may hold, and write one after the other."""
    edited = any(edits and language_of(path) is not None for path, edits in _edits(heard))
    # In a launch's worktree the agent has the file alone; the work of several is merged at the
    # landing.
    chosen = [file for file in files
              if file.worktree is None and may_be_divided(svc, file)] if edited else []
    scopes = {located.resource.scope for located in chosen}
    return chosen + [file for file in files if file.resource.scope not in scopes
                     and agreements.by_which(tx, agent, file.resource) is not None]


# ---------------------------------------------------------------- which regions


def _edits(heard: HookCall) -> list[tuple[str, tuple[Edit, ...]]]:
    call = heard.call
    if call is None or call.kind != "write" or len(call.edits) != len(call.paths):
        return []
    return list(zip(call.paths, call.edits, strict=True))


def _replaced(tx: Tx, heard: HookCall) -> dict[str, str | None]:
    """The files that a call replaces as a whole, with their new content as far as it tells. An
    edit that names the text it replaces is none: it fits only what is there."""
    call = heard.call
    result: dict[str, str | None] = {}
    if call is None:
        return result
    for position, path in enumerate(call.paths):
        edits = call.edits[position] if position < len(call.edits) else ()
        texts = [edit.new for edit in edits if edit.old is None]
        if texts or (not edits and heard.can_read):
            with contextlib.suppress(Refusal):
                name = tx.looked.place(path, heard.cwd, literal=True).resource.name
                result[name] = texts[0] if len(edits) == 1 else None
    return result


def _leasable(svc: Service, tx: Tx, agent: str, located: Located, parts: Parts) -> list[str] | None:
    """The regions to be leased; None for the whole file. A file that the agent or its parent
    already holds whole is taken so."""
    names = parts.names
    if not names or len(names) > REGIONS_MAX or not may_be_divided(svc, located):
        return None
    mine = family(tx, agent)
    for row in leases_near(tx, located.resource):
        if (row.locked_by in mine and row.mode == "exclusive" and row.expires_at > tx.now
                and row.worktree == located.worktree and row.kind in ("file", "dir", "glob")
                and overlaps(located.resource, as_resource(row.file_path, row.kind, row.scope))):
            return None
    return names
