"""Waypoints: a question about the past costs what was asked about, and its answer is the log's own."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.daemon.log_summary import make_waypoint
from coordinator.daemon.waypoints import APART, BYTES_AN_EVENT, find_due, put_waypoint
from coordinator.settings import Leases, Settings
from coordinator.slices.story.lanes import WaypointRow
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, iso
from tests.effort import examples
from tests.service.test_timeline import STEPS, comparable, take_step
from tests.world import World


def set_waypoint(world: World, seq: int) -> None:
    made = make_waypoint(world.view(), seq)
    world.ledger.run(lambda tx: put_waypoint(tx, seq, *made), world.clock.now_ms())


def count_waypoints(world: World) -> int:
    return int(str(world.db.execute("SELECT count(*) FROM waypoints").get))


def forget_waypoints(world: World) -> None:
    world.ledger.run(lambda tx: tx.write_beside("waypoints_delete_before", 2**62), world.clock.now_ms())


@settings(max_examples=examples(25), deadline=None)
@given(STEPS, st.sets(st.integers(0, 24), max_size=4), st.integers(0, 10), st.integers(0, 10))
def test_every_answer_is_the_one_without_waypoints(
        steps: list[tuple[str, str, str]], after: set[int], first: int, last: int) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(
            World(Path(folder), Settings(leases=Leases(ttl_s=60, max_hold_s=150, line_s=40)))) as world:
        begin_ms = world.clock.now_ms()
        for number, step in enumerate(steps):
            world.clock.advance(1)
            take_step(world, *step)
            if number in after and world.ledger.seq:
                set_waypoint(world, world.ledger.seq)
        length_ms = world.clock.now_ms() - begin_ms
        since, until = (iso(begin_ms + length_ms * tenth // 10) for tenth in sorted((first, last)))
        questions: list[rq.Request[Any]] = [
            rq.Timeline(since=since, until=until), rq.Timeline(since=since), rq.Report(since=since, until=until),
            rq.Timeline(), rq.Report()]
        moments = [rq.Moment(at=since), rq.Moment(at=until), rq.Moment(event=world.ledger.seq // 2), rq.Moment()]

        def ask_all() -> list[Any]:
            told = [world.ask(moment) for moment in moments]
            return [*(world.ask(question) for question in questions), *((then.event, then.sentences, comparable(then.state)) for then in told)]

        answers = ask_all()
        forget_waypoints(world)
        assert answers == ask_all()


def work_on(world: World, rounds: int, waypoint_each: int) -> None:
    """Some agents work: five events a second or so; a waypoint after so many events."""
    for number in range(rounds):
        agent, name = f"agent-{number % 5}", f"f{number % 7}.py"
        world.ask(rq.Acquire(agent=agent, resources=[name]))
        world.clock.advance(400)
        world.ask(rq.Release(agent=agent, resources=[name]))
        newest = getattr(world.view().first(WaypointRow, "waypoint_begun", 2**62), "seq", 0)
        if world.ledger.seq - newest >= waypoint_each:
            set_waypoint(world, world.ledger.seq)


@pytest.fixture
def count_steps(world: World) -> Callable[[rq.Request[Any]], int]:
    """How many steps SQLite takes to read what an answer needs: rows that are read are steps."""

    def count(request: rq.Request[Any]) -> int:
        steps = 0

        def note() -> bool:
            nonlocal steps
            steps += 1
            return False

        world.db.set_progress_handler(note, 10)
        try:
            world.ask(request)
        finally:
            world.db.set_progress_handler(None)
        return steps

    return count


def test_what_a_part_of_the_time_costs_does_not_grow_with_the_log(
        world: World, count_steps: Callable[[rq.Request[Any]], int]) -> None:
    world.checked = False
    world.ask(rq.TaskAdd(title="to be there"))
    for number in range(5):
        world.ask(rq.Register(agent=f"agent-{number}"))
    begin_ms = world.clock.now_ms()

    def ask_about(ms: int) -> dict[str, int]:
        since, until = iso(ms), iso(ms + 5_000)
        return {"timeline": count_steps(rq.Timeline(since=since, until=until)), "moment": count_steps(rq.Moment(at=since)),
                "report": count_steps(rq.Report(since=since, until=until))}

    work_on(world, 150, waypoint_each=100)
    short = ask_about(begin_ms + 45_000)
    work_on(world, 1500, waypoint_each=100)
    asked_again, late = ask_about(begin_ms + 45_000), ask_about(world.clock.now_ms() - 15_000)
    forget_waypoints(world)
    without = ask_about(world.clock.now_ms() - 15_000)
    for name, steps in short.items():
        assert asked_again[name] < 1.5 * steps + 100, (name, short, asked_again)
        assert late[name] < 1.5 * steps + 100, (name, short, late)
        assert without[name] > 4 * late[name], "the log is long, and without waypoints all of it is read"


def test_a_waypoint_that_cannot_be_read_is_passed_over(world: World) -> None:
    world.acquire("ann", "a.py")
    world.clock.advance(5_000)
    set_waypoint(world, world.ledger.seq)
    world.acquire("bob", "b.py")
    world.clock.advance(5_000)
    asked = rq.Moment(), rq.Timeline(since=iso(world.clock.now_ms() - 1_000))
    before = [msgspec.to_builtins(world.ask(request)) for request in asked]
    for column, bytes_ in (("state", b"no"), ("begun", b"no"), ("begun", b"x\x9c\x03\x00\x00\x00\x00\x01")):
        with world.db:
            world.db.execute(f"UPDATE waypoints SET {column} = ?", (bytes_,))
        assert [msgspec.to_builtins(world.ask(request)) for request in asked] == before
    assert world.replay_differs() == []


def test_waypoints_stand_apart_by_what_they_hold(world: World) -> None:
    world.acquire("ann", "a.py")
    first = world.ledger.seq
    assert find_due(world.view()) is None
    with world.db:
        world.db.executemany(
            "INSERT INTO events VALUES (?, ?, 'noted', NULL, NULL, NULL, '{\"kind\":\"noted\",\"what\":\"x\",\"facts\":{}}')",
            ((seq, iso(world.clock.now_ms())) for seq in range(first + 1, 3 * APART)))
    assert find_due(world.view()) == APART, "the earliest first, where many are missing"
    large = bytes(BYTES_AN_EVENT * APART * 3 // 2)
    world.ledger.run(lambda tx: put_waypoint(tx, APART, large, b""), world.clock.now_ms())
    assert find_due(world.view()) == APART + APART * 3 // 2


def test_compaction_takes_the_waypoints_of_what_it_removes(world: World) -> None:
    world.acquire("ann", "a.py")
    early = world.ledger.seq
    set_waypoint(world, early)
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())
    world.ask(rq.Compact(keep_days=0.001))
    assert count_waypoints(world) == 0
    world.ledger.run(lambda tx: put_waypoint(tx, early, b"late", b"late"), world.clock.now_ms())
    assert count_waypoints(world) == 0, "one that was under way meanwhile is not kept"
    assert from_iso(world.ask(rq.Moment()).at) == world.clock.now_ms()
