"""Overlaps: what two working trees change both, and have not landed both."""

from __future__ import annotations

from coordinator.words.requests.base import Count, Reply, Request
from coordinator.words.texts import Name


class OverlapSide(Reply):
    """One of the two working trees."""

    worktree: str | None  # null: the main one
    branch: str | None  # null: none is checked out
    agents: list[str]  # those with leases there now, on this file if any

    def describe(self) -> str:
        """`main (bob)`."""
        place = self.branch or self.worktree or "the main tree"
        return f"{place} ({', '.join(self.agents)})" if self.agents else place


class Overlap(Reply):
    path: str  # of the file, from the root
    regions: list[str] | None  # that both change, as `path::Region`; null: the whole file
    sides: list[OverlapSide]  # the two working trees that change it
    clean: bool  # whether a trial merge of the two has no conflict
    why: str = ""  # what the trial merge conflicts in

    @property
    def names(self) -> list[str]:
        """What both change: regions, or the file."""
        return self.regions or [self.path]

    @property
    def together(self) -> str:
        """What becomes of the two."""
        return "merges" if self.clean else f"conflict: {self.why}"

    def describe(self) -> str:
        """One line: what, where, by whom, and what becomes of it."""
        sides = " and in ".join(side.describe() for side in self.sides)
        return f"{', '.join(self.names)}: in {sides}; {self.together}"


class OverlapList(Reply):
    items: list[Overlap]
    next: str | None = None
    cut: bool = False  # there are more than are listed

    def describe(self) -> list[str]:
        """A line for each, and one if there are more."""
        lines = [item.describe() for item in self.items]
        return [*lines, "there are more: `coord overlap`"] if self.cut else lines


class Overlaps(Request[OverlapList]):
    """What two working trees of the repository change both, file by file and by region, from their
    common commit on, and whether a trial merge of the two is clean. Nothing is changed.

    The files are read as they are now, so uncommitted work counts. The same change on both sides is
    no overlap."""

    op = "overlaps"
    http = ("GET", "/v1/overlaps")
    writes = False
    branch: Name | None = None  # only of the tree that has this branch checked out
    cwd: Name | None = None  # only of the tree with this file or directory
    paths: list[Name] = []  # only of these files
    unasked: bool = False  # for a warning: a few; none where `[worktrees] overlap = "ignore"`
    limit: Count = 200
