"""`outline`, asked of the worker: what tests throw at a grammar may end its process, not theirs."""

from __future__ import annotations

import atexit

from coordinator.regions.process import Outlines

ASKED = Outlines(60.0)
atexit.register(ASKED.close)
outline = ASKED.of
