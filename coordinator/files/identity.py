"""Identifying a file whatever its name: by device, inode, and the birth time of the inode.

An inode's number is used again as soon as its file is deleted. With the birth time, a new file is
not taken for the leased one that had the number before. If the disk or the kernel gives no birth
time, like NFS, the number is used alone. The module reads the disk and keeps nothing.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections.abc import Callable
from typing import Any

_AT_FDCWD, _AT_SYMLINK_NOFOLLOW = -100, 0x100
_BTIME = 0x800
#: `struct statx` of the kernel: 256 bytes; st_ino at 32, st_btime at 80, the device at 136.
_SIZE = 256
_WANTED = struct.Struct("=I28xQ40xqI44xII")
_INODE = 0x100
_WHICH = struct.Struct("=32xQ96xII")


def _found_statx() -> Callable[..., int] | None:
    try:
        statx = ctypes.CDLL(None).statx
    except (OSError, AttributeError, TypeError):
        return None
    statx.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p]
    statx.restype = ctypes.c_int
    return statx


_statx = _found_statx()


def statx_buffer() -> Any:
    """A buffer for the kernel's answers; for one thread at a time."""
    return ctypes.create_string_buffer(_SIZE)


class _Told(threading.local):
    """This thread's buffer for the kernel's answers. A new one each time costs as much as asking.
    """

    def __init__(self) -> None:
        self.into = statx_buffer()


_told = _Told()


def device_and_inode(path: bytes, into: Any) -> tuple[int, int] | None:
    """The file at `path` (no link is followed), as (device, inode); None if none can be seen.
    `into` is a `statx_buffer`.

    Asks for nothing else. From Linux 6.13 on, asking for a file's times makes its next write note a
    finer one, and an fdatasync after that takes a third longer.
    """
    if _statx is not None and _statx(_AT_FDCWD, path, _AT_SYMLINK_NOFOLLOW, _INODE, into) == 0:
        inode, major, minor = _WHICH.unpack_from(into)
        return os.makedev(major, minor), inode
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def identity(path: str, status: os.stat_result) -> str:
    """`device:inode:birth` of the file at `path` (no link is followed), or `device:inode`.

    `status` is an earlier look at it, used if nothing more can be learnt.
    """
    return identity_beside(_AT_FDCWD, os.fsencode(path), status)


def identity_beside(place: int, name: bytes, status: os.stat_result) -> str:
    """`identity` of the file that has this name in the directory open as `place`."""
    if _statx is not None:
        into = _told.into
        if _statx(place, name, _AT_SYMLINK_NOFOLLOW, _INODE | _BTIME, into) == 0:
            mask, inode, seconds, nanoseconds, major, minor = _WANTED.unpack_from(into)
            if mask & _BTIME:
                return f"{os.makedev(major, minor)}:{inode}:{seconds}.{nanoseconds:09d}"
    born: Any = getattr(status, "st_birthtime", None)  # macOS and the BSDs
    plain = f"{status.st_dev}:{status.st_ino}"
    return plain if born is None else f"{plain}:{born}"
