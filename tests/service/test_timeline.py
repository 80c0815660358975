"""How a time of work went, and how all was at any moment of it: told by the log alone."""

from __future__ import annotations

import contextlib
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.settings import Leases, Settings
from coordinator.slices.story.lanes import Period
from coordinator.slices.story.timeline import draw_together, measure_demand
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso, iso
from coordinator.words.refusals import Code, Refusal
from tests.effort import examples
from tests.world import World


def try_acquire(world: World, agent: str, *resources: str, wait_s: float = 0.0) -> None:
    with contextlib.suppress(Refusal):
        world.ask(rq.Acquire(agent=agent, resources=list(resources), wait_s=wait_s))


def spans_of(timeline: rq.TimelineReply, agent: str, kind: str) -> list[tuple[str, float, float, bool]]:
    """(subject, begin, end, open) of each span, in seconds from the window's beginning."""
    begin_ms = from_iso(timeline.since or timeline.until)
    return [(span.subject, (from_iso(span.since) - begin_ms) / 1000, (from_iso(span.until) - begin_ms) / 1000, span.open)
            for span in timeline.spans if (span.agent, span.kind) == (agent, kind)]


@pytest.fixture
def worked(world: World) -> World:
    # Given ann, who is at T-1 with a.py for 10 s, and reads something after 4 s
    for name in ("ann", "bob"):
        world.ask(rq.Register(agent=name))
    world.ask(rq.TaskAdd(title="round the totals", resources=["a.py"]))
    world.ask(rq.TaskClaim(agent="ann", task="T-1"))
    world.clock.advance(4_000)
    world.ask(rq.MessageSend(agent="ann", to="human", text="Which currency?"))
    # and bob, who waits for a.py from 5 s on
    world.clock.advance(1_000)
    try_acquire(world, "bob", "a.py", wait_s=60)
    world.clock.advance(5_000)
    world.ask(rq.TaskDone(agent="ann", task="T-1", result="done"))
    world.clock.advance(10_000)
    return world


def test_each_agent_has_a_lane_of_what_it_was_at(worked: World) -> None:
    timeline = worked.ask(rq.Timeline())
    assert spans_of(timeline, "ann", "task") == [("T-1", 0, 10, False)]
    assert spans_of(timeline, "ann", "lease") == [("a.py", 0, 10, False)]
    assert spans_of(timeline, "ann", "thinking") == [("", 0, 4, False), ("", 4, 10, False)]
    assert spans_of(timeline, "bob", "refusal") == [("a.py", 5, 5, False)]
    assert spans_of(timeline, "bob", "wait") == [("a.py", 5, 10, False)]
    assert spans_of(timeline, "bob", "lease") == [("a.py", 10, 20, True)]
    assert spans_of(timeline, "bob", "thinking") == [("", 10, 20, True)], "it has a.py from then on, and says nothing"
    (wait,) = (span for span in timeline.spans if span.kind == "wait")
    (refusal,) = (span for span in timeline.spans if span.kind == "refusal")
    (task,) = (span for span in timeline.spans if span.kind == "task")
    assert (wait.holders, refusal.holders, refusal.text, task.text) == (["ann"], ["ann"], "LOCKED", "round the totals")
    events = {event.seq: event.kind for event in worked.ask(rq.Events()).items}
    assert (events[task.event], events[refusal.event]) == ("task_changed", "acquisition_refused")
    assert timeline.report == worked.ask(rq.Report()) and not timeline.together and timeline.left_out == 0


def test_demand_is_measured_part_by_part(worked: World) -> None:
    (demand,) = worked.ask(rq.Timeline(parts=4)).demand
    assert demand.resource == "a.py"
    assert demand.held == [1, 1, 1, 1] and demand.waited == [0, 1, 0, 0] and demand.refused == [0, 1, 0, 0]


