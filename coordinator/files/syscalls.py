"""System calls on files that Python's library does not offer.

They open below a directory without following a link (`openat2`), rename without replacing and
exchange two names (`renameat2`), share the blocks of a file (`FICLONE`), write a part of one to the
disk (`sync_file_range`), and ask whether a file is open for writing elsewhere, by a lease of the
kernel's own kind. If the kernel or the file system cannot do it, the call raises `OSError` or
answers None, and the caller has another way.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import stat
import struct
import sys
from contextlib import suppress
from functools import cache

AT_FDCWD = -100
_O_PATH = getattr(os, "O_PATH", 0)
#: The flags that open a directory only as a place to start from.
PLACE = (_O_PATH or os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW

_OPENAT2 = 437  # the same number on every architecture but Alpha
_RENAMEAT2 = {"x86_64": 316, "aarch64": 276, "riscv64": 276, "armv7l": 382, "i686": 353,
              "ppc64le": 357, "s390x": 347}
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_NOREPLACE, _EXCHANGE = 1, 2
_FICLONE = 0x40049409
_WAIT_BEFORE, _WRITE, _WAIT_AFTER = 1, 2, 4
#: The errors of an unsupported call: try another way.
UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM})
#: A lookup that was disturbed by a rename elsewhere is tried so often.
_AGAIN_MAX = 32

_linux = sys.platform == "linux"
_has_openat2 = _linux


@cache
def _libc() -> ctypes.CDLL:
    """Read in when it is first called: most commands never do."""
    return ctypes.CDLL(None, use_errno=True)


def open_beneath(place: int, path: bytes, flags: int) -> int:
    """Open `path` below the directory `place` (a descriptor); no link on the way is followed.

    Raises:
        OSError: ELOOP: a link is on the way; ENOTDIR: a file is; otherwise as `open`.
    """
    if _has_openat2:
        try:
            return _openat2(place, path, flags, _BENEATH | _NO_MAGICLINKS | _NO_SYMLINKS)
        except OSError as no:
            if no.errno not in (errno.ENOSYS, errno.EPERM):
                raise
    return _step_by_step(place, path, flags)


def open_real(path: bytes, flags: int) -> int:
    """Open an absolute path that is known to have no link in it; one found now is not followed.

    Raises:
        OSError: as `open_beneath`.
    """
    if _has_openat2:
        try:
            return _openat2(AT_FDCWD, path, flags, _NO_MAGICLINKS | _NO_SYMLINKS)
        except OSError as no:
            if no.errno not in (errno.ENOSYS, errno.EPERM):
                raise
    top = os.open(b"/", PLACE)
    try:
        return _step_by_step(top, path.strip(b"/") or b".", flags)
    finally:
        os.close(top)


def _openat2(place: int, path: bytes, flags: int, resolve: int) -> int:
    global _has_openat2
    # Without O_NOFOLLOW a link at the end is refused as such, and not as "no directory".
    how = struct.pack("QQQ", (flags | os.O_CLOEXEC) & ~os.O_NOFOLLOW, 0, resolve)
    for _ in range(_AGAIN_MAX):
        fd: int = _libc().syscall(_OPENAT2, place, path, how, ctypes.c_size_t(len(how)))
        if fd >= 0:
            return fd
        code = ctypes.get_errno()
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    if code == errno.ENOSYS:
        _has_openat2 = False
    raise OSError(code, os.strerror(code), path)


def _step_by_step(place: int, path: bytes, flags: int) -> int:
    """Part by part, each without following a link."""
    *above, last = path.split(b"/")
    descriptor = place
    try:
        for part in above:
            below = _step(descriptor, part, PLACE)
            if descriptor != place:
                os.close(descriptor)
            descriptor = below
        return _step(descriptor, last, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
    finally:
        if descriptor != place:
            os.close(descriptor)


def _step(place: int, part: bytes, flags: int) -> int:
    for _ in range(_AGAIN_MAX):
        try:
            return os.open(part, flags, dir_fd=place)
        except NotADirectoryError:
            status = os.stat(part, dir_fd=place, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                break
            if not stat.S_ISDIR(status.st_mode):
                raise
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), part)


def exchange(place: int, data: bytes, other: bytes) -> None:
    """Let two names of one directory change places, in one step.

    Raises:
        OSError: one of `UNSUPPORTED` where it cannot be done; ENOENT where one is not there.
    """
    _rename(place, data, other, _EXCHANGE)


def rename_new(place: int, data: bytes, other: bytes) -> None:
    """Rename within one directory, only if nothing has the new name.

    Raises:
        OSError: EEXIST; otherwise as `rename`. If the kernel cannot, files and links are linked to
            the new name first, which refuses a taken name just as well.
    """
    try:
        _rename(place, data, other, _NOREPLACE)
    except OSError as no:
        if no.errno not in UNSUPPORTED:
            raise
        os.link(data, other, src_dir_fd=place, dst_dir_fd=place, follow_symlinks=False)
        os.unlink(data, dir_fd=place)


def _rename(place: int, data: bytes, other: bytes, flags: int) -> None:
    number = _RENAMEAT2.get(os.uname().machine)
    if hasattr(_libc(), "renameat2"):
        done = _libc().renameat2(place, data, place, other, flags)
    elif _linux and number is not None:
        done = _libc().syscall(number, place, data, place, other, flags)
    else:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), data)
    if done != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), data, None, other)


def clone(source: int, target: int) -> bool:
    """Let an empty file share all blocks of another, if the file system can; whether it did."""
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


def write_out(fd: int, start: int, length: int) -> None:
    """Write these bytes of a file to the disk, and wait for it. That does not make them durable:
    only a later `fsync` writes their place down, and no other `fsync` waits for it.

    Raises:
        OSError: the disk refused.
    """
    if not hasattr(_libc(), "sync_file_range"):
        os.fdatasync(fd)
        return
    whole = _WAIT_BEFORE | _WRITE | _WAIT_AFTER
    if _libc().sync_file_range(fd, ctypes.c_int64(start), ctypes.c_int64(length), whole) != 0:
        code = ctypes.get_errno()
        if code not in UNSUPPORTED and code != errno.ESPIPE:
            raise OSError(code, os.strerror(code))
        os.fdatasync(fd)


def has_writer(fd: int) -> bool | None:
    """Whether any process has this file (open here for reading only) open for writing. None if the
    kernel does not tell (another's file, a network drive, not Linux)."""
    return _busy(fd, fcntl.F_RDLCK)


class Alone:
    """While it is entered, no one else has the file open, and opening it waits. `fd` must be its
    only descriptor here.

    Attributes:
        held: True; False: it is open elsewhere; None: the kernel does not tell.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.held: bool | None = None

    def __enter__(self) -> Alone:
        busy = _busy(self._fd, fcntl.F_WRLCK, keep=True)
        self.held = None if busy is None else not busy
        return self

    def __exit__(self, *_: object) -> None:
        if self.held:
            with suppress(OSError):
                fcntl.fcntl(self._fd, _lease(), fcntl.F_UNLCK)


def _lease() -> int:
    return int(getattr(fcntl, "F_SETLEASE", -1))


def _busy(fd: int, kind: int, *, keep: bool = False) -> bool | None:
    if _lease() < 0:
        return None
    try:
        # A signal announces each opener meanwhile; the usual signal would end the process.
        fcntl.fcntl(fd, getattr(fcntl, "F_SETSIG", 10), signal.SIGURG)
        fcntl.fcntl(fd, _lease(), kind)
        if not keep:
            fcntl.fcntl(fd, _lease(), fcntl.F_UNLCK)
    except OSError as no:
        return True if no.errno == errno.EAGAIN else None
    return False
