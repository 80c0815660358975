"""Promises that a small mistake would break without a sound: what a refusal leaves behind, what an
instant decides, what is given back, what ends with what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordinator.files.content import digest
from coordinator.kernel import compaction, unserved
from coordinator.rules.backlog import TRANSITIONS
from coordinator.settings import Leases, Settings
from coordinator.slices.backlog import dispatch
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, iso
from coordinator.words.refusals import Code, Refusal
from tests.effort import examples
from tests.world import World


def noted(world: World) -> list[str]:
    return [one.data["what"] for one in world.ask(rq.Events(kind="noted")).items]


# ------------------------------------------------------------ a refusal changes nothing

@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("records", [True, False])
def test_what_was_recorded_before_a_refusal_is_gone_and_the_rest_stays(world: World, batch: int, records: bool) -> None:
    """In a batch, too, wherever it stands in it, and whatever it fails with."""
    for bad in (Refusal(Code.INVALID, "No."), ValueError("a bug")):
        for at in range(batch):
            before = noted(world)

            def good(tx: Tx, n: int) -> int:
                tx.record(ev.Noted(what=f"good {n}", facts={}))
                return n

            def refuses(tx: Tx, bad: Exception = bad) -> None:
                if records:
                    tx.record(ev.Noted(what="of a refusal", facts={}))
                raise bad

            jobs: list[Any] = [refuses if n == at else (lambda tx, n=n: good(tx, n)) for n in range(batch)]
            answers = world.ledger.run_all(jobs, world.clock.now_ms())
            world.bugs.met.clear()
            refusal = answers.pop(at)
            assert refusal.code is (Code.INVALID if isinstance(bad, Refusal) else Code.INTERNAL)
            others = [n for n in range(batch) if n != at]
            assert answers == others
            assert sorted(noted(world)[len(before):]) == [f"good {n}" for n in others]
    assert world.replay_differs() == []


@pytest.mark.parametrize("how", ["name", "token", "acquisition", "task"])
def test_a_right_that_has_lapsed_is_neither_released_nor_renewed(world: World, how: str) -> None:
    task = world.task("t", "a.py")
    world.ask(rq.TaskClaim(agent="ann", task=task))
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    lease = world.acquire("ann", "a.py", ttl_s=5, task=task).leases[0]
    named: dict[str, Any] = {"name": {"resources": ["a.py"]}, "token": {"resources": ["a.py"], "lease_token": lease.lease_token},
                             "acquisition": {"acquisition_id": lease.acquisition_id}, "task": {"task": task}}[how]
    world.clock.advance(4_999)
    if how != "task":
        wrong = world.refused(rq.Renew(agent="ann", **{**named, "resources": ["a.py"], "lease_token": "0" * 32}))
        assert wrong.code is Code.STALE_TOKEN
        renewed = world.ask(rq.Renew(agent="ann", ttl_s=5, **named))
        assert renewed.leases[0].expires_at == iso(world.clock.now_ms() + 5_000)
        assert renewed.leases[0].lease_token == lease.lease_token
    world.clock.advance(5_000)
    rows, last = world.rows(), world.ledger.seq
    assert world.refused(rq.Release(agent="ann", **named)).code is Code.STALE_TOKEN
    if how != "task":
        assert world.refused(rq.Renew(agent="ann", **named)).code is Code.STALE_TOKEN
    assert world.rows() == rows and world.ledger.seq == last


@pytest.mark.parametrize("again", [["a.py"], ["./"], ["d/", "a.py"], ["*.py"]])
def test_what_one_lets_lapse_and_takes_again_is_flagged_first(world: World, again: list[str]) -> None:
    """One's own as well as another's: the bytes at that moment are kept, then it begins anew."""
    for name in ("a.py", "d/b.py"):
        world.write(name, "1\n")
    old = world.acquire("ann", "a.py", "d/b.py", ttl_s=5).leases[0]
    world.write("a.py", "partial\n")
    world.clock.advance(5_000)
    new = world.acquire("ann", *again)
    assert min(one.fencing_token for one in new.leases) > old.fencing_token
    assert not any(one.reentrant for one in new.leases)
    (review,) = world.ask(rq.Reviews()).items
    assert review.agent == "ann" and [one.path for one in world.ask(rq.ReviewShow(review=review.review)).files] == ["a.py"]
    assert new.warnings == ["a.py holds partial work under review R-1; see `coord review show R-1`."]


@pytest.mark.parametrize("wait_s", [0.0, 0.5, 5.0])
@pytest.mark.parametrize("retry", [True, False])
def test_only_who_wants_to_stands_in_line(world: World, wait_s: float, retry: bool) -> None:
    world.acquire("bob", "a.py")
    refusal = world.refused(rq.Acquire(agent="ann", resources=["a.py"], wait_s=wait_s, retry=retry))
    waits = retry or wait_s > 0
    assert len(world.ask(rq.Locks()).waiters) == waits == ("acquisition_id" in refusal.facts and refusal.facts["acquisition_id"] is not None)


# ------------------------------------------------------------ for how long

@settings(max_examples=examples(30), deadline=None)
@given(ttl=st.integers(1, 400), hold=st.integers(1, 400), steps=st.lists(st.tuples(st.integers(1, 200), st.none() | st.integers(1, 400)), max_size=6))
def test_a_lease_lasts_as_long_as_it_may(ttl: int, hold: int, steps: list[tuple[int, int | None]],
                                         tmp_path_factory: pytest.TempPathFactory) -> None:
    """Its TTL, also where that is longer than `max_hold`; by renewals up to `max_hold`, never shorter."""
    world = World(tmp_path_factory.mktemp("w") / "r", Settings(leases=Leases(max_hold_s=hold, ttl_max_s=400, ttl_s=min(ttl, 400))))
    began = world.clock.now_ms()
    until = from_iso(world.acquire("ann", "a.py", ttl_s=ttl).leases[0].expires_at)
    most = began + 1000 * max(ttl, hold)
    assert until == began + 1000 * ttl
    for pause, renewal in steps:
        world.clock.advance(1000 * pause)
        now = world.clock.now_ms()
        request = rq.Renew(agent="ann", resources=["a.py"], ttl_s=renewal)
        if now >= until:
            assert world.refused(request).code in (Code.STALE_TOKEN, Code.UNKNOWN_LEASE)
            break
        new = from_iso(world.ask(request).leases[0].expires_at)
        assert new == max(until, min(now + 1000 * (renewal or ttl), most))
        until = new
    world.close()


def test_what_slept_gets_exactly_that_time_back_and_the_dead_stay_dead(world: World) -> None:
    world.ask(rq.Register(agent="quiet", silence_s=60))
    world.ask(rq.Register(agent="mute", silence_s=10))
    world.acquire("dead", "d.py", ttl_s=20)
    world.acquire("ann", "a.py", ttl_s=50)
    task = world.task("t", "b.py")
    world.ask(rq.TaskClaim(agent="bob", task=task))
    world.refused(rq.Acquire(agent="carl", resources=["a.py"], wait_s=40))
    world.clock.advance(20_000)
    before = {row.file_path: row for row in world.live()}
    waits = world.db.execute("SELECT until FROM waiters").fetchall()
    claim = world.db.execute("SELECT claim_until, claim_max FROM tasks WHERE task_id = ?", (task,)).fetchone()
    world.sleep_machine(3_600_000)
    after = {row.file_path: row for row in world.live()}
    assert set(after) == {"a.py", "b.py"} == set(before)
    for name, row in after.items():
        assert from_iso(row.expires_at) == from_iso(before[name].expires_at) + 3_600_000
        assert from_iso(row.max_until) == from_iso(before[name].max_until) + 3_600_000
    (waits_now,) = world.db.execute("SELECT until FROM waiters").fetchall()
    assert from_iso(waits_now[0]) == from_iso(waits[0][0]) + 3_600_000
    claim_now = world.db.execute("SELECT claim_until, claim_max FROM tasks WHERE task_id = ?", (task,)).fetchone()
    assert [from_iso(x) for x in claim_now] == [from_iso(x) + 3_600_000 for x in claim]  # type: ignore[arg-type, union-attr]
    swept = world.ask(rq.Sweep())
    assert swept.stale == ["mute"], "its silence had lasted too long before; the other's begins anew"
    assert [one.resource for one in swept.lapsed] == ["d.py"]
    world.clock.advance(59_999)
    world.ask(rq.Heartbeat(agent="ann"))
    assert "quiet" not in world.ask(rq.Sweep()).stale
    world.clock.advance(1)
    assert world.ask(rq.Sweep()).stale == ["quiet"]
    assert world.replay_differs() == []


def test_an_agent_may_be_silent_for_as_long_as_a_lease_may_last(world: World) -> None:
    most = world.settings.leases.ttl_max_s
    for n, (silence, lawful) in enumerate([(1, True), (most, True), (0.5, False), (most + 1, False)]):
        request = rq.Register(agent=f"a{n}", silence_s=silence)
        if lawful:
            world.ask(request)
        else:
            assert world.refused(request).code is Code.INVALID


# ------------------------------------------------------------ tasks

def test_a_task_may_need_some_only_to_read(world: World) -> None:
    one, two = (world.task(name, "shared:k.py", f"{name}.py") for name in ("one", "two"))
    assert world.ask(rq.TaskShow(task=one)).resources == ["shared:k.py", "one.py"]
    world.ask(rq.TaskClaim(agent="ann", task=one))
    world.ask(rq.TaskClaim(agent="bob", task=two))
    assert sorted((row.file_path, row.mode) for row in world.live()) == [
        ("k.py", "shared"), ("k.py", "shared"), ("one.py", "exclusive"), ("two.py", "exclusive")]


def test_a_cancelled_claim_is_over_and_counts_as_tried(world: World) -> None:
    task = world.task("t", "a.py")
    world.ask(rq.TaskClaim(agent="ann", task=task))
    refusal = world.refused(rq.TaskCancel(task=task))
    assert refusal.code is Code.BAD_TRANSITION and refusal.facts["state"] == "claimed" and "claimed by ann" in refusal.message
    shown = world.ask(rq.TaskCancel(task=task, force=True, reason="not wanted"))
    assert (shown.state, shown.attempts, shown.result) == ("cancelled", 1, "not wanted")
    assert world.live() == []


def test_only_the_verbs_of_a_state_lead_out_of_it(world: World) -> None:
    """Against the table: each verb that a person has, in each state that one can bring about."""
    def at(state: str) -> str:
        task = world.task(state, f"{state}.py")
        if state != "ready":
            world.ask(rq.TaskClaim(agent="ann", task=task))
        if state == "done":
            world.ask(rq.TaskDone(agent="ann", task=task))
        elif state == "cancelled":
            world.ask(rq.TaskCancel(task=task, force=True))
        elif state == "failed":
            world.ask(rq.TaskFail(agent="ann", task=task, reason="no"))
        return task

    for state in ("ready", "done", "cancelled", "failed"):
        for verb, make in (("cancel", rq.TaskCancel), ("retry", rq.TaskRetry)):
            task = at(state)
            assert world.ask(rq.TaskShow(task=task)).state == state
            wanted = TRANSITIONS.get((state, verb))
            if wanted is None:
                refusal = world.refused(make(task=task))
                assert refusal.code is Code.BAD_TRANSITION and task in refusal.message
            else:
                assert world.ask(make(task=task)).state == wanted
            if world.ask(rq.TaskShow(task=task)).state not in ("cancelled", "done"):
                world.ask(rq.TaskCancel(task=task))


@settings(max_examples=examples(20), deadline=None)
@example(size=3, edges={(0, 2)}, ends=[(2, "cancel"), (2, "retry")])
@given(size=st.integers(2, 7), edges=st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=10),
       ends=st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["done", "cancel", "retry"])), max_size=9))
def test_what_comes_after_follows_however_long_the_chain(size: int, edges: set[tuple[int, int]], ends: list[tuple[int, str]],
                                                         tmp_path_factory: pytest.TempPathFactory) -> None:
    world = World(tmp_path_factory.mktemp("w") / "r")
    after = {n: sorted({a for a, b in edges if b == n and a < n < size}) for n in range(size)}
    ids = []
    for n in range(size):
        ids.append(world.task(f"t{n}", f"f{n}.py", after=[ids[a] for a in after[n]]))
    state = dict.fromkeys(range(size), "?")

    def settle() -> None:
        for n in range(size):  # in order: each comes after earlier ones only
            if state[n] in ("done", "cancelled"):
                continue
            before = {state[a] for a in after[n]}
            state[n] = ("blocked" if before & {"cancelled", "blocked", "dead"} else
                        "ready" if before <= {"done"} else "pending")

    settle()
    for n, what in ends:
        if n >= size:
            continue
        if what == "done" and state[n] == "ready":
            world.ask(rq.TaskClaim(agent="ann", task=ids[n]))
            world.ask(rq.TaskDone(agent="ann", task=ids[n]))
            state[n] = "done"
        elif what == "cancel" and state[n] not in ("done", "cancelled"):
            world.ask(rq.TaskCancel(task=ids[n]))
            state[n] = "cancelled"
        elif what == "retry" and state[n] == "cancelled":
            world.ask(rq.TaskRetry(task=ids[n]))
            state[n] = "?"
        settle()
        shown = {m: world.ask(rq.TaskShow(task=ids[m])).state for m in range(size)}
        assert shown == state
    assert world.replay_differs() == []
    world.close()


def test_the_files_of_the_next_candidates_are_looked_at_together(world: World) -> None:
    ids = [world.task(f"t{n}", f"f{n}.py") for n in range(3)]
    def names(task: str | None) -> list[str]:
        return sorted(str(need).split("'")[1] for need in dispatch.needs(world.view(), task))

    assert names(ids[1]) == ["f1.py"] and names(None) == ["f0.py", "f1.py", "f2.py"]


def test_who_is_in_the_middle_of_something_is_offered_nothing_that_lies_in_it(world: World) -> None:
    world.acquire("bob", "held.py")
    world.acquire("ann", "lib/")
    world.task("within", "lib/x.py", priority=5)
    apart = world.task("apart", "other.py")
    refusal = world.refused(rq.Acquire(agent="ann", resources=["held.py"]))
    assert refusal.facts["redirect"]["task"] == apart
    assert world.ask(rq.TaskClaim(agent="ann")).task.title == "within", "but it may claim that itself"


# ------------------------------------------------------------ what is set aside, listed, taken back

def test_what_is_set_aside_rests_longer_each_time_and_is_told_once(world: World) -> None:
    world.ask(rq.Register(agent="ann"))
    rests = []
    for _ in range(9):
        for _ in range(2):  # while it rests, another way that leads to it changes nothing
            world.decide(lambda tx: unserved.put(tx, "waiter", "W-1", "too large", agent="ann"))
        row = unserved.get(world.view(), "waiter", "W-1")
        assert row is not None
        rests.append(from_iso(row.retry_at) - world.clock.now_ms())
        assert unserved.rests(world.view(), "waiter", "W-1")
        world.clock.advance(rests[-1])
    assert rests == [30_000, 60_000, 120_000, 240_000, 480_000, 960_000, 1_800_000, 1_800_000, 1_800_000]
    (listed,) = unserved.listing(world.view())
    assert (listed.what, listed.subject, listed.reason, listed.tries) == ("waiter", "W-1", "too large", 9)
    told = world.ask(rq.Heartbeat(agent="ann")).notices
    assert [one.text for one in told] == [
        "Your place in line (W-1) cannot be served now and is set aside: too large It is tried again by itself."]
    world.decide(lambda tx: unserved.take_up(tx, "waiter", "W-1"))
    assert unserved.listing(world.view()) == [] and not unserved.rests(world.view(), "waiter", "W-1")


def test_locks_are_listed_by_holder_by_resource_and_in_portions(world: World) -> None:
    world.acquire("ann", "lib/", "a.py")
    world.acquire("bob", "b.py")
    def listed(**more: Any) -> list[str]:
        return [one.resource for one in world.ask(rq.Locks(**more)).items]

    assert listed() == ["lib/", "a.py", "b.py"] and listed(agent="bob") == ["b.py"]
    assert listed(resource="lib/x.py") == ["lib/"] and listed(resource="c.py") == [] and listed(resource="./b.py") == ["b.py"]
    first = world.ask(rq.Locks(limit=2))
    assert first.next is not None
    assert [one.resource for one in world.ask(rq.Locks(limit=2, after=int(first.next))).items] == ["b.py"]
    world.clock.advance(10**9)
    assert listed() == []


def test_who_releases_by_force_has_to_be_a_person(world: World) -> None:
    token = world.ask(rq.Register(agent="ann")).token
    world.acquire("bob", "b.py")
    refusal = world.refused(rq.Release(agent="ann", resources=["b.py"], force=True), token)
    assert refusal.code is Code.UNAUTHORIZED and refusal.message.startswith("Only a person ")
    refusal = world.refused(rq.Release(agent="ann", resources=["b.py"]), token)
    assert refusal.code is Code.NOT_HOLDER and refusal.facts == {"holder": "bob", "resource": "b.py"}
    assert [one.locked_by for one in world.ask(rq.Release(agent="pat", resources=["b.py"], force=True)).released] == ["bob"]
    (event,) = world.ask(rq.Events(kind="lease_released")).items
    assert event.text == "bob released b.py (by pat, override)"
    (told,) = world.ask(rq.Heartbeat(agent="bob")).notices
    assert told.text == "Your lease on b.py was released by pat (override). Do not write it without a new lease."


def test_who_leaves_leaves_every_line(world: World) -> None:
    world.acquire("ann", "a.py", "b.py", "c.py")
    for name in ("a.py", "b.py", "c.py"):
        world.refused(rq.Acquire(agent="bob", resources=[name]))
    world.refused(rq.Acquire(agent="carl", resources=["b.py"]))
    world.ask(rq.Leave(agent="bob"))
    assert [one.agent for one in world.ask(rq.Locks()).waiters] == ["carl"]
    world.ask(rq.Release(agent="ann", resources=["a.py", "b.py", "c.py"]))
    assert [(row.file_path, row.locked_by) for row in world.live()] == [("b.py", "carl")]


# ------------------------------------------------------------ the log's old part

@pytest.mark.parametrize("kept", ["review", "task", "nothing"])
def test_a_compaction_stops_just_before_what_is_needed(world: World, kept: str) -> None:
    for n in range(3):
        world.acquire("ann", f"a{n}.py")
    world.ask(rq.Release(agent="ann", resources=["a0.py", "a1.py", "a2.py"]))
    first = world.ledger.seq + 1
    if kept == "task":
        world.task("open", "t.py")
    elif kept == "review":
        world.write("r.py", "1\n")
        world.acquire("bob", "r.py", ttl_s=1)
        first = world.ledger.seq + 1
        world.write("r.py", "2\n")
        world.clock.advance(1_000)
        world.ask(rq.Sweep())
    for n in range(3):
        world.acquire("ann", f"b{n}.py")
    last = world.ledger.seq
    world.clock.advance(90 * 86_400_000)
    def cut_now() -> int:
        return compaction.cut(world.service, world.view(), rq.Compact(keep_days=90))

    assert cut_now() == 0, "what is just so old is kept"
    world.clock.advance(1)
    cut = cut_now()
    if kept == "nothing":
        assert cut == last
    elif kept == "task":
        assert cut == first - 1
    else:
        assert cut < first
    done = world.ask(rq.Compact(keep_days=90))
    oldest = int(str(world.db.execute("SELECT min(seq) FROM events").get))
    assert done.events_removed == oldest - 1
    if kept == "task":
        assert oldest == first
    assert world.replay_differs() == []
    assert world.ask(rq.Compact(keep_days=90)).events_removed == 0


def test_a_revert_gives_the_bytes_back_and_its_undo_as_well_unless_somebody_went_on(world: World, tmp_path: Path) -> None:
    world.write("a.py", "one\n")
    world.acquire("ann", "a.py", ttl_s=1)
    world.write("a.py", "partial\n")
    world.clock.advance(1_000)
    world.ask(rq.Sweep())
    long = "why " * 1000
    reverted = world.ask(rq.ReviewDecide(review="R-1", verdict="revert", note=long, by="pat"))
    assert (reverted.state, reverted.decided_by) == ("reverted", "pat") and len(reverted.note or "") == 2000
    told = world.ask(rq.Heartbeat(agent="ann")).notices
    assert any(one.kind == "verdict" and "R-1" in one.text for one in told)
    assert (world.root / "a.py").read_text() == "one\n"
    world.write("a.py", "built on it\n")
    refusal = world.refused(rq.ReviewUndo(review="R-1"))
    assert "a.py" in refusal.message and (world.root / "a.py").read_text() == "built on it\n"
    world.write("a.py", "one\n")
    world.acquire("bob", "a.py")
    refusal = world.refused(rq.ReviewUndo(review="R-1"))
    assert refusal.code is Code.LOCKED and "bob" in refusal.message and (world.root / "a.py").read_text() == "one\n"
    world.ask(rq.Release(agent="bob", resources=["a.py"]))
    world.ask(rq.ReviewUndo(review="R-1"))
    assert (world.root / "a.py").read_text() == "partial\n" and world.ask(rq.Reviews()).items[0].state == "open"
    assert digest(b"partial\n") and world.replay_differs() == []


@pytest.mark.parametrize("spelt", ["T-1", "t-1", "1", "T1", "t1", " T-1 "])
def test_an_id_is_understood_as_people_type_it(world: World, spelt: str) -> None:
    world.task("x", "a.py")
    assert world.ask(rq.TaskShow(task=spelt)).task == "T-1"
    assert world.ask(rq.TaskClaim(agent="ann", task=spelt)).task.task == "T-1"
    (world.root / "a.py").write_text("a\n")
    world.ask(rq.Leave(agent="ann", clean=False, reason="x"))
    assert world.ask(rq.ReviewShow(review=spelt.replace("T", "R").replace("t", "r"))).review == "R-1"


def test_who_only_waits_is_told_how_to_leave_the_line(world: World) -> None:
    world.acquire("ann", "a.py")
    assert world.refused(rq.Acquire(agent="bob", resources=["a.py", "b.py"])).code is Code.LOCKED
    refusal = world.refused(rq.Release(agent="bob", resources=["b.py"]))
    assert refusal.code is Code.UNKNOWN_LEASE and "bob waits for it (W-1)" in refusal.message
    assert refusal.next == "`coord request withdraw W-1 --agent bob` leaves the line."


def test_a_forced_unlock_by_the_name_of_who_had_it_takes_it_from_nobody_else(world: World) -> None:
    """The file was handed over between the look and the command: it names the holder that it means."""
    world.acquire("ann", "a.py")
    world.refused(rq.Acquire(agent="bob", resources=["a.py"]))
    world.ask(rq.Release(agent="ann", resources=["a.py"], force=True))
    assert [row.locked_by for row in world.live()] == ["bob"]
    refusal = world.refused(rq.Release(agent="ann", resources=["a.py"], force=True))
    assert refusal.code is Code.NOT_HOLDER and "a.py is leased by bob, not by ann" in refusal.message
    assert "`coord unlock a.py --agent bob --force`" in refusal.next
    assert [row.locked_by for row in world.live()] == ["bob"]
    world.ask(rq.Release(agent="eve", resources=["a.py"], force=True))
    assert world.live() == []
