"""The calls of agents' tools that run, noted on disk: a coordinator that starts between a call's
beginning and its end knows whose the writes are that it sees.

Owns `.coord/calls.json`: where it is lost, such a write is nobody's. A call that ends at once is in
no note.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from coordinator.daemon.observation_file import ObservationFile
from coordinator.daemon.running_calls import RUNNING_MS, RunningCalls
from coordinator.slices.guard.adoption import Running

#: What runs for so long (seconds) is noted.
AFTER_S = 0.05


class _Noted(msgspec.Struct, omit_defaults=True):
    holder: str
    call_id: str
    began: int
    is_command: bool = False
    words: list[str] = []
    files: list[str] = []


class NotedCalls:
    """One daemon's. Used from the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, path: Path, calls: RunningCalls) -> None:
        self._loop, self._calls = loop, calls
        self._file = ObservationFile(path, "the calls that run")
        self._due: asyncio.TimerHandle | None = None
        #: What runs as far as the file says.
        self._noted: set[tuple[str, str]] = set()

    def resume(self, now_ms: int) -> None:
        """What the daemon before has noted runs still, as far as anybody knows. From here on what
        begins and ends is noted."""
        for noted_process in self._file.read(list[_Noted]) or ():
            if now_ms - RUNNING_MS < noted_process.began <= now_ms:
                self._calls.began(Running(noted_process.holder, noted_process.is_command,
                                          frozenset(noted_process.words),
                                          frozenset(noted_process.files)), noted_process.call_id,
                                  noted_process.began)
                self._noted.add((noted_process.holder, noted_process.call_id))
        self._calls.changed = self._soon

    def close(self) -> None:
        """The last note."""
        if self._due is not None:
            self._write()

    def _soon(self) -> None:
        if not self._noted <= {(run.holder, call_id) for run, call_id, _ in self._calls.running()}:
            self._write()  # what has ended is noted at once: else a person's write is taken for it
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
