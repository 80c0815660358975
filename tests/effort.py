"""How hard properties are tried: a little each time, for hours when asked.

`COORD_TEST_EFFORT=20 make test` tries twenty times as many examples as a test names. The default
suite, which has to end within five minutes, tries seven of ten; `make test-slow` tries the invariants
harder.
"""

from __future__ import annotations

import os

EFFORT = float(os.environ.get("COORD_TEST_EFFORT", "0.7"))


def examples(usual: int) -> int:
    """So many examples, by the effort that is asked for."""
    return max(1, round(usual * EFFORT))
