"""Landing the branch with an agent's work on the target: one branch at a time, leases before files.

The daemon decides whether it may land, in the transaction that moves the branch (`slices.landing`).
This module does the rest: it makes the commit to land, collects the facts, and updates the files.
The landing is recorded from before the branch moves until the task is done (`recovery`).
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from coordinator.files.beneath import Root
from coordinator.files.git import NO_MODE, Entry, Git, GitError
from coordinator.files.state import StateDir
from coordinator.launch import recovery
from coordinator.launch.checkout_update import CheckoutUpdate, in_use
from coordinator.launch.merge_meaning import MergeMeaning
from coordinator.launch.region_merge import merges, regions
from coordinator.launch.verification import WouldLand
from coordinator.launch.worktrees import Target, Workplace, record
from coordinator.rules.landing import Change, unseen
from coordinator.words import file_names
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: How often a landing begins anew because a person's commit came first.
TRIES_MAX = 20
#: Landings that are verified together.
BATCH_MAX = 8


@dataclass(frozen=True, slots=True)
class Work:
    """A branch that has to land: its task, its commit, and the leases that it began with."""

    agent: str
    task: str
    message: str
    commit: str
    began_with: Sequence[rq.LandRight]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The changes that would land, and their request to the coordinator."""

    changes: Sequence[Entry]
    request: rq.Land