def test_a_window_shows_what_began_before_it_and_what_went_on(worked: World) -> None:
    begin_ms = from_iso(worked.ask(rq.Timeline()).since)
    middle = worked.ask(rq.Timeline(since=iso(begin_ms + 6_000), until=iso(begin_ms + 8_000)))
    assert [(span.agent, span.kind, span.open) for span in middle.spans] == [
        ("ann", "lease", True), ("ann", "task", True), ("ann", "thinking", True), ("bob", "wait", True)]
    assert {span.until for span in middle.spans} == {iso(begin_ms + 8_000)}
    assert worked.refused(rq.Timeline(since="yesterday")).code is Code.INVALID
    assert "timeline: `since`" in worked.refused(rq.Timeline(since=iso(10**13))).message


def test_a_review_is_a_span_until_its_verdict(world: World) -> None:
    world.write("a.py", "x = 1\n")
    world.acquire("ann", "a.py")
    world.write("a.py", "x = 2\n")
    world.ask(rq.Leave(agent="ann", clean=False))
    world.clock.advance(30_000)
    world.ask(rq.ReviewDecide(review="R-1", verdict="keep"))
    world.clock.advance(5_000)
    world.ask(rq.ReviewUndo(review="R-1"))
    timeline = world.ask(rq.Timeline())
    assert spans_of(timeline, "ann", "review") == [("R-1", 0, 30, False), ("R-1", 35, 35, True)]
    assert {span.text for span in timeline.spans if span.kind == "review"} == {world.ask(rq.ReviewShow(review="R-1")).summary}


def test_an_empty_log_has_no_lanes(world: World) -> None:
    timeline = world.ask(rq.Timeline())
    assert timeline.since is None and timeline.spans == timeline.demand == []
    then = world.ask(rq.Moment())
    assert (then.event, then.first, then.last, then.sentences) == (0, 0, 0, [])


def test_a_moment_has_what_was_held_then_and_not_now(worked: World) -> None:
    begin_ms = from_iso(worked.ask(rq.Timeline()).since)
    then = worked.ask(rq.Moment(at=iso(begin_ms + 7_000)))
    assert [(lease.resource, lease.locked_by) for lease in then.state.leases] == [("a.py", "ann")]
    assert [(waiter.agent, waiter.held_by) for waiter in then.state.waiters] == [("bob", ["ann"])]
    assert [task.task for task in then.state.claimed] == ["T-1"]
    assert then.sentences[0].startswith("ann holds a.py (exclusive) for T-1 until ")
    now = worked.ask(rq.Moment(event=then.last))
    assert [(lease.resource, lease.locked_by) for lease in now.state.leases] == [("a.py", "bob")]
    assert worked.ask(rq.Moment(at=iso(begin_ms - 1))).state.agents == []
    assert worked.ask(rq.Moment(event=0)).state.tasks == {}


def test_a_lease_that_had_expired_is_no_more_there_though_nobody_had_swept(world: World) -> None:
    world.acquire("ann", "a.py", ttl_s=60)
    at_ms = world.clock.now_ms()
    world.clock.advance(120_000)
    assert [lease.resource for lease in world.ask(rq.Moment(at=iso(at_ms + 59_000))).state.leases] == ["a.py"]
    then = world.ask(rq.Moment(at=iso(at_ms + 61_000)))
    assert then.state.leases == [] and "a.py" not in " ".join(then.sentences)


def test_what_the_log_does_not_reach_is_refused(worked: World) -> None:
    last = worked.ask(rq.Moment()).last
    worked.clock.advance(3_600_000)
    worked.ask(rq.Sweep())
    worked.ask(rq.Compact(keep_days=0.001))
    first = worked.ask(rq.Moment()).first
    assert first > 0
    assert worked.ask(rq.Moment(event=first)).event == first, "the snapshot's own state can be told"
    for request in (rq.Moment(event=first - 1), rq.Moment(event=10**9), rq.Moment(at=iso(0))):
        refusal = worked.refused(request)
        assert refusal.code is Code.INVALID and f"after the events {first} to " in refusal.message
    both = worked.refused(rq.Moment(event=last, at=iso(0)))
    assert both.code is Code.INVALID and both.facts["field"] == "at"


# ---------------------------------------------------------------- properties

