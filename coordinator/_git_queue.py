"""Queue for the index of a working tree, then become git: GIT_DIR SUBCOMMAND PROGRAM WORD…

git locks its index for a moment, and a second git fails at once. The gits of sessions queue
instead. Each takes a record lock of the kernel on a file beside the index and keeps it when it
becomes git. No child of git inherits the lock, and it ends with git.

This runs before each `git add` and the like, so it imports only modules that are built into the
interpreter.
"""

import posix
import sys
import time

#: How long (seconds) a git waits for the others, and when it says so.
WAIT_S, SAY_AFTER_S, TICK_S = 60.0, 2.0, 0.01
#: How long (seconds) the git of another program may lock the index. An older lock is left over.
OTHERS_S = 5.0
#: The file that commits lock, those in a view of their own, too; and the file that all lock. No git
#: makes a lock of such a name: `coord-index.lock` would be that of a landing's own index.
COMMIT, INDEX = "coord-commits.queue", "coord-gits.queue"
#: The process whose git has the index: a git that its hooks call does not queue.
HOLDER = b"COORD_GIT_INDEX"


def enter(git_dir: str, subcommand: str) -> None:
    """Wait until no other git of a session uses this index. After `WAIT_S` git runs nevertheless,
    and says itself what is the matter; so it does where the files cannot be made."""
    holder = posix.environ.get(HOLDER, b"")
    if holder and (is_held() or _there(b"/proc/" + holder)):
        return
    deadline = time.monotonic() + WAIT_S
    try:
        if subcommand == "commit":
            _lock(f"{git_dir}/{COMMIT}", deadline)
        _lock(f"{git_dir}/{INDEX}", deadline)
        _wait_for_others(f"{git_dir}/index.lock")
    except OSError:
        return


def is_held() -> bool:
    """Whether this process has the index already."""
    return posix.environ.get(HOLDER) == b"%d" % posix.getpid()


def leave(git_dir: str) -> None:
    """Let the others have the index again. A process that closes a file loses its locks on it."""
    try:
        posix.close(posix.open(f"{git_dir}/{INDEX}", posix.O_RDWR))
    except OSError:
        return


def become(program: str, words: "list[str]") -> None:
    """Become git, or the script before it, as the holder of the index for what that calls."""
    environment = {**posix.environ, HOLDER: b"%d" % posix.getpid()}
    posix.execve(program, [program, *words], environment)


def _lock(path: str, deadline: float) -> None:
    descriptor = posix.open(path, posix.O_RDWR | posix.O_CREAT, 0o666)
    posix.set_inheritable(descriptor, True)  # (git keeps it; a record lock is not its children's)
    begun, is_said = time.monotonic(), False
    while time.monotonic() < deadline:
        try:
            posix.lockf(descriptor, posix.F_TLOCK, 0)
            return
        except (BlockingIOError, PermissionError):
            pass
        if not is_said and time.monotonic() - begun >= SAY_AFTER_S:
            posix.write(2, b"coord: waiting for another git in this tree to end...\n")
            is_said = True
        time.sleep(TICK_S)


def _wait_for_others(lock: str) -> None:
    """Wait for the git of a program outside of sessions."""
    begun = time.monotonic()
    while time.monotonic() - begun < OTHERS_S:
        try:
            if time.time() - posix.stat(lock).st_mtime > OTHERS_S:
                return
        except OSError:
            return
        time.sleep(TICK_S)


def _there(path: bytes) -> bool:
    try:
        posix.stat(path)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    enter(sys.argv[1], sys.argv[2])
    become(sys.argv[3], sys.argv[4:])
