"""What the hook seldom needs: to find the coordinator's socket, and to start it if need be.

Loaded by `_hook.py`, under the same rule: only modules that are built into the interpreter.
"""

import sys
import time

try:
    import _socket as socket
    import posix as system
except ImportError:  # not Linux (mypy takes one name for one module only)
    import os as system  # type: ignore[no-redef]
    import socket  # type: ignore[no-redef]

#: How long a coordinator that is started now is waited for.
START_S = 10.0
#: And one that cannot be started from here.
ELSEWHERE_S = 0.5


def started(path: str, patience: float) -> "socket.socket":
    """A connection to the coordinator of this socket, which is started for it.

    Raises:
        OSError: it did not come up.
    """
    failure = path.rpartition("/")[0] + "/start-failed.json"
    if _there(failure):
        system.unlink(failure)
    # One that is not ours to start may just be coming up by another hand.
    until = time.monotonic() + (min(START_S, patience / 2) if start(path) else ELSEWHERE_S)
    while True:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0)
        link.settimeout(patience)
        try:
            link.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            if _there(failure):
                raise OSError("it cannot start: `coord up` says why") from None
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return link


def start(path: str) -> bool:
    """Start the coordinator of the repository whose socket this is; whether it lies in one.

    Raises:
        OSError: no process could be started.
    """
    root = path.rpartition("/.coord/")[0]
    if not root or not _there(root + "/.coord") or system.__name__ == "os":
        return False
    null = [(system.POSIX_SPAWN_OPEN, 0, "/dev/null", 0, 0),
            (system.POSIX_SPAWN_OPEN, 1, "/dev/null", 1, 0),
            (system.POSIX_SPAWN_OPEN, 2, "/dev/null", 1, 0)]
    words = [sys.executable, "-m", "coordinator.cli.main", "up"]
    environment = {k: v for k, v in system.environ.items() if not k.startswith(b"COORD_AGENT")}
    environment[b"COORD_ROOT"] = root.encode("utf-8", "surrogateescape")
    system.posix_spawn(sys.executable, words, environment, file_actions=null, setsid=False)
    return True


def find() -> "str | None":
    """The socket of the coordinator around the working directory; None where coord is not used.

    A linked worktree's is that of its main one, which git names in the file `.git`.
    """
    at = system.getcwd()
    while True:
        for root in (at, _main_worktree(at)):
            if root and _there(root + "/.coord"):
                try:
                    with_name = _read(root + "/.coord/socket.path").decode().strip()
                except OSError:
                    with_name = ""
                return with_name or root + "/.coord/socket"
        if at in ("/", ""):
            return None
        at = at.rpartition("/")[0] or "/"


def _main_worktree(at: str) -> str:
    try:
        said = _read(at + "/.git").decode("utf-8", "surrogateescape")
    except OSError:
        return ""
    found = said.partition("gitdir:")[2].strip().partition("/.git/worktrees/")
    return found[0] if found[1] else ""


def _there(path: str) -> bool:
    try:
        system.stat(path)
    except OSError:
        return False
    return True


def _read(path: str) -> bytes:
    descriptor = system.open(path, system.O_RDONLY)
    try:
        return bytes(system.read(descriptor, 4096))
    finally:
        system.close(descriptor)
