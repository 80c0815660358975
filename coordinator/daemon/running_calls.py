"""Remembering which tool calls of agents ran when. Hooks report them, and attribution reads them.

The calls are kept in memory for `ENDED_MS` after their end. Calls that run longer than `AFTER_S`
are also noted in `.coord/calls`, so that a coordinator that starts in the middle of a call
knows whose writes it sees. If that file is lost, such a write is nobody's.

`ObservationFile` writes such a file beside the old one and then puts it in its place, without a
sync. Only attribution depends on the file, so a full disk stops nobody.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from coordinator.slices.guard.attribution import Running

#: How long an ended call is remembered (ms), and a call that never reported its end.
ENDED_MS, RUNNING_MS = 60_000, 600_000
#: The kernel's clock for files may be late by so much (ms).
CLOCK_MS = 10
#: How long after a command's end (ms) the watcher may not have seen yet what it wrote.
RACES_MS = 500
#: Calls that are remembered, and agents whose hooks were heard.
CALLS_MAX = 1_000
#: Words of a command that are remembered. If two commands ran at once, the words name the writer.
WORDS_MAX = 200


@dataclass(slots=True)
class _Call:
    running: Running
    call_id: str
    began: int
    ended: int | None = None


class RunningCalls:
    """The calls of one daemon's agents. Used in the loop's thread. Times are Unix milliseconds."""

    def __init__(self) -> None:
        self._calls: deque[_Call] = deque(maxlen=CALLS_MAX)
        #: Agent -> when its hook was heard last, in that order.
        self._heard: dict[str, int] = {}
        #: Called when a call has begun or ended.
        self.changed: Callable[[], None] = lambda: None

    def heard(self, holder: str, now_ms: int) -> None:
        """A hook of this agent was heard."""
        self._heard.pop(holder, None)
        self._heard[holder] = now_ms
        if len(self._heard) > CALLS_MAX:
            del self._heard[next(iter(self._heard))]

    def began(self, running: Running, call_id: str, now_ms: int) -> None:
        """A call is about to run."""
        self._forget(now_ms)
        self._calls.append(_Call(running, call_id, now_ms))
        self.changed()

    def ended(self, holder: str, call_id: str, now_ms: int) -> None:
        """A call has ended. Without an id it is the newest call of this agent."""
        for call in reversed(self._calls):
            if call.running.holder == holder and call.ended is None and (
                    not call_id or call.call_id == call_id):
                call.ended = now_ms
                self.changed()
                return

    def over(self, holder: str, now_ms: int) -> None:
        """All calls of this agent have ended."""
        for call in self._calls:
            if call.running.holder == holder and call.ended is None:
                call.ended = now_ms
                self.changed()

    def running(self) -> list[tuple[Running, str, int]]:
        """Calls that have not reported their end, with their ids, and since when."""
        return [(call.running, call.call_id, call.began) for call in self._calls
                if call.ended is None]

    def writes(self, holder: str, but: str | None, since_ms: int = 0) -> frozenset[str] | None:
        """The files of this agent's running writes that began since `since_ms`; None if none runs.
        `but`: the id of a call that is left out; empty for the newest call, if the agent reports no
        ids."""
        running = [call for call in self._calls if call.running.holder == holder
                   and call.ended is None and not call.running.is_command
                   and call.began >= since_ms]
        over = None if but is None else next(
            (call for call in reversed(running) if not but or call.call_id == but), None)
        files = [call.running.files for call in running if call is not over]
        return frozenset().union(*files) if files else None

    def any(self) -> bool:
        """Whether any call is remembered. Any thread may ask."""
        return bool(self._calls)

    def several(self) -> bool:
        """Whether commands of two agents run. Any thread may ask."""
        return len({call.running.holder for call in list(self._calls)
                    if call.ended is None and call.running.is_command}) > 1

    def races(self, now_ms: int) -> bool:
        """Whether a command runs, or has just ended, while another agent is active. Then it matters
        who wrote first. Any thread may ask."""
        calls = list(self._calls)
        return (any(call.running.is_command and self._end(call) > now_ms - RACES_MS for call
                    in calls)
                and sum(at_ms > now_ms - RUNNING_MS for at_ms
                        in list(self._heard.values())) > 1)

    def between(self, first_ms: int, last_ms: int) -> tuple[Running, ...]:
        """The calls that ran at any time between the two."""
        return tuple(call.running for call in self._calls
                     if call.began <= last_ms and self._end(call) >= first_ms)

    def was_busy(self, holder: str, since_ms: int) -> bool:
        """Whether a call of this agent has run at any time since."""
        return any(call.running.holder == holder and self._end(call) > since_ms
                   for call in self._calls)

    def busy_since(self, since_ms: int) -> set[str]:
        """The agents with a call that has run at any time since."""
        return {call.running.holder for call in self._calls if self._end(call) > since_ms}

    def _end(self, call: _Call) -> int:
        return call.began + RUNNING_MS if call.ended is None else call.ended

    def _forget(self, now_ms: int) -> None:
        while self._calls and self._end(self._calls[0]) < now_ms - ENDED_MS:
            self._calls.popleft()


T = TypeVar("T")
log = logging.getLogger("coord.observations")


class ObservationFile:
    """One file of one daemon.

    Args:
        what: what is noted there, for a warning: "the calls that run".
    """

    def __init__(self, path: Path, what: str) -> None:
        self._path, self._what = path, what
        self._written = b""

    def read(self, shape: type[T]) -> T | None:
        """What the former daemon wrote; None if nothing can be read."""
        try:
            data = self._path.read_bytes()
            value = msgspec.json.decode(data, type=shape)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
        self._written = data
        return value

    def write(self, value: object) -> None:
        """Write this in place of the old value."""
        text = msgspec.json.encode(value)
        if text == self._written:
            return
        beside = self._path.with_name(f".{self._path.name}.tmp")
        try:
            beside.write_bytes(text)
            beside.replace(self._path)
            self._written = text
        except OSError as bad:
            log.warning("%s could not be noted: %s", self._what, bad)


#: A call that runs longer than this (seconds) is written to the file.
AFTER_S = 0.05


class _Noted(msgspec.Struct, omit_defaults=True):
    holder: str
    call_id: str
    began: int
    is_command: bool = False
    words: list[str] = []
    files: list[str] = []


class NotedCalls:
    """Keeps the running calls of one daemon in a file. Used in the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, path: Path, calls: RunningCalls) -> None:
        self._loop, self._calls = loop, calls
        self._file = ObservationFile(path, "the calls that run")
        self._due: asyncio.TimerHandle | None = None
        #: The running calls as the file has them.
        self._noted: set[tuple[str, str]] = set()

    def resume(self, now_ms: int) -> None:
        """Take over the former daemon's calls, which have not reported their ends. From now on the
        file follows the calls."""
        for noted in self._file.read(list[_Noted]) or ():
            if now_ms - RUNNING_MS < noted.began <= now_ms:
                running = Running(noted.holder, noted.is_command, frozenset(noted.words),
                                  frozenset(noted.files))
                self._calls.began(running, noted.call_id, noted.began)
                self._noted.add((noted.holder, noted.call_id))
        self._calls.changed = self._soon

    def close(self) -> None:
        """Write what is due."""
        if self._due is not None:
            self._write()

    def _soon(self) -> None:
        if not self._noted <= {(run.holder, call_id) for run, call_id, _ in self._calls.running()}:
            self._write()  # an end at once, or a person's next write would count as the call's
        elif self._due is None:
            self._due = self._loop.call_later(AFTER_S, self._write)

    def _write(self) -> None:
        if self._due is not None:
            self._due.cancel()
        self._due = None
        running = self._calls.running()
        self._noted = {(run.holder, call_id) for run, call_id, _ in running}
        self._file.write([
            _Noted(run.holder, call_id, began, run.is_command, sorted(run.words),
                   sorted(run.files)) for run, call_id, began in running])
