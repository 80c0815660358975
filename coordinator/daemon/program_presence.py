"""Seeing the processes of programs, and which connections have acted with whose token.

A process is known by this start of the machine, the process namespace, its number and when it
began. After another start of the machine it has ended. In another namespace nothing is known of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from coordinator.daemon.writer import Answer
from coordinator.kernel.core import token_hash
from coordinator.store.ledger import Job, Tx, View
from coordinator.store.rows import Row

#: Tokens that are noted of one connection.
TOKENS_MAX = 1_000
#: Tokens that are remembered to be used by the processes that registered.
ACTED_MAX = 10_000


class Process(NamedTuple):
    """One process. Its beginning distinguishes it from a later process with its number."""

    pid: int
    began: str


class ProgramRow(Row, frozen=True):
    """A program whose token was not handed on, and the mark of its process."""

    agent: str
    process: str


def process_of(pid: int) -> Process | None:
    """The process that has this number now; None if there is none, or it has ended."""
    process = read_stat(pid)
    return None if process is None else Process(pid, process[1])


def read_stat(pid: int) -> tuple[int, str] | None:
    """A process's parent, and when the process began in the kernel's ticks."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text("latin-1").rpartition(")")[2].split()
    except OSError:
        return None
    return None if words[0] in "ZX" else (int(words[1]), words[19])


def find_place() -> str:
    """This start of the machine and this process namespace; empty if they are not known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


class ProgramPresence:
    """The processes and connections of one daemon's programs. Used in the loop's thread."""

    def __init__(self) -> None:
        self._place = find_place()
        #: The seal of a token -> how many open connections have acted with it.
        self._open: dict[str, int] = {}
        #: The seals of tokens with which the processes themselves have acted, the latest last.
        self._acted: dict[str, None] = {}
        self._look: Callable[[Callable[[View], object]], object] = lambda reading: None
        self._submit: Callable[[Job, Answer], None] = lambda job, answer: None

    def begin(self, look: Callable[[Callable[[View], object]], object],
              submit: Callable[[Job, Answer], None]) -> None:
        """From now on it is noted whose tokens are handed on."""
        self._look, self._submit = look, submit

    def mark(self, pid: int) -> str:
        """The mark of a process; empty if it is not seen."""
        process = process_of(pid) if pid and self._place else None
        return f"{self._place} {process.pid} {process.began}" if process is not None else ""

    def look_at(self, mark: str) -> bool | None:
        """Whether this process has ended; None if that cannot be seen."""
        boot, space, pid, began = (mark.split() + [""] * 4)[:4]
        if not (began and self._place):
            return None
        if boot != self._place.split()[0]:
            return True
        if f"{boot} {space}" != self._place:
            return None
        return process_of(int(pid)) != Process(int(pid), began)

    def is_connected(self, token_hash: str | None) -> bool:
        """Whether a connection is open that has acted with this token."""
        return token_hash in self._open

    def has_acted(self, token_hash: str | None) -> bool:
        """Whether the process that registered with this token has acted with it itself."""
        return token_hash in self._acted

    def connect(self, token: str, pid: int, *, acts: bool) -> str:
        """Note that a connection of this process (0: unknown) acts with a token. `acts`: by more
        than a registration. Returns the seal for `hang_up`."""
        seal = token_hash(token)
        self._open[seal] = self._open.get(seal, 0) + 1
        if acts:
            row = self._look(lambda view: view.first(ProgramRow, "program_of_token", seal))
            if isinstance(row, ProgramRow) and self._may_be(pid, row.process):
                self._acted[seal] = None
                if len(self._acted) > ACTED_MAX:
                    del self._acted[next(iter(self._acted))]
            elif isinstance(row, ProgramRow):
                self._submit(partial(_hand_on, agent=row.agent), lambda value: None)
        return seal

    def _may_be(self, pid: int, mark: str) -> bool:
        """Whether this process is that of the mark, as far as is seen. It may have ended since."""
        asking = self.mark(pid)
        return asking == mark if asking else pid > 0 and f" {pid} " in mark

    def hang_up(self, seal: str) -> None:
        """Note that a connection that acted with this token is closed."""
        left = self._open.get(seal, 0) - 1
        if left > 0:
            self._open[seal] = left
        else:
            self._open.pop(seal, None)

    @contextlib.contextmanager
    def acting(self, token: str | None) -> Iterator[None]:
        """Note that a request over HTTP acts with this token meanwhile."""
        seal = self.connect(token, 0, acts=True) if token is not None else ""
        try:
            yield
        finally:
            if seal:
                self.hang_up(seal)


class Speakers:
    """The tokens that one connection has acted with."""

    def __init__(self, presence: ProgramPresence) -> None:
        self._presence = presence
        self._seals: dict[str, str] = {}
        #: Tokens that registered sub-agents and did nothing else yet.
        self._registering: set[str] = set()

    def note(self, token: str, op: str, pid: int) -> None:
        """Note that this connection, of this process, acts with a token."""
        registers = op == "register"
        if token in self._seals and (registers or token not in self._registering):
            return
        if token in self._registering:
            self._registering.discard(token)
            self._presence.hang_up(self._seals.pop(token))
        if len(self._seals) < TOKENS_MAX:
            self._seals[token] = self._presence.connect(token, pid, acts=not registers)
            if registers:
                self._registering.add(token)

    def hang_up(self) -> None:
        """Forget them: the connection is closed."""
        for seal in self._seals.values():
            self._presence.hang_up(seal)
        self._seals.clear()


def _hand_on(tx: Tx, agent: str) -> None:
    tx.write_beside("program_handed", agent)
