"""A coordinator for a benchmark alone: a repository in a temporary directory and its real daemon.

The daemon is the installed one, started as `coord up` starts it; nothing in it knows that it is
being measured. It never touches the repository that the benchmark was started in.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from coordinator.client.client import Client
from coordinator.client.locating import connect
from coordinator.files.state import StateDir
from coordinator.words import requests as rq

START_S = 20.0


def own_environment() -> dict[str, str]:
    """The environment without the variables that speak of another coordinator, or set this one."""
    return {name: text for name, text in os.environ.items() if not name.startswith("COORD_")}


class OwnDaemon:
    """A running daemon and its repository."""

    def __init__(self, root: Path, process: subprocess.Popen[bytes]) -> None:
        self.root = root
        self.state = StateDir(root)
        self.process = process

    @property
    def socket(self) -> str:
        """Where its local door is."""
        return str(self.state.socket())

    def register(self, names: list[str]) -> list[str]:
        """The tokens of newly registered agents."""
        with Client(self.root) as client:
            return [client.call(rq.Register(agent=name, profile="bench")).token for name in names]


@contextlib.contextmanager
def own_daemon(
    folder: Path | None = None, *, git: bool = False, profile: Path | None = None,
    before: Callable[[Path], None] = lambda root: None,
) -> Iterator[OwnDaemon]:
    """A daemon in a new directory below `folder` (default: the system's temporary one).

    With `profile`, it runs under cProfile and leaves its figures there. `before` prepares the
    repository before the daemon starts.

    Raises:
        RuntimeError: it did not start; its own words are in the message.
    """
    place = Path(tempfile.mkdtemp(prefix="coord-bench-", dir=folder))
    root = place / "repository"
    root.mkdir()
    # It is nobody's business but ours.
    environment = own_environment() | {"XDG_STATE_HOME": str(place / "state")}
    if git:
        subprocess.run(["git", "init", "-q", str(root)], check=True)
    state = StateDir(root)
    state.create()
    before(root)
    watched = ["-m", "cProfile", "-o", str(profile)] if profile is not None else []
    command = [sys.executable, "-P", *watched, "-m", "coordinator.daemon", "--root", str(root)]
    errors = (state.path / "start.err").open("wb")
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, cwd=root,
        env=environment, start_new_session=True,
    )
    try:
        _await(state, process)
        yield OwnDaemon(root, process)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        errors.close()
        shutil.rmtree(place, ignore_errors=True)


def _await(state: StateDir, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        sock = connect(state)
        if sock is not None:
            sock.close()
            return
        time.sleep(0.02)
    said = (state.path / "start.err").read_text("utf-8", "replace").strip()
    raise RuntimeError(f"the benchmark's coordinator did not start: {said or 'no answer'}")
