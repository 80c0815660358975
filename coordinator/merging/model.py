"""What goes into a merge by region and what comes out: pure shapes.

Knows no git, no grammar and no file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from coordinator.regions.reading import Reading

By = Literal["git", "regions", "conflict"]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two sides, as a conflict names it.

    Attributes:
        label: what stands behind its marker: a branch, a file, an agent.
        intent: what it was about, in the words of whoever did it; may be empty.
    """

    label: str
    intent: str = ""

    def told(self) -> str:
        """One line that names both."""
        return " ".join(f"{self.label} ({self.intent})".split()) if self.intent else self.label


@dataclass(frozen=True, slots=True)
class Clash:
    """What both sides changed, and what could not be shown to fit together.

    Attributes:
        name: the region's; of a file's own part `<file>`.
        why: the reason, a few words.
        base, ours, theirs: the three texts; each empty or whole lines.
    """

    name: str
    why: str
    base: bytes
    ours: bytes
    theirs: bytes


#: A text in order: what is decided, and what is not.
Segments = list[bytes | Clash]


@dataclass(frozen=True, slots=True)
class Lines:
    """What a merge by lines came to: the text, with markers where `conflicts` is not 0."""

    data: bytes
    conflicts: int


class LineMerge(Protocol):
    """git's merge by lines: the one act that is handed in."""

    @property
    def marker_size(self) -> int:
        """How many signs a marker has."""

    @property
    def shows_base(self) -> bool:
        """Whether what was there before stands between the markers, too."""

    def __call__(
        self, base: bytes, ours: bytes, theirs: bytes, labels: tuple[str, str, str] | None = None,
    ) -> Lines:
        """Merge three texts.

        Args:
            labels: what stands behind the markers of ours, base and theirs.
        """


#: What a merge asks of a file's bytes.
Read = Callable[[bytes], Reading]


@dataclass(frozen=True, slots=True)
class Merged:
    """The outcome.

    Attributes:
        data: the merged file; with markers in it if `by` is `conflict`.
        by: who decided: git's merge by lines, the merge by region, or nobody.
        conflicts: the regions in conflict, in order.
        markers: how many conflicts are marked in `data`.
        notes: what a person should know of how it came to this.
    """

    data: bytes
    by: By
    conflicts: Sequence[Clash] = ()
    markers: int = 0
    notes: Sequence[str] = field(default_factory=tuple)
