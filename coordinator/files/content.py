"""The content of files: reading it whole, naming it, comparing it, writing it at once.

A content is bytes, type and mode, and one name tells all three. A plain file is `sha256:…`, which
anybody can check with `sha256sum`. Recent processors compute it faster than a disk reads. An
executable file has `+x` after that, so a `chmod` alone is a change. A symlink is named by its
target (`link:…`), so it never equals a file with that text. Only the bit that git keeps is part of
the content: whether the owner may execute the file.

A read gives what was there at one moment, so a file that changes meanwhile is read again. A write
replaces the file in one step, so a reader sees the old bytes or the new ones. The module does not
decide whether a write is allowed.
"""

# Paths are plain strings here, as they come from the canonical layer.
# ruff: noqa: PTH103, PTH105, PTH108, PTH120, PTH123

from __future__ import annotations

import difflib
import errno
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Literal

import msgspec

ContentKind = Literal["file", "symlink", "absent", "large", "directory", "special"]

#: The prefix of the names of links, and the suffix of those of executable files.
LINK, EXECUTABLE = "link:", "+x"
#: The names of things without bytes.
ABSENT = "absent"
DIRECTORY = "directory"
SPECIAL = "special"

#: The flags to open a file for reading. Not blocking: it may be a pipe without a writer.
READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
#: Bytes read at a time from files that are only hashed.
CHUNK_BYTES = 1 << 20
#: How often a file that keeps changing is read anew before its last reading is taken.
READS_MAX = 8
#: Texts longer than this (bytes) are not compared line by line, which would take too long.
DIFF_BYTES_MAX = 2 << 20
#: Like git: a NUL among the first bytes makes it binary.
BINARY_PROBE_BYTES = 8000
#: Signs in a name for which a diff has it in quotes, and how they are written there.
_QUOTED = re.compile(r'[\x00-\x1f\x7f"\\]')
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


#: The facts that tell one state of a file from another without reading it: device, inode, mode,
#: size, and the times of its last changes in nanoseconds.
Stamp = tuple[int, int, int, int, int, int]
#: Takes what can be read from a descriptor (from its beginning), and tells its SHA-256 and size.
Taker = Callable[[int], tuple[str, int]]


class Content(msgspec.Struct, frozen=True, gc=False):
    """The content of a path at one moment.

    Attributes:
        hash: its name; `absent`, `directory` or `special` for what has no bytes.
        size: in bytes; of a symlink, of its target's name.
        data: the bytes, or a symlink's target; None for all kinds but `file` and `symlink`.
        kind: `large` is a file over the limit, hashed but not held in memory.
        mode: permission bits; 0 if absent.
        stamp: which file it was, and in which state; None if absent.
        links: how many names the file has.
        taken: it was handed to the `taker`.
    """

    hash: str
    size: int
    data: bytes | None
    kind: ContentKind
    mode: int = 0
    stamp: Stamp | None = None
    links: int = 1
    taken: bool = False

    @property
    def name(self) -> str | None:
        """The name of the content; None if there is no file or link."""
        return self.hash if self.kind in ("file", "symlink", "large") else None


_NOTHING = Content(ABSENT, 0, None, "absent")


def digest(data: bytes, *, executable: bool = False) -> str:
    """The name of a file of these bytes: `sha256:` and 64 hexadecimal digits, perhaps `+x`."""
    return "sha256:" + hashlib.sha256(data).hexdigest() + (EXECUTABLE if executable else "")


def link_digest(target: bytes) -> str:
    """The name of a symlink that points to `target`."""
    return LINK + hashlib.sha256(target).hexdigest()


def is_link(name: str) -> bool:
    """Whether a content of this name is a symlink."""
    return name.startswith(LINK)


