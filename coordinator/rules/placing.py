"""Making room for a task between two others, in an order by priority and then by arrival. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Ranked(NamedTuple):
    """A task in the order: higher priorities first, then lower numbers."""

    task: str
    priority: int
    n: int

    @property
    def rank(self) -> tuple[int, int]:
        """Smaller is earlier."""
        return -self.priority, self.n


def make_room(task: Ranked, earlier: Sequence[Ranked],
              later: Ranked | None) -> tuple[int, dict[str, int]]:
    """The priority that puts a task between those `earlier` than it (nearest first) and the one
    right behind it; and the new priorities of earlier ones that have to be raised for it."""
    first = earlier[0] if earlier else None
    candidates = [task.priority]
    candidates += [] if later is None else [later.priority, later.priority + 1]
    candidates += [] if first is None else [first.priority, first.priority - 1]
    for priority in candidates:
        placed = task._replace(priority=priority)
        if (later is None or placed.rank < later.rank) and (
                first is None or first.rank < placed.rank):
            return priority, {}
    assert later is not None  # else one below the first is behind it
    below = task._replace(priority=later.priority + (task.n > later.n))
    own, raised = below.priority, {}
    for other in earlier:
        if other.rank < below.rank:
            break
        below = other._replace(priority=below.priority + (other.n > below.n))
        raised[other.task] = below.priority
    return own, raised
