"""A person's own command, run on what is about to land: if it fails, that does not land.

Owns one working tree for the whole launch, so that what the command builds there and git ignores is
there the next time. One landing is verified after the other, by whoever has the landing's turn. The
tree has what the target would have: other agents' landed work, and this one's, merged.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from coordinator.files.git import CHECKOUT_TIMEOUT_S, Git, GitError, clean_environment
from coordinator.launch.process import Running
from coordinator.launch.worktrees import Target
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import harmless, quoted

#: How long the command may take (seconds), and what it has between SIGTERM and SIGKILL.
SECONDS_MAX, GRACE_S = 1800.0, 5.0
#: Its last output that is told (bytes).
TAIL_BYTES = 2_000
#: Becomes the command as soon as it is told to; where the launcher dies before, it ends.
_WAITS = 'read -r go && exec sh -c "$1" </dev/null'
#: The name of its working tree, which no agent can have.
NAME = "coord.verify"


class Stop(Protocol):
    """What the end of the launch is seen by."""

    def is_set(self) -> bool: ...


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

    def check(self, task: str, commit: str, started: Callable[[Running], None]) -> None:
        """Run the command on this commit; return if it succeeds. `started` is told of its process.

        Raises:
            Refusal: VERIFY_FAILED: it failed, took too long, or the launch was stopped; STORAGE.
        """
        try:
            self._check_out(commit)
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
                f"{why or _ended(code)}. Nothing of it landed; it is all on its branch."
                + _tail(log),
                next=f"Correct it; all that the command said is in {log}.",
            )

    def close(self) -> None:
        """Take the tree away."""
        remove(self._target, self._top.parent)

    def _check_out(self, commit: str) -> None:
        if not (self._top / ".git").exists():
            self._top.parent.mkdir(parents=True, exist_ok=True)
            Git(self._target.top).run("worktree", "add", "--quiet", "--force", "--detach",
                                      str(self._top), commit, timeout_s=CHECKOUT_TIMEOUT_S)
            return
        git = Git(self._top)
        git.run("checkout", "--quiet", "--force", "--detach", commit, timeout_s=CHECKOUT_TIMEOUT_S)
        git.run("clean", "-ffdq", timeout_s=CHECKOUT_TIMEOUT_S)  # but for what git ignores

    def _start(self, environment: dict[str, str], log: Path,
               started: Callable[[Running], None]) -> Running:
        """Its process; the command runs only after `started` has returned, for whoever ends what a
        killed launcher leaves knows of no other.

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
        """Why it was not waited for to its end; empty if it was."""
        until = time.monotonic() + self._seconds
        while not process.exited.wait(0.2):
            if self._stop.is_set():
                return "was stopped with the launch"
            if time.monotonic() > until:
                return f"took over {self._seconds:g} s"
        return ""


class Beating:
    """Calls `beat` every few seconds, in a thread, as long as the `with` lasts."""

    def __init__(self, beat: Callable[[], object], every_s: float) -> None:
        self._beat, self._every_s, self._over = beat, every_s, threading.Event()
        self._thread = threading.Thread(target=self._run, name="coord-landing", daemon=True)

    def __enter__(self) -> Beating:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            with contextlib.suppress(Refusal):  # whether its claim still stands is asked later
                self._beat()


def remove(target: Target, folder: Path) -> None:
    """Take the tree in this folder away, whatever is in it: it is nobody's work."""
    if (folder / NAME).exists():
        with contextlib.suppress(GitError):
            Git(target.top).run("worktree", "remove", "--force", "--force", str(folder / NAME))
    with contextlib.suppress(OSError):  # others are still there
        folder.rmdir()
        folder.parent.rmdir()


def _ended(code: int) -> str:
    return f"failed (exit code {code})" if code > 0 else f"was ended by signal {-code}"


def _tail(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            said = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    said = harmless(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said)).strip()
    return f" Its last output:\n{said}" if said else ""
