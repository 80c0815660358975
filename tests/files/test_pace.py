"""Long work rests in between; short work does not, and the clock is its own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.files.pace import FORGET_S, FREE_S, REST_MAX_S, RESTS, Pace


class Clock:
    def __init__(self) -> None:
        self.now, self.slept = 100.0, 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert 0 <= seconds <= REST_MAX_S
        self.now += seconds
        self.slept += seconds


def works(pace: Pace, clock: Clock, seconds: float) -> float:
    """How long it rested after it."""
    before = clock.slept
    with pace.piece():
        clock.now += seconds
    return clock.slept - before


@given(st.lists(st.tuples(st.floats(0, 2), st.floats(0, 0.5)), max_size=40))
def test_others_have_their_time_and_short_work_has_no_rest(pieces: list[tuple[float, float]]) -> None:
    clock = Clock()
    pace, since = Pace(clock, clock.sleep), 0.0
    for idle, work in pieces:
        clock.now += idle
        if idle > FORGET_S:
            since = 0.0
        since += work
        rest = works(pace, clock, work)
        if abs(since - FREE_S) > 1e-6 and abs(idle - FORGET_S) > 1e-6:
            wanted = min(RESTS * work, REST_MAX_S) if since > FREE_S else 0.0
            assert abs(rest - wanted) < 1e-6


def test_what_fails_rests_all_the_same() -> None:
    clock = Clock()
    pace = Pace(clock, clock.sleep)
    try:
        with pace.piece():
            clock.now += 1
            raise OSError
    except OSError:
        pass
    assert clock.slept == REST_MAX_S


def test_what_was_done_since_the_last_rest_is_a_piece() -> None:
    clock = Clock()
    pace, rests = Pace(clock, clock.sleep), []
    for took in (0.0625, 0.0625, 0.125, FORGET_S + 1, 0.0625, 0.125):
        clock.now += took
        before = clock.slept
        pace.rest(1.0)
        rests.append(clock.slept - before)
    assert rests == [0, 0.0625, 0.125, 0, 0, 0.125]
