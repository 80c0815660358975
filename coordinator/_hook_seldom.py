"""The slow path of the hook: it finds the coordinator's socket, starts the coordinator, and asks
the coordinators of other repositories.

`_hook.py` loads this module only when it is needed. Both import only modules that are built into
the interpreter.
"""

import sys
import time

try:
    import _socket as socket
    import posix as system
except ImportError:  # not Linux (mypy takes one name for one module only)
    # Each name is bound once: in one branch or the other.
    import os as system  # type: ignore[no-redef]
    import socket  # type: ignore[no-redef]

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing

#: How long to wait for a coordinator that is started now.
START_S = 20.0
#: How long to wait for another hook that is starting it.
TURN_S = 5.0
#: And one that cannot be started from here.
ELSEWHERE_S = 0.5


def started(path: str, patience: float, connected: "typing.Any") -> "socket.socket":
    """A connection to the coordinator of this socket, which is started for it.

    Raises:
        OSError: it did not come up.
    """
    path = _moved(path)
    failure = path.rpartition("/")[0] + "/start-failed"
    began = time.monotonic()
    until = began + min(START_S, patience * 2 / 3)
    turn = _turn(path, began)
    waited, child = not turn, -1
    while True:
        try:
            link: socket.socket = connected(path, patience)
            if turn > 0:
                system.close(turn)
            return link
        except (FileNotFoundError, ConnectionRefusedError):
            tried = turn and (waited or child >= 0)  # by another hook, or by this one
            if (tried and _there(failure)) or _failed(child):
                raise OSError("it cannot start: `coord up` says why") from None
            if turn and child < 0:
                child = _start_anew(path, failure)
                if not child:  # it may just be coming up by another hand
                    until = time.monotonic() + ELSEWHERE_S
            if time.monotonic() > until:
                raise
            if not turn:  # another hook starts it: until that has ended, or takes too long
                turn = _turn(path, began)
                if turn:
                    continue
            time.sleep(0.05)


def _moved(path: str) -> str:
    """The coordinator's socket, also if the repository was moved since this was wired."""
    root = path.rpartition("/.coord/")[0]
    return path if not root or _there(root + "/.coord") else find() or path


def _turn(path: str, began: float) -> int:
    """The lock of the one hook that starts a coordinator, as a descriptor; 0: another has it. -1:
    there is nothing to lock, or the other one takes too long. Without it, fifty agents that notice
    a killed coordinator would each start one, at the cost of a hundred hooks. The starter has a
    lock of its own, client/starting.py."""
    import fcntl

    try:
        descriptor = system.open(path.rpartition("/")[0] + "/.gitignore",
                                 system.O_RDONLY | system.O_NOFOLLOW | system.O_CLOEXEC)
    except OSError:
        return -1
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        system.close(descriptor)
        return -1 if time.monotonic() - began > TURN_S else 0
    return descriptor


def _start_anew(path: str, failure: str) -> int:
    """`start`; a note of an earlier failure goes first."""
    if _there(failure):
        system.unlink(failure)
    return start(path)


def start(path: str) -> int:
    """Start the coordinator of the repository with this socket. Returns the starting process, or 0
    if there is no such repository.

    Raises:
        OSError: no process could be started.
    """
    root = path.rpartition("/.coord/")[0]
    if not root or not _there(root + "/.coord") or system.__name__ == "os":
        return 0
    null = [(system.POSIX_SPAWN_OPEN, 0, "/dev/null", 0, 0),
            (system.POSIX_SPAWN_OPEN, 1, "/dev/null", 1, 0),
            (system.POSIX_SPAWN_OPEN, 2, "/dev/null", 1, 0)]
    # -P: a module of the repository that is called like one of ours must not be imported
    words = [sys.executable, "-P", "-m", "coordinator.cli.main", "up"]
    environment = {k: v for k, v in system.environ.items() if not k.startswith(b"COORD_AGENT")}
    environment[b"COORD_ROOT"] = root.encode("utf-8", "surrogateescape")
    if environment.get(b"COORD_SOCKET") != path.encode("utf-8", "surrogateescape"):
        environment.pop(b"COORD_SOCKET", None)  # another repository's, in a session of that one
    return system.posix_spawn(sys.executable, words, environment, file_actions=null, setsid=False)


def _failed(child: int) -> bool:
    """Whether the process that was to start it has ended, and not well. No process has not."""
    if child <= 0:
        return False
    try:
        ended, status = system.waitpid(child, system.WNOHANG)
    except OSError:
        return False  # it ended well, and that was seen before
    return ended == child and status != 0


