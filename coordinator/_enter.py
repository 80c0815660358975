"""Enter an agent session's namespace, then become the agent.

    /abs/python -I -S -E _enter.py SOCKET KEY DIRECTORY COMMAND [ARGUMENT…]
    /abs/python -I -S -E _enter.py join ROOT DIRECTORY COMMAND [ARGUMENT…]

The keeper of the user's sessions, at SOCKET, gives out the namespace that KEY was made for, and
knows this process as the first in it. The agent gets a user namespace of its own, in which it has
its old identity, without power over the mounts of the session. As root it has the full map of
identities, which only a process outside can write; otherwise its own identity alone. One file with
the standard library only: it runs before every agent, in the time that its user waits.

`join` is for a command of an agent that a person started by itself (wiring/command_prefix.py): the
coordinator of ROOT is asked for its agent's namespace. If there is none the command just runs, also
in a foreign sandbox that allows neither to ask nor to enter.
"""

import _socket
import ctypes
import errno
import os
import sys

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
#: How long the coordinator may take to answer a command (seconds).
PATIENCE_S = 15.0
libc = ctypes.CDLL(None, use_errno=True)


def check(value: int, what: str) -> None:
    if value == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


class NotAllowed(Exception):
    """A sandbox keeps this process from it: nothing is broken, and nothing was entered."""


def door() -> "_socket.socket":
    """
    Raises:
        NotAllowed: no socket may be made here (as in Claude Code's own sandbox). OSError.
    """
    try:
        return _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    except OSError as bad:
        if bad.errno in (errno.EPERM, errno.EACCES):
            raise NotAllowed from None
        raise


def is_confined(pid: int) -> bool:
    """Whether this process may do less than that one, the coordinator (0: it cannot be seen from
    here)."""
    mine, other = "/proc/self/", f"/proc/{pid}/"
    if pid == 0 or not os.path.exists(other):
        return True
    try:
        if os.readlink(mine + "ns/user") != os.readlink(other + "ns/user"):
            return True
    except OSError:
        return False
    ours, theirs = limits(mine), limits(other)
    return (ours["Seccomp"] > theirs["Seccomp"] or ours["NoNewPrivs"] > theirs["NoNewPrivs"]
            or bool(theirs["CapBnd"] & ~ours["CapBnd"]))


def limits(process: str) -> "dict[str, int]":
    """The rights that a sandbox takes from its processes, by the kernel's account."""
    with open(process + "status") as file:
        fields = dict(line.split(":", 1) for line in file)
    return {name: int(fields.get(name, "0"), 16) for name in ("CapBnd", "NoNewPrivs", "Seccomp")}


def write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def namespaces(path: str, key: str) -> "list[int]":
    """Descriptors: of the user namespace around (an ordinary user's only), and of the mounts."""
    link = door()
    link.connect(path)
    link.sendall(b'{"n": 1, "do": "enter", "key": "%b"}\n' % key.encode())
    answer, result = b"", []
    while not answer.endswith(b"\n"):
        data, more, _, _ = link.recvmsg(65536, _socket.CMSG_SPACE(8))
        if not data:
            raise OSError("the keeper of the sessions has gone")
        answer += data
        for _, _, numbers in more:
            result += [int.from_bytes(numbers[position : position + 4], sys.byteorder)
                       for position in range(0, len(numbers), 4)]
    if not result:
        raise OSError(answer.decode("utf-8", "replace").strip())
    return result


def session_of_agent(root: str) -> "tuple[str, str, int] | None":
    """The keeper's address, the key, and the coordinator's process. None if this process belongs to
    no agent or is in a session already, or if that cannot be found out."""
    link = door()
    link.settimeout(PATIENCE_S)
    try:
        path = root + "/.coord/socket"
        if os.path.exists(root + "/.coord/socket.path"):
            with open(root + "/.coord/socket.path") as file:
                text = file.read()
            if not originals(root, text):
                path = text
        link.connect(path)
        peer = link.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        if int.from_bytes(peer[4:8], sys.byteorder) not in (os.getuid(), 0):
            return None
        link.sendall(b'{"id": 1, "op": "join_session", "params": {"pid": %d, "path": "%b"}}\n'
                     % (os.getpid(), quoted(os.environ.get("PATH", ""))))
        data = b""
        while not data.endswith(b"\n"):
            piece = link.recv(65536)
            if not piece:
                return None
            data += piece
        if b'"key":"' not in data:
            return None
        pid = int.from_bytes(peer[:4], sys.byteorder)
        return value(data, b"socket"), value(data, b"key"), pid
    except OSError:
        return None
    finally:
        link.close()


