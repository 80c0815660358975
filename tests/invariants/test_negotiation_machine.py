"""Unlock requests among leases and a line that never rests: who has what, and who was passed.

A narrow machine beside the wide one: few files, so that questions, answers and waiters meet.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from coordinator.settings import Leases, Settings
from coordinator.words import requests as rq
from coordinator.words.refusals import HELD, Code, Refusal
from tests.effort import examples
from tests.world import World

#: Resource -> the files that it stands for.
MEANS = {
    "a.py": frozenset("a"), "d/a.py": frozenset("x"), "d/b.py": frozenset("y"),
    "d/": frozenset("xy"), "d/*.py": frozenset("xy"),
}
AGENTS = ["ann", "bob", "cyd", "dan"]
agents = st.sampled_from(AGENTS)
names = st.sampled_from(sorted(MEANS))
modes = st.sampled_from(["exclusive", "exclusive", "exclusive", "shared"])


def meaning(resources: list[str]) -> frozenset[str]:
    return frozenset().union(*(MEANS[name] for name in resources))


class Negotiation(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        limits = Leases(ttl_s=300, max_hold_s=900, line_s=600, offered_ttl_s=200)
        self.world = World(Path(self.folder.name), Settings(leases=limits))
        for name in ("a.py", "d/a.py", "d/b.py"):
            self.world.write(name, "at first\n")
        self.version = 0

    def teardown(self) -> None:
        assert self.world.replay_differs() == []
        self.world.close()
        self.folder.cleanup()

    @rule(agent=agents, chosen=st.lists(names, min_size=1, max_size=2, unique=True), mode=modes,
          priority=st.integers(0, 2))
    def acquire(self, agent: str, chosen: list[str], mode: Any, priority: int) -> None:
        request = rq.Acquire(agent=agent, resources=chosen, mode=mode, priority=priority, reentrant=True)
        try:
            self.world.ask(request)
        except Refusal as refusal:
            assert refusal.code in HELD

    @precondition(lambda self: self.open())
    @rule(data=st.data(), agent=agents, more=names)
    def stand_before_who_asks(self, data: st.DataObject, agent: str, more: str) -> None:
        asked = data.draw(st.sampled_from(self.open()))
        if agent not in (asked.holder, asked.requested_by):
            self.acquire(agent, sorted({asked.resource, more}), "exclusive", 9)
            self.time_passes(70)

    @precondition(lambda self: self.world.live())
    @rule(data=st.data(), agent=agents, mode=modes)
    def ask_the_holder(self, data: st.DataObject, agent: str, mode: Any) -> None:
        lease = data.draw(st.sampled_from(self.world.live()))
        near = sorted(name for name in MEANS if MEANS[name] & MEANS[lease.file_path])
        request = rq.RequestFile(agent=agent, resource=data.draw(st.sampled_from(near)), mode=mode,
                                 reason="why not", holder=lease.locked_by)
        self.world.tend()  # waiting has raised some: whoever may be served by now, is
        before = self.world.live()
        try:
            self.world.ask(request)
        except Refusal as refusal:
            assert refusal.code in (Code.UNKNOWN_LEASE, Code.LIMIT)
        assert {r.fencing_token for r in self.world.live()} == {r.fencing_token for r in before}

    @precondition(lambda self: self.open())
    @rule(data=st.data(), force=st.booleans(), write=st.booleans())
    def approve(self, data: st.DataObject, force: bool, write: bool) -> None:
        asked = data.draw(st.sampled_from(self.open()))
        if write and asked.resource.endswith(".py") and "*" not in asked.resource:
            self.version += 1
            self.world.write(asked.resource, f"version {self.version}\n")
        before = {row.fencing_token: row for row in self.world.live()}
        line = self.world.ask(rq.Locks()).waiters
        by = "eve" if force else asked.holder
        request = rq.RequestAnswer(agent=by, request=asked.request, verdict="approve", force=force)
        try:
            done = self.world.ask(request)
        except Refusal as refusal:
            assert refusal.code is Code.STALE_TOKEN
            return
        after = {row.fencing_token: row for row in self.world.live()}
        given = [row for token, row in before.items() if token not in after
                 and row.locked_by == asked.holder]
        assert given and done.unlock.override is force
        if not done.granted:
            return
        new = [row for token, row in after.items() if token not in before
               and row.locked_by == asked.requested_by and row.file_path == asked.resource]
        mine = frozenset().union(*(MEANS[r.file_path] for r in before.values()
                                   if r.locked_by == asked.requested_by))
        # (Who stands in line for it besides may get it by that place.)
        mode = next(w.mode for w in line if w.acquisition_id == asked.request)
        place = min(w.position for w in line if w.agent == asked.requested_by and w.mode in ("exclusive", mode)
                    and any(MEANS[asked.resource] <= MEANS[one] for one in w.resources))
        passed = [
            w for w in line
            if w.position < place and w.agent != asked.requested_by
            and meaning(w.resources) & MEANS[asked.resource] and not meaning(w.resources) & mine
            and not mode == w.mode == "shared" and w.until > self.world.view().now
        ]
        for row in new if passed else []:
            assert MEANS[asked.resource] <= meaning([r.file_path for r in given]), "more than it had"
            assert row.max_until <= max(r.max_until for r in given), "longer than the holder could"
            assert row.expires_at <= row.max_until

    @precondition(lambda self: self.open())
    @rule(data=st.data(), verb=st.sampled_from(["reject", "withdraw"]))
    def say_no_or_take_back(self, data: st.DataObject, verb: str) -> None:
        asked = data.draw(st.sampled_from(self.open()))
        before = {row.fencing_token for row in self.world.live()}
        if verb == "reject":
            self.world.ask(rq.RequestAnswer(agent=asked.holder, request=asked.request, verdict="reject"))
        else:
            self.world.ask(rq.RequestWithdraw(agent=asked.requested_by, request=asked.request))
        assert {row.fencing_token for row in self.world.live()} >= before

    @precondition(lambda self: self.world.live())
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(self.world.live()))
        self.world.ask(rq.Release(agent=lease.locked_by, resources=[lease.file_path]))

    @rule(seconds=st.sampled_from([1, 1, 70, 310]))
    def time_passes(self, seconds: int) -> None:
        self.world.clock.advance(seconds * 1000)

    @rule(agent=agents)
    def leave(self, agent: str) -> None:
        try:
            self.world.ask(rq.Leave(agent=agent))
        except Refusal as refusal:
            assert refusal.code is Code.UNKNOWN_AGENT

    @rule()
    def sweep(self) -> None:
        self.world.ask(rq.Sweep())
        for row in self.open():
            assert row.releases, f"{row.request} asks one who holds nothing"

    # ------------------------------------------------------------ what must hold

    @invariant()
    def one_writer(self) -> None:
        live = self.world.live()
        for i, one in enumerate(live):
            for two in live[i + 1 :]:
                if one.locked_by != two.locked_by and not one.mode == two.mode == "shared":
                    assert not MEANS[one.file_path] & MEANS[two.file_path]

    @invariant()
    def who_asks_stands_in_line(self) -> None:
        line = {w.acquisition_id: w for w in self.world.ask(rq.Locks()).waiters}
        for row in self.open():
            assert line[row.request].agent == row.requested_by
            assert line[row.request].resources == [row.resource]
        shown = self.world.ask(rq.Requests(state="all")).items
        assert len({row.request for row in shown}) == len(shown)
        for row in shown:
            assert (row.status == "pending") is (row.responded_at is None)

    def open(self) -> list[rq.Unlock]:
        return list(self.world.ask(rq.Requests()).items)


Negotiation.TestCase.settings = settings(max_examples=examples(40), stateful_step_count=40)
TestNegotiation = Negotiation.TestCase
