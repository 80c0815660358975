"""Which finished work breaks a command: what is verified together, and whom a failure is put down
to. Pure.

`units` makes, from what done tasks have left, the pieces that stand or fall together, in order.
`search` is the whole course of one verification: it asks for runs of the command on the base with
some of the units on top, and ends in `Findings`. Nobody is blamed by one failure: the suspect has
to fail a second time, and what lies below it to pass a second time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

#: What a run of the command has told. `untold`: it could not be run, or was stopped.
Told = Literal["passed", "failed", "untold"]
#: good: all of it passes. broken: somebody's work breaks it, and the rest was gone on with. base:
#: it fails without any of it. committed: what belongs to no task breaks it. flaky: it contradicted
#: itself. untold: it could not be run.
Outcome = Literal["good", "broken", "base", "committed", "flaky", "untold"]


class Work(NamedTuple):
    """What a task had left when it was done.

    Attributes:
        n: its number; work is in the order of these.
        task: whose it is.
        state: waiting, good (it is in the base), broken, or held (it lies on top of broken work).
        because: of held and broken work: the task whose repair it waits for.
        files: paths that it changes.
    """

    n: int
    task: str
    state: str
    because: str | None
    files: frozenset[str]


class Unit(NamedTuple):
    """What stands or falls together.

    Attributes:
        works: numbers of finished work, in order; none for what was committed by hand.
        task: whom it is put down to; None: nobody.
        files: paths that it changes.
        above: a task whose broken work, which nobody has repaired yet, lies in the same files: so
            it may fail for that one's sake, and is never blamed.
    """

    works: tuple[int, ...]
    task: str | None
    files: frozenset[str]
    above: str | None = None


class Findings(NamedTuple):
    """What a verification has come to; units by their place in the sequence.

    Attributes:
        good: those that the command passes with; they are the next base's.
        broken: those that break it, each of a task.
        held: those that lie on top of a broken one, and fail or were not tried: (unit, its task).
        at: where it stopped, for `committed` and `flaky`.
    """

    outcome: Outcome
    good: tuple[int, ...] = ()
    broken: tuple[int, ...] = ()
    held: tuple[tuple[int, str], ...] = ()
    at: int | None = None


def units(works: Iterable[Work]) -> list[Unit]:
    """The units of what waits, in order. A task that was found to break the command and is done
    again stands or falls with its earlier work, and with all that lies on top of that."""
    in_order = sorted(works)
    spoilt = [(one.n, str(one.because), one.files) for one in in_order
              if one.state in ("broken", "held")]
    waiting = [one for one in in_order if one.state == "waiting"]
    repairs: dict[str, int] = {}
    for work in waiting:
        if any(because == work.task and n < work.n for n, because, _ in spoilt):
            repairs.setdefault(work.task, work.n)
    joined: dict[str, list[Work]] = {}
    made = []
    for work in waiting:
        own = work.task if repairs.get(work.task) == work.n else None
        parts = [work]
        if own is not None:
            parts = sorted([one for one in in_order if one.n < work.n and one.because == own]
                           + joined.get(own, [])) + parts
        files = frozenset[str]().union(*(one.files for one in parts))
        below = next((because for n, because, there in spoilt
                      if n < work.n and because != own and meets(there, files)
                      and repairs.get(because, work.n) >= work.n), None)
        if below in repairs:
            joined.setdefault(str(below), []).extend(parts)  # its repair comes, and judges both
            spoilt.append((work.n, str(below), files))
        else:
            made.append(Unit(tuple(one.n for one in parts), work.task, files, below))
    return made


def superseded(works: Iterable[Work], unit: Unit) -> dict[int, frozenset[str]]:
    """Of the works of a unit: the files in which other work, which comes before the unit, lies on
    top of them. What that left is the newer content, and has these changes in it."""
    last = max(unit.works)
    others = [work for work in works if work.n < last and work.n not in unit.works
              and work.state in ("good", "waiting")]
    return {n: frozenset().union(*(other.files for other in others if other.n > n))
            for n in unit.works}


def meets(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two sets of paths have one in common, or one that lies below one of the other."""
    return not (_with_above(one).isdisjoint(other) and one.isdisjoint(_with_above(other)))


def _with_above(paths: frozenset[str]) -> set[str]:
    return {above for path in paths for above in accumulate(path.split("/"), "{}/{}".format)}


def search(sequence: Sequence[Unit]) -> Generator[tuple[int, ...], Told, Findings]:
    """The course of a verification. Yields the units that the command is to be run with, on top of
    the base and in this order; is sent what that told; returns what it came to.

    Of n units one that breaks the command is found by about log2(n) + 4 runs.
    """
    good: list[int] = []
    broken: list[int] = []
    held: list[tuple[int, str]] = []
    left = list(range(len(sequence)))

    def found(outcome: Outcome, at: int | None = None) -> Findings:
        return Findings(outcome, tuple(good), tuple(broken), tuple(held), at)

    base_stands = False
    while True:
        told = yield (*good, *left)
        if told == "untold":
            return found("untold")
        if told == "passed":
            good += left
            return found("broken" if broken else "good")
        if not base_stands:
            told = yield ()
            if told == "failed":
                told = yield ()
                return found("base" if told == "failed" else
                             "flaky" if told == "passed" else "untold")
            if told == "untold" or not left:
                return found("untold" if told == "untold" else "flaky")
            base_stands = True
        low, high = 0, len(left)  # the first `low` of them pass, the first `high` do not
        while high - low > 1:
            middle = (low + high) // 2
            told = yield (*good, *left[:middle])
            if told == "untold":
                return found("untold")
            low, high = (middle, high) if told == "passed" else (low, middle)
        suspect = left[high - 1]
        again = yield (*good, *left[:high])
        without: Told = "untold"
        if again == "failed":
            without = yield (*good, *left[: high - 1])
        if "untold" in (again, without) and again != "passed":
            return found("untold")
        if again == "passed" or without == "failed":
            return found("flaky", suspect)
        good += left[: high - 1]
        task, spoilt = sequence[suspect].above or sequence[suspect].task, sequence[suspect].files
        if task is None:
            return found("committed", suspect)
        if sequence[suspect].above is None:
            broken.append(suspect)
        else:
            held.append((suspect, task))
        rest = []
        for one in left[high:]:
            if meets(sequence[one].files, spoilt):
                held.append((one, task))
                spoilt |= sequence[one].files
            else:
                rest.append(one)
        if not rest:
            return found("broken" if broken else "good")
        left = rest
