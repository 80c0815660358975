"""Fixtures: a world (no process), a repository with a real daemon, and the CLI as a process."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, settings

from coordinator import settings as own_settings
from coordinator.cli.coordinators import stop
from coordinator.client import connection
from coordinator.client.client import Client
from coordinator.files import trusted
from coordinator.files.state import StateDir
from coordinator.looking import file_regions
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from tests.effort import examples
from tests.forked import Server
from tests.regions import asked
from tests.world import World

#: Commands and the daemons of this process's clients, each from a server of its own: a command may
#: wait while a client starts.
FORKS, STARTS = Server(), Server()
REAL_START = connection.start
#: The worlds of this process share a process for the grammars.
file_regions.Outlines = asked.Shared  # type: ignore[assignment,misc]
#: With `CI` in the environment the examples are the same each time (as Hypothesis has it, too): what
#: fails there is the change's doing. Everywhere else each run tries others.
settings.register_profile(
    "coord", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(50),
    print_blob=True, derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("coord")
for name in list(os.environ):
    if name.startswith("COORD_") and not name.startswith(("COORD_AGENTS_", "COORD_TEST_")):  # tests/agents
        del os.environ[name]
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # `nohup make test`: what starts here would ignore it, too
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
#: Hundreds of processes start here; without it each would compile the whole package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
#: What tests write goes into memory where there is enough of it, for on a disk they wait a third of
#: their time. `TMPDIR=/tmp make test` has them on that disk, as `make test-chaos` has.
MEMORY, ENOUGH_BYTES = "/dev/shm", 4 << 30
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK | os.X_OK) and (
        shutil.disk_usage(MEMORY).free >= ENOUGH_BYTES):
    os.environ["TMPDIR"] = tempfile.tempdir = MEMORY
#: The coordinators of these tests are told of apart from a person's own.
NOTES = tempfile.TemporaryDirectory(prefix="coord-test-notes-")
os.environ["XDG_STATE_HOME"] = NOTES.name
#: Whose home and git settings these are is nobody's business here; `test_foreign_settings.py` has
#: others on purpose. (What was put into a cache stays there: tests/agents.)
HOME = tempfile.TemporaryDirectory(prefix="coord-test-home-")
os.environ.setdefault("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
for name in list(os.environ):
    if name.startswith("GIT_") or name == "XDG_CONFIG_HOME":
        del os.environ[name]
#: Nobody's desktop is told of what these tests do (`COORD_` variables are gone above).
NEUTRAL = {"COORD_NOTIFY_DESKTOP": "false", "HOME": HOME.name, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
os.environ.update(NEUTRAL)
#: All that a program's environment needs here.
BARE = {"XDG_STATE_HOME": NOTES.name, **NEUTRAL}


def pytest_collection_finish() -> None:
    """All that was read in stays: it is looked through for garbage once, and not again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def ends_what_it_starts() -> Iterator[None]:
    """No test leaves a worker of its own behind: who runs the tests may wait for its children."""
    yield
    asked.close()
    left = []
    for one in psutil.Process().children():
        with contextlib.suppress(psutil.Error):  # it has ended just now
            left.append(" ".join(one.cmdline()))
    assert not any("coordinator." in one and ".worker" in one for one in left), left


@pytest.fixture(autouse=True)
def closes_its_worlds() -> Iterator[None]:
    """What a test has opened by itself ends with it, and so do the workers of that."""
    before = set(World.open_worlds)
    yield
    for made in World.open_worlds - before:
        made.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "repo space ü")
    yield made
    made.close()


class Staying(Client):
    """A client whose `with` ends its connections only: its agent stays, like that of a program that still runs."""

    def __exit__(self, *_: object) -> None:
        self.close()


class Repo:
    """A repository with a daemon of its own, and `coord` as a person types it.

    `forked`: its processes do not start from nothing each time (tests/forked.py).
    """

    forked = True

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = StateDir(root)

    def client(self, agent: str | None = None, **more: object) -> Client:
        return Staying(self.root, agent=agent, **more)  # type: ignore[arg-type]

    def coord(
        self, *args: str, cwd: Path | None = None, env: dict[str, str] | None = None,
        text: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "FORCE_COLOR")}
        env = {**clean, **(env or {})}
        if self.forked:
            return FORKS.run(args, cwd=cwd or self.root, env=env, text=text)
        return subprocess.run(
            [sys.executable, "-m", "coordinator.cli.main", *args], cwd=cwd or self.root,
            capture_output=True, text=True, timeout=60, check=False, input=text, env=env,
        )

    def there(self, *names: str) -> None:
        """Agents of these names are there: programs, which stay when a command of theirs has ended."""
        with self.client() as client:
            for name in names:
                client.call(rq.Register(agent=name))

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def pid(self) -> int:
        return int(self.state.lock.read_text())

    def down(self) -> None:
        """As `coord down`, without a process for it."""
        with contextlib.suppress(Refusal):  # nothing of it may be used
            stop(self.state)


def trust_settings(root: Path) -> None:
    """A person has seen what weakens protection in this repository's settings."""
    weak = own_settings.as_shown(own_settings.weakening(own_settings.read(root / own_settings.FILE)))
    trusted.trust(root, own_settings.FILE, weak, "2026-11-22T00:00:00.000Z")


@pytest.fixture
def make_repo(tmp_path: Path) -> Iterator[Callable[..., Repo]]:
    made: list[Repo] = []

    def make(name: str = "repo", git: bool = True, config: str = "") -> Repo:
        root = tmp_path / name
        root.mkdir(parents=True, exist_ok=True)
        if git:
            subprocess.run(["git", "init", "-q", str(root)], check=True)
        if config:
            (root / "coord.toml").write_text(config)
            trust_settings(root)
        made.append(Repo(root))
        return made[-1]

    yield make
    for repo in made:
        repo.down()


@pytest.fixture(autouse=True)
def _agents_end() -> Iterator[None]:
    yield
    from tests import agent_process  # which takes the bare environment from here

    agent_process.end_all()


@pytest.fixture(autouse=True)
def _starts_are_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "start", STARTS.start)


@pytest.fixture
def from_nothing(monkeypatch: pytest.MonkeyPatch, _starts_are_forked: None) -> None:
    """Every process starts as a person's does."""
    monkeypatch.setattr(Repo, "forked", False)
    monkeypatch.setattr(connection, "start", REAL_START)


@pytest.fixture
def repo(make_repo: Callable[..., Repo]) -> Repo:
    return make_repo()
