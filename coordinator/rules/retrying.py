"""What is tried again: its life, how long it rests between attempts, and when it is dead. Pure.

A change waits as `queued`, a step as `waiting`; a task has more to its life (`rules.backlog`).
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

#: (state, verb) -> state afterwards. Every pair outside a table is refused: BAD_TRANSITION.
Transitions = dict[tuple[str, str], str]


def _make_life(waiting: str) -> Transitions:
    """The transitions of every kind, by its name for waiting."""
    return {
        (waiting, "give"): "given",
        ("given", "fail"): waiting,
        ("given", "exhaust"): "dead",
        (waiting, "exhaust"): "dead",
        ("dead", "retry"): waiting,
        ("dead", "drop"): "dropped",
        (waiting, "drop"): "dropped",
    }


STEP_TRANSITIONS = _make_life("waiting") | {
    ("given", "finish"): "done",
    ("dead", "finish"): "done",
}
CHANGE_TRANSITIONS = _make_life("queued") | {
    ("given", "give"): "given",
    ("given", "apply"): "done",
    ("given", "refuse"): "refused",
}
#: States in which a step or a change stays, unless a person acts.
CLOSED = frozenset({"done", "refused", "dead", "dropped"})
#: The most by which a rest varies, as a part of it.
JITTER = 0.25


class Limits(NamedTuple):
    """The rests of a kind: after the first attempt (ms), at most (ms), and their variation (a part
    of 1)."""

    base_ms: int
    most_ms: int
    jitter: float = 0.0


def rest_ms(name: str, attempts: int, base_ms: int, most_ms: int, jitter: float = JITTER) -> int:
    """The rest of `name` (an id) after its `attempts`-th attempt: doubled each time, bounded, and
    varied by up to `jitter`, so that many that failed together do not all return together. It
    depends on id and attempt alone: a replay decides the same."""
    plain = min(most_ms, base_ms * (1 << min(max(attempts, 1) - 1, 30)))
    spread = zlib.crc32(f"{name} {attempts}".encode()) / 0xFFFFFFFF * 2 - 1
    return max(1, round(plain * (1 + jitter * spread)))


def rest_after_failure(name: str, attempts: int, attempts_max: int, limits: Limits) -> int | None:
    """How long `name` rests after an attempt that failed (ms); None if that was its last."""
    return rest_ms(name, attempts, *limits) if attempts < attempts_max else None
