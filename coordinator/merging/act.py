"""Merging three texts with all that this room has: git, the worker that reads, the rule.

Composes. Decides one thing: if the merge by region fails, git's result is returned, with a note.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from coordinator.merging.git_merge import MARKER_SIZE, GitMerge
from coordinator.merging.merge import merge
from coordinator.merging.model import Merged, Side
from coordinator.regions.languages import language_of
from coordinator.source.outlines import Outlines


@dataclass(frozen=True, slots=True)
class Manner:
    """How the conflicts of a merge are labelled and marked.

    Attributes:
        style: `merge`, `diff3` or `zdiff3`; None: as git is set up.
        place: the directory that git runs in; None: this one.
    """

    ours: Side = field(default_factory=lambda: Side("ours"))
    base: str = "base"
    theirs: Side = field(default_factory=lambda: Side("theirs"))
    marker_size: int = MARKER_SIZE
    style: str | None = None
    place: Path | None = None


def merge_texts(
    base: bytes, ours: bytes, theirs: bytes, path: str, manner: Manner | None = None,
    asking: Callable[[], Outlines] = Outlines,
) -> Merged:
    """Merge three versions of the file `path`.

    Raises:
        GitFailed: git itself would not merge them: they are no text, or git could not be run.
    """
    manner = manner or Manner()
    language = language_of(path, ours)
    with GitMerge(manner.marker_size, manner.style, manner.place) as git, asking() as outlines:
        git.set_labels(manner.ours.line(), manner.base, manner.theirs.line())
        by_lines = git(base, ours, theirs)
        try:
            return merge(
                base, ours, theirs, git=by_lines, lines=git, sides=(manner.ours, manner.theirs),
                read=lambda data: outlines.read(data, language),
            )
        except Exception as bad:
            return Merged(
                by_lines.data, "conflict" if by_lines.conflicts else "git",
                markers=by_lines.conflicts,
                notes=(f"the merge by region failed ({type(bad).__name__}: {bad})",),
            )
