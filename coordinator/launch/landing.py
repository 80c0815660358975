"""Landing a gathered branch on the target: one at a time, leases first, files after.

Whether it may land is the daemon's decision, made in the transaction that moves the branch
(`service.landing`). Here is what surrounds it: the commit that is to land, the facts, the turn of
each (`.coord/landing.lock`), and a note on disk (`.coord/landing.json`) from before the branch
moves until the task is done, so that whoever comes after a crash can bring it to its end. The
branch is the truth: once it has moved, the landing has happened.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from coordinator.files.content import write_atomic
from coordinator.files.git import NO_MODE, Entry, Git, GitError
from coordinator.files.state import StateDir
from coordinator.launch.following import Follower, in_use
from coordinator.launch.worktrees import Target, Workplace, record
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: How often a landing begins anew because a person's commit came first.
TRIES_MAX = 20


class Note(msgspec.Struct, kw_only=True):
    """A landing that has begun: `.coord/landing.json`."""

    agent: str
    task: str
    target: str
    before: str
    after: str
    top: str | None  # the working tree that follows; None: none has the target checked out


@dataclass(frozen=True, slots=True)
class Work:
    """A branch that wants to land: what it is about, its commit, and the leases it began with."""

    agent: str
    task: str
    message: str
    commit: str
    began_with: Sequence[rq.LandRight]


class Lander:
    """Lands on one target. `ask` puts a question to the coordinator as the person who launched."""

    def __init__(self, state: StateDir, target: Target,
                 ask: Callable[[rq.Request[Any]], Any]) -> None:
        self._state, self._target, self._ask = state, target, ask
        self._git = Git(target.top)

    def land(self, work: Work, finish: Callable[[str], bool]) -> str:
        """Let the branch land, then call `finish` with the commit that the target is at then:
        whatever is done there is done before anybody else's turn. That commit.

        `finish` tells whether the task's end is noted; if not, whoever comes next tries again.

        Raises:
            Refusal: why nothing landed: NOT_HOLDER, STALE_TOKEN, VERSION_CHANGED, …
        """
        with turn(self._state):
            left = unfinished(self._state)
            if left is not None:  # it is our turn, so whoever noted it is dead
                _recover(self._state, left, self._ask)
            after = self._land(work)
            if finish(after):
                note_path(self._state).unlink(missing_ok=True)
        return after

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
        tip = git.commit(ref)
        base = git.base(work.commit, tip) if tip is not None else None
        if tip is None or base is None:
            raise Refusal(
                Code.INVALID, f"{work.task} did not land: its branch has no history in common with "
                f"{self._target.name}.", next="Look at the branch, and merge it by hand.",
            )
        changes, moved = git.changes(base, work.commit), git.changes(base, tip)
        request = rq.Land(
            agent=work.agent, task=work.task, target=ref, before=tip, after=tip,
            changes=[rq.LandChange(path=self._below(e.path, work), submodule=e.submodule)
                     for e in changes],
            moved=[p for e in moved if (p := self._inside(e.path)) is not None],
            began_with=list(work.began_with),
        )
        # Refused now, it costs nothing; lawful now, it may be refused when the branch moves.
        self._ask(_as_check(request))
        request.after = after = self._commit(work, tip, base, changes)
        where = git.checked_out_in(ref)
        if where is None:
            self._refuse_while_rebased()
        with contextlib.ExitStack() as stack:
            follower = stack.enter_context(Follower(Path(where))) if where is not None else None
            if follower is not None:
                request.dirty = follower.dirty(tip, changes)
            self._note(Note(agent=work.agent, task=work.task, target=ref, before=tip, after=after,
                            top=where))
            try:
                said = follower.rehearse(tip, after) if follower and not request.dirty else None
                if said is not None:
                    raise _would_overwrite(work, said)
                self._ask(request)
            except Refusal:
                # An answer may be lost with the daemon that gave it: the branch tells.
                if not self._has_landed(after):
                    note_path(self._state).unlink(missing_ok=True)
                    raise
            if follower is not None:
                self._follow(follower, work, tip, after)
        return after

    def _refuse_while_rebased(self) -> None:
        """A branch that is being rebased is checked out nowhere, and yet must not move."""
        git_dir = self._target.top / self._git.text("rev-parse", "--git-dir")
        for name in ("rebase-merge", "rebase-apply"):
            with contextlib.suppress(OSError):
                if (git_dir / name / "head-name").read_text().strip() == self._target.ref:
                    raise in_use(f"{self._target.name} is being rebased", "Finish the rebase.")

    def _has_landed(self, after: str) -> bool:
        now = self._git.commit(self._target.ref)
        return now is not None and self._git.contains(now, after)

    def _follow(self, follower: Follower, work: Work, before: str, after: str) -> None:
        """Bring the files forward; if somebody came first, take the branch back.

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
            note_path(self._state).unlink(missing_ok=True)
            raise refusal from None

    # ------------------------------------------------------------ facts

    def _inside(self, path: str) -> str | None:
        """A path of the working tree as one below the repository's root; None beside it."""
        below = self._target.below
        return path[len(below):] if path.startswith(below) else None

    def _below(self, path: str, work: Work) -> str:
        inside = self._inside(path)
        if inside is None:
            raise Refusal(
                Code.OUTSIDE_REPO, f"{work.task} did not land: {path} lies outside of "
                f"{self._target.below}, so no lease covers it. Nothing of it landed.",
                next="Look at the branch, and merge it by hand.", paths=[path],
            )
        try:
            inside.encode()
        except UnicodeEncodeError:
            raise Refusal(
                Code.INVALID, f"{work.task} did not land: {inside!a} is not UTF-8, so no lease can "
                "name it. Nothing of it landed.", next="Rename it on the branch.",
            ) from None
        return inside

    def _commit(self, work: Work, tip: str, base: str, changes: Sequence[Entry]) -> str:
        """What the target will be: the branch itself, or, where the target went on, a merge that
        has the branch's version of each path it changed and the target's of all others."""
        if base == tip:
            return work.commit
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

    def _note(self, note: Note) -> None:
        try:
            write_atomic(note_path(self._state), msgspec.json.encode(note), 0o600)
        except OSError as bad:
            raise Refusal(Code.STORAGE, f"{note_path(self._state)} cannot be written: "
                          f"{bad.strerror}. Nothing landed.") from None


