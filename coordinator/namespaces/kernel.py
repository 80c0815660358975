"""The system calls of namespaces, mounts and inotify that Python's library does not have.

The module owns nothing. It needs Linux 5.12 (`mount_setattr`); elsewhere `available` says no.
Facts: the man pages of unshare(2), setns(2), open_tree(2), mount_setattr(2), openat2(2),
inotify(7).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Callable, Iterator
from functools import cache

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000

# The numbers of calls since Linux 5.0 are the same on all machines but Alpha.
_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442
_AT_EMPTY_PATH = 0x1000
_AT_RECURSIVE = 0x8000
_OPEN_TREE_CLONE, _OPEN_TREE_CLOEXEC = 1, os.O_CLOEXEC
_MOVE_MOUNT_F_EMPTY_PATH, _MOVE_MOUNT_T_EMPTY_PATH = 0x04, 0x40
_MOUNT_ATTR_RDONLY = 0x01
_RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS = 0x02, 0x04
_MS_REC, _MS_PRIVATE, _MS_SLAVE, _MS_SHARED = 0x4000, 1 << 18, 1 << 19, 1 << 20
_MNT_DETACH = 2
_O_PATH = getattr(os, "O_PATH", 0)

_IN_NONBLOCK, _IN_CLOEXEC = os.O_NONBLOCK, os.O_CLOEXEC
IN_MOVED_TO, IN_CREATE, IN_IGNORED, IN_Q_OVERFLOW = 0x80, 0x100, 0x8000, 0x4000
#: Names that come into a directory, and the end of the directory itself.
_IN_NAMES = IN_MOVED_TO | IN_CREATE | 0x400 | 0x800 | 0x01000000  # …DELETE_SELF, MOVE_SELF, ONLYDIR

@cache
def _libc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def available() -> bool:
    """Whether this system could have such namespaces at all; whether this user may make one is
    known when it is tried."""
    if _libc() is None:
        return False
    try:  # nothing is done: this is no descriptor
        _call(_MOUNT_SETATTR, -1, b"", 0, None, 0)
    except OSError as bad:
        return bad.errno != errno.ENOSYS
    return True


def refused() -> str:
    """Why this user can have no such namespace here; empty if they can. A child tries it."""
    return asked()()


def asked() -> Callable[[], str]:
    """Let a child try it. The returned function waits for the child and gives the answer of
    `refused`."""
    if not available():
        return lambda: "this system has no namespaces with read-only mounts (Linux 5.12 has them)"
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            unshare(CLONE_NEWNS | (CLONE_NEWUSER if os.getuid() else 0))
            make_tree_shared()
            mount_read_only(open_path(b"/proc"))
        except OSError as bad:
            os.write(writing, f"the system lets this user have none ({bad.strerror})".encode())
        finally:
            os._exit(0)
    os.close(writing)
    return lambda: _answer(reading, child)


def _answer(reading: int, child: int) -> str:
    try:
        return os.read(reading, 500).decode()
    finally:
        os.close(reading)
        os.waitpid(child, 0)


def unshare(flags: int) -> None:
    """Leave the namespaces that are shared with the parent.

    Raises:
        OSError.
    """
    _check(_lib().unshare(flags))


def enter(descriptor: int, flags: int) -> None:
    """Enter the namespace of a descriptor.

    Raises:
        OSError.
    """
    _check(_lib().setns(descriptor, flags))


def make_tree_shared() -> None:
    """In a new mount namespace: let mounts from outside come in, and own mounts reach the
    namespaces made in here, but let none out.

    Raises:
        OSError.
    """
    for how in (_MS_SLAVE, _MS_SHARED):
        _check(_lib().mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC | how), None))


def open_path(path: bytes) -> int:
    """A descriptor of the file at an absolute path, for naming it only; no link is followed.

    Raises:
        OSError: ELOOP: there is a link on the way.
    """
    how = struct.pack("QQQ", _O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW, 0,
                      _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS)
    return _call(_OPENAT2, -1, path, how, len(how))


def mount_read_only(source: int, over: int | None = None) -> None:
    """Put a read-only view of what a descriptor (`open_path`) names in its place, or over what
    another one names. It is never writable in between.

    Raises:
        OSError.
    """
    _mount(source, source if over is None else over, (_MOUNT_ATTR_RDONLY, 0, 0, 0))


def mount_apart(source: int, over: int) -> None:
    """Show what a descriptor names also at the place of another one, without what is mounted over
    it at its own place.

    Raises:
        OSError.
    """
    _mount(source, over, (0, 0, _MS_PRIVATE, 0))


def mount_as_it_is(source: int, over: int) -> None:
    """Show what an older descriptor names, over what has covered it since.

    Raises:
        OSError.
    """
    _mount(source, over, (0, 0, 0, 0))


def _mount(source: int, over: int, wanted: tuple[int, int, int, int]) -> None:
    tree = _call(_OPEN_TREE, source, b"", _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_EMPTY_PATH
                 | _AT_RECURSIVE)
    try:
        attributes = struct.pack("QQQQ", *wanted)
        _call(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH | _AT_RECURSIVE, attributes,
              len(attributes))
        _call(_MOVE_MOUNT, tree, b"", over, b"",
              _MOVE_MOUNT_F_EMPTY_PATH | _MOVE_MOUNT_T_EMPTY_PATH)
    finally:
        os.close(tree)


def unmount(descriptor: int) -> None:
    """Remove the mount whose top a descriptor (`open_path`, opened after it was made) names. Files
    open there stay open.

    Raises:
        OSError.
    """
    _check(_lib().umount2(b"/proc/self/fd/%d" % descriptor, _MNT_DETACH))


def mount_of(descriptor: int) -> int:
    """The number of a descriptor's mount; no two have it at one time.

    Raises:
        OSError.
    """
    with open(f"/proc/self/fdinfo/{descriptor}", "rb") as info:
        for line in info:
            if line.startswith(b"mnt_id:"):
                return int(line[7:])
    raise OSError(errno.ENOSYS, "the kernel does not tell mounts apart")


def processes() -> list[int]:
    """The numbers of all processes that can be seen."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def namespace_of(pid: int, kind: str = "mnt") -> int:
    """The number of a process's namespace; 0 if we have no right to ask, because it is outside."""
    try:
        return os.stat(f"/proc/{pid}/ns/{kind}").st_ino
    except OSError:
        return 0


