"""The sessions of a repository on disk, for the case that the keeper and the coordinator both died.

A session's namespace lives as long as a process in it. If its keeper and the coordinator are both
killed, nothing protects others' files from it. So the next coordinator ends such a session, as a
running one does when its keeper dies. The module reads /proc, mostly in a thread, and decides
nothing.

It also remembers commands that could not join their session. Claude Code's own sandbox allows
neither to ask the coordinator nor to enter a namespace. Such commands just run (`_enter.py`), and
others' files are not read-only for them. The agent and the coordinator's health say so.

The module also checks the other parts that a session relies on: the keeper, the script before git,
and the files of coord that the session may write.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import msgspec

from coordinator.daemon.session_processes import has_prefix
from coordinator.files import ownership
from coordinator.files.content import write_atomic
from coordinator.files.mount_views import mounts
from coordinator.files.state import StateDir
from coordinator.namespaces import git_programs, orders
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.namespaces")
#: How long (seconds) killed processes may take to end, and the time between two looks at them.
GOES_S, LOOKS_S = 5.0, 0.02


class Recorded(msgspec.Struct, frozen=True):
    """One session: the number of its namespace, its agent, and whether the agent ends with it."""

    key: str
    number: int
    agent: str
    ends: bool


class Ended(msgspec.Struct, frozen=True):
    """A session without a keeper that was ended. `left`: processes that could not be ended."""

    session: Recorded
    processes: int
    left: tuple[int, ...] = ()


def write(state: StateDir, sessions: Sequence[Recorded]) -> None:
    """Write a durable note of all present sessions.

    Raises:
        OSError.
    """
    write_atomic(_place(state), msgspec.json.encode(sessions), 0o600)


def read(state: StateDir) -> list[Recorded]:
    """The sessions of the last note."""
    try:
        return msgspec.json.decode(_place(state).read_bytes(), type=list[Recorded])
    except (OSError, msgspec.DecodeError):
        return []


def end_uncovered(state: StateDir, covered: Collection[int]) -> list[Ended]:
    """End the living processes of the noted sessions, except those with a keeper (`covered`:
    numbers of their namespaces)."""
    result = []
    for session in read(state):
        if session.number not in covered:
            ended, left = _end(session.number, state)
            result.append(Ended(session, ended, left))
    return result


def kill(namespaces: Collection[int]) -> set[int]:
    """Kill every process in these mount namespaces, and return the killed ones."""
    result = set()
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError):
                if Path("/proc", name, "ns/mnt").stat().st_ino in namespaces:
                    os.kill(int(name), signal.SIGKILL)
                    result.add(int(name))
    return result


def _end(number: int, state: StateDir) -> tuple[int, tuple[int, ...]]:
    if not _is_sessions(number, state):
        return 0, ()
    ended: set[int] = set()
    deadline = time.monotonic() + GOES_S
    while alive := kill({number}):  # a killed process may have begun another just before
        ended |= alive
        if time.monotonic() > deadline:
            return len(ended), tuple(sorted(alive))
        time.sleep(LOOKS_S)
    return len(ended), ()


def _is_sessions(number: int, state: StateDir) -> bool:
    """Whether this namespace is still a session's of this repository, because the kernel reuses
    numbers. In each session coord's own folder has a read-only mount of its own."""
    place = str(state.path)
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError):
                if Path("/proc", name, "ns/mnt").stat().st_ino == number:
                    return any(mount.place == place and b"ro" in mount.options
                               for mount in mounts(int(name)))
    return False


def _place(state: StateDir) -> Path:
    return state.path / "session-records"


#: After how many commands in a row that did not join coord is sure. The end of a background command
#: may be reported before its beginning.
SURE = 2
_FOUND = "What they change there is found afterwards; edits are asked for before, as ever."


class UnjoinedCommands:
    """Counts the commands that did not join their agent's session.

    Args:
        tell: posts a message to an agent.
        is_on: whether commands should join at all.
    """

    def __init__(self, tell: Callable[[str, str], None], is_on: Callable[[], bool]) -> None:
        self._tell = tell
        self._is_on = is_on
        self._joined: Counter[str] = Counter()
        #: Call -> its agent, and how many commands of the agent had joined when it began.
        self._running: dict[str, tuple[str, int]] = {}
        self._apart: Counter[str] = Counter()

    def joins(self, agent: str | None) -> None:
        """Note that a command of this agent joins its session."""
        if agent is not None:
            self._joined[agent] += 1
            self._apart.pop(agent, None)

    def began(self, agent: str, call: str, hook: int) -> None:
        """Note that a command of this agent is about to run. `hook`: the process of its hook."""
        if call and self._is_on() and has_prefix(hook):
            self._running[call] = agent, self._joined[agent]

    def ended(self, call: str) -> None:
        """Note that a command has ended, and tell the agent if its commands do not join."""
        agent, before = self._running.pop(call, ("", 0))
        if not agent or self._joined[agent] != before:
            return
        self._apart[agent] += 1
        if self._apart[agent] == SURE:
            self._tell(agent, "Your shell commands run in a sandbox that coord may not enter, so "
                       f"they are not kept from what others hold. {_FOUND}")

    def is_apart(self, agent: str) -> bool:
        """Whether the last command of this agent did not join."""
        return self._apart[agent] > 0

    def gone(self, agent: str) -> None:
        """Forget an agent whose session has ended."""
        self._joined.pop(agent, None)
        self._apart.pop(agent, None)
        self._running = {call: pair for call, pair in self._running.items() if pair[0] != agent}

    def warnings(self) -> list[str]:
        """A warning for each agent whose commands do not join."""
        return [f"{agent}: its shell commands run in a sandbox of its own, which coord may not "
                f"enter: what others hold is not read-only for them, and git does not ask there. "
                f"{_FOUND}" for agent, count in self._apart.items() if count >= SURE]


def check_outside(root: Path) -> None:
    """Check that this process is in no session. If it is, start a coordinator outside of it.

    Raises:
        Refusal: BAD_TRANSITION: the other coordinator serves in a moment.
    """
    if orders.start_outside(root):
        raise Refusal(
            Code.BAD_TRANSITION, "A coordinator is not run in an agent's session. One is started "
            "outside of it.", next="`coord status` shows it.",
        )


def have_keeper() -> None:
    """Start this user's keeper if there is none. Call it in a thread.

    Raises:
        Refusal: no keeper can be started.
    """
    orders.connect(start=True).close()


def programs_before_git(path: str) -> list[list[str]]:
    """The programs before git in a session; empty if none can be made. Call it in a thread."""
    if not path:
        return []
    try:
        return git_programs.prepare(git_programs.list_programs(path))
    except (OSError, Refusal) as bad:
        log.warning("git does not ask in sessions: %s", bad)
        return []


def own_files(root: str, directory: str) -> list[str]:
    """Coord's own files that only this session may write: its agent's worktree, and the notes of
    resumable steps. Call it in a thread."""
    state = StateDir(Path(root))
    own = []
    try:
        ownership.make_folder(state.steps)
        own.append(str(state.steps))
    except (OSError, Refusal) as bad:
        log.warning("a session can have no resumable steps: %s", bad)
    with contextlib.suppress(ValueError):
        run, agent, *_ = Path(os.path.realpath(directory)).relative_to(state.worktrees).parts
        own.append(str(state.worktrees / run / agent))
    return own


def directory_of(pid: int) -> str:
    """The working directory of a process; empty if it has ended."""
    try:
        return str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:
        return ""
