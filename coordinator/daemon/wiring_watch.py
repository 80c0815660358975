"""Watching whether the agents are still asked before they write, and git before it commits.

The wiring lies in files that every agent's own commands can reach, by `git clean -fdx` or a
checkout, and a CLI follows a change at once and silently. Hook managers replace git's hooks. A file
of coord's own that is gone is written again. Any other change is reported within a second: by an
event, by a message to all who hold something and to the agents, and by a warning as long as it
lasts. The file watcher does not see these files, because git ignores them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from coordinator.files.state import StateDir
from coordinator.kernel.core import listed
from coordinator.kernel.holders import notices
from coordinator.store import events as ev
from coordinator.store.ledger import Job, Tx, View
from coordinator.store.rows import AgentRow, LeaseRow
from coordinator.wiring import git_hooks, intact
from coordinator.words.refusals import Refusal

log = logging.getLogger("coord.wiring")
#: How often the files are looked at (seconds). A file counts as gone at the second look, because it
#: is missing for a moment while it is replaced, and `coord init --remove` notes its work at its
#: end.
LOOK_S = 0.35
#: A file that is gone again so soon (seconds) is not written a third time, and that is said.
AGAIN_S = 10.0
#: How many leases are searched for agents that are to be told.
LEASES_MAX = 2_000
#: In the place of a profile: git's own hooks.
GIT = "git"
_Stamps = dict[Path, tuple[int, int, int, int] | None]


class WiringWatch:
    """One daemon's. Used from the loop's thread; looks at the disk beside it.

    Args:
        submit: has the one writer do a job.
        look: asks the database.
        on_wired: called when what is wired has changed.
        is_kept: whether an agent keeps its hooks all the same, or needs none.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, state: StateDir, home: Path,
                 submit: Callable[[Job], None], look: Callable[[Callable[[View], Any]], Any],
                 on_wired: Callable[[], None], is_kept: Callable[[AgentRow], bool]) -> None:
        self._loop, self._state, self._home = loop, state, home
        self._submit, self._look, self._on_wired = submit, look, on_wired
        self._is_kept = is_kept
        #: Agents that have asked before a call since the files of their profile were lost: they
        #: read them once, at their start.
        self._asking: dict[str, str] = {}
        #: Agents that are unguarded now -> why.
        self.unguarded: dict[str, str] = {}
        self._stamps: _Stamps = {}
        self._doubted: dict[str, str] = {}
        self._lost: dict[str, str] = {}
        self._next_put_back: dict[str, float] = {}
        self._warnings: list[str] = []
        self._going: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begin to look."""
        self._going = self._loop.create_task(self._go_on())

    def close(self) -> None:
        """Look no more."""
        if self._going is not None:
            self._going.cancel()

    def warnings(self) -> list[str]:
        """Whose agents are unguarded now, and why."""
        return self._warnings

    def note_asking(self, profile: str, agent: str) -> None:
        """Note that this agent asks before a call, whatever became of the files of its profile."""
        if profile in self._lost:
            self._asking[agent] = profile
            self.unguarded.pop(agent, None)

    def _sessions(self, name: str) -> list[str]:
        """The agents of a profile that report by hooks, and would write unasked without them."""
        rows = self._look(lambda view: view.each(AgentRow, "agents_there"))
        return [row.agent for row in rows if row.profile == name and row.hooked_at is not None
                and row.agent not in self._asking and not self._is_kept(row)]

    async def _go_on(self) -> None:
        while True:
            try:
                await self._look_once()
                # A reader of them already reads the database.
                sessions = {name: self._sessions(name) for name in self._lost}
                self._warnings = [_describe_loss(name, why, sessions[name])
                                  for name, why in self._lost.items()]
                unguarded = {agent: self._lost[name] for name, agents in sessions.items()
                             for agent in agents}
                self.unguarded.clear()
                self.unguarded.update(unguarded)
            except OSError as bad:
                log.error("the wiring of agents could not be looked at: %s", bad)
            await asyncio.sleep(LOOK_S)

    async def _look_once(self) -> None:
        stamps = await self._loop.run_in_executor(None, _stamps, list(self._stamps) or [
            self._state.path / "wired"])
        if stamps == self._stamps and not self._doubted:
            return
        matches, self._stamps = await self._loop.run_in_executor(
            None, _judged, self._state, self._home)
        self._on_wired()
        lost = {name: why for name, why in matches.items()
                if name in self._lost or name in self._doubted}
        self._doubted = {name: why for name, why in matches.items() if name not in lost}
        for name in sorted(set(lost) - set(self._lost)):
            if await self._put_back(name, lost[name]):
                del lost[name]
                continue
            log.error("%s is unguarded: %s", name, lost[name])
            self._asking = {agent: profile for agent, profile in self._asking.items()
                            if profile != name}
            self._submit(partial(_tell, profile=name, why=lost[name],
                                 sessions=self._sessions(name)))
        for name in sorted(set(self._lost) - set(lost)):
            self._submit(partial(
                _note, what=f"{name} is guarded again: its hooks are as they were"))
        self._lost = lost

    async def _put_back(self, name: str, why: str) -> bool:
        """Whether what was gone of this profile is there again."""
        now = self._loop.time()
        if now < self._next_put_back.get(name, 0.0):
            return False
        try:
            written = await self._loop.run_in_executor(
                None, intact.put_back, self._state, self._home, name)
        except Refusal as refusal:
            log.error("%s: %s", name, refusal.message)
            return False
        if not written:
            return False
        self._next_put_back[name] = now + AGAIN_S
        log.warning("%s: %s; %s written anew", name, why, listed(written))
        self._submit(partial(_note, what=f"{name}: {why}. It was written anew; `coord init "
                             f"--remove --agent {name}` takes it out for good"))
        return not await self._loop.run_in_executor(None, _is_lost, self._state, self._home, name)


def _is_lost(state: StateDir, home: Path, name: str) -> bool:
    return name in intact.unguarded(state, home)


def _judged(state: StateDir, home: Path) -> tuple[dict[str, str], _Stamps]:
    # The stamps come first, so that a change meanwhile is looked at again.
    stamps = _stamps([*intact.watched(state, home), *git_hooks.list_watched(state.root, home)])
    why = git_hooks.find_loss(state.root)
    return intact.unguarded(state, home) | ({GIT: why} if why else {}), stamps


def _stamps(paths: list[Path]) -> _Stamps:
    result: _Stamps = {}
    for path in paths:
        try:
            status = path.stat()
            result[path] = status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns
        except OSError:
            result[path] = None
    return result


def _describe_loss(profile: str, why: str, sessions: list[str]) -> str:
    if profile == GIT:
        return git_hooks.describe_loss(why)
    whose = f"{listed(sessions)} {'is' if len(sessions) == 1 else 'are'}" if sessions else (
        f"agents of {profile} that start now are")
    return (f"{profile}: {why}: {whose} unguarded, and not asked before a write. `coord init "
            f"--agent {profile}` puts it right.")


def _note(tx: Tx, what: str) -> None:
    tx.record(ev.Noted(what=what, facts={}))


def _tell(tx: Tx, profile: str, why: str, sessions: list[str]) -> None:
    facts = {} if profile == GIT else {"agents": sessions}
    tx.record(ev.Noted(what=f"{profile} is unguarded: {why}", facts=facts))
    harm = ("A commit may take what you have not finished." if profile == GIT else
            "What it writes of yours is found afterwards, if at all.")
    holders = {lease.locked_by
               for lease in tx.each(LeaseRow, "leases_live", tx.now, 0, None, LEASES_MAX)}
    for agent in sorted({*sessions, *holders}):
        notices.post(tx, agent, "unguarded", f"{_describe_loss(profile, why, sessions)} Tell your "
                                             "person."
                     if agent in sessions else
                     f"{_describe_loss(profile, why, sessions)} {harm} Look at your files before "
                     "you continue.")
