"""Who is in a circle, and who of it gives way: against a plain closure, and whatever the order."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.rules.deadlocks import Member, choose_member, find_members

FIRST, LATER = "2026-11-21T14:00:00.000Z", "2026-11-21T14:00:00.001Z"


@given(st.dictionaries(st.integers(0, 6), st.sets(st.integers(0, 6)), max_size=7), st.integers(0, 6))
def test_members_are_those_that_wait_for_each_other(waits: dict[int, set[int]], one: int) -> None:
    named = {str(a): {str(b) for b in some} for a, some in waits.items()}

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        todo = [start]
        while todo:
            todo += (new := named.get(todo.pop(), set()) - found)
            found |= new
        return found

    met = reached(str(one)) | {str(one)}
    known = {a: named.get(a, set()) for a in met}
    wanted = {a for a in met if str(one) in reached(a) and a in reached(str(one))}
    assert find_members(known, str(one)) == (wanted if len(wanted) > 1 else set())


def test_a_circle_may_be_long() -> None:
    count = 100_000
    waits = {str(n): [str((n + 1) % count)] for n in range(count)}
    assert len(find_members(waits, "0")) == count


@pytest.mark.parametrize(("one", "other"), [
    (Member("zoe", 9, FIRST, was_told=True), Member("ann", 0, LATER)),  # it stays the one
    (Member("zoe", 0, FIRST), Member("ann", 1, LATER)),  # less urgent
    (Member("zoe", -1, FIRST), Member("ann", 0, LATER)),
    (Member("zoe", 1, LATER), Member("ann", 1, FIRST)),  # began last
    (Member("ann", 1, FIRST), Member("zoe", 1, FIRST)),  # by name
    (Member("zoe", 0, FIRST, was_told=True), Member("ann", 1, LATER, was_told=True)),
])
def test_the_first_gives_way(one: Member, other: Member) -> None:
    assert choose_member([one, other]) == choose_member([other, one]) == one.agent


@given(st.lists(st.builds(Member, st.text("abc", min_size=1, max_size=2), st.integers(-1, 1),
                          st.sampled_from([FIRST, LATER]), st.booleans()),
                min_size=1, max_size=6, unique_by=lambda one: one.agent))
def test_the_order_in_which_they_are_found_is_nothing_to_it(circle: list[Member]) -> None:
    chosen = choose_member(circle)
    random.shuffle(circle)
    assert choose_member(circle) == chosen
