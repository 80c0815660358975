"""Which ports of this machine somebody listens on, and who: asked of the system, from outside."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

#: A program that binds one of these addresses meets whoever listens on it.
_ADDRESSES = (
    (socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"),
    (socket.AF_INET6, "::1"), (socket.AF_INET6, "::"),
)
#: The state of a listening socket in `/proc/net/tcp`.
_LISTENS = "0A"
_PROC = Path("/proc")


class Listener(NamedTuple):
    """Who listens on a port. `pid` 0: that cannot be told, as of another user's process."""

    pid: int
    program: str


def find_taken(ports: Iterable[int]) -> list[int]:
    """Those of these ports that somebody listens on, by any address."""
    return [port for port in ports if any(_is_taken(*address, port) for address in _ADDRESSES)]


def _is_taken(family: socket.AddressFamily, address: str, port: int) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            # A connection that has just ended is nobody.
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                trial.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            trial.bind((address, port))
    except OSError as bad:  # without IPv6 nobody listens there
        return bad.errno == errno.EADDRINUSE or (
            bad.errno in (errno.EACCES, errno.EPERM) and _answers(family, address, port))
    return False


def _answers(family: socket.AddressFamily, address: str, port: int) -> bool:
    """Whether a port that may not be bound takes a connection."""
    with suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.settimeout(0.2)
        return trial.connect_ex((address, port)) == 0
    return False


def list_listeners(ports: Iterable[int]) -> dict[int, Listener]:
    """Those of these ports that somebody listens on, and who, as far as can be told."""
    wanted = set(ports)
    by_inode = {inode: port for port, inode in _read_sockets() if port in wanted}
    result = {port: Listener(0, "") for port in (*by_inode.values(), *find_taken(wanted))}
    for pid, inode in _read_owners() if by_inode else ():
        port = by_inode.get(inode)
        # Of several that share a socket the first is its parent.
        if port is not None and not result[port].pid:
            result[port] = Listener(pid, _name(pid))
    return result


def _read_sockets() -> list[tuple[int, str]]:
    """The port and the inode of each listening socket; empty where there is no `/proc`."""
    result = []
    for table in ("net/tcp", "net/tcp6"):
        with suppress(OSError):
            for line in (_PROC / table).read_text("ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENS:
                    result.append((int(fields[1].rpartition(":")[2], 16), fields[9]))
    return result


def _read_owners() -> list[tuple[int, str]]:
    """The process and the inode of each socket that this user may see, the oldest first."""
    result = []
    with suppress(OSError):
        for pid in sorted(int(name) for name in os.listdir(_PROC) if name.isdecimal()):
            with suppress(OSError):
                for descriptor in os.listdir(_PROC / str(pid) / "fd"):
                    with suppress(OSError):
                        target = str((_PROC / str(pid) / "fd" / descriptor).readlink())
                        if target.startswith("socket:["):
                            result.append((pid, target[8:-1]))
    return result


def _name(pid: int) -> str:
    with suppress(OSError):
        return (_PROC / str(pid) / "comm").read_text("utf-8", "replace").strip()
    return ""
