"""The list of slices, and how the layers below them find their parts.

A slice is a folder of `coordinator/slices/`. It joins in by modules of agreed names: `slice` (its
operations, and its answers to the kernel's hooks), `requests`, `events`, `rows`, `commands`, and by
`queries.sql`. Each of these may be missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

#: In this order the kernel calls them; then those for which the order is no matter.
ORDER = ("backlog", "signals", "state", "steps", "messages", "review", "verify", "guard",
         "regions", "proposals", "landing", "pools", "story")


def _list_slices() -> tuple[str, ...]:
    """The folders, in that order."""
    folder = Path(__file__).parent.parent / "slices"
    names = sorted(path.parent.name for path in folder.glob("*/__init__.py"))
    return (*(name for name in ORDER if name in names),
            *(name for name in names if name not in ORDER))


SLICES = _list_slices()


def import_parts(part: str) -> Iterator[ModuleType]:
    """The modules of this name, of the slices that have one."""
    for name in SLICES:
        if find_spec(module := f"coordinator.slices.{name}.{part}") is not None:
            yield import_module(module)