AGENTS, FILES, TASKS = ("ann", "bob", "cyd"), ("a.py", "b.py", "src/"), ("T-1", "T-2", "T-3")
STEPS = st.lists(st.one_of(
    st.tuples(st.just("acquire"), st.sampled_from(AGENTS), st.sampled_from(FILES)),
    st.tuples(st.just("wait"), st.sampled_from(AGENTS), st.sampled_from(FILES)),
    st.tuples(st.just("release"), st.sampled_from(AGENTS), st.sampled_from(FILES)),
    st.tuples(st.just("claim"), st.sampled_from(AGENTS), st.just("")),
    st.tuples(st.just("done"), st.sampled_from(AGENTS), st.sampled_from(TASKS)),
    st.tuples(st.just("fail"), st.sampled_from(AGENTS), st.sampled_from(TASKS)),
    st.tuples(st.just("say"), st.sampled_from(AGENTS), st.just("")),
    st.tuples(st.just("leave"), st.sampled_from(AGENTS), st.just("")),
    st.tuples(st.just("sweep"), st.just(""), st.just("")),
    st.tuples(st.just("pass"), st.sampled_from(["500", "3000", "70000"]), st.just("")),
), min_size=3, max_size=25)


def take_step(world: World, verb: str, agent: str, name: str) -> None:
    requests: dict[str, Any] = {
        "acquire": lambda: rq.Acquire(agent=agent, resources=[name], retry=False),
        "wait": lambda: rq.Acquire(agent=agent, resources=[name], wait_s=30),
        "release": lambda: rq.Release(agent=agent, resources=[name]),
        "claim": lambda: rq.TaskClaim(agent=agent),
        "done": lambda: rq.TaskDone(agent=agent, task=name),
        "fail": lambda: rq.TaskFail(agent=agent, task=name, reason="no"),
        "say": lambda: rq.MessageSend(agent=agent, to="human", text="well"),
        "leave": lambda: rq.Leave(agent=agent, clean=False),
        "sweep": rq.Sweep,
    }
    if verb == "pass":
        world.clock.advance(int(agent))
        return
    with contextlib.suppress(Refusal):
        if agent:
            world.ask(rq.Register(agent=agent))
        world.ask(requests[verb]())


def comparable(state: rq.StatusReply) -> dict[str, Any]:
    """What is told of the state, without what is of today."""
    facts: dict[str, Any] = msgspec.to_builtins(state)
    for name in ("events", "health", "at"):
        del facts[name]
    return facts


