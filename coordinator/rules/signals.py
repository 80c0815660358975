"""The strength of a hint at an instant, and how hints order tasks. Pure.

A signal is a hint that fades: it halves with each half-life. The idea is the "pheromone", from
Grassé's stigmergy and Dorigo's ant algorithms. No timer computes anything: the strength at an
instant follows from the last strength, its time, and the half-life. Hints never block and never
outweigh a task's priority. Of tasks with the same priority those with the higher `bias` come first,
then the older ones.

    bias(task) = sum of weight(name) * strength now, over the hints on the task and on what it needs
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

#: The meanings of these words for coord and its agents; any other word may be used beside them.
MEANINGS = {
    "takeup_interest": "somebody would like to take this up",
    "saturation": "enough work on it as it is",
    "files_blocked": "somebody was refused for it, or for what it needs",
    "task_not_ready": "it cannot be gone on with now",
    "priority": "it is wanted sooner than its priority says",
    "completed": "it was finished",
    "warning": "be careful with it",
}
#: The strongest that a hint can be, however often it is added to; weaker ones than the second are
#: as good as gone.
STRENGTH_MAX, FAINT = 10.0, 0.01
#: Half-lives, in milliseconds: a second to a week.
HALF_LIFE_MIN_MS, HALF_LIFE_MAX_MS = 1_000, 7 * 86_400_000


def strength_at(strength: float, half_life_ms: int, age_ms: int) -> float:
    """The rest of a hint's strength after `age_ms`. A clock that went back makes none stronger."""
    return strength * math.exp2(-max(0, age_ms) / half_life_ms)


def added(left: float, more: float) -> float:
    """A hint's strength after an addition."""
    return min(STRENGTH_MAX, left + more)


def bias(hints: Iterable[tuple[str, float]], weights: Mapping[str, float]) -> float:
    """The weight of hints (name, strength now) on the order of a task among others of its priority:
    higher is sooner. Rounded, so that age decides differences below a thousandth."""
    return round(sum(weights.get(name, 0.0) * strength for name, strength in hints), 3)
