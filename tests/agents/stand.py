"""The stand: runs a real coding agent, unmodified, against the scripted model.

It owns a run's temporary HOME, its process group and its output, and ends the whole group when the
run is over or takes too long. What the model says is a script's (`model_server`); what the agent
is told to obey is the caller's (`Extra`).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.agents import offline
from tests.agents.clis import (
    CLIS,
    Extra,
    Place,
    Start,
    base_environment,
    cache_folder,
    merged,
)
from tests.agents.conversation import Step, Writer
from tests.agents.model_server import ModelServer, Session
from tests.agents.vocabulary import GO_ON

GITCONFIG = """\
[user]
name = Agent
email = agent@localhost
[init]
defaultBranch = main
[safe]
directory = *
"""


class TookTooLong(AssertionError):
    """An agent that had to be killed. The message has what it printed last."""


@dataclass(frozen=True)
class Ran:
    """A run that is over. `code` is negative for a signal, as in subprocess."""

    code: int
    out: str
    err: str
    model: Session

    @property
    def lines(self) -> list[dict[str, object]]:
        """The JSON lines of the agent's own progress report."""
        found = []
        for line in self.out.splitlines():
            with contextlib.suppress(ValueError):
                read = json.loads(line)
                if isinstance(read, dict):
                    found.append(read)
        return found

    def tail(self, size: int = 2000) -> str:
        return f"exit code {self.code}\n-- stdout\n{self.out[-size:]}\n-- stderr\n{self.err[-size:]}"


@dataclass(frozen=True)
class Prepared:
    """An agent that could be started: its command, environment, HOME, and its model's session."""

    command: Start
    env: dict[str, str]
    home: Path
    folder: Path
    session: Session


class Running:
    """An agent at work in its own process group."""

    def __init__(self, process: subprocess.Popen[bytes], ready: Prepared) -> None:
        self.session = ready.session
        self.home = ready.home
        self._process = process
        self._folder = ready.folder

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: int) -> None:
        """To the whole group; some agents' first process ignores what the others heed."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def kill(self) -> Ran:
        """The way a crash ends it: SIGKILL for every process, no clean-up."""
        self.signal(signal.SIGKILL)
        self._process.wait()
        return self._ran()

    def wait(self, seconds: float = 180.0) -> Ran:
        """The run's end. Raises what the script raised, or `TookTooLong` after killing it all."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            ran = self.kill()
            asked = [f"{t.path} {t.reply.text[:80] if t.reply else ''}" for t in self.session.log]
            raise TookTooLong(f"still running after {seconds} s; asked: {asked}\n{ran.tail()}") from None
        self.signal(signal.SIGKILL)  # what it left behind
        ran = self._ran()
        if self.session.failure is not None:
            raise self.session.failure
        return ran

    def _ran(self) -> Ran:
        out, err = ((self._folder / name).read_text("utf-8", "replace") for name in ("out", "err"))
        self._keep_record()
        return Ran(self._process.returncode, out, err, self.session)

    def _keep_record(self) -> None:
        """All that was said, for whoever looks at a failed run's folder."""
        lines = (
            json.dumps({"path": t.path, "script": t.script, "body": t.body,
                        "reply": None if t.reply is None else repr(t.reply)})
            for t in list(self.session.log))
        (self._folder / "model.jsonl").write_text("\n".join(lines))


