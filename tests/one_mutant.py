"""A plugin for `make mutants`: the same examples each time, no shrinking, nothing remembered from
the test before, and no test without an end.

mutmut forks a process for each change that it tries; a change can make a loop that never ends. The
process that it forks from has run the whole suite: what that left in a function's cache would stand
for the changed code, and only the first test that asks would be known to reach what is behind it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

#: mutmut's exit code for a run that took too long.
TIMED_OUT = 36
#: How long a test may take: so much, and so many times what it took with nothing changed.
SECONDS, TIMES = 20.0, 8.0


def pytest_configure(config: pytest.Config) -> None:
    del config
    settings.register_profile(
        "mutants", settings.get_profile("coord"), derandomize=True, database=None,
        phases=[Phase.explicit, Phase.generate],
    )
    settings.load_profile("mutants")


def _usual() -> dict[str, float]:
    try:
        stats: dict[str, Any] = json.loads(Path("mutmut-stats.json").read_text())
    except (OSError, ValueError):
        return {}
    return dict(stats["duration_by_test"])


def _forget() -> None:
    """Empty the caches of all functions of the project."""
    for name, module in list(sys.modules.items()):
        if name.startswith("coordinator."):
            for one in list(vars(module).values()):
                if hasattr(one, "cache_clear"):
                    one.cache_clear()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _forget()

    def over(*_: object) -> None:
        os._exit(TIMED_OUT)

    usual = _usual()
    if usual and os.environ.get("MUTANT_UNDER_TEST"):
        before = signal.signal(signal.SIGALRM, over)
        signal.setitimer(signal.ITIMER_REAL, SECONDS + TIMES * usual.get(item.nodeid, 1.0))
        yield
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    else:
        yield