def originals(root: str, text: str) -> bool:
    """Whether this is the socket of another root, which this one is a copy of (files/state.py)."""
    if text.endswith("/.coord/socket"):
        return True
    name = text.rpartition("/")[2]
    if len(name) != 21 or not name.endswith(".sock"):
        return False  # a place of a person's own choice
    import hashlib  # (long paths are few)

    return name != hashlib.sha256(os.fsencode(root)).hexdigest()[:16] + ".sock"


def quoted(text: str) -> bytes:
    """The text as JSON quotes it, without a module that takes long to load."""
    plain = "".join(f"\\u{ord(character):04x}" if character < " " or character in '"\\'
                    else character for character in text)
    return plain.encode("utf-8", "replace")


def value(reply: bytes, name: bytes) -> str:
    """One text of a small answer."""
    data = reply.partition(b'"' + name + b'":"')[2].partition(b'"')[0]
    if b"\\" in data:
        raise OSError("an answer that is not understood")
    return data.decode()


def own_identity(uid: int, gid: int) -> None:
    """Take the user's identity in a session of an ordinary user, which is 0 in the namespace
    around."""
    check(libc.unshare(CLONE_NEWUSER), "unshare")
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{uid} 0 1")
    write("/proc/self/gid_map", f"{gid} 0 1")


def all_identities() -> None:
    """Map all identities as root: as around, written by a child that stays outside."""
    maps = {}
    for name in ("uid_map", "gid_map"):
        with open("/proc/self/" + name) as file:
            inside = [line.split()[::2] for line in file.read().splitlines()]
        maps[name] = "\n".join(f"{first} {first} {count}" for first, count in inside)
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(go)
            os.read(ready, 1)
            for name, text in maps.items():
                write(f"/proc/{os.getppid()}/{name}", text)
            code = 0
        finally:
            os._exit(code)
    os.close(ready)
    check(libc.unshare(CLONE_NEWUSER), "unshare")
    os.close(go)
    if os.waitpid(child, 0)[1]:
        raise OSError("the identities could not be mapped")


def descriptors() -> "tuple[list[int], int] | None":
    """The descriptors of the session that this process enters, and the asked coordinator's process;
    None if it enters none."""
    if sys.argv[1] != "join":
        return namespaces(sys.argv[1], sys.argv[2]), os.getpid()
    while True:
        session = session_of_agent(sys.argv[2])
        if session is None:
            return None
        try:
            return namespaces(*session[:2]), session[2]
        except OSError as bad:  # the session was unused for a while and was just given up
            if session == session_of_agent(sys.argv[2]):
                raise bad


def enter() -> None:
    """Enter the session that this process is to be in, if there is one.

    Raises:
        NotAllowed; OSError: it is there, and could not be entered.
    """
    uid, gid = os.getuid(), os.getgid()
    given = descriptors()
    if given is None:
        return
    numbers, coordinator = given
    *around, mounts = numbers
    try:
        for descriptor in around:
            check(libc.setns(descriptor, CLONE_NEWUSER), "setns")
            os.close(descriptor)
        if not around:
            check(libc.setns(mounts, CLONE_NEWNS), "setns")
    except PermissionError:  # of the first: nothing was entered
        if is_confined(coordinator):
            raise NotAllowed from None
        raise
    if around:
        check(libc.setns(mounts, CLONE_NEWNS), "setns")
    os.close(mounts)
    own_identity(uid, gid) if around else all_identities()
    # The old working directory is outside: relative paths would bypass the mounts.
    os.chdir(sys.argv[3])


def main() -> int:
    try:
        enter()
    except (OSError, NotAllowed) as bad:
        if not (isinstance(bad, NotAllowed) and sys.argv[1] == "join"):
            why = str(bad) or "not allowed here"
            sys.stderr.write(f"coord: the session could not be entered ({why}); nothing was run.\n")
            return 126
    try:
        os.execvp(sys.argv[4], sys.argv[4:])
    except OSError as bad:
        sys.stderr.write(f"coord: {sys.argv[4]}: {bad.strerror}\n")
        return 127 if isinstance(bad, FileNotFoundError) else 126


if __name__ == "__main__":
    sys.exit(main())
