"""The slices that there are (`words.slices`), as the kernel calls them."""

from __future__ import annotations

from coordinator.kernel.hooks import Slice
from coordinator.words.slices import import_parts


def _make_slices() -> tuple[Slice, ...]:
    """Each folder's `slice` module declares one."""
    return tuple(part() for module in import_parts("slice") for part in vars(module).values()
                 if isinstance(part, type) and part.__module__ == module.__name__
                 and issubclass(part, Slice))


SLICES = _make_slices()
