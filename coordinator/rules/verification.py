"""Which finished work breaks a command: what is verified together, and which task a failure is
attributed to. Pure.

`units` divides the work of done tasks into pieces that pass or fail together, in order. `search` is
the whole course of one verification. It asks for runs of the command on the base with some units on
top, and ends in `Findings`. One failure is not enough for blame: the suspect has to fail a second
time, and everything below it has to pass a second time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal, NamedTuple

#: The result of a run of the command. `untold`: it could not be run, or was stopped.
Told = Literal["passed", "failed", "untold"]
#: good: all of it passes. broken: some work breaks it, and the verification continued with the
#: rest. base: it fails without any of it. committed: what belongs to no task breaks it. flaky: it
#: contradicted itself. untold: it could not be run.
Outcome = Literal["good", "broken", "base", "committed", "flaky", "untold"]


class Work(NamedTuple):
    """The work that a task had left when it was done.

    Attributes:
        n: its number; work is in the order of these.
        task: whose it is.
        state: waiting, good (it is in the base), broken, or held (it is on top of broken work).
        because: of held and broken work: the task whose repair it waits for.
        files: paths that it changes.
    """

    n: int
    task: str
    state: str
    because: str | None
    files: frozenset[str]


class Unit(NamedTuple):
    """Works that pass or fail together.

    Attributes:
        works: numbers of finished work, in order; none for what was committed by hand.
        task: the task to blame; None: none.
        files: paths that it changes.
        above: a task whose broken work, not repaired yet, is in the same files: so this may fail
            because of it, and is never blamed.
        parts: of a repair that has work of others on top: its own work, then that of each other.
        commit: of what was committed by hand: the last of these commits.
    """

    works: tuple[int, ...]
    task: str | None
    files: frozenset[str]
    above: str | None = None
    parts: tuple[Unit, ...] = ()
    commit: str | None = None

    @property
    def layers(self) -> tuple[Unit, ...]:
        """The parts that are judged separately: its own work first, then the works on top."""
        return self.parts if self.parts and self.above is None else (self,)


class Findings(NamedTuple):
    """The result of a verification.

    Attributes:
        good: units that the command passes with, in order; they are in the next base.
        broken: those that break it, each of a task.
        held: those that lie on top of a broken one, and fail or were not tried: (unit, its task).
        at: where it stopped, for `committed` and `flaky`.
    """

    outcome: Outcome
    good: tuple[Unit, ...] = ()
    broken: tuple[Unit, ...] = ()
    held: tuple[tuple[Unit, str], ...] = ()
    at: Unit | None = None


def units(works: Iterable[Work]) -> list[Unit]:
    """The units of the waiting works, in order. A task that broke the command and is done again is
    judged with its earlier work, and with everything on top of that."""
    in_order = sorted(works)
    spoilt = [(work.n, str(work.because), work.files) for work in in_order
              if work.state in ("broken", "held")]
    waiting = [work for work in in_order if work.state == "waiting"]
    repairs = _find_repairs(waiting, spoilt)
    joined: dict[str, list[Work]] = {}
    made = []
    for work in waiting:
        own = work.task if repairs.get(work.task) == work.n else None
        parts = [*_find_repaired(own, work.n, in_order, joined), work]
        files = _join_files(parts)
        below = next((because for n, because, there in spoilt
                      if n < work.n <= repairs.get(because, work.n) and because != own
                      and meets(there, files)), None)
        if below in repairs:
            joined.setdefault(str(below), []).extend(parts)  # its repair comes, and judges both
            spoilt.append((work.n, str(below), files))
        else:
            made.append(_unit(parts, work.task, below))
    return made


def _find_repairs(waiting: Iterable[Work], spoilt: Sequence[tuple[int, str, frozenset[str]]]
                  ) -> dict[str, int]:
    """Task -> the first of its works after the one that it has to repair."""
    repairs: dict[str, int] = {}
    for work in waiting:
        if any(because == work.task and n < work.n for n, because, _ in spoilt):
            repairs.setdefault(work.task, work.n)
    return repairs


def _find_repaired(task: str | None, n: int, in_order: Iterable[Work],
                   joined: Mapping[str, list[Work]]) -> list[Work]:
    """The works that are judged with the repair of a task, the work `n`: its earlier ones, and
    those on top of them."""
    if task is None:
        return []
    earlier = [work for work in in_order if work.n < n and work.because == task]
    return sorted(earlier + joined.get(task, []))


def _join_files(works: Iterable[Work]) -> frozenset[str]:
    return frozenset[str]().union(*(work.files for work in works))


def _unit(parts: Sequence[Work], task: str, above: str | None) -> Unit:
    """The unit of these works, divided by whose they are if they are not all of one task."""
    whose = dict.fromkeys((task, *(work.task for work in parts)))
    divided = tuple(_find_unit([work for work in parts if work.task == name], name) for name
                    in whose)
    return _find_unit(parts, task)._replace(above=above, parts=divided if len(divided) > 1 else ())


def _find_unit(works: Sequence[Work], task: str) -> Unit:
    return Unit(tuple(work.n for work in works), task, _join_files(works))


def superseded(files: Mapping[int, frozenset[str]], n: int,
               there: Iterable[int]) -> frozenset[str]:
    """The files of a work that later work, `there` before it, has on top. The later content is
    newer, and includes these changes."""
    return frozenset[str]().union(*(files[other] for other in there if other > n))


def meets(units: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two sets of paths have one in common, or one below a path of the other."""
    return not (_with_above(units).isdisjoint(other) and units.isdisjoint(_with_above(other)))


