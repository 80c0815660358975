"""The invariants, attacked: a state machine over the real service, SQLite and files, with a clock
that it moves, restarts, failing statements, and agents that write without asking.

After every step the state is held against what the design promises, judged by this file's own
plain arithmetic (never by the code under test).
"""

from __future__ import annotations

import tempfile
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from coordinator.settings import Leases, Reviewing, Settings
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso
from coordinator.words.refusals import HELD, Code, Refusal
from tests.effort import examples
from tests.world import Sabotage, World

FILES = ["a.py", "b.py", "d/a.py", "d/b.py", "d/e/c.py"]
#: Resource -> the files (or keys) that it stands for; what the product must find out by itself.
MEANS: dict[str, frozenset[str]] = {
    **{name: frozenset([name]) for name in FILES},
    "./d/../a.py": frozenset(["a.py"]),
    "d/": frozenset(f for f in FILES if f.startswith("d/")),
    "d/*.py": frozenset(f for f in FILES if fnmatchcase(f, "d/?.py")),
    "**/a.py": frozenset(["a.py", "d/a.py"]),
    "key:x": frozenset(["key:x:1", "key:x:2"]),
    "key:x:1": frozenset(["key:x:1"]),
    "key:x:2": frozenset(["key:x:2"]),
    "a.py::f": frozenset(["a.py::f"]),
    "a.py::<header>": frozenset(["a.py::f", "a.py::g"]),
    "a.py::g": frozenset(["a.py::g"]),
}
MEANS["a.py"] = MEANS["./d/../a.py"] = frozenset(["a.py", "a.py::f", "a.py::g"])
MEANS["**/a.py"] |= MEANS["a.py"]
NAMES = sorted(MEANS)
AGENTS = ["ann", "bob", "cyd"]
agents = st.sampled_from(AGENTS)
resources = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3)


def text_of(what: str) -> str:
    """A file with the regions that are leased."""
    return f"what = {what!r}\n\n\ndef f():\n    return {what!r}\n\n\ndef g():\n    return {what!r}\n"


def meaning(name: str) -> frozenset[str]:
    return MEANS[name]


