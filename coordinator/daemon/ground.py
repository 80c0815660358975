"""What the daemon stands on: its root, its state directory, its lock, its database, its socket.

`Ground` knows each part by device and inode. A part that was removed, renamed or replaced does not
belong to this daemon any more: another daemon may already serve what stands there now. `Ground`
only looks, and the daemon decides what to do about a loss. The daemon keeps a descriptor of each
part open, so that no other file can get the part's inode number.
"""

# Paths are plain bytes here: each commit looks at three of them, and Path is slow.

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coordinator.files.identity import device_and_inode, statx_buffer
from coordinator.files.state import StateDir
from coordinator.words.refusals import Code, Refusal

#: How long (seconds) the daemon trusts its last look at all parts.
FRESH_S = 0.02
_Id = tuple[int, int]


class Ground:
    """The files that one daemon depends on. Any thread may call `lost`, only the loop's thread the
    others."""

    def __init__(self, state: StateDir, lock: int) -> None:
        self._state = state
        self._descriptors: list[int] = []
        self._parts: list[tuple[str, bytes, _Id]] = []
        #: The database is never empty; what a daemon writes into an emptied one is lost.
        self._database = os.fsencode(state.database)
        self._wal = self._database + b"-wal"
        #: The parts that the daemon looks at before a commit (False) and after it (True).
        self._around_commit: dict[bool, list[tuple[bytes, _Id]]] = {False: [], True: []}
        self._buffer = statx_buffer()
        self._looked_at = 0.0
        self._loss: str | None = None
        #: `Ground` calls this once, with a sentence, when it sees the first loss.
        self.on_loss: Callable[[str], None] = lambda sentence: None
        for what, path in (("the repository", state.root), ("its state directory", state.path)):
            descriptor = os.open(path, getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_CLOEXEC)
            self._descriptors.append(descriptor)
            self._watch(what, path, os.fstat(descriptor))
        self._watch("its lock", state.lock, os.fstat(lock), after_commit=False)

    def watch_database(self) -> None:
        """Add the files of the database, which is open now, to the ground."""
        for suffix in ("", "-wal", "-shm"):
            path = self._state.database.with_name(self._state.database.name + suffix)
            self._watch("its database", path, os.lstat(path),
                        after_commit=True if suffix != "-shm" else None)

    def watch_socket(self, path: Path) -> None:
        """Add the socket, which is bound now, to the ground."""
        self._watch("its socket", path, os.lstat(path))

    def lost(self) -> str | None:
        """Look at all parts. The result is a sentence that tells the loss, or None without one."""
        if self._loss is None:
            buffer = statx_buffer()  # any thread may ask
            for what, path, stamp in self._parts:
                file = self._find_file(path, buffer)
                if file != stamp:
                    state = "was removed" if file is None else "was replaced by another"
                    if device_and_inode(path, buffer) == stamp:
                        state = "was emptied"
                    self._report_loss(f"{what[0].upper()}{what[1:]} ({os.fsdecode(path)}) {state}.")
                    break
        return self._loss

    def check(self, begun: bool) -> None:
        """Check the ground before a commit, or with `begun` after it, before the answers go out.

        Before a commit the lock must still be this daemon's, so that nobody else writes. The other
        parts must have been in place within the last FRESH_S. After a commit the database must
        still be the one that others will read.

        Raises:
            Refusal: SHUTTING_DOWN.
        """
        self._look_around_commit(begun)
        if not begun:
            self._look_at_all_if_stale()
        if self._loss is not None:
            raise self._make_refusal(begun)

    def check_read(self) -> None:
        """Check the ground for a request that only reads; `check` serves the others.

        Lock and database must be in place now, the other parts within the last FRESH_S.

        Raises:
            Refusal: SHUTTING_DOWN.
        """
        self._look_around_commit(False)
        self._look_around_commit(True)
        self._look_at_all_if_stale()
        if self._loss is not None:
            raise self._make_refusal(False)

    def _look_around_commit(self, after: bool) -> None:
        for path, stamp in self._around_commit[after]:
            if self._find_file(path, self._buffer) != stamp:
                self.lost()
                return

    def _find_file(self, path: bytes, buffer: Any) -> _Id | None:
        if path == self._wal:
            return device_and_inode(path, buffer)  # each commit writes it: see there
        try:
            status = os.lstat(path)
        except OSError:
            return None
        if path == self._database and not status.st_size:
            return None
        return status.st_dev, status.st_ino

    def _look_at_all_if_stale(self) -> None:
        now = time.monotonic()
        if now - self._looked_at > FRESH_S:
            self.lost()
            self._looked_at = now

    def _make_refusal(self, begun: bool) -> Refusal:
        """Make the refusal for a request that comes after the loss."""
        return Refusal(
            Code.SHUTTING_DOWN, f"This coordinator has ended: {self._loss} "
            + ("Whether this was carried out, the next one knows." if begun
               else "This was not carried out."),
            next="Repeat it: a new coordinator starts, with the state that is there now."
            if not begun else "`coord status` shows what is so.", begun=begun,
        )

    def owns(self, path: Path) -> bool:
        """Whether the file at this path is still the one that this daemon put there."""
        wanted = os.fsencode(path)
        return any(watched == wanted and device_and_inode(watched, statx_buffer()) == identity
                   for _, watched, identity in self._parts)

    def forget(self, path: Path) -> None:
        """Watch this path no longer, for the daemon itself is about to remove the file."""
        self._parts = [part for part in self._parts if part[1] != os.fsencode(path)]

    def leave(self) -> None:
        """Close the descriptors."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()

    def _watch(self, what: str, path: Path, status: os.stat_result,
               after_commit: bool | None = None) -> None:
        identity, path_bytes = (status.st_dev, status.st_ino), os.fsencode(path)
        self._parts.append((what, path_bytes, identity))
        if after_commit is not None:
            self._around_commit[after_commit].append((path_bytes, identity))

    def _report_loss(self, sentence: str) -> None:
        self._loss = sentence
        self.on_loss(sentence)