def watcher() -> int:
    """An inotify descriptor, non-blocking.

    Raises:
        OSError.
    """
    return int(_check(_lib().inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC)))


def watch(inotify: int, directory: bytes) -> int:
    """Tell of names that come into a directory; the number of the watch.

    Raises:
        OSError: it is not there, or there are too many watches (ENOSPC).
    """
    return int(_check(_lib().inotify_add_watch(inotify, directory, _IN_NAMES)))


def seen(inotify: int) -> Iterator[tuple[int, int, bytes]]:
    """What happened since: the watch's number, the kind, and the name (may be empty)."""
    while True:
        try:
            data = os.read(inotify, 65536)
        except BlockingIOError:
            return
        position = 0
        while position < len(data):
            number, mask, _, length = struct.unpack_from("iIII", data, position)
            position += 16
            yield number, mask, data[position : position + length].rstrip(b"\0")
            position += length


def _lib() -> ctypes.CDLL:
    library = _libc()
    if library is None:
        raise OSError(errno.ENOSYS, "there are no namespaces here")
    return library


def _call(number: int, *given: int | bytes | None) -> int:
    words = [ctypes.c_long(number) if isinstance(number, int) else number for number in given]
    return int(_check(_lib().syscall(ctypes.c_long(number), *words)))


def _check(value: int) -> int:
    if value == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return value