@settings(max_examples=examples(25), deadline=None)
@given(STEPS)
def test_each_moment_is_as_it_was_and_lanes_agree_with_the_state(steps: list[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(
            World(Path(folder), Settings(leases=Leases(ttl_s=60, max_hold_s=150, line_s=40)))) as world:
        for title in ("one", "two", "three"):
            world.ask(rq.TaskAdd(title=title, resources=["b.py"] if title == "two" else []))
        seen: dict[int, tuple[str, dict[str, Any]]] = {}
        for step in steps:
            world.clock.advance(1)
            take_step(world, *step)
            status = world.ask(rq.Status(events=0))
            seen[world.ledger.seq] = status.at, comparable(status)
        # Each moment: as `status` told it at the time.
        for event, (at, state) in seen.items():
            then = world.ask(rq.Moment(at=at))
            assert then.event == event and comparable(then.state) == state
        last = world.ask(rq.Moment())
        status = world.ask(rq.Status(events=0))
        assert comparable(last.state) == comparable(status) and last.event == last.last == world.ledger.seq
        # The lanes: what is open at the end is what there is, and nothing is in two places at once.
        timeline = world.ask(rq.Timeline())
        assert timeline.report == world.ask(rq.Report())
        assert_open_spans_are_the_state(world, timeline)
        assert_spans_are_sound(timeline)


def assert_open_spans_are_the_state(world: World, timeline: rq.TimelineReply) -> None:
    is_open = {kind: sorted((span.agent, span.subject) for span in timeline.spans if span.open and span.kind == kind)
               for kind in ("task", "lease", "wait")}
    tasks = world.ask(rq.Tasks(state="claimed")).items
    assert is_open["task"] == sorted((str(task.claimed_by), task.task) for task in tasks)
    rows = world.db.execute("SELECT locked_by, file_path FROM file_locks").fetchall()
    assert is_open["lease"] == sorted((str(agent), str(name)) for agent, name in rows)
    waiters = world.ask(rq.Status(events=0)).waiters
    assert is_open["wait"] == sorted((waiter.agent, waiter.resources[0]) for waiter in waiters)


def assert_spans_are_sound(timeline: rq.TimelineReply) -> None:
    lanes: dict[tuple[str, str], list[rq.Span]] = {}
    for span in timeline.spans:
        assert span.since <= span.until <= timeline.until and span.count == 1
        assert span.kind != "refusal" or span.since == span.until
        lanes.setdefault((span.agent, span.kind), []).append(span)
    for (agent, kind), spans in lanes.items():
        if kind == "thinking":
            assert all(span.until <= after.since for span, after in pairwise(spans))
            assert not any(span.since < wait.until and wait.since < span.until
                           for span in spans for wait in lanes.get((agent, "wait"), []))
    of_task: dict[str, list[rq.Span]] = {}
    for span in timeline.spans:
        if span.kind == "task":
            of_task.setdefault(span.subject, []).append(span)
    for spans in of_task.values():
        assert all(span.until <= after.since for span, after in pairwise(spans)), "one agent at a time has a task"


PERIODS = st.lists(st.tuples(st.sampled_from(AGENTS), st.sampled_from(["task", "wait"]), st.integers(0, 10_000),
                             st.integers(0, 3_000)), max_size=60)


@settings(max_examples=examples(200), deadline=None)
@given(PERIODS, st.integers(6, 40))
def test_spans_drawn_together_are_few_and_cover_what_they_stand_for(given_periods: list[Any], most: int) -> None:
    periods = sorted((Period(agent, kind, since, 1, "x", until_ms=since + length)
                      for agent, kind, since, length in given_periods), key=lambda period: period.since_ms)
    shown = draw_together(periods, most, 13_000)
    assert len(shown) <= most, "there are six lanes, so six spans can show it"
    assert sum(period.count for period in shown) == len(periods)
    for period in periods:
        assert any((span.agent, span.kind) == (period.agent, period.kind) and span.since_ms <= period.since_ms
                   and period.until_ms <= span.until_ms for span in shown)
    if len(periods) <= most:
        assert shown == periods
    assert all(period.count == 1 for period in periods), "what was given is as it was"


@settings(max_examples=examples(200), deadline=None)
@given(PERIODS, st.integers(1, 50))
def test_demand_adds_up_to_the_time_itself(given_periods: list[Any], parts: int) -> None:
    periods = [Period(agent, "lease" if kind == "task" else "wait", since, 1, "x", until_ms=since + length, resources=["x"])
               for agent, kind, since, length in given_periods]
    (demand,) = measure_demand(periods, ["x"], 2_000, 9_000, parts)
    for kind, shares in (("lease", demand.held), ("wait", demand.waited)):
        within = sum(max(0, min(9_000, period.until_ms) - max(2_000, period.since_ms)) for period in periods if period.kind == kind)
        assert sum(shares) * 7_000 / parts == pytest.approx(within, abs=0.0006 * 7_000)


def test_many_spans_are_drawn_together_and_a_shorter_window_shows_each(world: World) -> None:
    world.ask(rq.Register(agent="ann"))
    for number in range(30):
        world.acquire("ann", f"f{number}.py")
        world.clock.advance(500)
        world.ask(rq.Release(agent="ann", resources=[f"f{number}.py"]))
        world.clock.advance(500)
    timeline = world.ask(rq.Timeline(spans=10))
    assert timeline.together and len(timeline.spans) <= 10 and timeline.left_out == 0
    assert sum(span.count for span in timeline.spans if span.kind == "lease") == 30
    begin_ms = from_iso(timeline.since)
    near = world.ask(rq.Timeline(spans=10, since=iso(begin_ms + 2_100), until=iso(begin_ms + 4_900)))
    assert not near.together and [span.subject for span in near.spans] == ["f2.py", "f3.py", "f4.py"]
    assert world.ask(rq.Timeline(spans=1)).left_out == 0, "one lane, one span"
