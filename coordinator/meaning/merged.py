"""Misfits of a merge: uses that fit on both sides, but not in the merge, because one side changed a
definition that the other had begun to use. Found from four versions of each changed file.

Each side's change is judged in a tree that has the other side's. Breaks by it alone are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coordinator.meaning.facts import Facts
from coordinator.meaning.file_facts import facts_of
from coordinator.meaning.judging import breaks_of
from coordinator.meaning.outcomes import Break, Versions
from coordinator.meaning.world import Stored

#: The files of one version, by path; None for a missing file.
_Tree = Mapping[str, Facts | None]


def misfits(stored: Stored, files: Sequence[Versions]) -> list[Break]:
    """Find the places of the merge that break through the other side's change, by path and line.
    Return nothing if a version cannot be read: another check reports it."""
    facts_by_content: dict[tuple[str, bytes], Facts] = {}

    def facts(path: str, data: bytes | None) -> Facts | None:
        if data is None:
            return None
        if (path, data) not in facts_by_content:
            facts_by_content[path, data] = facts_of(path, data)
        return facts_by_content[path, data]

    base, ours, theirs, both = (
        {versions.path: facts(versions.path, data) for versions,
         data in zip(files, column, strict=True)}
        for column in zip(*((f.base, f.ours, f.theirs, f.merged) for f in files), strict=True)
    ) if files else ({}, {}, {}, {})
    if any(facts.note for facts in facts_by_content.values()):
        return []
    breaks = {*_added(stored, base, ours, theirs, both), *_added(stored, base, theirs, ours, both)}
    return sorted(breaks, key=lambda breakage: (breakage.path, breakage.line, breakage.target,
                                                breakage.why))


def _added(stored: Stored, base: _Tree, mine: _Tree, other: _Tree, both: _Tree) -> list[Break]:
    """Return the breaks of the change from `base` to `mine` that only `other` causes."""
    alone = {_key(breakage) for breakage in _broken(stored, base, mine)}
    return [breakage for breakage in _broken(stored, other, both) if _key(breakage) not in alone]


def _broken(stored: Stored, before: _Tree, after: _Tree) -> list[Break]:
    return [breakage for path in before if before[path] is not after[path]
            for breakage in breaks_of(stored, path, before[path], after) if breakage.sure]


def _key(breakage: Break) -> tuple[str, str, str]:
    return breakage.path, breakage.region, breakage.target
