"""One repository, two working trees, attacked: whoever holds a name holds it in all trees against others, and each copy
that it has leased is judged by what was in it. What must hold after each commit is in tests/checker.py."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from coordinator.settings import Leases, Settings
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from tests.effort import examples
from tests.world import World

NAMES = ["a.py", "a.py::f", "d/", "d/b.py", "d/*.py", "**/*.py"]
FILES = ["a.py", "d/b.py"]
agents, names, trees = st.sampled_from(["ann", "bob"]), st.sampled_from(NAMES), st.sampled_from(["main", "w"])


class TwoTrees(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        top = Path(self.folder.name)
        self.world = World(top / "main", Settings(leases=Leases(ttl_s=60, max_hold_s=150, line_s=40)), git=True)
        for name in FILES:
            self.world.write(name, "def f():\n    return 0\n")
        git = ["git", "-C", str(self.world.root), "-c", "user.name=n", "-c", "user.email=e@x"]
        for words in (["add", "."], ["commit", "-qm", "x"], ["worktree", "add", "-q", "--detach", str(top / "w")]):
            subprocess.run([*git, *words], check=True, capture_output=True)
        self.cwd = {"main": str(self.world.root), "w": str(top / "w")}
        self.n = 0
        for agent in ("ann", "bob"):
            self.world.ask(rq.Register(agent=agent))

    def teardown(self) -> None:
        assert self.world.replay_differs() == []
        self.world.close()
        self.folder.cleanup()

    def asks(self, request: rq.Request[Any]) -> Any:
        with contextlib.suppress(Refusal):
            return self.world.ask(request)
        return None

    @rule(agent=agents, name=names, tree=trees, mode=st.sampled_from(["exclusive", "exclusive", "shared"]), retry=st.booleans())
    def lock(self, agent: str, name: str, tree: str, mode: Any, retry: bool) -> None:
        got = self.asks(rq.Acquire(agent=agent, resources=[name], cwd=self.cwd[tree], mode=mode, retry=retry, reentrant=True))
        if got is not None:
            there = None if tree == "main" else self.cwd[tree]
            assert [one.worktree for one in got.leases] == [there]
            assert any((row.locked_by, row.file_path, row.worktree) == (agent, name, there) for row in self.world.live())

    @rule(agent=agents, name=names, tree=trees, force=st.booleans(), keep=st.booleans())
    def unlock(self, agent: str, name: str, tree: str, force: bool, keep: bool) -> None:
        done = self.asks(rq.Release(agent=agent, resources=[name], cwd=self.cwd[tree], force=force, keep_shared=keep and not force))
        if done is not None and not keep:
            task_free = [row for row in self.world.live() if row.locked_by == agent and row.file_path == name and row.task_id is None]
            assert task_free == [], "all of that name"

    @rule(agent=agents, tree=trees)
    def claim(self, agent: str, tree: str) -> None:
        self.asks(rq.TaskClaim(agent=agent, cwd=self.cwd[tree]))

    @rule(name=names)
    def task(self, name: str) -> None:
        self.asks(rq.TaskAdd(title="t", resources=[name]))

    @rule(agent=agents, n=st.integers(1, 3), fails=st.booleans())
    def task_ends(self, agent: str, n: int, fails: bool) -> None:
        self.asks((rq.TaskFail if fails else rq.TaskDone)(agent=agent, task=f"T-{n}"))

    @rule(agent=agents, what=names | st.sampled_from(["task:T-1", "task:T-2"]), tree=trees)
    def request(self, agent: str, what: str, tree: str) -> None:
        self.asks(rq.RequestFile(agent=agent, resource=what, reason="why", cwd=self.cwd[tree]))

    @rule(agent=agents, n=st.integers(1, 4), verdict=st.sampled_from(["approve", "reject", "coexist", "narrow"]), keep=names)
    def answer(self, agent: str, n: int, verdict: Any, keep: str) -> None:
        self.asks(rq.RequestAnswer(agent=agent, request=f"U-{n}", verdict=verdict, keep=[keep] if verdict == "narrow" else []))

    @rule(file=st.sampled_from(FILES), tree=trees)
    def write(self, file: str, tree: str) -> None:
        self.n += 1
        Path(self.cwd[tree], file).write_text(f"def f():\n    return {self.n}\n")

    @rule(seconds=st.sampled_from([1, 30, 61]))
    def time_passes(self, seconds: int) -> None:
        self.world.clock.advance(seconds * 1000)
        self.world.ask(rq.Sweep())

    @rule()
    def starts_anew(self) -> None:
        self.world.restart()


TestTwoTrees = TwoTrees.TestCase
TestTwoTrees.settings = settings(max_examples=examples(15), stateful_step_count=30, deadline=None)
