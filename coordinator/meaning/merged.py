"""What fits on both sides, and not in their merge: one side changed what the other had begun to
use. Told from four versions of each file that either side changed.

Each side's change is judged where the other's is there already; what it breaks by itself, where it
was made, is that side's own and is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coordinator.meaning.facts import Facts
from coordinator.meaning.file_facts import facts_of
from coordinator.meaning.judging import breaks_of
from coordinator.meaning.outcomes import Break, Versions
from coordinator.meaning.world import Stored

#: The files of one version, by path; None where it is not there.
_Tree = Mapping[str, Facts | None]


def misfits(stored: Stored, files: Sequence[Versions]) -> list[Break]:
    """The places of the merge that break by what the other side changed, by path and line. Nothing
    where a version cannot be read: that is another's part to tell."""
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
    """What the change from `base` to `mine` breaks where `other` is there, and did not without."""
    alone = {_key(breakage) for breakage in _broken(stored, base, mine)}
    return [breakage for breakage in _broken(stored, other, both) if _key(breakage) not in alone]


def _broken(stored: Stored, before: _Tree, after: _Tree) -> list[Break]:
    return [breakage for path in before if before[path] is not after[path]
            for breakage in breaks_of(stored, path, before[path], after) if breakage.sure]


def _key(breakage: Break) -> tuple[str, str, str]:
    return breakage.path, breakage.region, breakage.target