class Lander:
    """Lands on one target. `ask` puts a question to the coordinator as the person who launched.
    `meaning` finds conflicts with work that landed meanwhile. `verify` gets the commit that is
    about to land, with the commits of the works behind it in the queue (`line`), and may refuse."""

    def __init__(self, state: StateDir, target: Target, ask: Callable[[rq.Request[Any]], Any],
                 verify: Callable[[Sequence[WouldLand]], None] | None = None,
                 line: LandingLine[Work] | None = None,
                 meaning: MergeMeaning | None = None) -> None:
        self._state, self._target, self._ask = state, target, ask
        self._verify = verify
        self._line = line if line is not None else LandingLine()
        self._meaning = meaning
        self._git = Git(target.top)

    def land(self, work: Work, finish: Callable[[str], bool]) -> str:
        """Let the branch land, then call `finish` with the new commit of the target, before any
        other landing's turn. Returns that commit.

        `finish` returns whether the task's end is recorded. If not, the next landing tries again.

        Raises:
            Refusal: why nothing landed: NOT_HOLDER, STALE_TOKEN, VERSION_CHANGED, …
        """
        self._tell(work, turn=False)
        with self._line.turn(work), recovery.turn(self._state):
            self._tell(work, turn=True)
            recovery.bring_forward(self._state, self._ask)
            after = self._land(work)
            if finish(after):
                recovery.forget(self._state)
        return after

    def _tell(self, work: Work, *, turn: bool) -> None:
        """Report its place in the queue for viewers. A failure does not matter."""
        with contextlib.suppress(Refusal):
            self._ask(rq.LandQueue(agent=work.agent, task=work.task, target=self._target.ref,
                                   turn=turn))

    def _land(self, work: Work) -> str:
        for _ in range(TRIES_MAX):
            try:
                return self._attempt(work)
            except GitError as bad:
                raise bad.refusal(f"{work.task} did not land") from None
            except Refusal as refusal:
                if not refusal.facts.get("target_moved"):
                    raise
        raise Refusal(
            Code.VERSION_CHANGED, f"{self._target.name} moved {TRIES_MAX} times while {work.task} "
            "was to land. Nothing of it landed; it is all on its branch.",
            next="Merge its branch by hand.",
        )

    def _attempt(self, work: Work) -> str:
        git, ref = self._git, self._target.ref
        # A refusal costs nothing now. A permitted one may still be refused when the branch moves.
        plan, divided = self._permitted_plan(work)
        if self._verify is not None:
            self._verify(self._batch(work, plan.request.after))
        where = git.checked_out_in(ref)
        self._note(plan.request, where)  # before the lock, so that a crash leaves no unknown lock
        try:
            with self._locked(where) as follower:
                if git.commit(ref) != plan.request.before:  # from now on, no commit comes between
                    if self._verify is not None:
                        raise Refusal(Code.VERSION_CHANGED, "What was verified is not what would "
                                      "land now.", target_moved=True)
                    plan = self._plan(work, divided)
                    self._note(plan.request, where)
                self._move(follower, work, plan)
        except (Refusal, GitError):
            if not self._has_landed(plan.request.after):
                recovery.forget(self._state)
            raise
        return plan.request.after

    def _batch(self, work: Work, after: str) -> list[WouldLand]:
        """Return the commit that would land, then those of the works behind it that may land."""
        would_lands = [WouldLand(work.task, after)]
        for other in self._line.behind(work)[: BATCH_MAX - 1]:
            try:
                plan, _ = self._permitted_plan(other, would_lands[-1].commit)
            except (Refusal, GitError):
                continue
            would_lands.append(WouldLand(other.task, plan.request.after))
        return would_lands

    def _permitted_plan(self, work: Work, tip: str | None = None) -> tuple[_Plan, Collection[str]]:
        """Plan the landing, and check that it may land. Return the plan, and the files that are
        divided into regions for it.

        Raises:
            Refusal: it may not land.
            GitError
        """
        plan = self._plan(work, (), tip)
        try:
            self._ask(_as_check(plan.request))
        except Refusal as refusal:
            if refusal.code is not Code.NOT_HOLDER:
                raise
            divided = refusal.facts.get("paths", ())  # the work may have leases on their regions
            plan = self._plan(work, divided, tip)
            self._ask(_as_check(plan.request))
            return plan, divided
        return plan, ()

    def _move(self, follower: CheckoutUpdate | None, work: Work, plan: _Plan) -> None:
        """Move the branch if the coordinator permits it, then bring the files forward."""
        before, after = plan.request.before, plan.request.after
        announced = False
        if follower is not None:
            plan.request.dirty = follower.dirty(before, plan.changes)
            if not plan.request.dirty:  # otherwise it will be refused
                text = follower.rehearse(before, after)
                if text is not None:
                    raise _would_overwrite(work, text)
                follower.announce(before, after)
                announced = True
        try:
            self._ask(plan.request)
        except Refusal:
            # An answer may be lost with the daemon that gave it: the branch tells.
            if not self._has_landed(after):
                if follower is not None and announced:
                    follower.withdraw()
                raise
        if follower is not None:
            self._follow(follower, work, before, after)

    def _plan(self, work: Work, divided: Collection[str], tip: str | None = None) -> _Plan:
        """Plan a landing on the present target, or on `tip`, with the regions of the `divided`
        files."""
        git, ref = self._git, self._target.ref
        tip = git.commit(ref) if tip is None else tip
        base = git.base(work.commit, tip) if tip is not None else None
        if tip is None or base is None:
            raise Refusal(
                Code.INVALID, f"{work.task} did not land: its branch has no history in common with "
                f"{self._target.name}.", next="Look at the branch, and merge it by hand.",
            )
        changes, moved = git.changes(base, work.commit), git.changes(base, tip)
        both = merges(git, changes, moved, work.message, f"{base}..{tip}")
        misfits = [] if self._meaning is None else self._meaning.misfits(
            git, tip, changes, moved, both.entries, self._inside)
        changes = [both.entries.get(entry.path, entry) for entry in changes]
        asked = {entry.path for entry in changes if self._inside(entry.path) in divided}
        parts = regions(git, changes, asked)
        return _Plan(changes, rq.Land(
            agent=work.agent, task=work.task, target=ref, before=tip,
            after=self._commit(work, tip, base, changes, [
                entry for entry in moved if entry.path not in both.entries]),
            changes=[rq.LandChange(
                path=self._below(e.path, work), submodule=e.submodule,
                regions=parts.get(e.path, []), merged=e.path in both.entries,
                clash=both.clashes.get(e.path, "")) for e in changes],
            moved=[p for e in moved if (p := self._inside(e.path)) is not None],
            began_with=list(work.began_with), misfits=misfits,
        ))

    @contextlib.contextmanager
    def _locked(self, where: str | None) -> Iterator[CheckoutUpdate | None]:
        """Lock the index of the working tree that has the target checked out; None if none has."""
        if where is None:
            self._refuse_while_rebased()
            yield None
            return
        with CheckoutUpdate(Path(where)) as follower:
            if self._git.checked_out_in(self._target.ref) != where:
                raise Refusal(Code.VERSION_CHANGED, "Another branch was checked out meanwhile.",
                              target_moved=True)
            yield follower

    def _refuse_while_rebased(self) -> None:
        """Refuse a target that is being rebased. It is checked out nowhere, but must not move."""
        git_dir = self._target.top / self._git.text("rev-parse", "--git-dir")
        for name in ("rebase-merge", "rebase-apply"):
            with contextlib.suppress(OSError):
                if (git_dir / name / "head-name").read_text().strip() == self._target.ref:
                    raise in_use(f"{self._target.name} is being rebased", "Finish the rebase.")

    def _has_landed(self, after: str) -> bool:
        now = self._git.commit(self._target.ref)
        return now is not None and self._git.contains(now, after)

    def _follow(self, follower: CheckoutUpdate, work: Work, before: str, after: str) -> None:
        """Bring the files forward. If another change came first, take the branch back.

        Raises:
            Refusal: VERSION_CHANGED: nothing landed.
        """
        try:
            follower.follow(before, after)
        except GitError as bad:
            refusal = _would_overwrite(work, "; ".join(bad.lines[:3]) or bad.said)
            try:
                self._ask(rq.LandBack(agent=work.agent, task=work.task, target=self._target.ref,
                                      before=before, after=after, why=refusal.message))
            except Refusal as kept:
                raise Refusal(
                    Code.STORAGE, f"{work.task} landed on {self._target.name}, but the files in "
                    f"{follower.top} could not follow ({bad.said}), and the branch could not be "
                    f"taken back: {kept.message}",
                    next=f"`git -C '{follower.top}' status` shows what differs.",
                ) from None
            follower.withdraw()
            raise refusal from None

    # ------------------------------------------------------------ facts

    def _inside(self, path: str) -> str | None:
        """Return a path of the working tree relative to the repository's root; None if outside."""
        below = self._target.below
        if not path.startswith(below):
            return None
        return file_names.from_bytes(os.fsencode(path[len(below):]))

    def _below(self, path: str, work: Work) -> str:
        inside = self._inside(path)
        if inside is None:
            raise Refusal(
                Code.OUTSIDE_REPO, f"{work.task} did not land: {path} lies outside of "
                f"{self._target.below}, so no lease covers it. Nothing of it landed.",
                next="Look at the branch, and merge it by hand.", paths=[path],
            )
        if file_names.hides_bytes(inside) is not None:
            raise Refusal(
                Code.INVALID,
                f"{work.task} did not land: `{file_names.shown(inside)}` is not UTF-8, "
                "so no lease can name it. Nothing of it landed.",
                next="Rename it on the branch.",
            )
        return inside

    def _commit(self, work: Work, tip: str, base: str, changes: Sequence[Entry],
                moved: Sequence[Entry]) -> str:
        """Return the target's new commit: the branch itself, or, if the target has moved, a merge.
        The merge has the branch's (or the merged) version of each path that the branch changed, and
        the target's version of all others."""
        if base == tip or unseen([Change(e.path, f"{e.path}/") for e in changes],
                                 [f"{e.path}/" for e in moved]):
            return work.commit  # it will be refused, so nothing has to be made
        index = self._state.path / "landing.index"
        index.unlink(missing_ok=True)
        git = Git(self._target.top, index)
        try:
            git.run("read-tree", tip)
            gone = [e for e in changes if e.new_mode == NO_MODE]
            there = [e for e in changes if e.new_mode != NO_MODE]
            lines = [b"0 %s 0\t%s\0" % (b"0" * len(e.old), os.fsencode(e.path)) for e in gone]
            lines += [b"%s %s 0\t%s\0" % (e.new_mode.encode(), e.new.encode(), os.fsencode(e.path))
                      for e in there]
            git.run("update-index", "-z", "--index-info", data=b"".join(lines))
            return record(git, git.text("write-tree"), [tip, work.commit],
                          f"Merge {work.message}")
        finally:
            index.unlink(missing_ok=True)

    def _note(self, request: rq.Land, where: str | None) -> None:
        recovery.note(self._state, recovery.Note(
            agent=request.agent, task=request.task, target=request.target, before=request.before,
            after=request.after, top=where,
        ))


