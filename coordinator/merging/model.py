"""The types of the input and the output of a merge by region.

These types know no git, no grammar and no file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from coordinator.regions.reading import Reading

By = Literal["git", "regions", "conflict"]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two sides of a merge, as a conflict names it.

    Attributes:
        label: the name that follows the side's marker: a branch, a file, an agent.
        intent: what the change was for, in the words of its author; may be empty.
    """

    label: str
    intent: str = ""

    def line(self) -> str:
        """Return one line with the label, and with the intent in brackets if there is one."""
        return " ".join(f"{self.label} ({self.intent})".split()) if self.intent else self.label


@dataclass(frozen=True, slots=True)
class Clash:
    """A region that both sides changed, and whose two changes the merge could not join.

    Attributes:
        name: the region's name; `<file>` for the part of a file that no region has.
        why: the reason, in a few words.
        base, ours, theirs: the three texts; each is empty or made of whole lines.
    """

    name: str
    why: str
    base: bytes
    ours: bytes
    theirs: bytes


#: The parts of a merged text, in order: bytes are decided, a `Clash` is not.
Segments = list[bytes | Clash]


@dataclass(frozen=True, slots=True)
class Lines:
    """The result of a merge by lines. Its text has markers if `conflicts` is not 0."""

    data: bytes
    conflicts: int


class LineMerge(Protocol):
    """git's merge by lines. The merge by region gets it as an argument, and runs no other git."""

    @property
    def marker_size(self) -> int:
        """How many characters a marker has."""

    @property
    def shows_base(self) -> bool:
        """Whether the markers also show the base text."""

    def __call__(
        self, base: bytes, ours: bytes, theirs: bytes, labels: tuple[str, str, str] | None = None,
    ) -> Lines:
        """Merge three texts.

        Args:
            labels: the texts that follow the markers of ours, base and theirs.
        """


#: A function that divides the bytes of a file into regions for the merge.
Read = Callable[[bytes], Reading]


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a merge by region.

    Attributes:
        data: the merged file, with markers in it if `by` is `conflict`.
        by: what decided: git's merge by lines, the merge by region, or nothing (`conflict`).
        conflicts: the regions in conflict, in order.
        markers: how many conflicts have markers in `data`.
        notes: sentences that tell a person how the merge came to this result.
    """

    data: bytes
    by: By
    conflicts: Sequence[Clash] = ()
    markers: int = 0
    notes: Sequence[str] = field(default_factory=tuple)
