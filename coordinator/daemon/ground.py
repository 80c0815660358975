"""What the daemon stands on: its root, its state directory, its lock, its database, its socket.

Each is known by identity (device and inode). One that was removed, renamed or replaced is not this
daemon's any more: another daemon may be serving already what it thinks is its own. Looks only; what
follows from it is the daemon's business. A descriptor of each is kept open, so that no other file
can get its number.
"""

# Paths are plain bytes here: three of them are looked at around each commit, and Path is slow.

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coordinator.files.identity import device_and_inode, filled, statx_buffer
from coordinator.files.state import StateDir
from coordinator.words.refusals import Code, Refusal

#: For so long (seconds) a look at the ground is good for the requests that come.
FRESH_S = 0.02
_Id = tuple[int, int]


class Ground:
    """One daemon's. Used from the loop's thread; `lost` from any."""

    def __init__(self, state: StateDir, lock: int) -> None:
        self._state = state
        self._kept: list[int] = []
        self._things: list[tuple[str, bytes, _Id]] = []
        #: The database, which is never empty: what is written to it then is lost.
        self._database = os.fsencode(state.database)
        #: What is looked at before a commit (False) and after it (True).
        self._around_commit: dict[bool, list[tuple[bytes, _Id]]] = {False: [], True: []}
        self._buffer = statx_buffer()
        self._seen_at = 0.0
        self._said: str | None = None
        #: Called once, with a sentence, as soon as something is seen to be gone.
        self.on_loss: Callable[[str], None] = lambda said: None
        for what, path in (("the repository", state.root), ("its state directory", state.path)):
            descriptor = os.open(path, getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_CLOEXEC)
            self._kept.append(descriptor)
            self._watch(what, path, os.fstat(descriptor))
        self._watch("its lock", state.lock, os.fstat(lock), when=False)

    def watch_database(self) -> None:
        """The database is open: from now on it is a part of the ground."""
        for suffix in ("", "-wal", "-shm"):
            path = self._state.database.with_name(self._state.database.name + suffix)
            self._watch("its database", path, os.lstat(path),
                        when=True if suffix != "-shm" else None)

    def watch_socket(self, path: Path) -> None:
        """The socket is bound."""
        self._watch("its socket", path, os.lstat(path))

    def lost(self) -> str | None:
        """What is gone, as a sentence; None while all is in place. Looks at everything."""
        if self._said is None:
            buffer = statx_buffer()  # any thread may ask
            for what, path, known in self._things:
                file = self._find_file(path, buffer)
                if file != known:
                    state = "was removed" if file is None else "was replaced by another"
                    if device_and_inode(path, buffer) == known:
                        state = "was emptied"
                    self._lose(f"{what[0].upper()}{what[1:]} ({os.fsdecode(path)}) {state}.")
                    break
        return self._said

    def check(self, begun: bool) -> None:
        """Before a commit: that the lock is this daemon's, so that nobody else writes, and that
        all the rest is in place as of a moment ago. Before what was committed is told (`begun`):
        that the database is the one that others will read.

        Raises:
            Refusal: SHUTTING_DOWN.
        """
        self._look(begun)
        if not begun:
            self._look_at_all()
        if self._said is not None:
            raise self._refusal(begun)

    def check_read(self) -> None:
        """Somebody asks what is so: lock and database are in place now, all the rest was a moment
        ago. (Who asks for a change is held to `check`.)

        Raises:
            Refusal: SHUTTING_DOWN.
        """
        self._look(False)
        self._look(True)
        self._look_at_all()
        if self._said is not None:
            raise self._refusal(False)

    def _look(self, around: bool) -> None:
        for path, known in self._around_commit[around]:
            if self._find_file(path, self._buffer) != known:
                self.lost()
                return

    def _find_file(self, path: bytes, buffer: Any) -> _Id | None:
        return (filled if path == self._database else device_and_inode)(path, buffer)

    def _look_at_all(self) -> None:
        now = time.monotonic()
        if now - self._seen_at > FRESH_S:
            self.lost()
            self._seen_at = now

    def _refusal(self, begun: bool) -> Refusal:
        """What whoever still asks is told. What was not begun may be asked of the next one."""
        return Refusal(
            Code.SHUTTING_DOWN, f"This coordinator has ended: {self._said} "
            + ("Whether this was carried out, the next one knows." if begun
               else "This was not carried out."),
            next="Repeat it: a new coordinator starts, with the state that is there now."
            if not begun else "`coord status` shows what is so.", begun=begun,
        )

    def owns(self, path: Path) -> bool:
        """Whether what is there is what this daemon has put there."""
        wanted = os.fsencode(path)
        return any(at == wanted and device_and_inode(at, statx_buffer()) == identity
                   for _, at, identity in self._things)

    def forget(self, path: Path) -> None:
        """This daemon removes it itself."""
        self._things = [thing for thing in self._things if thing[1] != os.fsencode(path)]

    def leave(self) -> None:
        """Let go of the descriptors."""
        for descriptor in self._kept:
            os.close(descriptor)
        self._kept.clear()

    def _watch(self, what: str, path: Path, status: os.stat_result,
               when: bool | None = None) -> None:
        identity, at = (status.st_dev, status.st_ino), os.fsencode(path)
        self._things.append((what, at, identity))
        if when is not None:
            self._around_commit[when].append((at, identity))

    def _lose(self, text: str) -> None:
        self._said = text
        self.on_loss(text)