def _with_above(paths: frozenset[str]) -> set[str]:
    return {above for path in paths for above in accumulate(path.split("/"), "{}/{}".format)}


Runs = Generator[tuple[Unit, ...], Told, Any]


def search(sequence: Sequence[Unit]) -> Generator[tuple[Unit, ...], Told, Findings]:
    """The course of a verification. Yields the units to run the command with, on top of the base
    and in this order; is sent the result; returns the findings.

    Of n units one that breaks the command is found by about log2(n) + 4 runs.
    """
    course = _Course()
    left = list(sequence)
    base_stands = False
    while left or not base_stands:
        result = yield (*course.good, *left)
        if result == "untold":
            return course.end("untold")
        if result == "passed":
            course.good += left
            break
        if not base_stands:
            against = yield from _try_base(bool(left))
            if against is not None:
                return course.end(against)
            base_stands = True
        high, doubt = yield from _find_suspect(course.good, left)
        suspect = left[high - 1]
        if doubt is not None:
            return course.end(doubt, suspect)
        course.good += left[: high - 1]
        left = left[high:]
        task = suspect.above or suspect.task
        if task is None:
            return course.end("committed", suspect)
        own, *on_top = suspect.layers
        result = (yield (*course.good, own)) if on_top else "failed"
        if result == "untold":
            return course.end("untold")
        if result == "passed":  # it is repaired: what breaks it is something on top
            course.good.append(own)
            left = on_top + left
        else:
            left = course.blame(task, own, on_top, left)
    return course.end("broken" if course.broken else "good")


@dataclass(slots=True)
class _Course:
    """The findings of a verification so far, as in `Findings`."""

    good: list[Unit] = field(default_factory=list)
    broken: list[Unit] = field(default_factory=list)
    held: list[tuple[Unit, str]] = field(default_factory=list)

    def end(self, outcome: Outcome, suspect: Unit | None = None) -> Findings:
        """The findings, where the verification ends so; `suspect`: the unit at which it does."""
        return Findings(outcome, tuple(self.good), tuple(self.broken), tuple(self.held),
                        suspect if outcome in ("committed", "flaky") else None)

    def blame(self, task: str, own: Unit, on_top: list[Unit], left: list[Unit]) -> list[Unit]:
        """Blame a failure on a task's own work. Returns what is left to be tried."""
        if own.above is None:
            self.broken.append(own)
        else:
            self.held.append((own, task))
        left, spoilt = _split_spoilt(left, own.files.union(*(unit.files for unit in on_top)))
        self.held += [(unit, task) for unit in (*on_top, *spoilt)]
        return left


def _try_base(anything_left: bool) -> Runs:
    """Run the base alone. Returns the outcome; None if the base passes, so something on top fails.
    """
    result = yield ()
    if result == "failed":
        again = yield ()
        return "base" if again == "failed" else "flaky" if again == "passed" else "untold"
    if result == "untold":
        return "untold"
    return None if anything_left else "flaky"


def _find_suspect(good: Sequence[Unit], left: Sequence[Unit]
                  ) -> Generator[tuple[Unit, ...], Told, tuple[int, Outcome | None]]:
    """How many of these make the command fail, and why it is in doubt that the last of them breaks
    it; None if it does."""
    high = yield from _bisect(good, left)
    if high is None:
        return 0, "untold"
    return high, (yield from _try_suspect(good, left[:high]))


def _bisect(good: Sequence[Unit], left: Sequence[Unit]) -> Runs:
    """The least number of these that makes the command fail; None if a run had no result."""
    low, high = 0, len(left)  # the first `low` of them pass, the first `high` do not
    while high - low > 1:
        middle = (low + high) // 2
        result = yield (*good, *left[:middle])
        if result == "untold":
            return None
        low, high = (middle, high) if result == "passed" else (low, middle)
    return high


def _try_suspect(good: Sequence[Unit], upto: Sequence[Unit]) -> Runs:
    """Run it once more with the last of these, and without it. Returns why it is in doubt; None if
    it breaks the command."""
    again = yield (*good, *upto)
    without: Told = "untold"
    if again == "failed":
        without = yield (*good, *upto[:-1])
    if "untold" in (again, without) and again != "passed":
        return "untold"
    return "flaky" if again == "passed" or without == "failed" else None


def _split_spoilt(left: Sequence[Unit], files: frozenset[str]) -> tuple[list[Unit], list[Unit]]:
    """The units that are apart from these files, and those that build on them, directly or not."""
    apart, spoilt = [], []
    for unit in left:
        if meets(unit.files, files):
            spoilt.append(unit)
            files |= unit.files
        else:
            apart.append(unit)
    return apart, spoilt
