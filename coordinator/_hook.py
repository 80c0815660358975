"""The guard before an agent's write: standard input to the daemon, its answer out, its exit code.

    /abs/python -I -S -E /abs/_hook.py SOCKET_PATH|- PROFILE[:EVENT] [open|closed|spoken] [SECONDS]

An agent pays this before every write, so it costs one interpreter start and nothing else: only
modules that are built into the interpreter, no parsing (the daemon reads the payload, see
daemon/hook_protocol.py), and an exit that skips tidying up. A missing coordinator, killed or not
started yet, is started, once, and asked again. If there is no answer within SECONDS, `closed`
(default) says so and exits 2, which stops the write. `spoken` says it as JSON, because Copilot CLI
shows no words of a failed hook. `open` warns and exits 0. The environment's COORD_AGENT_TOKEN, if
set, says on whose behalf. Printed output is confirmed to the coordinator, which keeps an agent's
messages until then. If the call is about files of other repositories, the coordinator names these,
and theirs are asked, too. `-` for the socket (hooks in a user's own settings, for all repositories)
means that of the repository around the working directory. If there is none, the write is none of
coord's business.
"""

import sys

try:
    import _socket as socket

    import posix as system
except ImportError:  # not Linux: slower, the same (mypy takes one name for one module only)
    import os as system  # type: ignore[no-redef]
    import socket  # type: ignore[no-redef]

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing

TIMEOUT_S = 30.0


def ask(
    path: str, agent: bytes, token: bytes, payload: bytes, patience: float = TIMEOUT_S
) -> "tuple[int, bytes, bytes, socket.socket]":
    """The daemon's answer (exit code, standard output, standard error), and the connection to it.

    Raises:
        OSError: nobody is there, or what came is no answer.
    """
    data = b"hook %b %b %d confirm\n%b" % (agent, token, len(payload), payload)
    try:
        return talk(connected(path, patience), data)
    except (TimeoutError, PermissionError):
        raise
    except OSError:  # it is not there, or was killed just now: all that is asked may be asked again
        return talk(seldom("started", path, patience, connected), data)


def connected(path: str, patience: float) -> socket.socket:
    """A connection to a coordinator of this user, in a folder that only this user writes to. The
    payload is an agent's next write, and the answer may change it.

    Raises:
        PermissionError: the socket or the coordinator is somebody else's.
        OSError: nobody is there.
    """
    me = system.geteuid()
    folder = system.lstat(path[: path.rfind("/")] or "/")
    if folder.st_mode & 0o170022 != 0o040000 or folder.st_uid != me:
        raise PermissionError("the folder of " + path + " is not this user's alone")
    if system.lstat(path).st_uid != me:
        raise PermissionError(path + " belongs to another user")
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0)
    link.settimeout(patience)
    link.connect(path)
    if hasattr(socket, "SO_PEERCRED"):
        peer = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        if int.from_bytes(peer[4:8], sys.byteorder) not in (me, 0):
            raise PermissionError(path + " is served by another user")
    return link


def talk(link: socket.socket, data: bytes) -> "tuple[int, bytes, bytes, socket.socket]":
    """Ask, and read the answer whole.

    Raises:
        OSError.
    """
    link.sendall(data)
    got = b""
    while b"\n" not in got:
        more = link.recv(65536)
        if not more:
            raise OSError("the coordinator hung up")
        got += more
    head, _, rest = got.partition(b"\n")
    try:
        code, out, err = [int(part) for part in head.split(b" ")]
    except ValueError:
        raise OSError("the coordinator's answer is not understood") from None
    while len(rest) < out + err:
        more = link.recv(65536)
        if not more:
            raise OSError("the coordinator hung up")
        rest += more
    return code, rest[:out], rest[out : out + err], link


def seldom(name: str, *given: object) -> "typing.Any":
    """Call a rare function from a file of its own, because this one is compiled at each write."""
    names: "dict[str, typing.Any]" = {"__name__": "_hook_seldom"}
    with open(__file__[:-3] + "_seldom.py", "rb") as file:
        exec(file.read(), names)
    return names[name](*given)


def say(descriptor: int, text: bytes) -> None:
    """All of `text`, however little the pipe takes at once."""
    while text:
        text = text[system.write(descriptor, text) :]


def main() -> int:
    """The exit code."""
    manner = sys.argv[3] if len(sys.argv) > 3 else "closed"
    if len(sys.argv) < 3 or manner not in ("open", "closed", "spoken"):
        say(2, b"usage: _hook.py SOCKET_PATH|- PROFILE[:EVENT] [open|closed|spoken] [SECONDS]\n")
        return 2
    patience = float(sys.argv[4]) if len(sys.argv) > 4 else TIMEOUT_S
    path = sys.argv[1] if sys.argv[1] != "-" else seldom("find")
    if path is None:
        return 0
    data, link = read_call(), None
    try:
        agent = sys.argv[2].encode("utf-8", "surrogateescape")
        code, out, err, link = ask(path, agent, read_token(), data, patience)
        if code == 3:  # it names other repositories' coordinators, who have a say, too
            code, out, err, link = seldom("elsewhere", ask, agent, data, patience, out, err, link)
    except OSError as bad:
        code, out, err = 2, b"", describe_failure(bad, manner)
        link = None
    if code and manner != "closed":
        code, out, err = (0, out, err) if manner == "open" else (0, speak(err), b"")
    say(1, out)
    say(2, err)
    if link is not None and (out or err):
        confirm(link)
    return code


def read_call() -> bytes:
    """The agent's call, from standard input."""
    parts = []
    while part := system.read(0, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def read_token() -> bytes:
    """On whose behalf the hook asks; `-` if nobody is named."""
    # posix keeps the environment in bytes; its substitute os in text. mypy knows only os.
    key = "COORD_AGENT_TOKEN" if system.__name__ == "os" else b"COORD_AGENT_TOKEN"
    value: object = system.environ.get(key)  # type: ignore[arg-type]  # posix keeps bytes
    return value if isinstance(value, bytes) else str(value or "-").encode("utf-8", "replace")


def describe_failure(bad: OSError, manner: str) -> bytes:
    """What an agent is told if no coordinator answers."""
    why = b"coord: no coordinator answers (" + str(bad).encode("utf-8", "backslashreplace")
    if manner == "open":
        return why + b"); this write is not guarded.\n"
    return why + b"), so this write is stopped. `coord up` starts it.\n"


def speak(err: bytes) -> bytes:
    """A refusal as JSON."""
    text = err.strip().replace(b"\\", b"/").replace(b'"', b"'").replace(b"\n", b" ")
    return b'{"permissionDecision":"deny","permissionDecisionReason":"%b"}' % text


def confirm(link: socket.socket) -> None:
    """Report that the answer was printed."""
    try:
        link.send(b"told\n")
    except OSError:
        pass  # it was killed meanwhile: it will tell it again


if __name__ == "__main__":
    code = 2
    try:
        code = main()
    except OSError:
        pass  # the reader is gone; the write stays stopped
    system._exit(code)
