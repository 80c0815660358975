"""The bytes of files: reading them whole, naming them, comparing them, writing them at once.

A content is named `sha256:…`, which anybody can check with `sha256sum`, and which processors of the
last years compute faster than the disk reads. A symlink is named by its target (`link:…`), so that
it never equals a file with that text in it.

What is read is what was there at one moment: a file that changes meanwhile is read again. What is
written replaces the file in one step; a reader sees the old bytes or the new ones. Nothing here
decides whether a write is allowed.
"""

# Paths are plain strings here, as they come from the canonical layer.
# ruff: noqa: PTH103, PTH105, PTH108, PTH115, PTH120, PTH123

from __future__ import annotations

import difflib
import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

ContentKind = Literal["file", "symlink", "absent", "large", "directory", "special"]

#: The names of what has no bytes.
ABSENT = "absent"
DIRECTORY = "directory"
SPECIAL = "special"

#: Bytes read at a time from files that are only hashed.
CHUNK_BYTES = 1 << 20
#: How often a file that keeps changing is read anew before its last reading is taken.
READS_MAX = 8
#: Texts longer than this (bytes) are not compared line by line, which would take too long.
DIFF_BYTES_MAX = 2 << 20
#: As git does: a NUL among the first bytes makes it binary.
BINARY_PROBE_BYTES = 8000


@dataclass(frozen=True, slots=True)
class Content:
    """What was at a path at one moment.

    Attributes:
        hash: its name; `absent`, `directory` or `special` for what has no bytes.
        size: in bytes; of a symlink, of its target's name.
        data: the bytes, or a symlink's target; None for all kinds but `file` and `symlink`.
        kind: `large` is a file over the limit, hashed but not kept.
        mode: permission bits; 0 if absent.
    """

    hash: str
    size: int
    data: bytes | None
    kind: ContentKind
    mode: int = 0


_NOTHING = Content(ABSENT, 0, None, "absent")


def digest(data: bytes) -> str:
    """The name of some bytes: `sha256:` and 64 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def link_digest(target: bytes) -> str:
    """The name of a symlink that points to `target`."""
    return "link:" + hashlib.sha256(target).hexdigest()


def snapshot(path: str | os.PathLike[str], size_max: int) -> Content:
    """What is at `path` now; links are not followed.

    A file that changes while it is read is read again, `READS_MAX` times at most; one that is
    written to without pause is then taken as it was read last.

    Args:
        path: absolute, or relative to the process.
        size_max: bytes up to which the data is kept; beyond, only the hash.

    Raises:
        OSError: the disk refused (permission, input/output error). Absence is no error.
    """
    path = os.fspath(path)
    content: Content | None = None
    for _ in range(READS_MAX):
        content, steady = _read_once(path, size_max)
        if steady:
            break
    assert content is not None, "READS_MAX is positive"
    return content


def is_binary(data: bytes) -> bool:
    """Whether git would call it binary: there is a NUL in its first 8,000 bytes."""
    return b"\0" in data[:BINARY_PROBE_BYTES]


def unified(path: str, before: bytes | None, after: bytes | None) -> str:
    """The change from `before` to `after` as a unified diff, to be read (and fed to `patch`).

    None stands for an absent file. Empty if nothing changed; one line for binary and large files.
    Bytes that are not UTF-8 are shown as `\\xNN`.
    """
    if before == after:
        return ""
    old = "/dev/null" if before is None else f"a/{path}"
    new = "/dev/null" if after is None else f"b/{path}"
    was, now = before or b"", after or b""
    sizes = f"({len(was):,} -> {len(now):,} bytes)"
    if is_binary(was) or is_binary(now):
        return f"Binary files {old} and {new} differ {sizes}\n"
    if len(was) + len(now) > DIFF_BYTES_MAX:
        return f"Large files {old} and {new} differ {sizes}\n"
    if not was and not now:
        return f"--- {old}\n+++ {new}\n"
    lines = difflib.unified_diff(_lines(was), _lines(now), old, new)
    return "".join(_with_ends(lines))


def write_atomic(
    path: str | os.PathLike[str], data: bytes, mode: int | None = None
) -> None:
    """Put `data` at `path` in one step, on disk before this returns.

    Missing parents are made. A symlink at `path` is replaced, never followed: it could lead out of
    what was checked. Owner and extended attributes are those of a new file.

    Args:
        mode: permission bits; without it those of the file that is replaced, else 0o644.

    Raises:
        OSError: the disk refused; what was at `path` is as it was.
    """
    path = os.fspath(path)
    parent = os.path.dirname(path) or "."
    os.makedirs(parent, exist_ok=True)
    if mode is None:
        mode = 0o644
        with suppress(FileNotFoundError):
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode):
                mode = stat.S_IMODE(status.st_mode)
    fd, temporary = tempfile.mkstemp(prefix=".coord-", suffix=".tmp", dir=parent)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(fd, mode)
            os.fsync(fd)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    sync_directory(parent)


def sync_directory(path: str) -> None:
    """Bring a directory's entries to the disk; where that is not supported, nothing happens."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as no:
        if no.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(fd)


def _read_once(path: str, size_max: int) -> tuple[Content, bool]:
    """One reading, and whether the file stood still meanwhile."""
    try:
        # Not blocking: the path may be a pipe that nobody writes to.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return _NOTHING, True
    except OSError as no:
        return _read_unopened(path, no)
    try:
        begun = os.fstat(fd)
        mode = stat.S_IMODE(begun.st_mode)
        if stat.S_ISDIR(begun.st_mode):
            return Content(DIRECTORY, 0, None, "directory", mode), True
        if not stat.S_ISREG(begun.st_mode):
            return Content(SPECIAL, 0, None, "special", mode), True
        content = _read_open(fd, begun.st_size, size_max, mode)
        ended = os.fstat(fd)
    finally:
        os.close(fd)
    steady = _stamp(begun) == _stamp(ended) and content.size == ended.st_size
    if steady:
        # An editor may have put another file in its place: then the bytes are yesterday's.
        try:
            there = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return content, False
        steady = os.path.samestat(there, ended)
    return content, steady


def _read_unopened(path: str, no: OSError) -> tuple[Content, bool]:
    """What could not be opened as a file: a link, a socket, or an error."""
    if no.errno == errno.ELOOP:
        try:
            target = os.fsencode(os.readlink(path))
        except OSError as gone:
            if gone.errno in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):
                return _NOTHING, False  # it was a link a moment ago
            raise
        return Content(link_digest(target), len(target), target, "symlink", 0o777), True
    if no.errno in (errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP):
        return Content(SPECIAL, 0, None, "special"), True
    raise no


def _read_open(fd: int, size: int, size_max: int, mode: int) -> Content:
    named = hashlib.sha256()
    chunks: list[bytes] = []
    done = 0
    while chunk := os.read(fd, CHUNK_BYTES if done or size > CHUNK_BYTES else size + 1):
        named.update(chunk)
        done += len(chunk)
        if done <= size_max:
            chunks.append(chunk)
        else:
            chunks.clear()
    name = "sha256:" + named.hexdigest()
    if done > size_max:
        return Content(name, done, None, "large", mode)
    return Content(name, done, b"".join(chunks), "file", mode)


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _lines(data: bytes) -> list[str]:
    """The lines with their ends. Only a newline ends a line: form feeds and the like do not."""
    text = data.decode("utf-8", "backslashreplace")
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _with_ends(lines: Iterator[str]) -> Iterator[str]:
    """Say where the final newline is missing, as `patch` wants it said."""
    for line in lines:
        if line.endswith("\n"):
            yield line
        else:
            yield line + "\n\\ No newline at end of file\n"
