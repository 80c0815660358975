"""Numbers out of samples: percentiles, paired ratios, and how fast a cost grows.

The machine that a benchmark runs on is noisy, so an absolute figure says little: contenders take
turns in short slices, and what is reported is the median over rounds of the ratio of two
neighbouring slices. Pure; knows neither clocks nor processes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import msgspec


class Slice(msgspec.Struct):
    """One contender's turn. Instants and durations in seconds."""

    done: int
    seconds: float
    took: list[float]

    @property
    def rate(self) -> float:
        """What was done per second."""
        return self.done / self.seconds if self.seconds > 0 else 0.0


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that at least `share` (0 to 1) of them do not exceed; 0.0 for none."""
    if not samples:
        return 0.0
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def paired(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Median over rounds of `ours / theirs`; rounds in which theirs is 0 do not count."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=False) if b > 0]
    return median(ratios) if ratios else 0.0


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The slope of log(cost) over log(size), by least squares: 0 is flat, 1 is linear."""
    points = [(math.log(n), math.log(c)) for n, c in zip(sizes, costs, strict=True) if n and c]
    if len(points) < 2:
        return 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    over = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / over if over else 0.0
