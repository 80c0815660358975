"""Whom a failing command is put down to: the rule alone, over sequences of all kinds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from coordinator.rules.verification import (
    Findings,
    Told,
    Unit,
    Work,
    meets,
    search,
    superseded,
    units,
)

Oracle = Callable[[tuple[int, ...]], Told]


class Came(NamedTuple):
    """`Findings`, by place in the sequence."""

    outcome: str
    good: tuple[int, ...] = ()
    broken: tuple[int, ...] = ()
    held: tuple[tuple[int, str], ...] = ()
    at: int | None = None


def play(sequence: list[Unit], oracle: Oracle) -> tuple[Came, list[tuple[int, ...]]]:
    """What it comes to, and what was run."""
    course, runs = search(sequence), list[tuple[int, ...]]()
    try:
        asked = next(course)
        while True:
            runs.append(tuple(map(sequence.index, asked)))
            asked = course.send(oracle(runs[-1]))
    except StopIteration as end:
        found: Findings = end.value

        def at(units_: Iterable[Unit]) -> tuple[int, ...]:
            return tuple(map(sequence.index, units_))

        return Came(found.outcome, at(found.good), at(found.broken), tuple((sequence.index(one), because) for one, because in found.held),
                    None if found.at is None else sequence.index(found.at)), runs


def unit(n: int, *files: str, task: str | None = "") -> Unit:
    return Unit((n,), f"T-{n}" if task == "" else task, frozenset(files or {f"f{n}"}))


def in_turn(answers: list[Told]) -> Oracle:
    left = iter(answers)
    return lambda with_: next(left)


def breaks(*bad: int) -> Oracle:
    return lambda with_: "failed" if set(bad) & set(with_) else "passed"


def test_what_passes_takes_one_run() -> None:
    found, runs = play([unit(n) for n in range(50)], breaks())
    assert found == Came("good", tuple(range(50))) and len(runs) == 1
    assert play([], breaks()) == (Came("good"), [()])


def test_the_third_of_five_is_found_and_the_rest_gone_on_with() -> None:
    found, runs = play([unit(n) for n in range(5)], breaks(2))
    assert found == Came("broken", (0, 1, 3, 4), (2,))
    assert runs[0] == (0, 1, 2, 3, 4) and runs[-1] == (0, 1, 3, 4)
    assert runs.count((0, 1, 2)) == 2 and runs.count((0, 1)) == 2, "nobody is blamed by one run"


def test_a_base_that_fails_blames_nobody() -> None:
    found, runs = play([unit(n) for n in range(8)], lambda with_: "failed")
    assert found == Came("base") and runs == [tuple(range(8)), (), ()]
    assert play([], lambda with_: "failed")[0] == Came("base")


def test_what_belongs_to_no_task_blames_nobody() -> None:
    found, _ = play([unit(0), unit(1, task=None), unit(2)], breaks(1))
    assert found == Came("committed", (0,), at=1)


def test_who_lies_on_top_of_broken_work_is_held_and_not_blamed() -> None:
    sequence = [unit(0, "a"), unit(1, "b"), unit(2, "b", "c"), unit(3, "c"), unit(4, "d"), unit(5, "b/x")]
    found, runs = play(sequence, breaks(1))
    assert found == Came("broken", (0, 4), (1,), ((2, "T-1"), (3, "T-1"), (5, "T-1")))
    assert runs[-1] == (0, 4)


def test_a_command_that_cannot_be_run_tells_nothing() -> None:
    usual: list[Told] = ["failed", "passed", "failed", "passed", "failed", "passed", "passed"]
    for after in range(6):
        found, runs = play([unit(n) for n in range(4)], in_turn([*usual[:after], "untold"]))
        assert (found.outcome, found.broken) == ("untold", ()) and len(runs) == after + 1


def test_one_that_contradicts_itself_blames_nobody() -> None:
    for once in range(6):  # it fails once, whatever is in it, and would pass else
        found, runs = play([unit(n) for n in range(4)], in_turn([*["passed"] * once, "failed", *["passed"] * 20]))
        assert found == (Came("good", (0, 1, 2, 3)) if once else Came("flaky", at=3))
        assert len(runs) <= 8
    assert play([unit(0)], in_turn(["failed", "failed", "passed"]))[0] == Came("flaky")
    assert play([unit(0)], in_turn(["failed", "passed", "failed", "failed"]))[0] == Came("flaky", at=0)
    assert play([], in_turn(["failed", "passed"]))[0] == Came("flaky")


def test_paths_meet_where_one_lies_below_the_other() -> None:
    for one, other, met in (("a", "a", True), ("a", "a/b", True), ("a/b", "a", True), ("a", "ab", False),
                            ("a/b", "a/c", False), ("a/b/c", "a", True)):
        assert meets(frozenset({one}), frozenset({other})) is met, (one, other)
        assert meets(frozenset({other, "z"}), frozenset({one})) is met
    assert not meets(frozenset(), frozenset({"a"}))


def test_a_repair_stands_or_falls_with_what_it_repairs() -> None:
    def work(n: int, task: str, state: str, because: str | None, *files: str) -> Work:
        return Work(n, task, state, because, frozenset(files))

    works = [
        work(1, "T-1", "good", None, "a"), work(2, "T-2", "broken", "T-2", "b"),
        work(3, "T-3", "held", "T-2", "b", "c"), work(4, "T-4", "waiting", None, "d"),
        work(5, "T-2", "waiting", None, "e"), work(6, "T-5", "held", "T-9", "x"),
        work(7, "T-2", "waiting", None, "f"),
    ]
    random.Random(1).shuffle(works)
    assert units(works) == [
        Unit((4,), "T-4", frozenset("d")),
        Unit((2, 3, 5), "T-2", frozenset("bce"), parts=(Unit((2, 5), "T-2", frozenset("be")), Unit((3,), "T-3", frozenset("bc")))),
        Unit((7,), "T-2", frozenset("f"))]
    assert units([]) == []


def test_what_lies_on_known_broken_work_is_never_blamed() -> None:
    """It fails for that one's sake, or it mends it; if it fails, it waits for the repair."""
    broken = Work(1, "T-1", "broken", "T-1", frozenset("a"))
    on_top = Work(2, "T-2", "held", "T-1", frozenset("ab"))
    works = [broken, on_top, Work(3, "T-3", "waiting", None, frozenset("b")), Work(4, "T-4", "waiting", None, frozenset("c"))]
    sequence = units(works)
    assert sequence == [Unit((3,), "T-3", frozenset("b"), "T-1"), Unit((4,), "T-4", frozenset("c"))]
    assert play(sequence, breaks(0))[0] == Came("good", (1,), (), ((0, "T-1"),))
    assert play(sequence, breaks(0, 1))[0] == Came("broken", (), (1,), ((0, "T-1"),))
    assert play(sequence, breaks())[0] == Came("good", (0, 1))
    # where the repair comes later, all of it is judged together, and by halves if that fails
    own, two, three = Unit((1, 5), "T-1", frozenset("a")), Unit((2,), "T-2", frozenset("ab")), Unit((3,), "T-3", frozenset("b"))
    repair = Unit((1, 2, 3, 5), "T-1", frozenset("ab"), parts=(own, two, three))
    repaired = [*works, Work(5, "T-1", "waiting", None, frozenset())]
    assert units(repaired) == [Unit((4,), "T-4", frozenset("c")), repair]
    assert units([*repaired, Work(6, "T-6", "waiting", None, frozenset("ad"))])[-1] == Unit(
        (6,), "T-6", frozenset("ad")), "which comes after the repair, so what it breaks is its own"

    def told(*bad: int) -> Findings:
        course = search(units(repaired))
        asked = next(course)
        try:
            while True:
                asked = course.send("failed" if set(bad) & {n for one in asked for n in one.works} else "passed")
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    first = units(repaired)[0]
    assert told() == Findings("good", (first, repair))
    assert told(5) == Findings("broken", (first,), (own,), ((two, "T-1"), (three, "T-1")))
    assert told(3) == Findings("broken", (first, own, two), (three,)), "T-1 is repaired, and not blamed for what lies on it"
    assert told(2) == Findings("broken", (first, own), (two,), ((three, "T-2"),))


