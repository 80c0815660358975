"""The merge boundary: whether an agent's work on its own branch may land on the shared branch.
Pure.

An agent in a worktree of its own can write anything there. A landing may contain only paths and
regions within leases that the agent holds *now*, under the fencing tokens with which it began. The
target must still have the content that the change is based on, or the landing must contain both.
Otherwise the whole landing is refused, and nothing of it lands.

Facts and an instant go in. The tokens of the landing or a `Refusal` come out. Other modules gather
the facts and move the branch in the same transaction.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from coordinator.rules import globs
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import HEADER, Resource, ancestors, path_in, region_of

#: Paths that a refusal names; the rest are counted.
NAMED_MAX = 5
#: Directories, anywhere in a path, or at its beginning, whose content is never anybody's to land.
GIT_DIR, STATE_DIR = ".git", ".coord"


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs between the branch and its starting commit.

    `scope` is the path's own (see `words.resource_names`). A submodule's content is in a repository
    of its own.

    Attributes:
        regions: scopes of the regions that it changes; empty: not known, so the whole file.
        merged: what lands has the target's changes of it, too.
        clash: why it could not be merged with them, if that was tried.
    """

    path: str
    scope: str
    submodule: bool = False
    regions: tuple[str, ...] = ()
    merged: bool = False
    clash: str = ""


@dataclass(frozen=True, slots=True)
class Right:
    """A lease of the agent, live or not: `expires_at` is ISO text."""

    fencing_token: int
    resource: Resource
    mode: str
    expires_at: str


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the decision rests on.

    Attributes:
        leases: those that the agent holds, and expired ones that are not tidied yet.
        began_with: tokens and resources that the attempt began with, whether or not they still are
            leases.
        moved: scopes of the paths that the target has changed since the branch began.
        dirty: paths that the landing would write and that hold, in the working tree that follows
            the target, something which is in no commit.
        misfits: sentences on what fits on both sides, and not in their merge.
        others: the holders of paths that the agent has no lease on.
        free: paths that need no lease: they are shared by branches, and not leased.
    """

    agent: str
    task: str
    target: str
    now: str
    changes: Sequence[Change]
    leases: Sequence[Right]
    began_with: Sequence[tuple[int, Resource]] = ()
    moved: Sequence[str] = ()
    dirty: Sequence[str] = ()
    misfits: Sequence[str] = ()
    others: Mapping[str, str] = field(default_factory=dict)
    free: frozenset[str] = frozenset()


def decide(facts: Facts) -> tuple[int, ...] | Refusal:
    """The fencing tokens under which all of it may land, in order; or why nothing may.

    Codes, in their order of precedence: INVALID (git's or coord's own data), OUTSIDE_REPO (a
    submodule), NOT_HOLDER, STALE_TOKEN, VERSION_CHANGED.
    """
    refusal = _refuse_foreign(facts)
    if refusal is not None:
        return refusal
    grants = [(change, tokens_for(facts, change)) for change in facts.changes]
    tokens = {token for _, granted in grants for token in granted or ()}
    return (_refuse_unleased(facts, grants) or _refuse_moved(facts) or _refuse_misfits(facts)
            or _refuse_dirty(facts) or tuple(sorted(tokens)))


def _refuse_foreign(facts: Facts) -> Refusal | None:
    """Refuse what no agent may land: git's own data and coord's, and submodules."""
    private = [c.path for c in facts.changes if is_private(c)]
    if private:
        return _no(Code.INVALID, facts, private, f"{_named(private)} is git's or coord's own data",
                   "Take it out of the branch: `git rm --cached PATH`, then commit.")
    modules = [c.path for c in facts.changes if c.submodule]
    if modules:
        return _no(Code.OUTSIDE_REPO, facts, modules,
                   f"{_named(modules)} is a submodule, a repository of its own whose commits a "
                   "lease here does not cover",
                   "Push the submodule's commit, then move its pointer by hand.")
    return None


def _refuse_unleased(facts: Facts, grants: Sequence[tuple[Change, tuple[int, ...] | None]]
                     ) -> Refusal | None:
    """`grants`: each change with what `tokens_for` gives for it."""
    unleased = [change for change, tokens in grants
                if tokens is None and change.path not in facts.free]
    if unleased:
        return _not_holder(facts, [change.path for change in unleased],
                           [name for change in unleased for name in _beyond(facts, change)])
    stale = [change.path for change, tokens in grants if tokens == ()]
    if not stale:
        return None
    return _no(Code.STALE_TOKEN, facts, stale,
               f"the lease on {_named(stale)} that the work was begun with has ended, so "
               "another may have begun to change it",
               "Look at the branch and merge it by hand, or let the task be done afresh.")


def _refuse_moved(facts: Facts) -> Refusal | None:
    moved = unseen([change for change in facts.changes if not change.merged], facts.moved)
    if not moved:
        return None
    clashes = [f"{c.path}: {c.clash}" for c in facts.changes if c.clash and c.path in moved]
    clashed = f". Both changed {'; '.join(clashes[:NAMED_MAX])}" if clashes else ""
    return _no(Code.VERSION_CHANGED, facts, moved,
               f"{_named(moved)} was changed on {facts.target} after the branch began, and "
               f"the work is not based on that{clashed}",
               "Look at both versions and merge by hand, or let the task be done afresh.")


def _refuse_misfits(facts: Facts) -> Refusal | None:
    if not facts.misfits:
        return None
    more = len(facts.misfits) - NAMED_MAX
    return _no(Code.VERSION_CHANGED, facts, [c.path for c in facts.changes],
               f"it does not fit with what landed on {facts.target} after the branch began: "
               + "; ".join(facts.misfits[:NAMED_MAX]) + (f"; and {more} more" * (more > 0)),
               "Merge it by hand and mend these places, or let the task be done afresh.")


def _refuse_dirty(facts: Facts) -> Refusal | None:
    if not facts.dirty:
        return None
    return _no(Code.VERSION_CHANGED, facts, facts.dirty,
               f"{_named(facts.dirty)} has changes in the main worktree that are not "
               "committed, and landing would overwrite them",
               "Commit them or put them aside, then merge the branch by hand.", dirty=True)


def tokens_for(facts: Facts, change: Change) -> tuple[int, ...] | None:
    """Live tokens that allow this change; none if they have ended; None if there never were any.

    A lease that was lost and taken anew does not count as the one that the work began with, because
    another agent may have held it in between. If no lease covers the file, each changed region
    needs one.
    """
    whole = _tokens(facts, partial(covers, change=change))
    if whole or not change.regions:
        return whole
    matches = [_tokens(facts, partial(covers_region, change=change, scope=scope))
               for scope in change.regions]
    if None in matches:
        return whole
    return tuple(token for tokens in matches for token in tokens or ()) if all(matches) else ()


def _beyond(facts: Facts, change: Change) -> list[str]:
    """The parts of a changed path that no lease covers: the unleased regions, if some are leased.
    """
    scopes = [region for region in change.regions or ()
              if _tokens(facts, partial(covers_region, change=change, scope=region)) is None]
    if len(scopes) == len(change.regions or ()):
        return [change.path]
    return [f"{change.path}::{scope.removeprefix(change.scope).strip('/:').replace('/', '.')}"
            for scope in scopes]


def _tokens(facts: Facts, covered: Callable[[Resource], bool]) -> tuple[int, ...] | None:
    covering = [r for r in facts.leases if r.mode == "exclusive" and covered(r.resource)]
    live = [r.fencing_token for r in covering if r.expires_at > facts.now]
    begun = [token for token, resource in facts.began_with if covered(resource)]
    if live and (not begun or not set(begun).isdisjoint(live)):
        return tuple(live)
    return () if covering or begun else None


def covers(resource: Resource, change: Change) -> bool:
    """Whether the path is within the resource as a whole. A region is only a part of its file."""
    if resource.kind == "glob":
        return change.scope.startswith(resource.scope) and globs.matches(
            resource.name, path_in(change.scope)
        )
    return resource.kind in ("file", "dir") and change.scope.startswith(resource.scope)


def covers_region(resource: Resource, change: Change, scope: str) -> bool:
    """Whether a region's lease is on this region of the path: on it, on what contains it, or on the
    file's `<header>`, which is about all of it."""
    if resource.kind != "region" or not resource.scope.startswith(change.scope):
        return False
    return scope.startswith(resource.scope) or region_of(resource.name) == HEADER


