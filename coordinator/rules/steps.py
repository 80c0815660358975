"""The life of a step that was blocked, and how long it rests between attempts. Pure."""

from __future__ import annotations

import zlib

#: (state, verb) -> state afterwards. What is not here is refused: BAD_TRANSITION.
STEP_TRANSITIONS: dict[tuple[str, str], str] = {
    ("waiting", "give"): "given",
    ("given", "finish"): "done",
    ("given", "fail"): "waiting",
    ("given", "exhaust"): "dead",
    ("waiting", "exhaust"): "dead",
    ("dead", "retry"): "waiting",
    ("dead", "finish"): "done",
    ("dead", "drop"): "dropped",
    ("waiting", "drop"): "dropped",
}
#: States in which nothing happens to a step any more, unless a person acts.
CLOSED = frozenset({"done", "dead", "dropped"})
#: By how much a rest is longer or shorter than the next one's, at most.
JITTER = 0.25


def rest_ms(step: str, attempts: int, base_ms: int, most_ms: int) -> int:
    """How long a step rests after its `attempts`-th attempt: doubled each time, bounded, and more
    or less by up to a quarter, so that many that failed together do not all come again together.
    The same for the same step and attempt: no chance, and a replay decides as it did."""
    plain = min(most_ms, base_ms * (1 << min(max(attempts, 1) - 1, 30)))
    spread = zlib.crc32(f"{step} {attempts}".encode()) / 0xFFFFFFFF * 2 - 1
    return max(1, round(plain * (1 + JITTER * spread)))
