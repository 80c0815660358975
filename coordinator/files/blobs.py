"""Large contents as files in `.coord/blobs/`, each named by the SHA-256 of its bytes.

Small contents are in the database. Large ones are beside it, so that neither memory nor the log of
a transaction has to hold them. A content is complete and on disk before anything refers to it. The
folder has a budget. A content that would exceed it is not taken, and the caller says so. `tidy` is
given the list of contents that are still needed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from coordinator.files import syscalls
from coordinator.files.content import CHUNK_BYTES, EXECUTABLE, digest, sync_directory
from coordinator.files.pace import Pace
from coordinator.words.pickled import Pickled

#: Contents over this size (bytes) are kept as files.
FILE_FROM = 64 * 1024
#: How long (seconds) a content without references is left alone: it may be on its way into a
#: transaction.
YOUNG_S = 3600.0
#: How many contents may wait for a `settle`: each keeps a file open.
UNSETTLED_MAX = 16
_NAME = re.compile(r"[0-9a-f]{64}")


class OverBudget(Pickled, OSError):
    """The folder may not grow by this much."""

    def __init__(self, size: int) -> None:
        super().__init__(errno.EDQUOT, f"{size:,} bytes more than the budget of kept contents")


@dataclass(slots=True, eq=False)
class _Fresh:
    """A content that has not got its name yet."""

    fd: int
    path: Path
    target: Path

    def close(self) -> None:
        """Close it, and remove it if it has no name."""
        os.close(self.fd)
        with suppress(OSError):  # it was moved to its place, except after a failure
            self.path.unlink()


class BlobFolder:
    """The folder of one coordinator. Safe to use from several threads.

    Args:
        path: the folder; made when first needed.
        budget: how large all files in it together may be (bytes), asked each time.
        pace: with it, what is kept piece by piece leaves others their time at the disk.
        at_once: what is kept is on the disk as soon as it was taken in. If not, it is there after
            the next `settle`, and nothing may refer to it before: several contents are made
            durable together, for which others wait once instead of once for each.
    """

    def __init__(self, path: Path, budget: Callable[[], int] = lambda: 1 << 62,
                 pace: Pace | None = None, *, at_once: bool = True) -> None:
        self.path = path
        self._at_once = at_once
        self._unsettled: list[_Fresh] = []
        self._budget = budget
        self._piece = pace.piece if pace is not None else nullcontext
        self._lock = threading.Lock()
        self._bytes: int | None = None

    def place(self, name: str) -> Path:
        """The place of the content called `name` (`sha256:…`, or with `+x`), if it is kept here."""
        return self.path / name.removesuffix(EXECUTABLE).rpartition(":")[2]

    def has(self, name: str) -> bool:
        """Whether it is kept here."""
        return self.place(name).is_file()

    def put(self, data: bytes, *, forced: bool = False) -> None:
        """Keep these bytes; `forced`: whatever the budget.

        Raises:
            OSError: `OverBudget`, or the disk refused; nothing was kept.
        """
        target = self.place(digest(data))
        if self._again(target):
            return
        with self._fresh(0 if forced else len(data)) as fresh:
            whole = memoryview(data)
            for position in range(0, len(data), CHUNK_BYTES):
                with self._piece():
                    _write_on(fresh.fd, whole[position : position + CHUNK_BYTES], position)
            with self._piece():
                self._finish(fresh, target, len(data))

    def take(self, source: int, *, forced: bool = False) -> tuple[str, int]:
        """Keep what can be read from a descriptor. Returns its SHA-256 in hexadecimal, and its
        size.

        `forced`: whatever the budget. A file system that can share blocks does so, and a file is
        then taken from its beginning.

        Raises:
            OSError: `OverBudget`, or the disk refused; nothing was kept.
        """
        expected = 0 if forced else os.fstat(source).st_size
        with self._fresh(expected) as fresh:
            if syscalls.clone(source, fresh.fd):
                os.lseek(fresh.fd, 0, os.SEEK_SET)
                return self._poured(_chunks(fresh.fd), fresh, None)
            return self._poured(_chunks(source), fresh, None if forced else expected, write=True)

    def pour(self, chunks: Iterable[bytes]) -> tuple[str, int]:
        """Keep what these pieces make together: its SHA-256 in hexadecimal, and its size.

        Raises:
            OSError: `OverBudget`, or the disk refused; nothing was kept.
        """
        with self._fresh(0) as fresh:
            return self._poured(chunks, fresh, 0, write=True)

    def settle(self) -> None:
        """Have all that was taken in since the last `settle` on the disk, under its names.

        Raises:
            OSError: the disk refused; what is not there yet will not be.
        """
        batch, self._unsettled = self._unsettled, []
        if not batch:
            return
        try:
            with self._piece():
                for fresh in batch:
                    os.fsync(fresh.fd)
                for fresh in batch:
                    fresh.path.rename(fresh.target)
                sync_directory(str(self.path))
        except OSError:
            with self._lock:
                self._bytes = None  # counted anew
            raise
        finally:
            for fresh in batch:
                fresh.close()

    def tidy(self, needed: Callable[[str], bool], now_s: float | None = None) -> int:
        """Remove what is neither `needed` (asked by its SHA-256) nor young. Returns the bytes
        freed."""
        now_s = time.time() if now_s is None else now_s
        freed = 0
        for entry in self._entries():
            with self._lock, suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if now_s - status.st_mtime < YOUNG_S:
                    continue
                if _NAME.fullmatch(entry.name) and needed(entry.name):
                    continue
                os.unlink(entry.path)  # noqa: PTH108
                freed += status.st_size
                if self._bytes is not None:
                    self._bytes -= status.st_size
        return freed

    def bytes_kept(self) -> int:
        """The size of all files in it together."""
        with self._lock:
            return self._sum()

    # ------------------------------------------------------------ within

    def _again(self, target: Path) -> bool:
        """Whether it is kept already. Then it counts as young, so that it is not removed now."""
        with self._lock:
            try:
                os.utime(target)
            except OSError:
                return False
        return True

    def _poured(self, chunks: Iterable[bytes], fresh: _Fresh, allowed: int | None, *,
                write: bool = False) -> tuple[str, int]:
        """`allowed`: the bytes within the budget; more are asked for. None: any number."""
        named, size = hashlib.sha256(), 0
        pieces, chunk = iter(chunks), b""
        while True:
            with self._piece():
                chunk = next(pieces, b"")
                if not chunk:
                    self._finish(fresh, self.path / named.hexdigest(), size)
                    return named.hexdigest(), size
                named.update(chunk)
                if allowed is not None and size + len(chunk) > allowed:
                    self._allow(size + len(chunk))
                if write:
                    _write_on(fresh.fd, chunk, size)
                size += len(chunk)

    @contextmanager
    def _fresh(self, size: int) -> Iterator[_Fresh]:
        if len(self._unsettled) >= UNSETTLED_MAX:
            self.settle()
        self._allow(size)
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.path / f"{secrets.token_hex(8)}.new"
        fresh = _Fresh(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600),
                       path, path)
        try:
            yield fresh
        finally:
            if fresh not in self._unsettled:
                fresh.close()

    def _finish(self, fresh: _Fresh, target: Path, size: int) -> None:
        fresh.target = target
        if self._at_once:
            os.fsync(fresh.fd)
        elif size:
            syscalls.write_out(fresh.fd, max(0, size - CHUNK_BYTES), CHUNK_BYTES)
        with self._lock:
            total = self._sum()
            twice = any(fresh.target == target for fresh in self._unsettled)
            more = 0 if twice or target.exists() else size
            if self._at_once:
                fresh.path.rename(target)
            elif not twice:
                self._unsettled.append(fresh)
            self._bytes = total + more
        if self._at_once:
            sync_directory(str(self.path))

    def _allow(self, size: int) -> None:
        with self._lock:
            if size and self._sum() + size > self._budget():
                raise OverBudget(size)

    def _sum(self) -> int:
        if self._bytes is None:
            self._bytes = sum(entry.stat(follow_symlinks=False).st_size
                              for entry in self._entries() if _NAME.fullmatch(entry.name))
        return self._bytes

    def _entries(self) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.path) as entries:
                return list(entries)
        except OSError:
            return []


def _chunks(fd: int) -> Iterator[bytes]:
    while chunk := os.read(fd, CHUNK_BYTES):
        yield chunk


def _write_on(fd: int, piece: bytes | memoryview, position: int) -> None:
    """Write a piece, after the one before it has come to the disk: all at once in the end would be
    in everybody's way."""
    if position:
        syscalls.write_out(fd, max(0, position - CHUNK_BYTES), CHUNK_BYTES)
    write_all(fd, piece)


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write all of it.

    Raises:
        OSError: the disk refused.
    """
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left):]
