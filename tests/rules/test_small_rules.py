"""The rules that are a line or two, each against a plain reading of its sentence."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.rules import backlog, leases, negotiation
from coordinator.rules.backlog import TRANSITIONS
from coordinator.rules.landing import Change, unseen
from coordinator.rules.retrying import rest_ms
from coordinator.rules.versions import Known, Watched, carries, lost, replaced, shown, violated
from coordinator.words.clock import iso
from coordinator.words.resource_names import path_scope, resource

HASHES = [None, "sha256:1", "sha256:2"]
NOW_MS = 1_780_000_000_000


@dataclass(frozen=True)
class Lease:
    """As much of a lease as a rule looks at."""

    locked_by: str
    mode: str
    file_path: str
    kind: str
    expires_at: str = ""

    @property
    def scope(self) -> str:
        return resource(self.file_path, self.kind).scope  # type: ignore[arg-type]


# ------------------------------------------------------------ versions

def test_a_write_is_stale_only_when_somebody_else_may_have_replaced_what_was_read() -> None:
    for read, now, last, by, partial, held, others in itertools.product(
            HASHES, HASHES, HASHES, [None, "ann", "bob"], [True, False], [True, False], [True, False]):
        stale = replaced(Known(read, now, last, by, partial, held, others), "ann")
        same = read == now
        own_writing = last == now and by == "ann" and not partial
        assert stale == (not same and not own_writing and not (held and not others)), (read, now, last, by, partial, held)


def test_a_command_is_to_blame_only_for_what_nobody_else_explains() -> None:
    for before, now, recorded, busy in itertools.product(HASHES, HASHES, HASHES, [True, False]):
        blamed = violated(Watched(before, now, recorded, busy))
        changed = now != before and now != recorded
        assert blamed == (changed and not busy)


# ------------------------------------------------------------ leases

@given(now=st.integers(0, 10**6), ttl=st.integers(1, 10**6), most=st.integers(0, 2 * 10**6), current=st.integers(0, 2 * 10**6))
def test_a_renewal_never_shortens_and_never_passes_the_most(now: int, ttl: int, most: int, current: int) -> None:
    until = leases.renewed_until(now, ttl, most, current)
    assert until >= current
    assert until <= max(current, most) and until <= max(current, now + ttl)
    assert until in (current, most, now + ttl)
    if now + ttl <= most:
        assert until == max(current, now + ttl)


@given(a=st.integers(-5, 5), b=st.integers(-5, 5), age_a=st.integers(-10, 400), age_b=st.integers(-10, 400), step=st.integers(1, 90))
def test_who_waits_longer_or_matters_more_stands_before(a: int, b: int, age_a: int, age_b: int, step: int) -> None:
    one = leases.standing(a, iso(NOW_MS - age_a), NOW_MS, step)
    two = leases.standing(b, iso(NOW_MS - age_b), NOW_MS, step)
    worth_a, worth_b = a + max(0, age_a) // step, b + max(0, age_b) // step
    if worth_a != worth_b:
        assert (one < two) == (worth_a > worth_b)
    elif age_a != age_b:
        assert (one < two) == (age_a > age_b), "then by age"
    else:
        assert one == two


def test_a_lease_is_dead_at_its_very_last_instant() -> None:
    assert [leases.dead(iso(NOW_MS), iso(NOW_MS + ms)) for ms in (-1, 0, 1)] == [False, True, True]


@pytest.mark.parametrize("kind", ["file", "glob"])
def test_a_place_can_be_shared_by_many_and_had_by_one(kind: str) -> None:
    def slots(name: str, *holders: tuple[str, str]) -> int:
        return len({leases.slot(kind, name, mode, holder) for mode, holder in holders})  # type: ignore[arg-type]

    assert slots("a/*.py", ("exclusive", "ann"), ("exclusive", "bob")) == 1
    assert slots("a/*.py", ("shared", "ann"), ("shared", "bob")) == 2
    assert slots("a/*.py", ("shared", "ann"), ("shared", "ann")) == 1
    both = {leases.slot(kind, name, "exclusive", "ann") for name in ("a/*.py", "a/*.md")}  # type: ignore[arg-type]
    assert len(both) == (2 if kind == "glob" else 1), "globs of one directory need not meet"


# ------------------------------------------------------------ handing on

THINGS = [("a.py", "file"), ("a/", "dir"), ("a/b.py", "file"), ("a/b.py::f", "region"), ("a/*.py", "glob"),
          ("a/b*.py", "glob"), ("ab.py", "file"), ("key:a", "key"), ("key:a:b", "key")]
WITHIN = {("a/b.py", "a/"), ("a/b.py::f", "a/b.py"), ("a/b.py::f", "a/"), ("a/*.py", "a/"), ("a/b*.py", "a/"),
          ("key:a:b", "key:a")}


def test_a_right_covers_what_lies_within_it_and_no_more() -> None:
    for held, asked in itertools.product(THINGS, THINGS):
        for mode, wanted in itertools.product(["shared", "exclusive"], repeat=2):
            lease = Lease("ann", mode, *held)
            found = negotiation.covers(lease, resource(*asked), wanted)  # type: ignore[arg-type]
            inside = held == asked or (asked[0], held[0]) in WITHIN
            assert found == (inside and (mode == "exclusive" or wanted == "shared")), (held, asked, mode, wanted)


def test_what_is_handed_on_ends_with_the_longest_right_that_covers_it() -> None:
    asked = resource("a/b.py", "file")
    handed = [(Lease("ann", "exclusive", "a/b.py", "file"), "3"), (Lease("ann", "exclusive", "a/", "dir"), "5"),
              (Lease("ann", "shared", "a/", "dir"), "7"), (Lease("ann", "exclusive", "c.py", "file"), "9")]
    assert negotiation.no_longer_than(handed, asked, "exclusive") == "5"
    assert negotiation.no_longer_than(handed, asked, "shared") == "7"
    assert negotiation.no_longer_than(handed[3:], asked, "shared") is None


# ------------------------------------------------------------ tasks

def test_a_task_waits_for_all_and_is_blocked_by_one_that_will_never_be_done() -> None:
    states = sorted({state for state, _ in TRANSITIONS} | set(TRANSITIONS.values()))
    hopeless = {"dead", "cancelled", "blocked"}
    for size in range(3):
        for before in itertools.product(states, repeat=size):
            wanted = ("blocked" if hopeless & set(before) else
                      "ready" if set(before) <= {"done"} else "pending")
            assert backlog.state_for(before) == wanted, before
            assert backlog.state_for(iter(before)) == wanted, before


def test_each_failure_doubles_the_rest_up_to_the_most() -> None:
    rests = [rest_ms("T-1", n, 100, 5_000, jitter=0) for n in range(1, 200)]
    assert rests[:7] == [100, 200, 400, 800, 1600, 3200, 5000] and set(rests[6:]) == {5_000}
    assert rest_ms("T-1", 200, 1, 2**40, jitter=0) == 2**30, "and no number grows without end"


@given(st.dictionaries(st.integers(0, 7), st.lists(st.integers(0, 7), max_size=3), max_size=8))
def test_a_cycle_is_found_if_there_is_one_and_is_one(given_edges: dict[int, list[int]]) -> None:
    edges = {str(a): [str(b) for b in to] for a, to in given_edges.items()}
    reach = {a: set(to) for a, to in edges.items()}
    for _ in range(8):
        for to in reach.values():
            to |= {c for b in to for c in reach.get(b, ())}
    found = backlog.cycle(edges)
    assert (found is not None) == any(a in to for a, to in reach.items())
    if found is not None:
        assert found[0] == found[-1] and len(found) == len(set(found)) + 1
        assert all(two in edges[one] for one, two in itertools.pairwise(found))


def test_a_long_chain_has_none_and_takes_no_stack() -> None:
    assert backlog.cycle({str(n): [str(n + 1)] for n in range(20_000)}) is None


# ------------------------------------------------------------ landing

names = st.lists(st.sampled_from(["a", "b", "ab", "a.b"]), min_size=1, max_size=3).map("/".join)


@given(changed=st.lists(names, max_size=4, unique=True), moved=st.lists(names, max_size=4))
def test_what_moved_at_above_or_below_a_path_is_unseen(changed: list[str], moved: list[str]) -> None:
    def meets(one: str, two: str) -> bool:
        return one == two or one.startswith(two + "/") or two.startswith(one + "/")

    found = unseen([Change(p, path_scope(p)) for p in changed], [path_scope(p) for p in moved])
    assert found == [p for p in changed if any(meets(p, m) for m in moved)]


@given(st.integers(1, 30), st.sets(st.integers(0, 29), min_size=1), st.integers(0, 30), st.integers(0, 30),
       st.sampled_from(["", "{}\t", "{}:", "  {} "]), st.sampled_from(["\n", "\r\n"]))
def test_shown_is_what_has_all_that_differs_with_three_lines_around(
    size: int, differ: set[int], first: int, last: int, number: str, ends: str,
) -> None:
    now = [f"line {n}" for n in range(size)]
    before = [f"{line} before" if n in differ else line for n, line in enumerate(now)]
    printed = "\n".join(["Output:", *(number.format(n + 1) + now[n] for n in range(first, min(last, size))), "done"])
    there = [n for n in differ if n < size]
    whole = bool(there) and first <= max(min(there) - 3, 0) and last >= min(max(there) + 4, size)
    if there:
        assert shown(ends.join(before), ends.join(now), printed) == whole


@pytest.mark.parametrize(("base", "told", "now", "new", "does"), [
    ("a b", "a c", "a c", "a b", False),
    ("a b", "a c", "a c", "x c", True),
    ("a b", "a c", "a c", "c", True),          # what the agent removes of its own is its business
    ("a b", "a c", "a c", "a b c", False),     # the line that went is back
    ("a", "a a", "a a", "a", False),           # as often as it stands there
    ("a a", "a", "a", "a a", False),
    ("a", "a b", "a", "a", True),              # it has gone again since
    ("a b", "a", "a b", "a b", True),          # it is back by somebody else
    ("a b", "b a", "b a", "a b", False),       # moved lines cannot be seen, so it has to be read
    ("", "a", "a", "b", False), ("a", "", "", "a", False), ("a", "", "", "b", True),
])
def test_a_content_carries_a_change(base: str, told: str, now: str, new: str, does: bool) -> None:
    assert carries(*("\n".join(text.split()) for text in (base, told, now, new))) is does


@pytest.mark.parametrize(("before", "after", "now", "is_lost"), [
    ("a b", "a c", "a b", True), ("a b", "a c", "a c", False), ("a b", "a c", "x a c y", False),
    ("a b", "a c", "", True), ("", "a", "b", True), ("", "a", "b a", False),
    ("f 1 . g 1", "f 2 . g 1", "f 3 . g 2", True),   # the same line elsewhere is another one
    ("f 1 . g 1", "f 2 . g 1", "f 2 . g 3", False),
    ("a b c", "a c", "a b c", True), ("a b c", "a c", "x a c", False), ("a b c", "a c", "", False),
    ("a b", "a b", "", False),                 # it was no edit
])
def test_an_edit_is_lost(before: str, after: str, now: str, is_lost: bool) -> None:
    assert lost(*("\n".join(text.split()) for text in (before, after, now))) is is_lost


def test_a_difference_that_was_not_printed_whole_was_not_shown() -> None:
    before = "".join(f"line {n}\n" for n in range(30))
    now = before.replace("line 10\n", "LINE 10\n").replace("line 20\n", "LINE 20\n")
    lines = now.splitlines()
    assert shown(before, now, "\n".join(lines[7:24]))
    assert not shown(before, now, "\n".join(lines[8:24])) and not shown(before, now, "\n".join(lines[7:23]))
    assert not shown(before, now, "\n".join(lines[7:12] + lines[17:24]))
    assert not shown("a\n", "\n", "\n\n\n"), "blank lines are in every output"
    assert not shown("", "x\n", "axe\n")