class Stand:
    """Runs agents for one test. `folder` keeps each run's HOME, output and record."""

    def __init__(self, folder: Path, server: ModelServer) -> None:
        self._folder = folder
        self._server = server
        self._runs: list[Running] = []
        self._prepared = 0

    def prepare(
        self, agent: str, repo: Path, script: Writer | Iterable[Step], *,
        prompt: str = "Do what is needed.", name: str = "", extra: Extra | None = None,
        others: dict[str, Writer] | None = None, home: Path | None = None,
    ) -> Prepared:
        """Everything but the process: for what starts agents by itself, like `coord launch`.

        `others` play for prompts that carry their name as `[[name]]`: sub-agents, or several
        processes in one environment. `home` is that of an earlier run, to resume its session.
        """
        self._prepared += 1
        name = name or f"{agent}-{self._prepared}"
        extra = extra or Extra()
        repo = repo.resolve()
        folder = self._folder.resolve() / name
        session = self._server.session(name, agent, str(repo), script, others)
        (folder / "tmp").mkdir(parents=True)
        home = (home or folder / "home").resolve()
        home.mkdir(exist_ok=True)
        place = Place(cache_folder() / agent, repo, home, session.url, prompt, extra)
        start = CLIS[agent](place)
        files = merged({".gitconfig": GITCONFIG, **start.home_files}, extra.home_files)
        for path, text in files.items():
            _put(home / path, text)
        for path, text in extra.repo_files.items():
            _put(repo / path, text)
        away = offline.environment() if start.proxies else {}
        env = {**base_environment(place.prefix, home, folder / "tmp"), **away, **start.env,
               **extra.env}
        return Prepared(start, env, home, folder, session)

    def start(
        self, agent: str, repo: Path, script: Writer | Iterable[Step], *,
        prompt: str = "Do what is needed.", name: str = "", extra: Extra | None = None,
        others: dict[str, Writer] | None = None, home: Path | None = None,
        before: Callable[[list[str]], list[str]] = list,
    ) -> Running:
        """Start `agent` in `repo` and come back at once. `before` puts something before its command."""
        ready = self.prepare(
            agent, repo, script, prompt=prompt, name=name, extra=extra, others=others, home=home)
        folder = ready.folder
        with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
            process = subprocess.Popen(
                before(list(ready.command.argv)), cwd=repo, env=ready.env, stdout=out, stderr=err,
                stdin=subprocess.PIPE if ready.command.person else subprocess.DEVNULL,
                start_new_session=True)
        if ready.command.person:
            _Person(process, folder / "out", ready.session).sit_down(prompt)
        self._runs.append(Running(process, ready))
        return self._runs[-1]

    def run(
        self, agent: str, repo: Path, script: Writer | Iterable[Step], *, seconds: float = 180.0,
        prompt: str = "Do what is needed.", name: str = "", extra: Extra | None = None,
        others: dict[str, Writer] | None = None, home: Path | None = None,
        before: Callable[[list[str]], list[str]] = list,
    ) -> Ran:
        """`start`, then `wait`."""
        return self.start(
            agent, repo, script, prompt=prompt, name=name, extra=extra, others=others, home=home, before=before,
        ).wait(seconds)

    def close(self) -> None:
        """Nothing that was started here outlives the test."""
        for running in self._runs:
            running.kill()


class _Person:
    """Types at an agent which wants somebody there: the task, a word after each turn, the end."""

    ASKS = re.compile(rb"^\w*> \Z", re.MULTILINE)  # the agent's prompt, and nothing after it

    def __init__(self, process: subprocess.Popen[bytes], screen: Path, session: Session) -> None:
        assert process.stdin is not None
        self._process = process
        self._keyboard = process.stdin
        self._screen = screen
        self._session = session

    def sit_down(self, task: str) -> None:
        threading.Thread(target=self._work, args=(task,), daemon=True).start()

    def _work(self, task: str) -> None:
        answered = 0
        moment = threading.Event()
        while self._process.poll() is None:
            shown = self._screen.read_bytes()
            if len(shown) == answered or not self.ASKS.search(shown):
                moment.wait(0.02)
                continue
            going_on = "/exit" if self._session.main.finished else GO_ON
            line = going_on if answered else task
            answered = len(shown)
            with contextlib.suppress(OSError):  # it may have been killed meanwhile
                self._keyboard.write(line.replace("\n", " ").encode() + b"\n")
                self._keyboard.flush()


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
