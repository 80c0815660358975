"""Knowing the process of each agent's session, for agents that a person started. Hooks report it.

The module waits for the end of these processes by pidfd on Linux. So `coord` typed in an agent's
shell acts for that agent, a session ends with its process, and two processes that continue one
session are two sessions. `.coord/processes` keeps the processes for the next daemon, until the
machine restarts. If the file is lost, leases expire in their time.

The module also reports heartbeats, rest and ends for agents whose processes are known, as the
agents would report them. It decides nothing about leases.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from coordinator.daemon.program_presence import Process, find_place, process_of, read_stat
from coordinator.daemon.request_router import RequestRouter
from coordinator.daemon.running_calls import ObservationFile
from coordinator.words import requests as rq

#: Programs that run a hook for an agent, and are not the agent.
SHELLS = frozenset((b"sh", b"bash", b"dash", b"zsh", b"fish", b"ash", b"busybox", b"env",
                    b"timeout"))
#: Parts of the command line of coord's hooks.
HOOKS = (b"_hook.py", b"coordinator.cli.main\0hook")
#: Part of the environment of an agent that runs its commands in its session.
PREFIX = b"/coord/command-prefixes/"
#: How many of the first words of a command line may name the program that an interpreter runs.
PROGRAM_WORDS = 6
#: How many parents are looked at.
DEPTH_MAX = 40
#: Sessions that are remembered.
SEEN_MAX = 1_000


@dataclass(eq=False)
class Session:
    """A session's process. `hooks`: how many have come from it. A single hook may come from a
    process that only ran that hook. `rests`: whether its turn is over. `later_ids`: other ids."""

    process: Process
    hooks: int = 1
    agent: str = ""
    rests: bool = False
    later_ids: set[str] = field(default_factory=set)
    descriptor: int = -1
    path: str | None = None


class SessionProcesses:
    """The sessions of one daemon. Used in the loop's thread.

    Args:
        ended: called with an agent whose process has ended, and what to call when it has left.
        noted: called with an agent, its process, profile and session, once the process is watched.
        over: called with an agent whose session has reported its end.
        program: gives the program of a profile by its name; empty if it has none.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop,
                 ended: Callable[[str, Callable[[], None]], None],
                 noted: Callable[[str, Process, str, str], None],
                 over: Callable[[str], None], program: Callable[[str], str]) -> None:
        self._loop = loop
        self._program = program
        self._ended, self._noted, self._said_over = ended, noted, over
        self._seen: dict[tuple[str, str], Session] = {}
        #: Process -> its sessions, one after the other.
        self._sessions: dict[Process, list[tuple[str, str]]] = {}
        #: Sessions whose process has ended, and whose agents are about to be gone.
        self._ending: set[tuple[str, str]] = set()

    def session(self, profile: str, session: str, caller: int, *, alone: bool = False) -> str:
        """Note a hook of this session that came from the process `caller`. Returns the session's
        id, with a mark if another process continues the same session.

        Args:
            alone: the process has one session at a time. After `/clear` and the like it continues
                under a new id, and some CLIs do not report the former one's end. Then the former
                id is returned.
        """
        above = list(processes_above(caller))
        process = _find_agents_program(above)
        if process is None:
            return session
        has = self._find_present(above, profile, session)
        if has is not None:
            self._seen[profile, has].hooks += 1  # even if another process has this session, too
            return has
        if alone and (former := self._find_former(process, profile)) is not None:
            self._seen[profile, former].hooks += 1
            self._seen[profile, former].later_ids.add(session)
            return former
        name = session
        while (sighting := self._seen.get((profile, name))) is not None or (
                (profile, name) in self._ending):
            if sighting is not None and not self._lives(sighting):
                self._drop((profile, name))
                break
            name += f"-{process.pid}"  # and again if another session is called so already
        if len(self._seen) >= SEEN_MAX:
            self._tidy()
        self._add((profile, name), Session(process))
        return name

    def _find_present(self, above: list[Process], profile: str, session: str) -> str | None:
        """The session of this profile and id that one of these processes has."""
        for key in [key for process in above for key in self._sessions.get(process, ())]:
            if key[0] == profile and (key[1] == session or key[1].startswith(f"{session}-")
                                      or session in self._seen[key].later_ids):
                return key[1]
        return None

    def _find_former(self, process: Process, profile: str) -> str | None:
        """The session of this profile that the process has, if its agent is known. Unless the
        process is the profile's own program, the session's turn has to be over: a program that
        plays several agents may ask in this profile's name."""
        its_own = _runs(process.pid, self._program(profile) or profile)
        return next((session for name, session in reversed(self._sessions.get(process, []))
                     if name == profile and self._seen[name, session].agent
                     and (its_own or self._seen[name, session].rests)), None)

    def belongs(self, profile: str, session: str, agent: str, *, rests: bool = False) -> None:
        """Note that the session is this agent's, and whether its turn is over. From the second hook
        on the process is watched."""
        sighting = self._seen.get((profile, session))
        if sighting is None:
            return
        sighting.agent, sighting.rests = agent, rests
        if sighting.hooks > 1 and sighting.descriptor < 0 and hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):
                sighting.descriptor = os.pidfd_open(sighting.process.pid)
                self._loop.add_reader(sighting.descriptor, self._has_ended, (profile, session))
                self._noted(agent, sighting.process, profile, session)

    def again(self, profile: str, session: str, agent: str, process: Process) -> None:
        """Take over a session that the former daemon knew."""
        self._add((profile, session), Session(process, hooks=2))
        self.belongs(profile, session, agent)

    def ends(self, profile: str, session: str, agent: str) -> None:
        """Report that the process of this session has ended. A process that continues the session
        before its agent has left counts as another session."""
        self._ending.add((profile, session))
        self._ended(agent, lambda: self._ending.discard((profile, session)))

    def path_of(self, profile: str, session: str) -> str | None:
        """The PATH of that session's process, as it was started; None if unknown."""
        sighting = self._seen.get((profile, session))
        if sighting is None:
            return None
        if sighting.path is None:
            sighting.path = _read_path(sighting.process.pid)
        return sighting.path

    def over(self, profile: str, session: str) -> None:
        """Forget a session that has reported its end."""
        sighting = self._seen.get((profile, session))
        self._drop((profile, session))
        if sighting is not None and sighting.agent:
            self._said_over(sighting.agent)

    def agent_of(self, pid: int) -> str | None:
        """The agent in whose session a process is; None if it is in none, or in more than one."""
        for process in processes_above(pid):
            agents = {sighting.agent for sighting in self._seen.values()
                      if sighting.process == process and sighting.agent}
            if agents:
                return agents.pop() if len(agents) == 1 else None
        return None

    def sure_agent_of(self, pid: int) -> str | None:
        """As `agent_of`, but only if the process is the agent's own program. A hook may also have
        come from the terminal of a person who typed it."""
        for process in processes_above(pid):
            for key in self._sessions.get(process, ()):
                sighting, program = self._seen[key], self._program(key[0])
                if sighting.hooks > 1 and sighting.agent and program and _runs(process.pid,
                                                                               program):
                    return sighting.agent
        return None

    def agents(self) -> list[str]:
        """The agents whose processes are watched."""
        return [sighting.agent for sighting in self._seen.values() if sighting.descriptor >= 0]

    def close(self) -> None:
        """Stop watching."""
        for key in list(self._seen):
            self._drop(key)

    def _tidy(self) -> None:
        """Forget sessions whose process has ended unnoticed, and then the oldest."""
        for key in [key for key, sighting in self._seen.items()
                    if process_of(sighting.process.pid) != sighting.process]:
            self._drop(key)
        while len(self._seen) >= SEEN_MAX:
            self._drop(next(iter(self._seen)))

    def _lives(self, sighting: Session) -> bool:
        return sighting.hooks > 1 and process_of(sighting.process.pid) == sighting.process

    def _has_ended(self, key: tuple[str, str]) -> None:
        agent = self._seen[key].agent
        self._drop(key)
        self.ends(*key, agent)

    def _add(self, key: tuple[str, str], sighting: Session) -> None:
        self._drop(key)
        self._seen[key] = sighting
        self._sessions.setdefault(sighting.process, []).append(key)

    def _drop(self, key: tuple[str, str]) -> None:
        sighting = self._seen.pop(key, None)
        if sighting is None:
            return
        theirs = self._sessions[sighting.process]
        theirs.remove(key)
        if not theirs:
            del self._sessions[sighting.process]
        if sighting.descriptor >= 0:
            self._loop.remove_reader(sighting.descriptor)
            os.close(sighting.descriptor)