def unseen(changes: Iterable[Change], moved: Sequence[str]) -> list[str]:
    """Changed paths whose content on the target differs from the branch's starting commit.

    A path also counts if the moved one is above or below it: a file that became a directory.
    """
    if not moved:
        return []
    known_names = set(moved)
    in_order = sorted(known_names)
    result = []
    for change in changes:
        position = bisect.bisect_left(in_order, change.scope)
        below = position < len(in_order) and in_order[position].startswith(change.scope)
        if below or not known_names.isdisjoint(ancestors(change.scope)):
            result.append(change.path)
    return result


def is_private(change: Change) -> bool:
    """Whether a path is git's or coord's own data, in whatever case it is written."""
    parts = change.path.casefold().split("/")
    return GIT_DIR in parts or parts[0] == STATE_DIR


def _not_holder(facts: Facts, paths: Sequence[str], beyond: Sequence[str]) -> Refusal:
    """`beyond`: what of these paths is not leased: they themselves, or regions of them."""
    held = [f"{path} by {facts.others[path]}" for path in paths if path in facts.others]
    also = f" (held: {', '.join(held[:NAMED_MAX])})" if held else ""
    return _no(
        Code.NOT_HOLDER, facts, paths,
        f"{_named(beyond)} {'is' if len(beyond) == 1 else 'are'} not leased to {facts.agent}{also}",
        "Look at the branch: merge it by hand, or add the path to the task's files and let it be "
        "done afresh. What a tool leaves behind belongs into .gitignore.",
    )


def _no(code: Code, facts: Facts, paths: Sequence[str], why: str, step: str,
        **more: bool) -> Refusal:
    return Refusal(
        code, f"{facts.task} did not land on {facts.target}: {why}. Nothing of it landed; it is "
        "all on its branch.", next=step, paths=list(paths[:200]), **more,
    )


def _named(paths: Sequence[str]) -> str:
    shown = ", ".join(paths[:NAMED_MAX])
    return shown + (f" and {len(paths) - NAMED_MAX} more" if len(paths) > NAMED_MAX else "")
