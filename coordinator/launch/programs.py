"""The program that is run as an agent at a task: its command, its environment, its session.

There are three ways: from the beginning or where an earlier attempt was cut off, after a person has
handed the conversation back, and for a person at a terminal. All are the same agent with one name
and token. The module waits for nothing and reports nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from coordinator.client.client import Client
from coordinator.dialects.stream import StreamTable
from coordinator.files import runs
from coordinator.launch import attempt, pool_commands
from coordinator.launch.door import Role, without_terminal
from coordinator.launch.launch_state import LaunchState
from coordinator.launch.prompt import Isolated, compose
from coordinator.namespaces import orders
from coordinator.profiles import Profile, agent_logs
from coordinator.settings import load
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from coordinator.workers.process_group import Running

#: The prompt before the task of an agent that was cut off, in its own session.
INTERRUPTED = (
    "You were interrupted in the middle of this task, and your process was started anew. Files may "
    "have changed meanwhile, also by others: read them again before you go on. The task:\n\n"
)
#: The prompt after a person had taken the session over.
HANDED_BACK = (
    "A person had taken this conversation over, and has handed it back: from here on you work "
    "alone again, and nobody answers. What was said and done meanwhile counts. Files may have "
    "changed: read them again before you go on. Finish the task, as far as it is not finished; it "
    "was:\n\n"
)


@dataclass(frozen=True)
class Post:
    """The place and the identity of an agent at a task."""

    claimed: rq.Claimed
    client: Client
    place: Path
    isolated: Isolated | None

    @property
    def agent(self) -> str:
        """The agent's name."""
        return str(self.client.agent)


class Programs:
    """One agent's, in one launch."""

    def __init__(self, launch: LaunchState, profile: Profile,
                 ask: Callable[[rq.OpenSession], rq.SessionOpened]) -> None:
        """`ask` puts a question until it is answered."""
        self._launch, self._profile, self._ask = launch, profile, ask
        self._pools = load(launch.root).settings.pools

    def begin(self, post: Post, number: int) -> tuple[Running, str]:
        """Start it at its task. Returns also the session that it continues, if there is one.

        Raises:
            OSError: it cannot be started.
            Refusal: nor can its session be had, or the prompt is too long.
        """
        task = post.claimed.task.task
        if calls := self._list_calls(post):
            with self._alive(post):
                pool_commands.prepare(self._pools, calls)
        before = agent_logs.log_path(self._launch.run.folder, task, number - 1)
        prompt = self._prompt(post, self._read_log(before)[-2_000:] if number > 1 else "")
        session = ""
        if post.isolated is None and self._profile.resume and self._profile.stream is not None:
            session = self._interrupted(task, self._profile.stream)
        text = INTERRUPTED + prompt if session else prompt
        return self._run(post, number, prompt, text, session), session

    def end(self, post: Post) -> None:
        """Take away what its values of pools stand for, before they are given back."""
        if calls := self._list_calls(post):
            with self._alive(post):
                for trouble in pool_commands.drop(self._pools, calls):
                    self._launch.trouble(f"{post.agent}: {trouble}")

    def _list_calls(self, post: Post) -> list[pool_commands.Call]:
        return pool_commands.list_calls(post.claimed, post.place, self._launch.hard.is_set)

    def _alive(self, post: Post) -> Beating:
        """Keep the claim while a pool's command runs."""
        return Beating(lambda: self._launch.operator.call(
            rq.Heartbeat(agent=post.agent, progress=f"its environment ({time.monotonic():.0f})")),
            self._launch.limits.beat_s)

    def go_on(self, post: Post, number: int, session: str) -> Running:
        """Start it where a person has left this session.

        Raises:
            OSError, Refusal: as of `begin`.
        """
        prompt = HANDED_BACK + self._prompt(post, "")
        return self._run(post, number, prompt, prompt, session)

    def for_a_person(self, post: Post, session: str) -> Role:
        """The role that makes a person's process this agent, in this session.

        Raises:
            OSError: there is no such program.
            Refusal: no session can be had.
        """
        task = post.claimed.task
        facts = self._facts(post) | {"session": session}
        env = self._environment(post, facts)
        argv = self._profile.for_a_person(facts)
        if self._launch.sessions:
            argv = self._in_session(post, argv, env)
        return Role(argv=argv, env=without_terminal(env), place=str(post.place), task=task.task,
                    title=task.title, lands=post.isolated is not None)

    def _run(self, post: Post, number: int, prompt: str, text: str, session: str) -> Running:
        launch, task = self._launch, post.claimed.task
        file = agent_logs.prompt_path(launch.run.folder, task.task, number)
        file.write_text(prompt, "utf-8")
        facts = self._facts(post) | {"prompt": text, "prompt_file": str(file), "session": session}
        env = self._environment(post, facts)
        argv = self._profile.argv(facts, launch.options, _files(post.claimed))
        return Running(
            self._in_session(post, argv, env) if launch.sessions else argv, cwd=post.place, env=env,
            log=agent_logs.log_path(launch.run.folder, task.task, number),
            stdin=file if self._profile.prompt == "stdin" else None,
        )

    def _prompt(self, post: Post, log_tail: str) -> str:
        return compose(post.claimed, post.agent, log_tail, post.isolated,
                       hooked=self._profile.hooks is not None)

    def _facts(self, post: Post) -> dict[str, str]:
        return {"task": post.claimed.task.task, "root": str(post.place), "agent": post.agent,
                "python": sys.executable}

    def _environment(self, post: Post, facts: dict[str, str]) -> dict[str, str]:
        variables = attempt.environment(post.client, post.claimed.task, self._launch.state.socket())
        return variables | post.claimed.environment | self._profile.environment(facts)

    def _in_session(self, post: Post, argv: list[str], env: dict[str, str]) -> list[str]:
        """Wrap the command so that it cannot write files that others hold."""
        if shutil.which(post.place / argv[0] if "/" in argv[0] else argv[0],
                        path=env["PATH"]) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
        orders.connect(start=True).close()  # it may have been killed
        opened = self._ask(rq.OpenSession(
            agent=post.agent, ends=False, path=env["PATH"], directory=str(post.place)))
        return [*orders.entrance(opened, post.place), *argv]

    def _read_log(self, log: Path) -> str:
        """Return the output of an earlier attempt, read by the rules of its profile."""
        own = self._launch.run.record.wrote(log.name) == self._profile.name
        stream = self._profile.stream if own else agent_logs.stream_of(log, self._launch.root)
        return agent_logs.readable(log, stream)

    def _interrupted(self, task: str, stream: StreamTable) -> str:
        """Return the session of the last attempt, if it was cut off and ran the same program."""
        paths = agent_logs.find(self._launch.state, task)
        if not paths or runs.profile_of(paths[-1]) != self._profile.name:
            return ""
        return agent_logs.interrupted(paths[-1], stream)


def _files(claimed: rq.Claimed) -> list[str]:
    return [lease.resource for lease in claimed.leases
            if lease.kind == "file" and lease.mode == "exclusive"]


class Beating:
    """Calls `beat` every few seconds, in a thread, as long as the `with` lasts."""

    def __init__(self, beat: Callable[[], object], every_s: float) -> None:
        self._beat, self._every_s, self._over = beat, every_s, threading.Event()
        self._thread = threading.Thread(target=self._run, name="coord-landing", daemon=True)

    def __enter__(self) -> Beating:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            with contextlib.suppress(Refusal):  # whether its claim holds is asked later
                self._beat()