def _find_agents_program(above: list[Process]) -> Process | None:
    """The nearest of these processes that is the agent's own program."""
    for process in above:
        try:
            words = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        except OSError:
            return None
        program = words.partition(b"\0")[0].rpartition(b"/")[2].lstrip(b"-")
        if program not in SHELLS and not any(sign in words for sign in HOOKS):
            return process
    return None


def _runs(pid: int, program: str) -> bool:
    """Whether this process is that program, or the interpreter that runs it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:PROGRAM_WORDS]
        words.append(Path(f"/proc/{pid}/comm").read_bytes().strip())
    except OSError:
        return False
    names = {word.rpartition(b"/")[2].lstrip(b".-") for word in words}
    return os.fsencode(program) in names


def processes_above(pid: int) -> Iterator[Process]:
    """A process and the living processes above it, without the machine's first process."""
    for _ in range(DEPTH_MAX):
        process = read_stat(pid)
        if pid <= 1 or process is None:
            return
        yield Process(pid, process[1])
        pid = process[0]


def has_prefix(pid: int) -> bool:
    """Whether the agent that started this hook runs its commands in its session. See
    wiring/command_prefix.py."""
    return any(PREFIX in value for _, value in _read_environ(pid))


def _read_path(pid: int) -> str:
    return next((os.fsdecode(value) for name, value in _read_environ(pid) if name == b"PATH"), "")


