"""Whether a replay arrived: which edits were lost, and which files differ from NEW.

Owns the comparison. Reads two trees, writes nothing. The bytes are what counts: `exact` is equality
of every file; the lost edits say what is missing when it is not.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from benchmarks.replay.changes import Change, Entry, Kind, segments
from benchmarks.replay.difference import IGNORED, read_tree
from benchmarks.replay.edits import applied
from benchmarks.replay.plan import Plan

#: What coordination itself leaves in a repository.
OWN_NAMES = frozenset({".coord"})


class Lost(NamedTuple):
    """An edit that is not in the result; `hunk` is None for a whole-file operation."""

    task: str
    file: str
    hunk: int | None


class Score(NamedTuple):
    """The outcome. All lists are sorted; `torn` files are neither old, nor new, nor in between."""

    lost_edits: tuple[Lost, ...]
    differing_files: tuple[str, ...]
    torn_files: tuple[str, ...]
    edits: int  # how many there were to carry

    @property
    def exact(self) -> bool:
        """Whether the result is NEW, byte for byte."""
        return not self.differing_files


def compare(result: Path, new: Path, plan: Plan, ignored: Collection[str] = ()) -> Score:
    """Compare the tree `result` with the tree `new`, but for `.git`, `.coord` and `ignored` names.

    Raises:
        OSError: a tree cannot be read.
    """
    names = IGNORED | OWN_NAMES | set(ignored)
    got, wanted = read_tree(result, names), read_tree(new, names)
    torn = []
    lost = []
    for task in plan.tasks:
        for path, hunks in task.edits.items():
            change = plan.changes[path]
            missing, whole = _missing(change, got)
            if whole and path not in torn:
                torn.append(path)
            carried: tuple[int | None, ...] = hunks or (None, *range(len(change.hunks)))
            lost += [Lost(task.id, path, n) for n in carried if n in missing]
    return Score(
        lost_edits=tuple(sorted(lost, key=lambda n: (n.file, -1 if n.hunk is None else n.hunk))),
        differing_files=tuple(
            sorted(p for p in got.keys() | wanted.keys() if got.get(p) != wanted.get(p))
        ),
        torn_files=tuple(sorted(torn)),
        edits=sum(change.edits for change in plan.changes.values()),
    )


def _missing(change: Change, got: dict[str, Entry]) -> tuple[set[int | None], bool]:
    """The edits of a change that the result lacks (None: the operation); and whether it is torn."""
    found = got.get(change.path)
    missing: set[int | None] = set()
    if change.kind in (Kind.CREATE, Kind.REPLACE, Kind.DELETE):
        if found != change.new:
            missing.add(None)
        return missing, False
    if change.kind is Kind.RENAME and (change.source in got or found is None):
        missing.add(None)
    if found is None or found.link:
        return missing | set(range(len(change.hunks))), False
    parts = segments(change.old.data if change.old else b"", change.hunks)
    chosen = applied(found.data, parts)
    if chosen is not None:
        return missing | (set(range(len(change.hunks))) - chosen), False
    for n, (_, new) in enumerate(parts.sides):
        # Torn: an edit counts as there if its new lines stand between the lines they belong to.
        before = parts.fixed[n].splitlines(keepends=True)[-1:]
        after = parts.fixed[n + 1].splitlines(keepends=True)[:1]
        if b"".join((*before, new, *after)) not in found.data:
            missing.add(n)
    return missing, True
