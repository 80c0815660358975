"""Answers between yes and no, at random: whoever holds keeps parts, or shares; others come between.

After every commit the whole state is held against the invariants (`tests/checker.py`): here is only
what the answers themselves promise.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from coordinator.settings import Leases, Settings
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.effort import examples
from tests.world import World

TWO = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
#: Resource -> what it stands for.
MEANS = {
    "d/": frozenset("fgx"), "d/a.py": frozenset("fg"), "d/b.py": frozenset("x"),
    "d/a.py::f": frozenset("f"), "d/a.py::g": frozenset("g"), "c.py": frozenset("c"),
}
agents = st.sampled_from(["ann", "bob", "cyd"])
names = st.sampled_from(sorted(MEANS))
LAWFUL = {Code.INVALID, Code.BAD_TRANSITION, Code.STALE_TOKEN}


class Sharing(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        limits = Leases(ttl_s=300, max_hold_s=900, line_s=600, offered_ttl_s=200)
        self.world = World(Path(self.folder.name), Settings(leases=limits))
        for name in ("d/a.py", "d/b.py", "c.py"):
            self.world.write(name, TWO)
        self.version = 2
        self.verdicts: list[str] = []

    def teardown(self) -> None:
        assert self.world.replay_differs() == []
        self.world.close()
        self.folder.cleanup()

    @rule(agent=agents, name=names, mode=st.sampled_from(["exclusive", "exclusive", "shared"]))
    def acquire(self, agent: str, name: str, mode: Any) -> None:
        try:
            self.world.ask(rq.Acquire(agent=agent, resources=[name], mode=mode, reentrant=True))
        except Refusal as refusal:
            assert refusal.code in (Code.LOCKED, Code.DEADLOCK)

    @precondition(lambda self: self.world.live())
    @rule(data=st.data(), agent=agents, mode=st.sampled_from(["exclusive", "shared"]))
    def ask_the_holder(self, data: st.DataObject, agent: str, mode: Any) -> None:
        lease = data.draw(st.sampled_from(self.world.live()))
        near = sorted(name for name in MEANS if MEANS[name] & MEANS[lease.file_path])
        try:
            self.world.ask(rq.RequestFile(agent=agent, resource=data.draw(st.sampled_from(near)), mode=mode,
                                          reason="why not", holder=lease.locked_by))
        except Refusal as refusal:
            assert refusal.code in (Code.UNKNOWN_LEASE, Code.LIMIT)

    @precondition(lambda self: self.open())
    @rule(data=st.data(), keep=st.lists(names, min_size=1, max_size=3, unique=True), force=st.booleans())
    def narrow(self, data: st.DataObject, keep: list[str], force: bool) -> None:
        asked = data.draw(st.sampled_from(self.open()))
        before = {row.fencing_token: row for row in self.world.live()}
        done = self.answer(asked, "narrow", force, keep)
        if done is None:
            return
        after = {row.fencing_token: row for row in self.world.live()}
        ended = [row for token, row in before.items() if token not in after and row.locked_by == asked.holder]
        new = [row for token, row in after.items() if token not in before]
        mine = [row for row in new if row.locked_by == asked.holder and row.file_path in keep]
        assert {row.file_path for row in mine} == {one.resource for one in done.kept} <= set(keep)
        for row in mine:
            assert not MEANS[row.file_path] & MEANS[asked.resource], "what was asked is not kept"
            (whole,) = sorted((old for old in ended if MEANS[row.file_path] <= MEANS[old.file_path]),
                              key=lambda old: (old.mode, old.fencing_token))[:1]
            assert (row.expires_at, row.max_until, row.mode) == (whole.expires_at, whole.max_until, whole.mode)
        for old in ended:
            assert MEANS[old.file_path] & MEANS[asked.resource], "what is not in the way stays"

    @precondition(lambda self: self.open())
    @rule(data=st.data(), force=st.booleans())
    def coexist(self, data: st.DataObject, force: bool) -> None:
        asked = data.draw(st.sampled_from(self.open()))
        before = {row.fencing_token for row in self.world.live()}
        done = self.answer(asked, "coexist", force, [])
        if done is None:
            return
        live = self.world.live()
        assert before <= {row.fencing_token for row in live} | self.replaced(asked), "nobody loses anything"
        (theirs,) = [row for row in live if row.locked_by == asked.requested_by and row.file_path == asked.resource]
        assert theirs.mode == "shared" and theirs.agreed_as is not None
        assert {row.agreed_as for row in live if row.fencing_token in {one.fencing_token for one in done.kept}} == {theirs.agreed_as}
        assert all(one.locked_by == asked.holder and one.mode == "shared" for one in done.kept) and done.kept

    def replaced(self, asked: rq.Unlock) -> set[int]:
        """Its own lesser lease on the same is the asker's no more: it has this one."""
        ended = self.world.ask(rq.Events(kind="lease_released", agent=asked.requested_by, limit=5, tail=True)).items
        return {one.data["fencing_token"] for one in ended}

    @precondition(lambda self: self.open())
    @rule(data=st.data(), verdict=st.sampled_from(["approve", "reject"]))
    def yes_or_no(self, data: st.DataObject, verdict: str) -> None:
        self.answer(data.draw(st.sampled_from(self.open())), verdict, False, [])

    def answer(self, asked: rq.Unlock, verdict: Any, force: bool, keep: list[str]) -> rq.UnlockAnswered | None:
        before = self.world.rows()
        by = "eve" if force else asked.holder
        try:
            done = self.world.ask(rq.RequestAnswer(agent=by, request=asked.request, verdict=verdict, force=force, keep=keep))
        except Refusal as refusal:
            assert refusal.code in LAWFUL, refusal
            lapsed = self.world.view().has("any_lapsed", self.world.view().now)
            assert self.world.rows() == before or lapsed or len(before["file_locks"]) != len(self.world.rows()["file_locks"])
            return None
        assert isinstance(done, rq.UnlockAnswered)
        self.verdicts.append(verdict)
        return done

    @precondition(lambda self: self.world.live())
    @rule(data=st.data())
    def write(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(self.world.live()))
        path = {"d/": "d/b.py"}.get(row.file_path, row.file_path.partition("::")[0])
        self.version += 1
        self.world.write(path, TWO.replace("return 2", f"return {self.version}"))

    @precondition(lambda self: self.world.live())
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(self.world.live()))
        self.world.ask(rq.Release(agent=lease.locked_by, resources=[lease.file_path]))

    @rule(seconds=st.sampled_from([1, 1, 70, 310]))
    def time_passes(self, seconds: int) -> None:
        self.world.clock.advance(seconds * 1000)

    @rule(agent=agents, clean=st.booleans())
    def leave(self, agent: str, clean: bool) -> None:
        try:
            self.world.ask(rq.Leave(agent=agent, clean=clean))
        except Refusal as refusal:
            assert refusal.code is Code.UNKNOWN_AGENT

    @rule()
    def sweep(self) -> None:
        self.world.ask(rq.Sweep())

    def open(self) -> list[rq.Unlock]:
        return list(self.world.ask(rq.Requests()).items)


Sharing.TestCase.settings = settings(max_examples=examples(40), stateful_step_count=40)
TestSharing = Sharing.TestCase
