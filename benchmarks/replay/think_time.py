"""How long a stand-in agent thinks: a distribution, written as `lognormal:2s`.

Owns the notation and the drawing. Reads no clock and sleeps nowhere.
"""

from __future__ import annotations

import math
import random
import re
from typing import NamedTuple

#: Of the logarithm: two thirds of all times lie between 0.6 and 1.65 of the median.
LOGNORMAL_SIGMA = 0.5

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)(ms|s|m)?")
_SECONDS = {"ms": 0.001, "s": 1.0, None: 1.0, "m": 60.0}


class Think(NamedTuple):
    """A distribution of times; `low_s` and `high_s` in seconds (the same, save for uniform)."""

    name: str
    low_s: float
    high_s: float

    def draw(self, chance: random.Random) -> float:
        """One time in seconds, rounded to microseconds."""
        if self.name == "uniform":
            value = chance.uniform(self.low_s, self.high_s)
        elif self.name == "lognormal" and self.low_s > 0:
            value = chance.lognormvariate(math.log(self.low_s), LOGNORMAL_SIGMA)
        else:
            value = self.low_s
        return round(value, 6)


def parse(text: str) -> Think:
    """`fixed:0.1s`, `uniform:0.5s-2s`, or `lognormal:2s` (its median); `ms`, `s` and `m`.

    Raises:
        ValueError: it is none of these; the message names the part that is wrong.
    """
    name, colon, rest = text.strip().partition(":")
    if not colon or name not in ("fixed", "uniform", "lognormal"):
        raise ValueError(
            f"think time {text!r}: expected fixed:0.1s, uniform:0.5s-2s or lognormal:2s"
        )
    low, dash, high = rest.partition("-")
    if bool(dash) != (name == "uniform"):
        shape = "two times, like 0.5s-2s" if name == "uniform" else "one time, like 2s"
        raise ValueError(f"think time {text!r}: {name} takes {shape}")
    low_s = _seconds(low, text)
    high_s = _seconds(high, text) if dash else low_s
    if high_s < low_s:
        raise ValueError(f"think time {text!r}: {high} is less than {low}")
    return Think(name, low_s, high_s)


def _seconds(duration: str, whole: str) -> float:
    match = _DURATION.fullmatch(duration.strip())
    if not match:
        raise ValueError(f"think time {whole!r}: {duration!r} is no duration, like 2s or 250ms")
    return float(match[1]) * _SECONDS[match[2]]