def _read_environ(pid: int) -> list[tuple[bytes, bytes]]:
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
    return [(name, value) for name, _, value in (word.partition(b"=") for word in words)]


class Noted(msgspec.Struct, frozen=True, omit_defaults=True):
    """One agent's process. Hooks tell `profile` and `session`, the id of its CLI; both are empty
    for a process with a namespace of its own. `rests`: whether its turn is over."""

    agent: str
    pid: int
    began: str
    profile: str = ""
    session: str = ""
    rests: bool = False

    @property
    def process(self) -> Process:
        """The noted process."""
        return Process(self.pid, self.began)

    @property
    def lives(self) -> bool:
        """Whether the process still runs."""
        return process_of(self.pid) == self.process


class _File(msgspec.Struct):
    where: str
    noted: list[Noted]


class NotedProcesses:
    """Keeps the agents' processes of one daemon in a file. Used in the loop's thread."""

    def __init__(self, path: Path) -> None:
        self._file = ObservationFile(path, "the processes of sessions")
        self._where = find_place()
        self._noted: dict[str, Noted] = {}

    def read(self) -> list[Noted]:
        """The processes that the former daemon noted, if this is the same start of the machine."""
        file = self._file.read(_File)
        if file is not None and self._where and file.where == self._where:
            self._noted = {noted.agent: noted for noted in file.noted}
        return list(self._noted.values())

    def note(self, agent: str, process: Process, profile: str = "", session: str = "") -> None:
        """Note that this agent ends with this process."""
        noted = self._noted.get(agent)
        self._keep(Noted(agent, process.pid, process.began, profile, session,
                         rests=noted is not None and noted.rests))

    def rests(self, agent: str, at_rest: bool) -> None:
        """Note whether the agent's turn is over."""
        noted = self._noted.get(agent)
        if noted is not None:
            self._keep(msgspec.structs.replace(noted, rests=at_rest))

    def forget(self, agent: str) -> None:
        """Forget an agent that has ended."""
        if self._noted.pop(agent, None) is not None:
            self._write()

    def _keep(self, noted: Noted) -> None:
        if self._noted.get(noted.agent) != noted:
            self._noted[noted.agent] = noted
            self._write()

    def _write(self) -> None:
        self._file.write(_File(self._where, list(self._noted.values())))


#: Agents at rest that are remembered.
RESTING_MAX = 1_000
#: Gives the agents whose living processes a part of the daemon knows.
Source = Callable[[], Iterable[str]]


class AgentsAlive:
    """Reports for agents of one daemon whose processes are known."""

    def __init__(self, router: RequestRouter, notes: NotedProcesses) -> None:
        self._router, self._notes = router, notes
        self._sources: list[Source] = []
        #: Agents whose turn is over, the latest last.
        self._resting: dict[str, None] = {}

    def add(self, source: Source) -> None:
        """Add a source of agents with living processes."""
        self._sources.append(source)

    def beat(self) -> None:
        """Send heartbeats: an agent lives as long as its process, even if it reports nothing."""
        for agent in {agent for source in self._sources for agent in source()}:
            self._ask(rq.Heartbeat(agent=agent))

    def rests(self, agent: str, at_rest: bool) -> None:
        """Note what the last hook of this agent, or of one of its sub-agents, reported: its turn is
        over, or it is at work."""
        self._resting.pop(agent, None)
        if at_rest:
            self._resting[agent] = None
            if len(self._resting) > RESTING_MAX:
                del self._resting[next(iter(self._resting))]
        self._notes.rests(agent, at_rest)

    def resume(self) -> list[Noted]:
        """Read the processes that the former daemon noted, at the start."""
        processes = self._notes.read()
        self._resting |= {noted.agent: None for noted in processes if noted.rests}
        return processes

    def ended(self, agent: str, left: Callable[[], None] = lambda: None) -> None:
        """Report that an agent has ended with its process. If it was at work, its work is
        unfinished. Several CLIs report only the end of a turn, and no end of the session. `left` is
        called when the agent is gone."""
        self._notes.forget(agent)
        clean = agent in self._resting
        self._resting.pop(agent, None)
        self._ask(rq.Leave(agent=agent, clean=clean, reason="its process ended"), left)

    def _ask(self, request: rq.Request[Any], then: Callable[[], None] = lambda: None) -> None:
        self._router.ask(request.op, msgspec.json.encode(request), None, lambda value: then())
