"""The daemon's side of agents' namespaces: it tells the keeper who may write what before each
grant.

The module owns the connection to this user's keeper (namespaces/keeper.py) while a session runs.
SQLite's update hook says which leases a commit touched, and the database says what they are. If the
keeper is lost, the processes of its sessions are ended: nobody knows any more what they may write.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from coordinator.daemon import file_stamps, session_records
from coordinator.daemon.program_presence import Process, process_of
from coordinator.daemon.session_processes import processes_above
from coordinator.files.state import StateDir
from coordinator.kernel import repository_files
from coordinator.kernel.core import Service
from coordinator.namespaces import orders
from coordinator.slices.guard import write_windows
from coordinator.store.ledger import View
from coordinator.store.rows import LeaseRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.namespaces")
#: How long the keeper may take for one order (seconds).
ANSWER_S = 10.0
#: Leases that are read at once.
PAGE = 2_000
Look = Callable[[Callable[[View], Any]], Any]


class Right(NamedTuple):
    """The right of one lease to a path."""

    owner: str
    mode: str
    kind: str
    agreed: bool = False
    """Others write it, too, as they agreed."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """One session whose first process lives. `ends`: with that, its agent does. `git_asks`: before
    it changes a whole working tree."""

    agent: str
    ends: bool
    git_asks: bool
    joins: bool = False
    """Its agent was started by a person; its commands enter it one by one."""


class Listeners(NamedTuple):
    """The functions that are told of sessions.

    Attributes:
        ended: called with an agent whose session was to end with its first process, and has.
        tell: called with an agent and what it should know of what it holds.
        noted: called with an agent and the process that its session is to end with.
    """

    ended: Callable[[str], None]
    tell: Callable[[str, str], None]
    noted: Callable[[str, Process], None]


class Namespaces:
    """One daemon's. Used from the loop's thread.

    Args:
        listeners: who is told of sessions.
        protects: files, absolute, that no agent may write.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, service: Service, writer: apsw.Connection,
                 look: Look, listeners: Listeners,
                 protects: Callable[[], list[str]] = list) -> None:
        self._loop, self._service, self._db, self._look = loop, service, writer, look
        self._ended, self._tell, self._noted = listeners
        self._protects = protects
        self._sessions: dict[str, Guarded] = {}
        #: Numbers of their namespaces; also of those whose first process has ended, until they are
        #: gone: numbers are given again.
        self._numbers: dict[str, int] = {}
        #: The agent of each session, and whether it ends with its session; as on the disk.
        self._owners: dict[str, tuple[str, bool]] = {}
        self._state = StateDir(Path(service.root))
        #: Warnings about sessions that were found without a keeper.
        self.warnings: list[str] = []
        self._to: asyncio.StreamWriter | None = None
        self._number = 0
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._touched: set[int] = set()
        #: What the keeper was told: path -> fencing token -> right; and token -> paths.
        self._rights: dict[str, dict[int, Right]] = {}
        self._paths: dict[int, list[str]] = {}
        #: The (lease, path) pairs whose holder was warned that they are not covered.
        self._told: set[tuple[int, str]] = set()
        self._wired: list[str] = []
        #: Agents that were told that their commands are in no session.
        self._bare: set[str] = set()
        self._opening, self._learning, self._joining = (asyncio.Lock() for _ in range(3))
        self._reading: asyncio.Task[None] | None = None

    def agents(self) -> list[str]:
        """The agents whose own processes are in namespaces of their own."""
        return [guarded.agent for guarded in self._sessions.values() if not guarded.joins]

    def git_asks(self, agent: str | None) -> bool:
        """Whether git asks in this agent's sessions."""
        theirs = [guarded.git_asks for guarded in self._sessions.values() if guarded.agent == agent]
        return bool(theirs) and all(theirs)

    def agent_of(self, pid: int) -> str | None:
        """The agent in whose session a process is, or one that it was started by."""
        by_number = {number: key for key, number in self._numbers.items()}
        for process in processes_above(pid):
            with contextlib.suppress(OSError):
                key = by_number.get(Path(f"/proc/{process.pid}/ns/mnt").stat().st_ino)
                if key is not None and key in self._sessions:
                    return self._sessions[key].agent
        return None

    def spread(self, answers: list[Any]) -> asyncio.Future[None] | None:
        """After a commit: what has to be over before these answers are given, if anything. A grant
        that does not keep all others' commands says so."""
        if not self._touched or self._to is None:
            return None
        touched, self._touched = self._touched, set()
        return self._loop.create_task(self._spread(touched, answers))

    async def open(self, request: rq.OpenSession) -> rq.SessionOpened | Refusal:
        """Have a namespace made."""
        try:
            return await self._open(request.agent, request.path, request.directory,
                                    ends=request.ends)
        except Refusal as refusal:
            return refusal

    async def join(self, agent: str | None, request: rq.JoinSession) -> rq.SessionJoined | Refusal:
        """The namespace for a command of this agent, whose own process is in none."""
        nowhere = rq.SessionJoined(key=None, socket=None)
        if (agent is None or self.agent_of(request.pid) is not None
                or not self._service.settings.hooks.confine):
            return nowhere
        try:
            owner = self._look(lambda view: _owner(view, agent))
            async with self._joining:
                key = next((key for key, guarded in self._sessions.items()
                            if guarded.joins and guarded.agent == owner), None)
                if key is None:
                    await self._loop.run_in_executor(None, session_records.have_keeper)
                    directory = session_records.directory_of(request.pid)
                    key = (await self._open(agent, request.path, directory, joins=True)).key
        except Refusal as refusal:
            log.warning("a command of %s is in no session: %s", agent, refusal.message)
            if agent not in self._bare:
                self._bare.add(agent)
                self._tell(agent, "Your shell commands are not kept from what others hold just now "
                           f"({refusal.message.rstrip('.')}). What they change there is found "
                           "afterwards.")
            return nowhere
        self._bare.discard(agent)
        return rq.SessionJoined(key=key, socket=str(orders.socket_path()))

    async def _open(self, agent: str, path: str, directory: str, *, ends: bool = False,
                    joins: bool = False) -> rq.SessionOpened:
        """
        Raises:
            Refusal: there can be none.
        """
        key = secrets.token_urlsafe(24)
        owner = self._look(lambda view: _owner(view, agent))
        if owner != agent:
            raise Refusal(Code.INVALID, f"{agent} is not a registered agent, or a sub-agent of "
                          "one: it has no session of its own.")
        async with self._opening:
            programs = await self._loop.run_in_executor(
                None, session_records.programs_before_git, path)
            own = await self._loop.run_in_executor(
                None, session_records.own_files, self._service.root, directory)
            made = partial(self._order, do="session", key=key, root=self._root, agent=owner,
                           ends=ends, joins=joins, programs=programs, own=own)
            try:
                await self._connect()
                fields = await made()
            except Refusal as refusal:  # the one that just ended had no session any more
                if not refusal.facts.get("lost"):
                    raise
                await self._connect()
                fields = await made()
            self._tell_of(fields["left"])
            fields = await self._order(do="sessions", root=self._root)
            _, _, number, _, git_asks, _ = fields["sessions"][key]
            self._sessions[key] = Guarded(owner, ends, git_asks, joins)
            self._numbers[key] = number
            self._owners[key] = owner, ends
            await self._loop.run_in_executor(None, session_records.write, self._state,
                                             self._recorded())
        return rq.SessionOpened(key=key, socket=str(orders.socket_path()))

    async def resume(self) -> None:
        """Work at the daemon's start: protect sessions that outlived the former daemon, before
        anything is granted. Sessions without a keeper are ended."""
        try:
            with contextlib.suppress(Refusal):
                await self._connect()
                fields = await self._order(do="sessions", root=self._root)
                for key, (agent, lives, number, ends, asks, joins) in fields["sessions"].items():
                    self._sessions[key] = Guarded(agent, ends, asks, joins)
                    self._numbers[key] = number
                    self._owners[key] = agent, ends
                    if not lives:
                        self._over(key)
            for ending in await self._loop.run_in_executor(
                    None, session_records.end_uncovered, self._state, set(self._numbers.values())):
                self._end_uncovered(ending)
            self._note_sessions()
        finally:
            if not self._numbers:
                await self.close()

    def _end_uncovered(self, ending: session_records.Ended) -> None:
        """Nobody kept this session from what others hold, so it was ended."""
        agent = ending.session.agent
        if ending.processes:
            text = (f"the session of {agent} had lost its keeper and its coordinator: nobody kept "
                    f"it from what others hold, so what ran in it was ended "
                    f"({ending.processes} {'process' if ending.processes == 1 else 'processes'})")
            if ending.left:
                text += f"; still there, and uncovered: {', '.join(map(str, ending.left))}"
            log.error("%s", text)
            self.warnings.append(text)
            self._tell(agent, f"{text[0].upper()}{text[1:]}.")
        if ending.session.ends:
            self._ended(agent)

    def _recorded(self) -> list[session_records.Recorded]:
        return [session_records.Recorded(key, number, *self._owners[key])
                for key, number in self._numbers.items()]

    def _note_sessions(self) -> None:
        """Some have gone: what is noted of them too long is looked at once more, and no harm."""
        self._owners = {key: owner for key, owner in self._owners.items() if key in self._numbers}
        try:
            session_records.write(self._state, self._recorded())
        except OSError as bad:
            log.error("which sessions there are could not be noted: %s", bad)

    async def close(self) -> None:
        """Say good-bye: what is held stays mounted until the next daemon says otherwise."""
        link, self._to = self._to, None
        self._db.set_update_hook(None)
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        if link is not None:
            link.close()

    # ------------------------------------------------------------ the keeper

    @property
    def _root(self) -> str:
        return str(self._service.root)

    async def _connect(self) -> None:
        if self._to is not None:
            return
        link = orders.connect(start=False)
        reader, self._to = await asyncio.open_unix_connection(
            sock=link, limit=orders.LINE_BYTES_MAX)
        self._reading = self._loop.create_task(self._listen(reader))
        self._db.set_update_hook(self._note)
        async with self._learning:
            self._touched.clear()
            self._rights.clear()
            self._paths.clear()
            await self._learn(self._look(_all_leases))
            await self._hold({path: _writers(self._rights[path]) for path in self._rights}
                             | {f"{self._state.path}/": []}
                             | self._wiring(), all=True)

    async def protect(self) -> None:
        """The wiring has changed, so agents may not write its new files either."""
        if self._to is not None:
            with contextlib.suppress(Refusal):
                await self._hold(self._wiring())

    def _wiring(self) -> dict[str, list[str] | None]:
        """Wiring files that nobody may write; None for files that are no longer wiring."""
        before, self._wired = self._wired, self._protects()
        return {path: _writers(self._rights.get(path, {})) for path in before} | {
            path: [] for path in self._wired}

    def _note(self, kind: int, database: str, table: str, row: int) -> None:
        if table == "file_locks":
            self._touched.add(row)

    async def _spread(self, touched: set[int], answers: list[Any]) -> None:
        try:
            async with self._learning:
                held = await self._changed(touched)
                if held:
                    self._tell_of(await self._hold(held), answers)
        except Refusal as refusal:
            log.error("%s", refusal.message)

    def _tell_of(self, left: dict[str, str], answers: Sequence[Any] = ()) -> None:
        """Tell the holders, once, of leases that others' commands are not kept from: with the
        grant's own answer if there is one, otherwise by a message."""
        granted = {lease.fencing_token: answer.warnings for answer in answers if left
                   if isinstance(answer, rq.Acquired | rq.Claimed) for lease in answer.leases}
        for path, why in left.items():
            rights = self._rights.get(path) or self._rights.get(path + "/") or {}
            for token, right in rights.items():
                if (token, path) in self._told:
                    continue
                self._told.add((token, path))
                name = os.path.relpath(path, self._root)
                text = (f"{name}, which you hold, is not kept from commands of other agents "
                        f"({why}). What they change there is found afterwards.")
                if token in granted:
                    granted[token].append(text)
                else:
                    self._tell(right.owner, text)

    async def _changed(self, touched: set[int]) -> dict[str, list[str] | None]:
        """The paths whose writers differ from what the keeper was told."""
        rows: list[LeaseRow] = self._look(
            lambda view: view.each_of(LeaseRow, "lease_by_token", touched))
        before = {path: _writers(self._rights.get(path, {}))
                  for token in touched for path in self._paths.get(token, ())}
        for token in touched:
            for path in self._paths.pop(token, ()):
                self._rights[path].pop(token, None)
                self._told.discard((token, path))
        await self._learn(rows, before)
        held = {path: now for path, was in before.items()
                if (now := _writers(self._rights.get(path, {}))) != was}
        for path in before:
            if not self._rights.get(path):
                self._rights.pop(path, None)
        return held

    async def _learn(self, rows: list[LeaseRow],
                     before: dict[str, list[str] | None] | None = None) -> None:
        """Learn the places and holders of these leases."""
        owners = self._look(lambda view: {row.locked_by: _owner(view, row.locked_by)
                                          for row in rows})
        for row in rows:
            for path in await self._places(row):
                rights = self._rights.setdefault(path, {})
                if before is not None:
                    before.setdefault(path, _writers(rights))
                rights[row.fencing_token] = Right(owners[row.locked_by] or row.locked_by,
                                                  row.mode, row.kind,
                                                  row.agreed_as is not None)
                self._paths.setdefault(row.fencing_token, []).append(path)

    async def _places(self, row: LeaseRow) -> list[str]:
        if row.kind == "key" and not write_windows.is_window(row):
            return []
        if row.kind == "glob":  # what is below it is found by walking
            matches = await self._loop.run_in_executor(
                None, lambda: file_stamps.held(self._service, [row]))
            return [holding.path for holding in matches if holding.kind != "glob"]
        name = write_windows.path(row)
        place = str(repository_files.place(self._service, row.worktree, name.rstrip("/")))
        return [place + "/" if row.kind == "dir" else place]

    async def _hold(self, held: dict[str, list[str] | None], **how: bool) -> dict[str, str]:
        """Tell who may write what, in as many orders as it takes; what is not covered, and why."""
        part: dict[str, list[str] | None] = {}
        size = 0
        for path, writers in held.items():
            size += len(json.dumps({path: writers}))
            if part and size > orders.HELD_BYTES_MAX:
                await self._order(do="hold", root=self._root, held=part, more=True)
                part, size = {}, 0
            part[path] = writers
        fields = await self._order(do="hold", root=self._root, held=part, **how)
        left: dict[str, str] = fields["left"]
        return left

    async def _order(self, **order: Any) -> dict[str, Any]:
        if self._to is None:
            raise orders.lost()
        self._number = number = self._number + 1
        future = self._asked[number] = self._loop.create_future()
        self._to.write(json.dumps({"n": number, **order}).encode() + b"\n")
        try:
            result: dict[str, Any] = await asyncio.wait_for(future, ANSWER_S)
        except TimeoutError:
            self._lose()
            raise orders.lost() from None
        finally:
            self._asked.pop(number, None)
        if "lost" in result:
            raise orders.lost("it has gone")
        if "error" in result:
            raise orders.no_session(result["error"])
        return result

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                message = json.loads(line)
                if "entered" in message:
                    self._begun(message["entered"], message["pid"])
                elif "ended" in message:
                    self._over(message["ended"])
                elif "gone" in message:
                    self._numbers.pop(message["gone"], None)
                    self._note_sessions()
                elif (future := self._asked.get(message["n"])) is not None and not future.done():
                    future.set_result(message)
        except OSError:
            pass
        except ValueError as bad:
            log.error("what the sessions' keeper says is not understood: %s", bad)
        self._lose()

    def _begun(self, key: str, pid: int) -> None:
        """A process has become the first of a session."""
        guarded, process = self._sessions.get(key), process_of(pid)
        if guarded is not None and guarded.ends and process is not None:
            self._noted(guarded.agent, process)

    def _over(self, key: str) -> None:
        """The first process of a session has ended."""
        guarded = self._sessions.pop(key, None)
        if guarded is not None and guarded.ends:
            self._ended(guarded.agent)

    def _lose(self) -> None:
        """The keeper has gone, and nobody protects others' files from these sessions."""
        if self._to is None:
            return
        self._to.close()
        self._to = None
        self._db.set_update_hook(None)
        for future in self._asked.values():
            if not future.done():
                future.set_result({"lost": True})
        lost, self._numbers = self._numbers, {}
        if lost:
            log.error("the sessions' keeper has gone: the agents in them are ended")
            # The notes stay. If this daemon is killed before the agents have ended, the next one
            # ends them.
            session_records.kill(set(lost.values()))
            for key in lost:
                self._over(key)


def _all_leases(view: View) -> list[LeaseRow]:
    leases: list[LeaseRow] = []
    while page := view.each(LeaseRow, "leases_live", view.now,
                            leases[-1].fencing_token if leases else 0, None, PAGE):
        leases += page
    return leases


def _owner(view: View, agent: str) -> str | None:
    """The agent whose session this is: a sub-agent has its parent's."""
    row = view.agent(agent)
    return None if row is None else row.parent or agent


def _writers(rights: dict[int, Right]) -> list[str] | None:
    """Who may write a path; None if nobody holds it. Half a file cannot be mounted. If several hold
    regions of a file, each may write it during its own edit. Parties of an agreement may all write
    it, while none of their edits is in progress."""
    if not rights:
        return None
    windows = {right.owner for right in rights.values() if right.kind == "key"}
    owners = {right.owner for right in rights.values() if right.kind != "key"}
    if not windows and all(right.agreed for right in rights.values()):
        return sorted(owners)
    regions = {right.owner for right in rights.values() if right.kind == "region"}
    return sorted(windows or (regions if len(regions) == 1 else
                              owners if len(owners) == 1 else ()))

