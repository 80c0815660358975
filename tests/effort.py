"""How hard properties are tried: a little each time, for hours when asked.

`COORD_TEST_EFFORT=20 make test` tries twenty times as many examples as the default suite, which has
to end within a few minutes.
"""

from __future__ import annotations

import os

EFFORT = float(os.environ.get("COORD_TEST_EFFORT", "1"))


def examples(usual: int) -> int:
    """So many examples, by the effort that is asked for."""
    return max(1, round(usual * EFFORT))
