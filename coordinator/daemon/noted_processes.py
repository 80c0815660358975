"""The processes of agents' sessions, noted on disk: if one ends while no coordinator runs, the next
coordinator knows.

Owns `.coord/processes.json`: where it is lost, leases end by their time. A note outlives no machine
that starts anew.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from coordinator.daemon.observation_file import ObservationFile
from coordinator.daemon.session_processes import Process, process_of


class Noted(msgspec.Struct, frozen=True, omit_defaults=True):
    """One agent's process. `profile` and `session` (its CLI's): of one that its hooks have told;
    empty: of one that has a namespace of its own. `rests`: its turn is over."""

    agent: str
    pid: int
    began: str
    profile: str = ""
    session: str = ""
    rests: bool = False

    @property
    def process(self) -> Process:
        """The same."""
        return Process(self.pid, self.began)

    @property
    def lives(self) -> bool:
        """Whether it is still there."""
        return process_of(self.pid) == self.process


class _File(msgspec.Struct):
    where: str
    noted: list[Noted]


class NotedProcesses:
    """One daemon's. Used from the loop's thread."""

    def __init__(self, path: Path) -> None:
        self._file = ObservationFile(path, "the processes of sessions")
        self._where = _where()
        self._noted: dict[str, Noted] = {}

    def read(self) -> list[Noted]:
        """Those that the daemon before has noted, if their numbers still mean the same."""
        file = self._file.read(_File)
        if file is not None and self._where and file.where == self._where:
            self._noted = {noted_process.agent: noted_process for noted_process in file.noted}
        return list(self._noted.values())

    def note(self, agent: str, process: Process, profile: str = "", session: str = "") -> None:
        """This agent ends with this process."""
        noted_process = self._noted.get(agent)
        self._keep(Noted(agent, process.pid, process.began, profile, session,
                         rests=noted_process is not None and noted_process.rests))

    def rests(self, agent: str, at_rest: bool) -> None:
        """The agent's turn is over; or it is at work."""
        noted_process = self._noted.get(agent)
        if noted_process is not None:
            self._keep(msgspec.structs.replace(noted_process, rests=at_rest))

    def forget(self, agent: str) -> None:
        """It has ended."""
        if self._noted.pop(agent, None) is not None:
            self._write()

    def _keep(self, noted_process: Noted) -> None:
        if self._noted.get(noted_process.agent) != noted_process:
            self._noted[noted_process.agent] = noted_process
            self._write()

    def _write(self) -> None:
        self._file.write(_File(self._where, list(self._noted.values())))


def _where() -> str:
    """This start of this machine, and the numbers that processes have here; empty: not known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""