def is_executable(name: str) -> bool:
    """Whether a content of this name is an executable file."""
    return name.endswith(EXECUTABLE)


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of a status from `stat`."""
    return (status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns,
            status.st_ctime_ns)


def snapshot(
    path: str | bytes | os.PathLike[str], size_max: int, *, place: int | None = None,
    taker: Taker | None = None,
) -> Content:
    """The content at `path` now; a link there is not followed.

    A file that changes while it is read is read again, `READS_MAX` times at most. If writing never
    pauses, the last reading is taken.

    Args:
        path: absolute, or relative to the process; with `place`, a name in that directory.
        size_max: bytes up to which the data is held in memory; beyond, only the hash.
        place: the descriptor of a directory. (Links above `path` are followed without it: what
            belongs to a repository is read through `files.beneath`.)
        taker: takes the bytes of a file over `size_max`.

    Raises:
        OSError: the disk refused (permission, input/output error). Absence is no error.
    """
    path = os.fspath(path)
    content: Content | None = None
    for _ in range(READS_MAX):
        content, steady = _read_once(path, size_max, place, taker)
        if steady:
            break
    assert content is not None, "READS_MAX is positive"
    return content


def is_binary(data: bytes) -> bool:
    """Whether git would call it binary: there is a NUL in its first 8,000 bytes."""
    return b"\0" in data[:BINARY_PROBE_BYTES]


def unified(path: str, before: bytes | None, after: bytes | None) -> str:
    """The change from `before` to `after` as a unified diff, to be read (and fed to `patch`).

    None means an absent file. Empty if nothing changed; one line for binary and large files.
    Bytes that are not UTF-8 are shown as `\\xNN`.
    """
    if before == after:
        return ""
    old = "/dev/null" if before is None else _named(f"a/{path}")
    new = "/dev/null" if after is None else _named(f"b/{path}")
    was, now = before or b"", after or b""
    sizes = f"({len(was):,} -> {len(now):,} bytes)"
    if is_binary(was) or is_binary(now):
        return f"Binary files {old} and {new} differ {sizes}\n"
    if len(was) + len(now) > DIFF_BYTES_MAX:
        return f"Large files {old} and {new} differ {sizes}\n"
    if not was and not now:
        return f"--- {old}\n+++ {new}\n"
    lines = difflib.unified_diff(as_lines(was), as_lines(now), old, new)
    return "".join(_with_ends(lines))


def _named(path: str) -> str:
    """A name as git writes it in a diff: in quotes if it would end the line, or look quoted."""
    if not _QUOTED.search(path):
        return path
    return '"' + _QUOTED.sub(lambda match: _ESCAPES.get(match[0], f"\\{ord(match[0]):03o}"),
                             path) + '"'


def write_atomic(
    path: str | os.PathLike[str], data: bytes, mode: int | None = None
) -> None:
    """Put `data` at `path` in one step, on disk before this returns.

    Missing parents are made. A symlink at `path` is replaced, never followed, because it could lead
    out of the checked place. Owner and extended attributes are those of a new file.

    Args:
        mode: permission bits; without it those of the replaced file, otherwise 0o644.

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
    """Bring a directory's entries to the disk, where that is supported."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as no:
        if no.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(fd)


def _read_once(
    path: str | bytes, size_max: int, place: int | None, taker: Taker | None
) -> tuple[Content, bool]:
    """One reading, and whether the file stood still meanwhile."""
    try:
        fd = os.open(path, READING, dir_fd=place)
    except (FileNotFoundError, NotADirectoryError):
        return _NOTHING, True
    except OSError as no:
        return _read_unopened(path, place, no)
    return read_opened(fd, path, size_max, place, taker)


def read_opened(
    fd: int, path: str | bytes, size_max: int, place: int | None, taker: Taker | None
) -> tuple[Content, bool]:
    """Read an opened `path` once. Returns the content, and whether it was unchanged meanwhile.
    Closes the descriptor.

    Raises:
        OSError: the disk refused.
    """
    try:
        begun = os.fstat(fd)
        if not stat.S_ISREG(begun.st_mode):
            kind: ContentKind = "directory" if stat.S_ISDIR(begun.st_mode) else "special"
            return Content(kind, 0, None, kind, stat.S_IMODE(begun.st_mode), stamp_of(begun)), True
        content = _read_open(fd, begun, size_max, taker)
        ended = os.fstat(fd)
    finally:
        os.close(fd)
    steady = (begun.st_ctime_ns == ended.st_ctime_ns and begun.st_mtime_ns == ended.st_mtime_ns
              and begun.st_size == content.size == ended.st_size)
    if steady:
        # An editor may have put another file in its place: then the bytes are yesterday's.
        try:
            there = os.stat(path, dir_fd=place, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return content, False
        steady = os.path.samestat(there, ended)
    return content, steady


def _read_unopened(path: str | bytes, place: int | None, no: OSError) -> tuple[Content, bool]:
    """The content of what could not be opened as a file: a link, a socket, or an error."""
    if no.errno == errno.ELOOP:
        try:
            target = os.readlink(os.fsencode(path), dir_fd=place)
            status = os.stat(path, dir_fd=place, follow_symlinks=False)
        except OSError as gone:
            if gone.errno in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):
                return _NOTHING, False  # it was a link a moment ago
            raise
        return Content(link_digest(target), len(target), target, "symlink", 0o777,
                       stamp_of(status)), True
    if no.errno in (errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP):
        return Content(SPECIAL, 0, None, "special"), True
    raise no


def _read_open(fd: int, begun: os.stat_result, size_max: int, taker: Taker | None) -> Content:
    mode, size = stat.S_IMODE(begun.st_mode), begun.st_size
    stamp = stamp_of(begun)
    mark = EXECUTABLE if mode & stat.S_IXUSR else ""
    if taker is not None and size > size_max:
        hexed, done = taker(fd)
        return Content(f"sha256:{hexed}{mark}", done, None, "large", mode, stamp, begun.st_nlink,
                       taken=True)
    if size < CHUNK_BYTES and size <= size_max:
        data = os.read(fd, size + 1)
        if len(data) == size:  # nearly always
            return Content(f"sha256:{hashlib.sha256(data).hexdigest()}{mark}", size, data, "file",
                           mode, stamp, begun.st_nlink)
        os.lseek(fd, 0, os.SEEK_SET)
    named = hashlib.sha256()
    chunks: list[bytes] = []
    done = 0
    more = True
    while more:
        wanted = CHUNK_BYTES if done or size > CHUNK_BYTES else size + 1
        chunk = os.read(fd, wanted)
        named.update(chunk)
        done += len(chunk)
        more = len(chunk) == wanted or (chunk != b"" and done < size)  # else that was its end
        if done <= size_max:
            chunks.append(chunk)
        else:
            chunks.clear()
    name = f"sha256:{named.hexdigest()}{mark}"
    if done > size_max:
        return Content(name, done, None, "large", mode, stamp, begun.st_nlink)
    return Content(name, done, b"".join(chunks), "file", mode, stamp, begun.st_nlink)


def as_lines(data: bytes) -> list[str]:
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
