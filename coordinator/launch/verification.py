"""Running a person's command on work that is about to land. If it fails, the work does not land.

The module owns one working tree for the whole launch, so files that the command builds and git
ignores are there the next time. The tree contains what the target would contain: the landed work of
other agents and this agent's work, merged. Later work in the queue is verified with it, all at
once. If that fails, halving finds the longest beginning of the queue that passes, as merge queues
such as bors do.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from coordinator.files.git import Git, GitError, clean_environment
from coordinator.files.scratch_tree import ScratchTree
from coordinator.launch.worktrees import Target
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import quoted
from coordinator.workers.kept_command import Ended, how, tail
from coordinator.workers.process_group import Running

#: How long the command may take (seconds), and its time between SIGTERM and SIGKILL.
SECONDS_MAX, GRACE_S = 1800.0, 5.0
#: Becomes the command at the launcher's signal; ends if the launcher dies before.
_WAITS = 'read -r go && exec sh -c "$1" </dev/null'
#: The name of its working tree, which no agent can have.
NAME = "coord.verify"


class Stop(Protocol):
    """The sign of the launch's end."""

    def is_set(self) -> bool: ...


class WouldLand(NamedTuple):
    """A task, and the commit that the target would be at with its work."""

    task: str
    commit: str


class Verification:
    """One launch's.

    Args:
        folder: of the launch's worktrees.
        logs: where the command's output is kept.
        command: for `sh -c`, run where the repository's root is in the tree.
    """

    def __init__(self, target: Target, folder: Path, logs: Path, command: str, stop: Stop,
                 seconds: float = SECONDS_MAX) -> None:
        self._target, self._top, self._logs = target, folder / NAME, logs
        self._command, self._stop, self._seconds = command, stop, seconds
        self._count = 0
        #: Trees that may land; of these, the ones that the command itself has run on.
        self._may_land: set[str] = set()
        self._seen: set[str] = set()
        self._landed: str | None = None

    def check(self, batch: Sequence[WouldLand], started: Callable[[Running], None]) -> None:
        """Check by the command that the first of these may land. It is run on the last of them,
        which contains all of them, and on fewer if that fails. `started` gets its processes.

        Raises:
            Refusal: VERIFY_FAILED: it failed on the first, took too long, or the launch was
                stopped; STORAGE.
        """
        if self._tree(batch[0]) in self._may_land:
            return
        good, bad, wrong = 0, len(batch) + 1, None
        tried = len(batch)
        while bad - good > 1:
            try:
                self._run(batch[tried - 1], started)
                good = tried
            except Refusal as refusal:
                if self._stop.is_set():
                    raise
                bad, wrong = tried, refusal
            tried = (good + bad) // 2
        if wrong is not None and good == 0:
            raise wrong
        self._seen.add(self._tree(batch[good - 1]))
        self._may_land.update(self._tree(would_land) for would_land in batch[:good])

    def landed(self, commit: str) -> None:
        """Record that this is the target's tip now."""
        self._landed = commit

    def last_word(self) -> str:
        """Return the words on the landed work for a person at the end of the launch. If only a part
        of a batch landed after all, the command has not run on the present state."""
        if self._landed is None:
            return ""
        with contextlib.suppress(Refusal):
            if self._tree(WouldLand("", self._landed)) in self._seen:
                return ""
        return (f"what is at {self._landed[:12]} now was verified only together with work that did "
                f"not land in the end; run {quoted(self._command)} on it")

    def _tree(self, would_land: WouldLand) -> str:
        try:
            return Git(self._target.top).text("rev-parse", f"{would_land.commit}^{{tree}}")
        except GitError as bad:
            raise bad.refusal(f"{would_land.task} could not be verified, so it did not "
                              "land") from None

    def _run(self, would: WouldLand, started: Callable[[Running], None]) -> None:
        """Run the command on the tree that this work would give.

        Raises:
            Refusal: as for `check`.
        """
        task, commit = would
        try:
            ScratchTree(self._target.top, self._top).check_out(commit)
        except GitError as bad:
            raise bad.refusal(f"{task} could not be verified, so it did not land") from None
        self._count += 1
        log = self._logs / f"{task}-verify-{self._count}.log"
        environment = {name: value for name, value in clean_environment().items()
                       if not name.startswith("COORD_")} | {"COORD_TASK": task}
        try:
            process = self._start(environment, log, started)
        except OSError as bad:
            raise Refusal(Code.STORAGE, f"{task} could not be verified, so it did not land: "
                          f"{bad.strerror}.") from None
        why = self._wait(process)
        code = process.stop(GRACE_S) if why else process.finish()
        if why or code:
            raise Refusal(
                Code.VERIFY_FAILED,
                f"{task} did not land: on what would land, {quoted(self._command)} "
                f"{why or how(Ended(code))}. Nothing of it landed; it is all on its branch."
                + (f" Its last output:\n{text}" if (text := tail(log)) else ""),
                next=f"Correct it; all that the command said is in {log}.",
            )

    def close(self) -> None:
        """Take the tree away."""
        remove(self._target, self._top.parent)

    def _start(self, environment: dict[str, str], log: Path,
               started: Callable[[Running], None]) -> Running:
        """Start the process. The command runs only after `started` has returned, because the
        cleanup after a killed launcher knows no other processes.

        Raises:
            OSError: it cannot be started.
        """
        read_end, write_end = os.pipe()
        with open(read_end, "rb") as may, open(write_end, "wb") as say:  # noqa: PTH123
            process = Running(["sh", "-c", _WAITS, "sh", self._command], env=environment, log=log,
                              cwd=self._top / self._target.below, stdin=may)
            started(process)
            with contextlib.suppress(BrokenPipeError):  # it was ended meanwhile
                say.write(b"go\n")
                say.flush()
        return process

    def _wait(self, process: Running) -> str:
        """Why the wait ended before the process; empty if it did not."""
        until = time.monotonic() + self._seconds
        while not process.exited.wait(0.2):
            if self._stop.is_set():
                return "was stopped with the launch"
            if time.monotonic() > until:
                return f"took over {self._seconds:g} s"
        return ""


def remove(target: Target, folder: Path) -> None:
    """Remove the tree in this folder with all its content: it has no agent's work."""
    if (folder / NAME).exists():
        with contextlib.suppress(GitError):
            Git(target.top).run("worktree", "remove", "--force", "--force", str(folder / NAME))
    with contextlib.suppress(OSError):  # others are still there
        folder.rmdir()
        folder.parent.rmdir()
