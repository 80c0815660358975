"""The one list of slices, and how the layers below them find their parts.

A slice is a folder of `coordinator/slices/`. It hangs in by modules of agreed names: `slice` (its
operations, and what it does when the kernel calls), `requests`, `events`, `commands`, and by
`queries.sql`. Each of these may be missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

#: In the order in which the kernel calls them.
SLICES = ("backlog", "signals", "state", "steps", "messages", "review", "verify", "guard",
          "regions", "proposals", "landing", "story",)


def import_parts(part: str) -> Iterator[ModuleType]:
    """The modules of this name, of the slices that have one."""
    for name in SLICES:
        if find_spec(module := f"coordinator.slices.{name}.{part}") is not None:
            yield import_module(module)
