"""A working tree that is entered in such a way that no link leads out of it.

A leased name contains no link, because names are resolved when they are leased. A later link on its
way was put there meanwhile. It is not followed, whatever it points to: coord reads and writes
nothing below it. Every read and write of a repository's files goes through a `Root`.

Paths are relative to the root, as `words.file_names` writes them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from coordinator.files import content, syscalls
from coordinator.files.content import Content, Stamp, Taker, snapshot, stamp_of
from coordinator.files.identity import identity_beside
from coordinator.words import file_names

#: The content of a path where no file can be, because it or something above it is missing.
_NOTHING = Content("absent", 0, None, "absent")
#: Missing, or a file in the place of a directory.
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)


class Root:
    """One working tree, opened. Use it in a `with`.

    Args:
        path: its real path: no link in it is followed, either.

    Raises:
        OSError: it is gone.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._fd = syscalls.open_real(os.fsencode(path), syscalls.PLACE)

    def __enter__(self) -> Root:
        return self

    def __exit__(self, kind: type[BaseException] | None, bad: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._fd)

    # ------------------------------------------------------------ looking

    def snapshot(self, path: str, size_max: int, *, taker: Taker | None = None,
                 strict: bool = False) -> Content:
        """The content at `path` now (see `content.snapshot`). Also absent below a link, unless that
        has to be an error (`strict`).

        Raises:
            OSError: the disk refused; ELOOP: a link is above.
        """
        try:
            with self.above(path) as (place, name):
                return snapshot(name, size_max, place=place, taker=taker)
        except OSError as no:
            if no.errno in _NOT_THERE or (no.errno == errno.ELOOP and not strict):
                return _NOTHING
            raise

    def stat(self, path: str) -> os.stat_result | None:
        """The status of what is at `path`, a link not followed; None if nothing is."""
        try:
            with self.above(path) as (place, name):
                return os.stat(name, dir_fd=place, follow_symlinks=False)
        except OSError:
            return None

    def stamp(self, path: str) -> Stamp | None:
        """The stamp of the file, without reading it; None if absent."""
        status = self.stat(path)
        return stamp_of(status) if status is not None else None

    def identity(self, path: str) -> str | None:
        """The identity of the file (`files.identity`); None if there is none."""
        try:
            with self.above(path) as (place, name):
                return identity_beside(place, name,
                                       os.stat(name, dir_fd=place, follow_symlinks=False))
        except OSError:
            return None

    def link_above(self, path: str) -> str | None:
        """The first directory on the way to `path` that is a link now; None if none is."""
        parts = path.split("/")[:-1]
        for end in range(1, len(parts) + 1):
            directory = "/".join(parts[:end])
            status = self.stat(directory)
            if status is None:
                return None
            if (status.st_mode & 0o170000) == 0o120000:
                return directory
        return None

    @contextmanager
    def scan(self, directory: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        """The entries of a directory (`""`: the root). Their names are as the system gives them:
        `file_names.from_bytes(os.fsencode(entry.name))`.

        Raises:
            OSError: it is no directory, or may not be read.
        """
        flags = os.O_RDONLY | os.O_DIRECTORY
        name = _checked(directory) if directory else b"."
        fd = syscalls.open_beneath(self._fd, name, flags)
        try:
            with os.scandir(fd) as entries:
                yield entries
        finally:
            os.close(fd)

    # ------------------------------------------------------------ for writers

    @contextmanager
    def above(self, path: str, *, make: bool = False) -> Iterator[tuple[int, bytes]]:
        """The directory of `path`, as a descriptor to name files beside, and the file's name there.
        `make`: missing directories are made.

        Raises:
            OSError: ELOOP: a link is on the way; ENOTDIR: a file is; ENOENT.
        """
        folder, _, name = _checked(path).rpartition(b"/")
        if not folder:
            yield self._fd, name
            return
        place = self._directory(folder, make)
        try:
            yield place, name
        finally:
            os.close(place)

    def _directory(self, folder: bytes, make: bool) -> int:
        try:
            return syscalls.open_beneath(self._fd, folder, syscalls.PLACE)
        except FileNotFoundError:
            if not make:
                raise
        descriptor = os.dup(self._fd)
        for part in folder.split(b"/"):
            try:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=descriptor)
                below = syscalls.open_beneath(descriptor, part, syscalls.PLACE)
            finally:
                os.close(descriptor)
            descriptor = below
        return descriptor

    def sync(self, folder: str) -> None:
        """Bring a directory's entries to the disk, as far as the file system can.

        Raises:
            OSError: the disk refused.
        """
        name = _checked(folder) if folder else b"."
        try:
            fd = syscalls.open_beneath(self._fd, name, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as no:
            if no.errno in _NOT_THERE or no.errno == errno.ELOOP:
                return  # it is gone, and its entries with it
            raise
        try:
            os.fsync(fd)
        except OSError as no:
            if no.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            os.close(fd)


def snapshot_real(root: str, path: str, size_max: int) -> Content:
    """`Root(root).snapshot(path, size_max)`, with fewer steps for a plain file.

    Raises:
        OSError: as there.
    """
    whole = os.fsencode(root) + b"/" + _checked(path)
    for _ in range(content.READS_MAX):
        try:
            fd = syscalls.open_real(whole, content.READING)
        except OSError:
            break  # nothing, a link, or something in the way
        found_content, steady = content.read_opened(fd, whole, size_max, None, None)
        if steady:
            return found_content
    with Root(root) as opened:
        return opened.snapshot(path, size_max)


def _checked(path: str) -> bytes:
    """The bytes of a relative path that goes nowhere but down."""
    name = file_names.to_bytes(path)
    if b"\0" in name or any(part in (b"", b".", b"..") for part in name.split(b"/")):
        raise OSError(errno.ENOENT, "no path below the root", path)
    return name
