"""Agents in sessions of their own: `coord run` as a person types it, and as which person."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

import coordinator
from coordinator.files.state import StateDir
from coordinator.namespaces import kernel
from tests.conftest import NEUTRAL
from tests.forked import Server
from tests.waiting import gone, until

#: The ordinary user that root makes for itself here.
OTHER = 54_321
#: A shell that does what it is told, line by line.
OBEYS = 'while read -r line; do eval "$line"; code=$?; echo; echo "=> $code"; done'
PACKAGE = Path(coordinator.__file__).resolve().parent.parent


@functools.cache
def interpreter(uid: int) -> tuple[str, dict[str, str]] | None:
    """A Python that this user may run, and what it needs to find coord."""
    become = becoming(uid)
    found = {"PYTHONPATH": f"{PACKAGE}{os.pathsep}{sysconfig.get_path('purelib')}", "PYTHONDONTWRITEBYTECODE": "1"}
    plain = f"/usr/bin/python3.{sys.version_info.minor}"
    for program, env in ((sys.executable, {}), (plain, found)):
        with contextlib.suppress(OSError):
            # (through a shell: setpriv itself may still go where only root may)
            done = subprocess.run([*become, "sh", "-c", '"$0" -c "import coordinator.client.client"', program], cwd="/",
                                  check=False, capture_output=True, env={**env, "PATH": os.environ["PATH"]})
            if done.returncode == 0:
                return program, env
    return None


@functools.cache
def server(uid: int) -> Server:
    """What runs this user's commands, but for agents and what is started in their sessions."""
    found = interpreter(uid)
    assert found is not None, "or this user is not tried"
    return Server([*becoming(uid), found[0]], {**os.environ, **found[1]})


def becoming(uid: int) -> list[str]:
    """What stands before a command that is run as this user."""
    return [] if uid == os.getuid() else ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


class Agent:
    """A shell that does in its session what the test says, line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []

    def does(self, command: str) -> int:
        """Its exit code; `said` has what it printed."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(command.replace("\n", " ") + "\n")
        self.process.stdin.flush()
        said = b""
        while not (ended := re.search(rb"\n=> (\d+)\n$", said)):
            assert select.select([self.process.stdout], [], [], 30)[0], f"it says nothing more: {said!r}"
            piece = os.read(self.process.stdout.fileno(), 65536)
            assert piece, f"it has ended: {said!r}"
            said += piece
        self.said = said[: ended.start()].decode().splitlines()
        return int(ended[1])

    def ends(self) -> int:
        """As when its person ends it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(15)


class Stand:
    """A repository of one user, with a keeper of its own."""

    def __init__(self, folder: Path, uid: int) -> None:
        self.uid = uid
        self.become = becoming(uid)
        self._server = server(uid)
        found = interpreter(uid)
        assert found is not None, "or this user is not tried"
        self.python, more = found
        self.root = folder / "a repo ü"
        self.home = folder / "home"
        self.env = {**NEUTRAL, **more, "HOME": str(self.home), "XDG_STATE_HOME": str(self.home), "LC_ALL": "C.UTF-8",
                    "PATH": os.environ["PATH"]}
        for made in (folder, self.root, self.home):
            made.mkdir(exist_ok=True)
            made.chmod(0o755 if made != self.home else 0o700)
            os.chown(made, uid, uid)
        self.run("git", "init", "-q", ".")
        self.state = StateDir(self.root)
        self._agents: list[Agent] = []

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self.become, *words], cwd=self.root, env=self.env, capture_output=True, text=True,
                              timeout=60, check=False)

    def coord(self, *words: str, cwd: str = ".") -> str:
        done = self.tries(*words, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def tries(self, *words: str, cwd: str = ".") -> subprocess.CompletedProcess[str]:
        """A command that may be refused."""
        return self._server.run(words, cwd=self.root / cwd, env=self.env, text=None)

    def asks(self, *words: str) -> Any:
        return json.loads(self.coord(*words, "--json"))

    def write(self, path: str, text: str) -> None:
        """As this user, outside of all sessions."""
        self.run("sh", "-c", 'mkdir -p "$(dirname "$1")"; printf %s "$2" > "$1"', "sh", path, text)

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def agent(self, program: str = OBEYS, cwd: Path | None = None, *, starts: bool = False) -> Agent:
        """One that `coord run` has started; it works already.

        Args:
            starts: no coordinator runs before, and `coord run` starts it, from nothing.
        """
        if not starts and not self._agents:
            self.tries("up")
        process = subprocess.Popen(
            [*self.become, self.python, "-P", "-m", "coordinator.cli.main", "run", "shell", "--", "sh", "-c", program],
            cwd=cwd or self.root, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors(), text=True)
        made = Agent(process)
        self._agents.append(made)
        if program == OBEYS:
            assert made.does("true") == 0
        return made

    def _errors(self) -> IO[str]:
        return (self.home / "stderr").open("a")

    def errors(self) -> str:
        return (self.home / "stderr").read_text()

    def keeper(self) -> int:
        return int((self.home / "coord/namespaces.lock").read_text())

    def daemon(self) -> int:
        return int(self.state.lock.read_text())

    def left(self) -> list[int]:
        """Processes that work in this repository, but for its coordinator."""
        daemon = self.daemon() if self.state.lock.exists() else 0
        found = []
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{name}/cwd").startswith(str(self.root)) and int(name) != daemon and (
                        not gone(int(name))):
                    found.append(int(name))
        return found

    def close(self) -> None:
        for one in self._agents:
            one.process.kill()
            one.process.wait()
            for pipe in (one.process.stdin, one.process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
        for pid in self.left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.tries("down")
        with contextlib.suppress(OSError, ValueError):
            pid = self.keeper()
            os.kill(pid, signal.SIGKILL)
            until(lambda: gone(pid))


def can_have_sessions() -> bool:
    """Whether this machine lets this user have namespaces at all."""
    return not kernel.refused()


def can_be_another() -> bool:
    """Whether an ordinary user can be had: only root can make one."""
    return os.getuid() == 0 and shutil.which("setpriv") is not None and interpreter(OTHER) is not None


#: For what is the same whoever it is.
ONCE = pytest.mark.parametrize("stand", ["anybody"], indirect=True)


@pytest.fixture(params=["itself", pytest.param("ordinary", marks=pytest.mark.slow)])
def stand(request: pytest.FixtureRequest) -> Iterator[Stand]:
    """As whoever runs the tests; and, if that is root, as an ordinary user."""
    if not can_have_sessions():
        pytest.skip("no namespaces on this machine")
    other = can_be_another()
    if request.param == "ordinary" and not other:
        pytest.skip("only root can be somebody else, if there is a Python that this user may run")
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="coord-test-session-")))
    made = Stand(folder, OTHER if other and request.param != "itself" else os.getuid())
    yield made
    made.close()
    shutil.rmtree(folder)