def _as_check(request: rq.Land) -> rq.LandCheck:
    return rq.LandCheck(
        agent=request.agent, task=request.task, changes=request.changes,
        began_with=request.began_with, moved=request.moved, misfits=request.misfits,
        target=request.target,
    )


def _would_overwrite(work: Work, text: str) -> Refusal:
    return Refusal(
        Code.VERSION_CHANGED, f"{work.task} did not land: git would have to overwrite something in "
        f"the main worktree that is not committed ({text}). Nothing of it landed; it is all on its "
        "branch.", next="Commit it or put it aside, then merge the branch by hand.", dirty=True,
    )


def rights(leases: Sequence[rq.Lease]) -> list[rq.LandRight]:
    """Return the leases that an attempt begins with, as a landing names them."""
    return [rq.LandRight(fencing_token=lease.fencing_token, resource=lease.resource,
                         kind=lease.kind) for lease in leases]


def only_ignored(work: Workplace, main: Path, leases: Sequence[rq.Lease]) -> list[str]:
    """Find files leased by name that the agent wrote and git ignores: they could never land."""
    names = [lease.resource for lease in leases
             if lease.kind == "file" and lease.mode == "exclusive"]
    if not names:
        return []
    try:
        result = Git(work.place).names("--literal-pathspecs", "ls-files", "-z", "--others",
                                       "--ignored", "--exclude-standard", "--", *names)
    except GitError:
        return []
    try:
        with Root(work.place) as there, Root(main.resolve()) as here:
            return [name for name in result if _differs(there, here, name)]
    except OSError:
        return result


def _differs(root: Root, other: Root, name: str) -> bool:
    try:
        return root.snapshot(name, 0).name != other.snapshot(name, 0).name
    except OSError:
        return True


W = TypeVar("W")


class LandingLine(Generic[W]):
    """One launch's. Used from all its threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._line: list[W] = []

    @contextmanager
    def turn(self, work: W) -> Iterator[None]:
        """Queue the work; the body runs when its turn comes."""
        with self._changed:
            self._line.append(work)
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._line[0] is work)
            yield
        finally:
            with self._changed:
                self._line.remove(work)
                self._changed.notify_all()

    def behind(self, work: W) -> list[W]:
        """Return the works behind it in the queue now."""
        with self._changed:
            return [item for item in self._line if item is not work]
