"""What the other tests without a process pass by: clocks, the held place in line, the archive asked,
the backlog written out, what is due."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from coordinator.kernel.leasing import sweep, waiting_line
from coordinator.words import clock
from coordinator.words import requests as rq
from coordinator.words.clock import SystemClock, from_iso, iso, short
from coordinator.words.refusals import Code, Refusal
from tests.world import World


@pytest.mark.parametrize(("slept_ms", "told"), [(0, 0), (4_999, 0), (5_000, 5_000), (3_600_000, 3_600_000), (-5_000, -5_000), (-4_999, 0)])
def test_a_jump_is_what_the_wall_clock_went_beyond_the_other(monkeypatch: pytest.MonkeyPatch, slept_ms: int, told: int) -> None:
    wall, mono = [10**18], [10**12]
    monkeypatch.setattr(clock.time, "time_ns", lambda: wall[0])
    monkeypatch.setattr(clock.time, "monotonic_ns", lambda: mono[0])
    system = SystemClock()
    for _ in range(3):  # it is told once, and drift does not add up to one
        lived = 7_000
        wall[0] += (lived + slept_ms) * 1_000_000
        mono[0] += lived * 1_000_000
        found = system.jumped_ms()
        assert found == told if told else abs(slept_ms) < clock.JUMP_MS or found == told
        assert system.now_ms() == wall[0] // 1_000_000
        if told:
            assert system.jumped_ms() == 0
        else:
            break
    monkeypatch.undo()
    assert abs(SystemClock().now_ms() - time.time() * 1000) < 60_000


def test_instants_are_text_that_sorts_and_comes_back() -> None:
    at = [0, 1, 999, 1_000, 1_780_000_000_123, 1_780_000_059_999]
    assert sorted(map(iso, at)) == [iso(one) for one in at] and [from_iso(iso(one)) for one in at] == at
    assert iso(1_780_000_000_123) == "2026-05-28T20:26:40.123Z" and short(1_780_000_000_123) == "20:26Z"


@pytest.mark.parametrize("stay", [True, False])
def test_a_request_that_waited_is_answered_and_keeps_its_place_or_not(world: World, stay: bool) -> None:
    world.write("a.py", "1\n")
    world.acquire("ann", "a.py", description="ordering")
    free = world.task("other work", "free.py")
    facts = world.refused(rq.Acquire(agent="bob", resources=["a.py"], wait_s=30, retry=stay)).facts
    name = str(facts["acquisition_id"])
    with pytest.raises(Refusal) as refused:
        answer = world.decide(lambda tx: waiting_line.stop_holding(world.service, tx, name, stay))
        raise answer
    refusal = refused.value
    assert refusal.code is Code.LOCKED and "a.py is leased by ann" in refusal.message
    assert refusal.facts["acquisition_id"] == (name if stay else None)
    assert refusal.facts["redirect"]["task"] == free
    waiters = world.ask(rq.Locks()).waiters
    assert [(one.acquisition_id, one.agent) for one in waiters] == ([(name, "bob")] if stay else [])
    world.decide(lambda tx: waiting_line.nobody_listens(tx, name))
    held = world.db.execute("SELECT held FROM waiters").fetchall()
    assert held == ([(0,)] if stay else [])
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    assert [row.locked_by for row in world.live()] == (["bob"] if stay else [])
    with pytest.raises(Refusal) as gone:
        raise world.decide(lambda tx: waiting_line.stop_holding(world.service, tx, name, stay))
    assert gone.value.code is Code.LOCKED and f"{name} left the line" in gone.value.message


def test_who_hangs_up_is_offered_it_for_a_short_time(world: World) -> None:
    world.acquire("ann", "a.py")
    name = str(world.refused(rq.Acquire(agent="bob", resources=["a.py"], wait_s=30)).facts["acquisition_id"])
    assert world.db.execute("SELECT held FROM waiters").get == 1
    for _ in range(2):
        seq = world.ledger.seq
        world.decide(lambda tx: waiting_line.nobody_listens(tx, name))
        assert world.db.execute("SELECT held FROM waiters").get == 0
    assert world.ledger.seq == seq, "it is noted once"
    world.decide(lambda tx: waiting_line.nobody_listens(tx, "W-99"))


def test_something_is_due_exactly_when_tending_does_something(world: World) -> None:
    def due() -> bool:
        return sweep.anything_due(world.service, world.view())

    assert not due()
    world.write("a.py", "one\n")
    world.acquire("ann", "a.py", ttl_s=5)
    world.write("a.py", "half\n")
    world.clock.advance(5_000)
    assert due(), "though nobody waits for it: a person does"
    world.tend()
    assert not due() and [one.review for one in world.ask(rq.Reviews()).items] == ["R-1"]
    world.ask(rq.Register(agent="cyd", silence_s=30))
    world.acquire("cyd", "c.py")
    world.clock.advance(29_999)
    assert not due()
    world.clock.advance(1)
    assert due(), "it promised to be heard of"
    world.tend()
    assert not due() and world.live() == []
    world.acquire("ann", "b.py", ttl_s=5)
    world.refused(rq.Acquire(agent="bob", resources=["b.py"]))
    world.tend()
    assert not due()
    world.clock.advance(5_000)
    assert due()
    world.tend()
    assert not due() and [row.locked_by for row in world.live()] == ["bob"]
    world.refused(rq.Acquire(agent="carl", resources=["b.py"], wait_s=1, retry=False))
    assert not due()
    world.clock.advance(1_000)
    assert due(), "its time in line is over"
    world.tend()
    assert not due() and world.ask(rq.Locks()).waiters == []
    task = world.task("t", "c.py")
    world.ask(rq.TaskClaim(agent="ann", task=task))
    world.ask(rq.TaskFail(agent="ann", task=task, reason="no"))
    rest = from_iso(str(world.ask(rq.TaskShow(task=task)).not_before)) - world.clock.now_ms()
    world.clock.advance(rest - 1)
    assert not due()
    world.clock.advance(1)
    assert due()
    world.tend()
    assert not due() and world.ask(rq.TaskShow(task=task)).state == "ready"


@pytest.mark.parametrize("form", ["yaml", "jsonl", "markdown"])
def test_the_backlog_that_is_written_out_is_the_backlog(world: World, form: Any) -> None:
    one = world.task("one", "a.py", "shared:lib/", prompt="Do it.\nWell.", priority=3)
    two = world.task("two", after=[one], attempts_max=7)
    world.ask(rq.TaskClaim(agent="ann", task=one))
    world.ask(rq.TaskDone(agent="ann", task=one))
    text = world.ask(rq.TaskExport(format=form)).text
    for word in ("one", "two", "Do it.", "a.py", "shared:lib/"):
        assert word in text
    if form == "jsonl":
        rows = [msgspec.json.decode(line) for line in text.splitlines()]
        assert [row["id"] for row in rows] == [one, two] and [row["title"] for row in rows] == ["one", "two"]
        assert rows[0]["resources"] == ["a.py", "shared:lib/"] and rows[0]["priority"] == 3 and rows[1]["after"] == [one]
    elif form == "markdown":
        assert text.index("[x] one") < text.index("[ ] two")


def test_the_archive_is_searched_shown_and_read_again(world: World) -> None:
    folder = world.root / "context_archive"
    folder.mkdir(exist_ok=True)
    (folder / "n.md").write_text("---\npaths: [blades.py]\n---\n# N\n\n## 3 Turbines\n\nThey spin.\n\n## 4 Pumps\n\nThey spin, too.\n")
    done = world.ask(rq.ArchiveIndexNow())
    assert (done.added, done.changed, done.removed) == (1, 0, 0) and done.warnings == []
    hits = world.ask(rq.ArchiveSearch(query="spin")).items
    assert {hit.title for hit in hits} == {"Turbines", "Pumps"} and all("spin" in hit.snippet for hit in hits)
    assert len(world.ask(rq.ArchiveSearch(query="spin", limit=1)).items) == 1
    assert len(world.ask(rq.ArchiveSearch(query="spin", limit=1)).items) == 1
    shown = world.ask(rq.ArchiveShow(ref="3"))
    assert (shown.number, shown.title) == ("3", "Turbines") and "They spin." in shown.body and shown.source.endswith("n.md")
    refusal = world.refused(rq.ArchiveShow(ref="99"))
    assert refusal.code is Code.INVALID and "archive search" in (refusal.next or "") and "candidates" in refusal.facts
    (folder / "n.md").unlink()
    assert world.ask(rq.ArchiveIndexNow()).removed == 1
