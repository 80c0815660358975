"""An agent as a process at a person's terminal, and its end.

`coord attach --take-over` has become the agent's own program, so its number and the instant of its
start are unchanged. It is in the group that the person's shell gave it, which may be the shell's
own. So no group is signalled here: only processes of that terminal that were started as this agent.
The module owns no task and talks to no daemon.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from dataclasses import dataclass

from coordinator.workers.process_group import lives, mark, started_with, stat_fields

#: The time between two looks at the remaining processes while their end is awaited (seconds).
LOOK_S = 0.05
#: Fields of a process's stat: the session (of its terminal), and the terminal; 0 for none.
_SESSION, _TERMINAL = 3, 4


@dataclass(frozen=True)
class AtTerminal:
    """One process, known by its number and `mark`; `session`: its terminal's, `hangs`: whether it
    had a terminal, so that it can be seen to lose it."""

    pid: int
    mark: str | None
    agent: str
    socket: str
    session: str | None
    hangs: bool

    @classmethod
    def found(cls, pid: int, agent: str, socket: str) -> AtTerminal:
        """The process with this number, as it is now. It and its children are, or will be, started
        with `agent` and `socket`."""
        fields = stat_fields(pid)
        if fields is None:
            return cls(pid, mark(pid), agent, socket, None, False)
        return cls(pid, mark(pid), agent, socket, fields[_SESSION], fields[_TERMINAL] != "0")

    def lives(self) -> bool:
        """Whether it still runs."""
        return lives(self.pid, self.mark)

    def has_lost_its_terminal(self) -> bool:
        """Whether its terminal was closed. Programs may outlive that, but are invisible then."""
        fields = stat_fields(self.pid) if self.hangs else None
        return fields is not None and fields[_TERMINAL] == "0"

    def end(self, grace_s: float) -> None:
        """End it and its programs at the terminal by SIGTERM, after `grace_s` by SIGKILL."""
        pause = threading.Event()
        self._signal(self._left(), signal.SIGTERM, signal.SIGCONT)
        for _ in range(round(grace_s / LOOK_S)):
            if not self._left():
                return
            pause.wait(LOOK_S)
        while left := self._left():  # programs started meanwhile, too
            self._signal(left, signal.SIGKILL)
            pause.wait(LOOK_S)

    def _left(self) -> list[int]:
        first = [self.pid] if self.lives() else []
        if self.session is None:
            return first
        return first + [pid for pid in _processes() if pid != self.pid and self._is_its(pid)]

    def _is_its(self, pid: int) -> bool:
        fields = stat_fields(pid)
        return (fields is not None and fields[0] not in "ZX" and fields[_SESSION] == self.session
                and started_with(pid, "COORD_AGENT", self.agent)
                and started_with(pid, "COORD_SOCKET", self.socket))

    @staticmethod
    def _signal(pids: list[int], *numbers: int) -> None:
        for pid in pids:
            for number in numbers:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
