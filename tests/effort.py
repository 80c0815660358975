"""How hard properties are tried: a little each time, for hours when asked.

`COORD_TEST_EFFORT=20 make test` tries twenty times as many examples as a test names. The default
suite, which has to end within five minutes, tries half of them; `make test-slow` tries the invariants
harder, and `make mutants` takes seven of ten.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest

EFFORT = float(os.environ.get("COORD_TEST_EFFORT", "0.5"))


def examples(usual: int) -> int:
    """So many examples, by the effort that is asked for."""
    return max(1, round(usual * EFFORT))


def crossed(*values: Iterable[Any], possible: Callable[..., bool] = lambda *_: True) -> list[Any]:
    """Cases for `parametrize` of several names: each value of one with each of the others.

    The default run tries so many that each value is in one of them; `make test-slow` tries the rest.

    Args:
        possible: whether there is such a case at all.
    """
    sets = [list(some) for some in values]
    diagonal = [tuple(some[n % len(some)] for some in sets) for n in range(max(map(len, sets)))]
    whole = [case for case in itertools.product(*sets) if possible(*case)]
    tried: list[set[int]] = [set() for _ in sets]
    cases = []
    for case in sorted(whole, key=lambda case: case not in diagonal):
        places = [some.index(value) for some, value in zip(sets, case, strict=True)]
        new = any(place not in seen for place, seen in zip(places, tried, strict=True))
        for place, seen in zip(places, tried, strict=True):
            seen.add(place)
        cases.append(pytest.param(*case, marks=[] if new else [pytest.mark.slow]))
    return cases