def test_newer_work_that_is_there_stands_over_older() -> None:
    files = {1: frozenset("ab"), 2: frozenset("b"), 3: frozenset("c"), 4: frozenset("a")}
    assert superseded(files, 1, [2, 3]) == frozenset("bc") and superseded(files, 2, [1]) == frozenset()
    assert superseded(files, 3, files) == frozenset("a")


@given(st.data())
def test_it_finds_what_breaks_and_nothing_else(data: st.DataObject) -> None:
    """Any sequence, any set that breaks. The oracle knows what a tree holds: what is held would break
    it too, for it has the broken content in it."""
    count = data.draw(st.integers(0, 24))
    files = st.frozensets(st.integers(0, 12).map(lambda n: f"f{n}"), min_size=1, max_size=3)
    sequence = [Unit((n,), f"T-{n}", data.draw(files)) for n in range(count)]
    bad = data.draw(st.frozensets(st.integers(0, max(0, count - 1)), max_size=4)) if count else frozenset[int]()
    found, runs = play(sequence, lambda with_: "failed" if bad & set(with_) else "passed")
    everyone = [*found.good, *found.broken, *(one for one, _ in found.held)]
    assert sorted(everyone) == list(range(count)), "each is told of once"
    assert set(found.broken) <= bad and not set(found.good) & bad
    assert found.outcome == ("broken" if bad else "good")
    held = dict(found.held)
    assert bad - set(found.broken) <= set(held), "one that breaks it is found, or waits with another"
    for one, because in held.items():
        first = int(because[2:])
        spoilt = sequence[first].files.union(*(sequence[other].files for other, of in held.items() if of == because and other < one))
        assert first < one and first in found.broken and meets(sequence[one].files, spoilt)
    for one in found.good:
        assert not any(broken < one and meets(sequence[one].files, sequence[broken].files) for broken in found.broken)
    assert all(list(run) == sorted(run) for run in runs), "in the order in which they were done"
    assert len(runs) <= 2 + len(found.broken) * (max(count, 1).bit_length() + 3), len(runs)


@given(st.integers(0, 2**32), st.integers(1, 12), st.floats(0.05, 0.5))
def test_a_flaky_command_blames_seldom_and_only_after_four_runs_that_agree(seed: int, count: int, rate: float) -> None:
    chance = random.Random(seed)
    told: dict[tuple[int, ...], list[Told]] = {}

    def flaky(with_: tuple[int, ...]) -> Told:
        told.setdefault(with_, []).append("failed" if chance.random() < rate else "passed")
        return told[with_][-1]

    found, _ = play([unit(n) for n in range(count)], flaky)
    for blamed in found.broken:
        assert any(one[-1:] == (blamed,) and said[-2:] == ["failed", "failed"] for one, said in told.items())