def find() -> "str | None":
    """The socket of the coordinator around the working directory; None where coord is not used.

    The rule is that of `files/roots.py`: the nearest folder upwards that has a `.coord`, with a
    linked worktree standing for its place in its main one.
    """
    folder = system.getcwd().rstrip("/")
    mapped: list[str] = []
    while True:
        top, common = _checkout(folder)
        main = _main_worktree(common) if common and top not in mapped else ""
        if main:
            mapped.append(top)
            folder = main + folder[len(top):]
            continue
        while True:
            if _there(folder + "/.coord/") and not _everybodys(folder or "/"):
                return _socket_of(folder)
            if folder in (top, ""):
                break
            folder = folder.rpartition("/")[0]
        if folder == "":
            return None
        folder = folder.rpartition("/")[0]


def _socket_of(root: str) -> str:
    """The socket of the coordinator at a root. The note in a copied folder names the original's
    socket and is ignored (`files/state.py` has the rule). A socket at a person's own place is
    accepted."""
    own = root + "/.coord/socket"
    text = _text(root + "/.coord/socket.path").strip()
    if not text or text.endswith("/.coord/socket"):
        return own
    name = text.rpartition("/")[2]
    if len(name) == 21 and name.endswith(".sock") and name != _short_name(root):
        return own
    return text


def _short_name(root: str) -> str:
    """The socket's name for a root with a long path."""
    import hashlib  # (long paths are few)

    return hashlib.sha256(root.encode("utf-8", "surrogateescape")).hexdigest()[:16] + ".sock"


def elsewhere(
    ask: "typing.Any", agent: bytes, payload: bytes, patience: float, out: bytes, err: bytes,
    link: "socket.socket",
) -> "tuple[int, bytes, bytes, socket.socket]":
    """Ask the coordinators of other repositories about a call that this one allows. Returns the
    first refusal, otherwise the output. What is not printed is not confirmed, so its messages come
    again.

    Raises:
        OSError: one of them does not answer, so the call is not known to be allowed.
    """
    named, _, out = out.partition(b"\0\n")
    for root in named.split(b"\0"):
        path = _socket_of(root.decode("utf-8", "surrogateescape"))
        # The token is another coordinator's: here it is the session that it says it is.
        code, hook_out, hook_err, other = ask(path, agent, b"-", payload, patience)
        if code == 3:  # it names the first one in its turn
            code, hook_out = 0, hook_out.partition(b"\0\n")[2]
        if code or b'"deny"' in hook_out or not (out or err):
            code, out, err, link, other = code, hook_out, hook_err, other, link
            if code or b'"deny"' in out:
                break
    return code, out, err, link


def _checkout(folder: str) -> "tuple[str, str]":
    """The top of the git working tree around a directory (`""` for none), and, for a linked
    worktree, the git directory that it shares."""
    while True:
        pointed = _line(folder + "/.git")
        if _there(folder + "/.git/"):
            return folder, ""
        if pointed.startswith("gitdir:"):
            git_dir = _real(_joined(folder, pointed[7:].strip()))
            shared = _line(git_dir + "/commondir") if git_dir else ""
            return folder, _real(_joined(git_dir, shared)) if shared else ""
        if folder == "":
            return "", ""
        folder = folder.rpartition("/")[0]


def _main_worktree(common: str) -> str:
    """The main worktree of a shared git directory; empty for none."""
    above, _, name = common.rpartition("/")
    if name == ".git":
        return above
    section = text = ""
    for line in _text(common + "/config").splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line.strip("[]").strip().lower()
        elif section == "core" and line.lower().replace(" ", "").startswith("worktree="):
            text = line.partition("=")[2].strip().strip('"')
            break
    main = _real(_joined(common, text)) if text else ""
    back = _line(main + "/.git") if main else ""
    if not back.startswith("gitdir:") or _real(_joined(main, back[7:].strip())) != common:
        return ""
    return main


def _joined(folder: str, path: str) -> str:
    return path if path.startswith("/") else folder + "/" + path


def _real(path: str) -> str:
    """The true name of a directory, asked of the kernel; empty if it is not there."""
    here = system.open(".", system.O_RDONLY)
    try:
        system.chdir(path)
        return system.getcwd()
    except OSError:
        return ""
    finally:
        system.fchdir(here)
        system.close(here)


def _everybodys(directory: str) -> bool:
    """Whether all users share this folder, like /tmp: no repository."""
    return system.stat(directory).st_mode & 0o1002 == 0o1002


def _there(path: str) -> bool:
    try:
        system.stat(path)
    except OSError:
        return False
    return True


def _line(path: str) -> str:
    return _text(path).partition("\n")[0].strip("\r")


def _text(path: str) -> str:
    try:
        return _read(path).decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def _read(path: str) -> bytes:
    descriptor = system.open(path, system.O_RDONLY | system.O_NONBLOCK | system.O_CLOEXEC)
    try:
        return bytes(system.read(descriptor, 1 << 20))
    finally:
        system.close(descriptor)
