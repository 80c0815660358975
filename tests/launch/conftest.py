"""What the tests of `launch` share: `coord launch` as a process, with an agent written in sh."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Repo
from tests.waiting import until

#: Short rests and no watcher: these tests are about processes.
CONFIG = "[backlog]\nbackoff_s = 0.1\n[sweep]\ninterval_s = 1\n[watch]\nenabled = false\n"


class Launch:
    """A `coord launch` that is going on."""

    def __init__(self, repo: Repo, agent: str, tasks: Path | None, *options: str,
                 env: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "coordinator.cli.main", "launch",
                   str(tasks) if tasks else "-", "--agent", "shell", "--command", agent,
                   "--json", *options]
        self.runs = repo.state.runs
        self.errors = (repo.root.parent / "launch.err").open("w+")
        self.process = subprocess.Popen(
            command, cwd=repo.root, stdout=subprocess.PIPE, stderr=self.errors, text=True,
            start_new_session=True, env=os.environ | (env or {}),
        )

    def report(self, seconds: float = 40.0) -> dict[str, Any]:
        """Wait for its end; what it printed."""
        out, _ = self.process.communicate(timeout=seconds)
        return json.loads(out)  # type: ignore[no-any-return]

    def said(self) -> str:
        return Path(self.errors.name).read_text()

    def kill(self) -> None:
        """As by the kernel: no chance to say good-bye; the agents live in groups of their own."""
        self.process.kill()
        self.process.wait()

    def kill_what_outlives_it(self) -> None:
        """The process that would tidy up after it."""
        def pid() -> int | None:
            records = (json.loads(path.read_text()) for path in self.runs.glob("*/record"))
            return next((record["outlived_by"] for record in records
                         if record["launcher"] == self.process.pid), None)

        os.kill(until(pid), signal.SIGKILL)


@pytest.fixture
def repo(make_repo: Callable[..., Repo]) -> Repo:
    return make_repo("a repo ü", config=CONFIG)


@pytest.fixture
def launch(repo: Repo) -> Iterator[Callable[..., Launch]]:
    """Start `coord launch` with `agent` (sh) on these tasks: (title, files). Not `outlived`: nobody
    tidies up after it but the next launch, or the coordinator."""
    going: list[Launch] = []

    def start(agent: str, *tasks: tuple[str, list[str]], n: int = 2,
              options: tuple[str, ...] = (), env: dict[str, str] | None = None,
              outlived: bool = True) -> Launch:
        script = repo.root.parent / "agent.sh"
        script.write_text(agent)
        file = repo.root.parent / "tasks.jsonl"
        if tasks:
            file.write_text("".join(json.dumps({"title": title, "resources": files}) + "\n"
                                    for title, files in tasks))
        made = Launch(repo, f"sh '{script}'", file if tasks else None, "-n", str(n), *options,
                      env=env)
        going.append(made)
        if not outlived:
            made.kill_what_outlives_it()
        return made

    yield start
    for one in going:
        if one.process.poll() is None:
            one.process.send_signal(signal.SIGTERM)
            one.process.send_signal(signal.SIGTERM)
            try:
                one.process.wait(15)
            except subprocess.TimeoutExpired:
                one.process.kill()
        if one.process.stdout:
            one.process.stdout.close()
        one.errors.close()


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        if Path("/proc/self/stat").exists():
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return text[text.rfind(")") + 2] not in "ZX"


def pid_in(path: Path) -> int:
    """The pid that an agent wrote to a file, as soon as it is there."""
    return int(until(lambda: path.exists() and path.read_text().strip()))