class Coordinator(RuleBasedStateMachine):
    quarantine = False

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        short = Settings(leases=Leases(ttl_s=60, max_hold_s=150, line_s=40, retry_s=5),
                         review=Reviewing(quarantine=self.quarantine))
        self.world = World(Path(self.folder.name), short)
        for name in FILES:
            self.world.write(name, text_of("at first"))
        self.highest = 0
        self.version = 0
        self.last_seq = 0

    def teardown(self) -> None:
        assert self.world.replay_differs() == []
        self.world.close()
        self.folder.cleanup()

    # ------------------------------------------------------------ steps

    @rule(agent=agents, names=resources, mode=st.sampled_from(["exclusive", "shared"]),
          retry=st.booleans(), priority=st.integers(0, 2))
    def acquire(self, agent: str, names: list[str], mode: Any, retry: bool, priority: int) -> None:
        before = self.leases()
        stood = self.waiters()
        asked = frozenset().union(*map(meaning, names))
        rivals = [
            row for row in self.world.live()
            if row.locked_by != agent and meaning(row.file_path) & asked
            and not (row.mode == mode == "shared")
        ]
        request = rq.Acquire(agent=agent, resources=names, mode=mode, retry=retry,
                             priority=priority, reentrant=True)
        try:
            got = self.world.ask(request)
        except Refusal as refusal:
            if refusal.code is Code.REVIEW_OPEN:
                assert self.quarantine and self.kept_back() & asked
                return
            assert refusal.code in HELD
            assert rivals or stood, "refused with nothing in the way"
            # 2 and 8: nothing was granted, nobody else's live lease was touched
            live = {k: v for k, v in before.items() if from_iso(v[1]) > self.world.clock.at_ms}
            after = self.leases()
            # (its own may have been renewed: to ask is to be active)
            assert all(after.get(k) == v for k, v in live.items() if v[0] != agent)
            assert not [k for k, v in after.items() if k not in before and v[0] == agent
                        and k > self.highest and not stood]
            assert refusal.facts["conflicts"]
            self.note_tokens()
            return
        assert not rivals, f"granted against {rivals}"
        held = {row.file_path for row in self.world.live() if row.locked_by == agent}
        assert {lease.resource for lease in got.leases} <= held
        self.note_tokens()

    @rule(agent=agents, name=st.sampled_from(NAMES))
    def release(self, agent: str, name: str) -> None:
        mine = [r for r in self.world.live() if r.locked_by == agent and r.scope]
        before = self.leases()
        try:
            done = self.world.ask(rq.Release(agent=agent, resources=[name]))
        except Refusal as refusal:
            assert refusal.code in (Code.NOT_HOLDER, Code.UNKNOWN_LEASE, Code.STALE_TOKEN)
            assert self.leases() == before
            return
        assert all(lease.locked_by == agent for lease in done.released)
        assert mine
        self.note_tokens()

    @rule(agent=agents)
    def renew(self, agent: str) -> None:
        before = {r.fencing_token: r for r in self.world.live()}
        try:
            self.world.ask(rq.Renew(agent=agent))
        except Refusal as refusal:
            assert refusal.code is Code.STALE_TOKEN or (
                refusal.code is Code.UNKNOWN_AGENT and not self.world.view().has("agent_get", agent))
            return
        for row in self.world.live():
            old = before.get(row.fencing_token)
            assert old is None or row.expires_at >= old.expires_at
            assert row.expires_at <= row.max_until

    @rule(seconds=st.sampled_from([1, 7, 20, 59, 60, 61, 200]))
    def time_passes(self, seconds: int) -> None:
        self.world.clock.advance(seconds * 1000)

    @rule(seconds=st.sampled_from([30, 3600]))
    def machine_sleeps(self, seconds: int) -> None:
        live = {row.fencing_token for row in self.world.live()}
        self.world.sleep_machine(seconds * 1000)
        assert {row.fencing_token for row in self.world.live()} == live

    @rule()
    def sweep(self) -> None:
        self.world.ask(rq.Sweep())
        now = self.world.view().now
        assert not [row for row in self.all_leases() if row[5] <= now], "lapsed leases remain"
        self.note_tokens()

    @rule(name=st.sampled_from(FILES))
    def write_without_asking(self, name: str) -> None:
        self.version += 1
        self.world.write(name, text_of(f"version {self.version}"))

    @rule(name=st.sampled_from(FILES))
    def delete_without_asking(self, name: str) -> None:
        (self.world.root / name).unlink(missing_ok=True)

    @rule(agent=agents, clean=st.booleans())
    def leave(self, agent: str, clean: bool) -> None:
        try:
            self.world.ask(rq.Leave(agent=agent, clean=clean))
        except Refusal as refusal:
            assert refusal.code is Code.UNKNOWN_AGENT
            return
        assert not [row for row in self.world.live() if row.locked_by == agent]
        self.note_tokens()

    @rule(names=resources, reads=st.booleans(), priority=st.integers(0, 3))
    def add_task(self, names: list[str], reads: bool, priority: int) -> None:
        needs = [f"shared:{name}" if reads else name for name in names]
        self.world.ask(rq.TaskAdd(title="work", resources=needs, priority=priority))

    @rule(task=st.integers(1, 6), names=st.none() | resources, after=st.none() | st.lists(st.integers(1, 6), max_size=2), priority=st.none() | st.integers(0, 3))
    def edit_task(self, task: int, names: list[str] | None, after: list[int] | None, priority: int | None) -> None:
        before = {one.task: one for one in self.world.ask(rq.Tasks()).items}
        try:
            made = self.world.ask(rq.TaskEdit(task=f"T-{task}", resources=names, after=None if after is None else [f"T-{n}" for n in after], priority=priority))
        except Refusal as refusal:
            assert refusal.code in (Code.UNKNOWN_TASK, Code.BAD_TRANSITION, Code.INVALID)
            assert {one.task: one for one in self.world.ask(rq.Tasks()).items} == before
            return
        was = before[made.task]
        assert was.state not in ("claimed", "done", "cancelled") and made.state != "claimed"
        assert priority in (None, made.priority) and (after is None or set(made.after) == {f"T-{n}" for n in after})
        undone = [name for name in made.after if self.world.ask(rq.TaskShow(task=name)).state != "done"]
        assert made.state != "ready" or not undone, "it would begin before what it comes after"

    @rule(agent=agents)
    def claim(self, agent: str) -> None:
        try:
            got = self.world.ask(rq.TaskClaim(agent=agent))
        except Refusal as refusal:
            assert refusal.code is Code.NOTHING_TO_DO
            self.nothing_could_start(agent)
            return
        held = {row.file_path for row in self.world.live() if row.locked_by == agent}
        assert {lease.resource for lease in got.leases} <= held
        self.note_tokens()

    @rule(agent=agents, how=st.sampled_from(["done", "fail", "blocked"]))
    def finish(self, agent: str, how: str) -> None:
        for task in self.world.ask(rq.Tasks(state="claimed", limit=5)).items:
            if task.claimed_by != agent:
                continue
            try:
                if how == "done":
                    self.world.ask(rq.TaskDone(agent=agent, task=task.task))
                else:
                    blocked = ["b.py"] if how == "blocked" else []
                    self.world.ask(rq.TaskFail(agent=agent, task=task.task, blocked=blocked))
            except Refusal as refusal:
                assert refusal.code in (Code.STALE_TOKEN,)
            break
        self.note_tokens()

    @precondition(lambda self: self.leases())
    @rule(data=st.data(), agent=agents, mode=st.sampled_from(["exclusive", "exclusive", "shared"]),
          holder=st.sampled_from([None, None, *AGENTS]), exactly=st.booleans())
    def ask_the_holder(
        self, data: st.DataObject, agent: str, mode: Any, holder: str | None, exactly: bool
    ) -> None:
        theirs = sorted({row.file_path for row in self.live_of_others(agent).values()})
        name = data.draw(st.sampled_from(theirs if exactly and theirs else NAMES))
        rivals = {
            row.locked_by for row in self.world.live()
            if row.locked_by != agent and meaning(row.file_path) & meaning(name)
            and not (row.mode == mode == "shared")
        }
        live = self.live_of_others(agent)
        before = {one.request for one in self.questions()}
        request = rq.RequestFile(agent=agent, resource=name, reason="why not", mode=mode,
                                 holder=holder)
        try:
            made = self.world.ask(request)
        except Refusal as refusal:
            assert refusal.code in (Code.UNKNOWN_LEASE, Code.INVALID, Code.LIMIT)
            assert len(rivals) != 1 or holder not in (None, *rivals) or refusal.code is Code.LIMIT
            return
        assert made.holder in rivals or made.request in before, "else it was asked before"
        assert self.live_of_others(agent) == live, "to ask changes no lease"
        self.note_tokens()

    @precondition(lambda self: self.questions())
    @rule(data=st.data(), who=st.sampled_from([None, None, *AGENTS]), force=st.booleans(),
          verdict=st.sampled_from(["approve", "approve", "reject"]), still_open=st.booleans())
    def answer_who_asks(
        self, data: st.DataObject, who: str | None, force: bool, verdict: Any, still_open: bool
    ) -> None:
        pending = [one for one in self.questions() if one.status == "pending"]
        asked = data.draw(st.sampled_from(pending if still_open and pending else self.questions()))
        agent = who or asked.holder
        before = {row.fencing_token: row for row in self.world.live()}
        waiting = self.waiters()
        request = rq.RequestAnswer(agent=agent, request=asked.request, verdict=verdict, force=force)
        try:
            done = self.world.ask(request)
        except Refusal as refusal:
            closed = asked.status != "pending"
            assert (refusal.code is Code.REQUEST_CLOSED) is closed, refusal
            assert closed or agent != asked.holder or refusal.code is Code.STALE_TOKEN
            assert self.leases().keys() >= before.keys()
            return
        assert asked.status == "pending" and (force or agent == asked.holder)
        after = {row.fencing_token: row for row in self.world.live()}
        gone = [row for token, row in before.items() if token not in after]
        if verdict == "reject":
            assert not gone and done.unlock.status == "rejected"
            # Who asked is served where the lease had lapsed meanwhile.
            holds = frozenset().union(*(
                meaning(row.file_path) for row in after.values() if row.locked_by == asked.requested_by))
            assert self.waiters() == waiting or meaning(asked.resource) <= holds
            return
        assert done.unlock.status == "approved" and gone
        assert all(row.locked_by in (asked.holder, asked.requested_by) for row in gone)
        holds = frozenset().union(*(
            meaning(row.file_path) for row in after.values() if row.locked_by == asked.requested_by
        ))
        assert meaning(asked.resource) <= holds or not done.granted
        if not done.granted:
            stands = [w.acquisition_id for w in self.world.ask(rq.Locks()).waiters]
            assert asked.request in stands or meaning(asked.resource) <= holds or self.timed_out(asked.request)
        self.note_tokens()

    def timed_out(self, waiter: str) -> bool:
        """Whether its place in the line has ended by time: it may have been granted its last second by an answer."""
        return bool(self.world.db.execute(
            "SELECT 1 FROM events WHERE kind = 'waiter_left' AND data ->> 'acquisition_id' = ? AND data ->> 'reason' = 'timed out'",
            (waiter,)).fetchall())

    @precondition(lambda self: self.questions())
    @rule(data=st.data())
    def take_the_question_back(self, data: st.DataObject) -> None:
        asked = data.draw(st.sampled_from(self.questions()))
        request = rq.RequestWithdraw(agent=asked.requested_by, request=asked.request)
        # Who was told no may leave the line, too.
        stands = asked.request in [one.acquisition_id for one in self.world.ask(rq.Locks()).waiters]
        try:
            self.world.ask(request)
            assert asked.status == "pending" or stands
        except Refusal as refusal:
            assert refusal.code is Code.REQUEST_CLOSED and asked.status != "pending" and not stands
        self.note_tokens()

    @rule(verdict=st.sampled_from(["keep", "revert", "reassign"]), undo=st.booleans())
    def decide(self, verdict: Any, undo: bool) -> None:
        for review in self.world.ask(rq.Reviews()).items[:1]:
            shown = self.world.ask(rq.ReviewShow(review=review.review, content=True))
            try:
                self.world.ask(rq.ReviewDecide(review=review.review, verdict=verdict))
                if undo:
                    self.world.ask(rq.ReviewUndo(review=review.review))
            except Refusal as refusal:
                assert refusal.code in (Code.LOCKED, Code.VERSION_CHANGED, Code.BAD_TRANSITION)
            again = self.world.ask(rq.ReviewShow(review=review.review, content=True))
            # 6: whatever the verdict, both sides are still there
            for old, new in zip(shown.files, again.files, strict=True):
                assert (old.baseline, old.flagged) == (new.baseline, new.flagged)
        self.note_tokens()

    @rule()
    def crash(self) -> None:
        before = self.world.rows()
        self.world.restart()
        assert self.world.rows() == before
        self.note_tokens()

    @rule(agent=agents, names=resources, nth=st.integers(1, 12))
    def disk_refuses(self, agent: str, names: list[str], nth: int) -> None:
        self.world.ask(rq.Sweep())  # what has lapsed is closed in transactions of its own
        before = self.world.rows()
        with Sabotage(self.world.db, nth) as sabotage:
            try:
                self.world.ask(rq.Acquire(agent=agent, resources=names, reentrant=True))
            except Refusal as refusal:
                if sabotage.left <= 0 and refusal.code is not Code.REVIEW_OPEN:
                    assert refusal.code is Code.STORAGE
                    assert self.world.rows() == before
        self.note_tokens()

    @precondition(lambda self: self.version % 5 == 4)
    @rule()
    def replay(self) -> None:
        assert self.world.replay_differs() == []

    # ------------------------------------------------------------ what must hold

    @invariant()
    def one_writer(self) -> None:
        live = self.world.live()
        for i, one in enumerate(live):
            for two in live[i + 1 :]:
                if one.locked_by != two.locked_by and not one.mode == two.mode == "shared":
                    shared = meaning(one.file_path) & meaning(two.file_path)
                    assert not shared, f"{one} and {two} both hold {shared}"

    @invariant()
    def partial_work_is_kept(self) -> None:
        for (review,) in self.world.db.execute("SELECT review_id FROM reviews").fetchall():
            shown = self.world.ask(rq.ReviewShow(review=review, content=True))
            for file in shown.files:
                assert (file.baseline is None) == (file.baseline_hash is None)
                assert (file.flagged is None) == (file.flagged_hash is None)

    @invariant()
    def the_log_only_grows(self) -> None:
        row = self.world.db.execute("SELECT max(seq), count(*) FROM events").fetchone()
        assert row is not None
        last, count = int(row[0] or 0), int(row[1])
        assert last >= self.last_seq and last == count
        self.last_seq = last

    @invariant()
    def who_asks_stands_in_line(self) -> None:
        """A question is open exactly as long as its asker's place in line, and asks one who holds
        (or held until a moment ago, and nobody has looked since)."""
        standing = {str(r[0]) for r in self.world.db.execute("SELECT acquisition_id FROM waiters")}
        for row in self.world.ask(rq.Requests()).items:
            assert row.request in standing
            mine = [name for _, (who, _, name) in self.leases().items() if who == row.holder]
            assert any(meaning(name) & meaning(row.resource) for name in mine), row
        taken_back = self.world.db.execute(
            "SELECT request_id FROM unlock_requests WHERE responded_by = requested_by "
            "AND status = 'withdrawn'"
        ).fetchall()
        assert not standing & {str(row[0]) for row in taken_back}

    def questions(self) -> list[rq.Unlock]:
        return list(self.world.ask(rq.Requests(state="all")).items)

    def live_of_others(self, agent: str) -> dict[int, tuple[Any, ...]]:
        return {row.fencing_token: row for row in self.world.live() if row.locked_by != agent}

    def note_tokens(self) -> None:
        """3: tokens only rise, and none is given twice."""
        given = [
            row[0] for row in self.world.db.execute(
                "SELECT data ->> 'fencing_token' FROM events WHERE kind = 'lease_granted' "
                "ORDER BY seq"
            )
        ]
        assert given == sorted(set(given))
        self.highest = max(given, default=0)

    def nothing_could_start(self, agent: str) -> None:
        """Dispatch said no: then no ready task was free of live leases and of the line, nor of those
        that the agent has for the task that it is at: they end with that one."""
        if self.waiters():
            return
        live = self.world.live()
        for task in self.world.ask(rq.Tasks(state="ready")).items:
            needs = [(name.removeprefix("shared:"), name.startswith("shared:")) for name in task.resources]
            if {row.file_path for row in live if row.task_id is not None and row.locked_by == agent} & {name for name, _ in needs}:
                continue
            held = any(meaning(name) & meaning(row.file_path) for name, reads in needs for row in live
                       if row.locked_by != agent and not (reads and row.mode == "shared" and row.agreed_as is None))
            kept = self.kept_back(task.task)
            assert held or any(meaning(name) & kept for name, _ in needs), f"{task.task} could have started"

    def kept_back(self, task: str | None = None) -> frozenset[str]:
        """Files that reviews keep back from this task, or from whoever leases without one."""
        if not self.quarantine:
            return frozenset()
        return frozenset().union(*(meaning(row[0]) for row in self.world.db.execute(
            "SELECT f.path FROM review_files f JOIN reviews v USING (review_id) "
            "WHERE v.state = 'open' OR (v.state = 'reassigned' AND ?1 IS NOT NULL AND EXISTS "
            "(SELECT 1 FROM tasks t WHERE t.partial = v.review_id AND t.task_id <> ?1 "
            "AND t.state IN ('ready', 'failed')))", (task,))))

    def leases(self) -> dict[int, tuple[str, str, str]]:
        return {row[0]: (row[2], row[5], row[1]) for row in self.all_leases()}

    def all_leases(self) -> list[tuple[Any, ...]]:
        return self.world.db.execute(
            "SELECT fencing_token, file_path, locked_by, locked_at, task_description, expires_at "
            "FROM file_locks"
        ).fetchall()

    def waiters(self) -> int:
        return int(self.world.db.execute("SELECT count(*) FROM waiters").get)


class Quarantining(Coordinator):
    """The same with files under review given to nobody."""

    quarantine = True


Coordinator.TestCase.settings = settings(max_examples=examples(45), stateful_step_count=40)
TestCoordinator = Coordinator.TestCase
Quarantining.TestCase.settings = settings(max_examples=examples(25), stateful_step_count=40)
TestQuarantining = Quarantining.TestCase
