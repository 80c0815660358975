"""Enter an agent session's namespace, then become the agent.

    /abs/python -I -S -E _enter.py USER_NAMESPACE|- MOUNT_NAMESPACE DIRECTORY COMMAND [ARGUMENT…]

The two are descriptors. The agent gets a user namespace of its own in which it is who it was:
without power over the mounts of the session. As root it has the full map of identities, which
only a process outside can write; as anybody else its own identity alone. One file with the
standard library only: it runs before every agent, in the time that its user waits.
"""

import ctypes
import os
import sys

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
libc = ctypes.CDLL(None, use_errno=True)


def check(value: int, what: str) -> None:
    if value == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def own_identity(uid: int, gid: int) -> None:
    """In a session of an ordinary user, whose only identity is 0 in the namespace around."""
    check(libc.unshare(CLONE_NEWUSER), "unshare")
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{uid} 0 1")
    write("/proc/self/gid_map", f"{gid} 0 1")


def all_identities() -> None:
    """As root: the same map as around, written by a child that stays outside."""
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


def main() -> int:
    around, mounts, directory = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    uid, gid = os.getuid(), os.getgid()
    try:
        if around != "-":
            check(libc.setns(int(around), CLONE_NEWUSER), "setns")
            os.close(int(around))
        check(libc.setns(mounts, CLONE_NEWNS), "setns")
        os.close(mounts)
        own_identity(uid, gid) if around != "-" else all_identities()
        # The directory that was open before lies outside: relative paths would go round the mounts.
        os.chdir(directory)
    except OSError as bad:
        sys.stderr.write(f"coord: the session could not be entered ({bad}); nothing was run.\n")
        return 126
    try:
        os.execvp(sys.argv[4], sys.argv[4:])
    except OSError as bad:
        sys.stderr.write(f"coord: {sys.argv[4]}: {bad.strerror}\n")
        return 127 if isinstance(bad, FileNotFoundError) else 126


if __name__ == "__main__":
    sys.exit(main())
