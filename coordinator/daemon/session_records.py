"""Which sessions a repository has, on the disk: found again where both who knew of them have died.

A session's namespace lives as long as a process in it, whoever made it. Where its keeper and the
coordinator are both killed, nobody keeps it from what others hold; whoever starts next ends what is
left of it, as a coordinator does that sees its keeper die. Decides nothing; reads /proc; most of it
is done in a thread.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from coordinator.files.content import write_atomic
from coordinator.files.mount_views import mounts
from coordinator.files.state import StateDir

log = logging.getLogger("coord.namespaces")
#: So long (seconds) processes that are killed may take to go, and how often it is looked again.
GOES_S, LOOKS_S = 5.0, 0.02


class Recorded(msgspec.Struct, frozen=True):
    """One session: its namespace's number, its agent, and whether that ends with it."""

    key: str
    number: int
    agent: str
    ends: bool


class Ended(msgspec.Struct, frozen=True):
    """One that was found without a keeper. `left`: processes of it that could not be ended."""

    session: Recorded
    processes: int
    left: tuple[int, ...] = ()


def write(state: StateDir, sessions: Sequence[Recorded]) -> None:
    """Note all that there are, durably.

    Raises:
        OSError.
    """
    write_atomic(_place(state), msgspec.json.encode(sessions), 0o600)


def read(state: StateDir) -> list[Recorded]:
    """What was noted last."""
    try:
        return msgspec.json.decode(_place(state).read_bytes(), type=list[Recorded])
    except (OSError, msgspec.DecodeError):
        return []


def end_uncovered(state: StateDir, covered: Collection[int]) -> list[Ended]:
    """End what lives of the noted sessions, but for those that a keeper keeps (`covered`: numbers
    of their namespaces)."""
    result = []
    for session in read(state):
        if session.number not in covered:
            ended, left = _end(session.number, state)
            result.append(Ended(session, ended, left))
    return result


def kill(namespaces: Collection[int]) -> set[int]:
    """Kill every process that is in one of these mount namespaces; which they were."""
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
    while alive := kill({number}):  # one that begins a process just now leaves that behind
        ended |= alive
        if time.monotonic() > deadline:
            return len(ended), tuple(sorted(alive))
        time.sleep(LOOKS_S)
    return len(ended), ()


def _is_sessions(number: int, state: StateDir) -> bool:
    """Whether this is the namespace of a session of this repository still: numbers are given again.
    In each of them coord's own folder is mounted read-only, by itself."""
    place = str(state.path)
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError):
                if Path("/proc", name, "ns/mnt").stat().st_ino == number:
                    return any(mount.place == place and b"ro" in mount.options
                               for mount in mounts(int(name)))
    return False


def _place(state: StateDir) -> Path:
    return state.path / "sessions.json"
