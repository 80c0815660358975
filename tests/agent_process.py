"""What stands for an agent's own program: a process that runs what the test says, each in a shell of
its own, as hooks and commands of one session come from one process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.conftest import BARE

#: A PATH without `coord`.
PLAIN = "/usr/local/bin:/usr/bin:/bin"
_OBEYS = """
import json, subprocess, sys
for line in sys.stdin:
    command, given = json.loads(line)
    done = subprocess.run(["bash", "-c", command], input=given, capture_output=True, text=True)
    print(json.dumps([done.returncode, done.stdout, done.stderr]), flush=True)
"""


class AgentProcess:
    """One process, until the end of its test."""

    def __init__(self, cwd: Path, env: Mapping[str, str], program: str = sys.executable) -> None:
        """`program`: what it is called in the list of processes."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("COORD_")}
        self.process = subprocess.Popen([program, "-I", "-c", _OBEYS], cwd=cwd, text=True, env=clean | BARE | env,
                                        executable=sys.executable, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        _GOING.append(self)

    def runs(self, command: str, given: str = "") -> tuple[int, str, str]:
        """Exit code, output and errors of a command in it."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps([command, given]) + "\n")
        self.process.stdin.flush()
        code, out, err = json.loads(self.process.stdout.readline())
        return code, out, err

    def kill(self) -> None:
        """As a crash does."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


class TestsOwn:
    """The same in the test's process, for hooks that the test speaks itself."""

    __test__ = False

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd

    def runs(self, command: str, given: str = "") -> tuple[int, str, str]:
        """Exit code, output and errors of a command in it."""
        done = subprocess.run(["bash", "-c", command], cwd=self._cwd, input=given, capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout, done.stderr


_GOING: list[AgentProcess] = []
_SESSIONS: dict[tuple[str, str, str], AgentProcess] = {}


def of_session(root: Path, profile: str, session: str, env: Mapping[str, str] | None = None) -> AgentProcess:
    """The process of a session, the same for all of its agents."""
    key = (str(root), profile, session)
    if key not in _SESSIONS:
        _SESSIONS[key] = AgentProcess(root, {"PATH": PLAIN, **(env or {})})
    return _SESSIONS[key]


def end_all() -> None:
    """At the end of a test."""
    _SESSIONS.clear()
    while _GOING:
        _GOING.pop().kill()
