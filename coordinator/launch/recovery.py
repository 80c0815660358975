"""Landing one at a time, and finishing a landing that a crash has cut off.

Each landing waits for its turn (`.coord/landing.lock`) and is noted (`.coord/landing`) from
before the branch moves until its task is done. The branch is the truth. If it has moved, the
landing has happened, and the next turn updates the files and ends the task. If it has
not moved, nothing has happened.
"""

from __future__ import annotations

import contextlib
import fcntl
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from coordinator.client.client import Client
from coordinator.files.content import write_atomic
from coordinator.files.git import Git, GitError
from coordinator.files.state import StateDir
from coordinator.launch.checkout_update import CheckoutUpdate
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

Ask = Callable[[rq.Request[Any]], Any]


class Note(msgspec.Struct, kw_only=True):
    """A landing that has begun: `.coord/landing`."""

    agent: str
    task: str
    target: str
    before: str
    after: str
    top: str | None  # the working tree that follows; None: none has the target checked out

    @property
    def branch(self) -> str:
        """The target's name for a person."""
        return self.target.removeprefix("refs/heads/")


@contextlib.contextmanager
def turn(state: StateDir) -> Iterator[None]:
    """Wait for the turn: a repository has one landing at a time.

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


def note(state: StateDir, begun: Note) -> None:
    """Note a landing, on disk before this returns.

    Raises:
        Refusal: STORAGE.
    """
    try:
        write_atomic(state.landing, msgspec.json.encode(begun), 0o600)
    except OSError as bad:
        raise Refusal(Code.STORAGE, f"{state.landing} cannot be written: {bad.strerror}. Nothing "
                      "landed.") from None


def forget(state: StateDir) -> None:
    """Remove the record of a landing that has ended, or did not happen."""
    state.landing.unlink(missing_ok=True)


def unfinished(state: StateDir) -> Note | None:
    """Return the recorded landing: it is running, or a crash cut it off."""
    try:
        return msgspec.json.decode(state.landing.read_bytes(), type=Note)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return None


def cut_off(state: StateDir) -> str | None:
    """A landing that a crash cut off, in words; None if there is none, or if it is still running.
    """
    if unfinished(state) is None:
        return None
    with (state.path / "landing.lock").open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return None
        left = unfinished(state)
    if left is None:
        return None
    step = "`coord launch - --resume` brings it to its end."
    if not _happened(Git(state.root), left):
        return f"a landing of {left.task} was cut off before it happened. {step}"
    return (f"{left.task} has landed on {left.branch} as {left.after[:12]}, but that was cut off "
            f"before the files in {left.top or 'any working tree'} followed: do not commit there "
            f"yet. {step}")


def recover(state: StateDir, ask: Ask) -> str | None:
    """Bring a landing that a crash cut off to its end. Returns what was done, in words.

    Raises:
        Refusal: LOCKED, STORAGE: it cannot be done now, and stays noted.
    """
    with turn(state):
        return bring_forward(state, ask)


def bring_forward(state: StateDir, ask: Ask) -> str | None:
    """`recover` for a landing that has the turn: the process of an older record is dead then.

    Raises:
        Refusal: LOCKED, STORAGE.
    """
    left = unfinished(state)
    if left is None:
        return None
    git = Git(state.root)
    if not _happened(git, left):
        _take_back(git, left)
        forget(state)
        return f"A landing of {left.task} was cut off before it happened; nothing landed."
    foreign: list[str] = []
    try:
        where = git.checked_out_in(left.target)
        # Otherwise others have built on it, and the files are theirs.
        if where is not None and git.commit(left.target) == left.after:
            with CheckoutUpdate(Path(where)) as follower:
                foreign = follower.repair(left.before, left.after)
        _unlock(left)
    except GitError as bad:
        raise bad.refusal(
            f"{left.task} landed on {left.branch}, but was cut off before the files followed, and "
            "they cannot be brought forward now"
        ) from None
    with contextlib.suppress(Refusal):  # it expired meanwhile: then a review tells of it
        ask(rq.TaskDone(agent=left.agent, task=left.task, force=True, landed=left.after,
                        result=f"landed on {left.branch} as {left.after[:12]}"))
    forget(state)
    text = f"{left.task} had landed on {left.branch} as {left.after[:12]} when that was cut off; "
    if foreign:
        return text + ("the files followed now, but these were changed by somebody since and are "
                       f"as they were left: {', '.join(foreign[:10])}. `git diff` shows them.")
    return text + "the files have followed now."


def _take_back(git: Git, left: Note) -> None:
    """Restore the index if the branch did not move, and remove the dead process's lock."""
    where = git.checked_out_in(left.target)
    try:
        if where is not None and git.commit(left.target) == left.before:
            with CheckoutUpdate(Path(where)) as follower:
                follower.undo(left.before, left.after)
        _unlock(left)
    except GitError as bad:
        raise bad.refusal(
            f"A landing of {left.task} was cut off before it happened, and the index of {where} "
            "cannot be put back"
        ) from None


def _unlock(left: Note) -> None:
    """Remove the dead process's lock, which is still there if nothing had to follow."""
    if left.top is not None and Path(left.top).is_dir():
        CheckoutUpdate(Path(left.top)).clear_crash()


def main(root: str) -> int:
    """`python -I -m coordinator.launch.recovery ROOT`: the daemon runs it when it finds a landing
    that was cut off. Prints what was done. Exit code: 0, or that of the refusal."""
    with Client(Path(root), autostart=False) as client:
        try:
            text = recover(StateDir(client.root), client.call)
        except Refusal as refusal:
            sys.stderr.write(refusal.message + "\n")
            return refusal.exit_code
    sys.stdout.write(f"{text}\n" if text else "")
    return 0


def _happened(git: Git, left: Note) -> bool:
    now = git.commit(left.target)
    return now is not None and git.contains(now, left.after)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
