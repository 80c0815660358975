"""One step of a verdict: what a file is to become, what became of it, and pouring bytes into it.

The words and the plain arithmetic of `files.compare_exchange`, which carries steps out.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Literal, NamedTuple

from coordinator.files.blobs import write_all
from coordinator.files.content import CHUNK_BYTES, EXECUTABLE, is_executable

#: Contents are compared by blocks of this size (bytes) before they are by single bytes.
BLOCK = 512

#: The bytes of a content: in memory, or the file that has them.
Source = bytes | Path


@dataclass(frozen=True, slots=True)
class Step:
    """One file of a verdict.

    Attributes:
        path: relative to the root.
        old: the content that must be there; None: nothing.
        new: the content that is to be there; None: nothing.
        mode: permission bits of the new file.
        aside: a name in the same directory that nothing else has; it ends in `.tmp`.
        in_place: the file is known by several names, and all of them are to have the new content.
        back: it takes a step back. (What that has left beside the file must stay known, too.)
    """

    path: str
    old: str | None
    new: str | None
    mode: int
    aside: str
    in_place: bool = False
    back: bool = False

    def reversed(self, mode: int) -> Step:
        """The step that takes this one back, to a file with these permission bits."""
        return Step(self.path, self.new, self.old, mode, self.aside, self.in_place, not self.back)

    def beside(self) -> tuple[bytes, bytes]:
        """Two names in the same directory: for whole contents, and for contents being written."""
        stem = self.aside.removesuffix(".tmp").encode() + (b".back" if self.back else b"")
        return stem + b".tmp", stem + b".new.tmp"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a step.

    Attributes:
        state: `done`: the new content is there (it may have been there before); `changed`:
            something else is, and was left as it is; `barred`: a link or a file is where its
            directory was, so that the content was not seen; `failed`: the disk refused.
        why: in words, unless it is done.
        out: which file (device, inode) came out and was thrown away; None: none.
        names: how many other names that file still had: the old content is there under them.
    """

    state: Literal["done", "changed", "barred", "failed"]
    why: str = ""
    out: tuple[int, int] | None = None
    names: int = 0


class Saved(NamedTuple):
    """What somebody saved at `path` in the middle of a step: it is kept as the blob `name`."""

    path: str
    name: str
    size: int


def pour(content: Source, fd: int, name: str) -> int:
    """Write a content to a descriptor; how many bytes.

    Raises:
        OSError: the disk refused; EIO where the kept content is damaged.
    """
    if isinstance(content, bytes):
        write_all(fd, content)
        return len(content)
    named, size = hashlib.sha256(), 0
    with content.open("rb", buffering=0) as file:
        while chunk := file.read(CHUNK_BYTES):
            named.update(chunk)
            write_all(fd, chunk)
            size += len(chunk)
    if named.hexdigest() not in name:
        raise OSError(errno.EIO, f"the kept content {content} is damaged")
    return size


def name_of(fd: int) -> str:
    """The name of the content of an open file."""
    status, named, offset = os.fstat(fd), hashlib.sha256(), 0
    while chunk := os.pread(fd, CHUNK_BYTES, offset):
        named.update(chunk)
        offset += len(chunk)
    return f"sha256:{named.hexdigest()}{EXECUTABLE if status.st_mode & stat.S_IXUSR else ''}"


def is_mixed(fd: int, old: Source, new: Source) -> bool:
    """Whether an open file is what a crash leaves while we wrote `new` over `old`: each byte is
    that of one of the two, in its place. The end is that of one of them or, while it grows,
    between."""
    size, before, after = os.fstat(fd).st_size, _size(old), _size(new)
    if size not in (before, after) and not before < size < after:
        return False
    for position in range(0, size, CHUNK_BYTES):
        now = os.pread(fd, CHUNK_BYTES, position)
        data, other = _part(old, position), _part(new, position)
        for block in range(0, len(now), BLOCK):
            here = slice(block, min(block + BLOCK, len(now)))
            parts = [part[here] for part in (now, data, other)]
            if parts[0] not in parts[1:] and not all(
                byte in pair for byte, *pair in zip_longest(*parts, fillvalue=-1)
            ):
                return False
    return True


def _size(content: Source) -> int:
    return len(content) if isinstance(content, bytes) else content.stat().st_size


def _part(content: Source, position: int) -> bytes:
    if isinstance(content, bytes):
        return content[position : position + CHUNK_BYTES]
    with content.open("rb", buffering=0) as file:
        file.seek(position)
        return file.read(CHUNK_BYTES)


def fitting_mode(mode: int, name: str) -> int:
    """Permission bits that make a file as executable as its name says: all its readers may execute
    it, or no one may."""
    if is_executable(name):
        return mode | stat.S_IXUSR | ((mode & 0o444) >> 2)
    return mode & ~0o111