def _as_check(request: rq.Land) -> rq.LandCheck:
    return rq.LandCheck(
        agent=request.agent, task=request.task, changes=request.changes,
        began_with=request.began_with, moved=request.moved, target=request.target,
    )


def _would_overwrite(work: Work, said: str) -> Refusal:
    return Refusal(
        Code.VERSION_CHANGED, f"{work.task} did not land: git would have to overwrite something in "
        f"the main worktree that is not committed ({said}). Nothing of it landed; it is all on its "
        "branch.", next="Commit it or put it aside, then merge the branch by hand.", dirty=True,
    )


# ------------------------------------------------------------ one at a time, and after a crash


@contextlib.contextmanager
def turn(state: StateDir) -> Iterator[None]:
    """Wait for one's turn: landings of one repository happen one after the other.

    Raises:
        Refusal: STORAGE.
    """
    try:
        file = (state.path / "landing.lock").open("ab")
    except OSError as bad:
        raise Refusal(Code.STORAGE, f"{bad.filename} cannot be written: {bad.strerror}.") from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def note_path(state: StateDir) -> Path:
    """Where a landing that has begun is noted."""
    return state.path / "landing.json"


def unfinished(state: StateDir) -> Note | None:
    """The landing that has begun and not ended: now going on, or cut off by a crash."""
    try:
        return msgspec.json.decode(note_path(state).read_bytes(), type=Note)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return None


def cut_off(state: StateDir) -> str | None:
    """A landing that a crash cut off, in words; None if there is none, or it is going on."""
    if unfinished(state) is None:
        return None
    with (state.path / "landing.lock").open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return None
        note = unfinished(state)
    if note is None:
        return None
    name = note.target.removeprefix("refs/heads/")
    return (f"a landing of {note.task} on {name} was cut off: where {name} is at "
            f"{note.after[:12]}, the files of {note.top or 'no working tree'} have to follow. Do "
            "not commit there; `coord launch - --resume` brings it to its end first.")


def recover(state: StateDir, ask: Callable[[rq.Request[Any]], Any]) -> str | None:
    """Bring a landing that a crash cut off to its end; what was done, in words.

    If the branch had moved, the files follow and the task is done; if not, nothing has happened.

    Raises:
        Refusal: LOCKED, STORAGE: it cannot be done now, and stays noted.
    """
    with turn(state):
        note = unfinished(state)
        if note is None:
            return None
        return _recover(state, note, ask)


def _recover(state: StateDir, note: Note, ask: Callable[[rq.Request[Any]], Any]) -> str:
    said = _bring_forward(state, note, ask)
    note_path(state).unlink(missing_ok=True)
    return said


def _bring_forward(state: StateDir, note: Note, ask: Callable[[rq.Request[Any]], Any]) -> str:
    git = Git(state.root)
    foreign: list[str] = []
    name = note.target.removeprefix("refs/heads/")
    try:
        if note.top is not None and Path(note.top).is_dir():
            Follower(Path(note.top)).clear_crash()
        now = git.commit(note.target)
        if now is None or not git.contains(now, note.after):
            return f"A landing of {note.task} was cut off before it happened; nothing landed."
        where = git.checked_out_in(note.target)
        if where is not None and now == note.after:  # else somebody has built on it by now
            with Follower(Path(where)) as follower:
                foreign = follower.repair(note.before, note.after)
    except GitError as bad:
        raise bad.refusal(
            f"{note.task} landed on {name}, but was cut off before the files followed, and they "
            "cannot be brought forward now"
        ) from None
    with contextlib.suppress(Refusal):  # it lapsed meanwhile: then a review tells of it
        ask(rq.TaskDone(agent=note.agent, task=note.task, force=True, landed=note.after,
                        result=f"landed on {name} as {note.after[:12]}"))
    said = f"{note.task} had landed on {name} as {note.after[:12]} when its launch was cut off; "
    if foreign:
        return said + ("the files followed now, but these were changed by somebody since and are "
                       f"as they were left: {', '.join(foreign[:10])}. `git diff` shows them.")
    return said + "the files have followed now."


def rights(leases: Sequence[rq.Lease]) -> list[rq.LandRight]:
    """The leases that an attempt begins with, as a landing names them."""
    return [rq.LandRight(fencing_token=lease.fencing_token, resource=lease.resource,
                         kind=lease.kind) for lease in leases]


def only_ignored(work: Workplace, main: Path, leases: Sequence[rq.Lease]) -> list[str]:
    """Files leased by name that the agent wrote and git ignores: they could never land."""
    names = [lease.resource for lease in leases
             if lease.kind == "file" and lease.mode == "exclusive"]
    if not names:
        return []
    try:
        found = Git(work.place).names("--literal-pathspecs", "ls-files", "-z", "--others",
                                      "--ignored", "--exclude-standard", "--", *names)
    except GitError:
        return []
    return [name for name in found if not _same(work.place / name, main / name)]


def _same(one: Path, other: Path) -> bool:
    try:
        return one.read_bytes() == other.read_bytes()
    except OSError:
        return False
