"""Finding the coordinator of a repository, and checking that this user runs it.

The module finds the root and the socket and looks at the process that serves there. It starts
nothing.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import struct
from pathlib import Path

from coordinator.files import ownership
from coordinator.files.roots import find_root
from coordinator.files.state import StateDir, check_socket
from coordinator.words import file_names
from coordinator.words.refusals import Code, Refusal


def locate_root(start: Path | None = None) -> Path:
    """The repository of a command: `COORD_ROOT`, otherwise found from the working directory.

    Raises:
        Refusal: INVALID: the named folder does not exist (one above it is another place), or its
            path is no text.
    """
    given = os.environ.get("COORD_ROOT")
    if given and not Path(given).is_dir():
        raise Refusal(
            Code.INVALID, f"COORD_ROOT is {given}, which is no directory. Nothing was done.",
            next="Correct COORD_ROOT, or unset it.",
        )
    if start is not None and not given and not start.exists():
        raise Refusal(Code.INVALID, f"{start} does not exist. Nothing was done.",
                      next="Name a path in the repository.")
    try:
        return sayable(find_root(Path(given) if given else (start or Path.cwd())))
    except FileNotFoundError:
        raise Refusal(Code.INVALID, "The working directory was removed. Nothing was done.",
                      next="Go to a directory that exists.") from None


def sayable(root: Path) -> Path:
    """Check that the root's path is UTF-8, and return it.

    Raises:
        Refusal: INVALID: a byte of its path is no UTF-8: no database could be opened there.
    """
    path = str(root)
    if not path.isascii() and any("\udc80" <= sign <= "\udcff" for sign in path):
        shown = file_names.shown(file_names.from_bytes(os.fsencode(path)))
        raise Refusal(
            Code.INVALID, f"The path of this repository, {shown}, holds a byte that is no UTF-8. "
            "Nothing was done.", next="Rename that directory.",
        )
    return root


def connect(state: StateDir, timeout_s: float = 5.0) -> socket.socket | None:
    """A connection to the running daemon, or None when there is none (a dead socket included).

    Raises:
        Refusal: FOREIGN: what is there is another user's; SANDBOXED; DAEMON_DOWN.
    """
    return reach(state.socket(), timeout_s)


def reach(path: Path, timeout_s: float = 5.0) -> socket.socket | None:
    """A connection to the daemon at this socket, or None when there is none.

    Raises:
        Refusal: FOREIGN: what is there is another user's; SANDBOXED; DAEMON_DOWN.
    """
    try:
        return try_to_reach(path, timeout_s)
    except BlockingIOError as bad:
        raise unreachable(path, bad) or bad from None


def try_to_reach(path: Path, timeout_s: float = 0.0) -> socket.socket | None:
    """Try to connect like `reach`.

    Raises:
        BlockingIOError: so many want to connect that the daemon takes no more for now.
    """
    sock = unix_socket()
    sock.settimeout(timeout_s)
    try:
        check_socket(path)
        sock.connect(str(path))
        check_peer(sock, path)
    except BlockingIOError:
        sock.close()
        raise
    except (OSError, Refusal) as bad:
        sock.close()
        if (why := unreachable(path, bad)) is None:
            return None
        raise why from None
    return sock


def unix_socket() -> socket.socket:
    """
    Raises:
        Refusal: SANDBOXED: none may be made here; DAEMON_DOWN: none can be made.
    """
    try:
        return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError as bad:
        if bad.errno in (errno.EPERM, errno.EACCES):
            raise sandboxed(bad) from None
        raise Refusal(Code.DAEMON_DOWN, f"No socket can be made: {bad.strerror or bad}.") from None


def sandboxed(bad: OSError) -> Refusal:
    """SANDBOXED: this process may not reach the coordinator."""
    return Refusal(
        Code.SANDBOXED, "A sandbox around this process keeps it from the coordinator "
        f"({bad.strerror or bad}): nobody was asked, and nothing was done.")


def unreachable(path: Path, bad: OSError | Refusal) -> Refusal | None:
    """The reason why the daemon at this socket cannot be reached; None if there is no daemon."""
    if isinstance(bad, Refusal):
        return bad
    if isinstance(bad, (FileNotFoundError, ConnectionRefusedError, NotADirectoryError)):
        return None
    if isinstance(bad, PermissionError):
        if bad.errno == errno.EPERM or os.access(path, os.W_OK):
            return sandboxed(bad)
        with contextlib.suppress(OSError):
            if path.parent.stat().st_uid == ownership.user():
                return ownership.closed(path.parent)
        return ownership.foreign(path, "belongs to another user",
                                 "Run coord as the user who started the coordinator.")
    return Refusal(Code.DAEMON_DOWN, f"{path}: {bad.strerror or bad}.")


def peer(sock: socket.socket) -> tuple[int, int] | None:
    """The process and the user at the other end; None if the system does not tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", raw)
    return pid, uid


def check_peer(sock: socket.socket, path: Path) -> None:
    """Check that the daemon is this user's, or root's, before anything is sent to it."""
    peer_id = peer(sock)
    if peer_id is not None and peer_id[1] not in (ownership.user(), 0):
        raise ownership.foreign(path,
                                f"is served by another user ({ownership.name_of(peer_id[1])})",
                          "Run coord as the user who started the coordinator.")


def holder(state: StateDir) -> int | None:
    """The process that holds the lock of a state directory (0: its number cannot be read); None if
    the lock is free."""
    try:
        descriptor = ownership.open_own(state.lock, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError:
        return 0
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return None
    except OSError:
        data = os.read(descriptor, 32).strip()
        return int(data) if data.isdigit() else 0
    finally:
        os.close(descriptor)
