"""Checks of a merge's result, whichever way it was made.

Owns the checks. Each compares the result with the three versions that it was made from, and gives a
sentence for each fault. A fault that a version had already is no fault of the merge. Pure: the
readings come from the worker.

The first three also check git's own clean merges. git knows lines, and a name that one side uses
and the other removed is on no line that both changed. The other checks are for merges by region,
which can make errors that a merge by lines cannot.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.merging import taken_away
from coordinator.merging.items import Item, bound_by, walk
from coordinator.merging.leaves import BRINGS, brought_in
from coordinator.regions.reading import PythonNames, Reading

_NUMBER = re.compile(r"#\d+(?=\.|\Z)")
_WORD = re.compile(rb"\w")
_DEFINITIONS = frozenset({"function", "method", "class", "constants"})


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that a check found: a sentence, and the names that it is about."""

    why: str
    names: tuple[str, ...] = ()


def sound(versions: Sequence[Reading], result: Reading) -> list[Fault]:
    """Find the faults of a result as text of its language, by any merge.

    Args:
        versions: base, ours, theirs.
    """
    base, ours, theirs = versions
    counts = [_regions(reading) for reading in (*versions, result)]
    return [*_parsed(ours, theirs, result), *_bound(versions, result),
            *_doubled(base, ours, theirs, result), *_kept_after_all(*counts)]


def _parsed(ours: Reading, theirs: Reading, result: Reading) -> list[Fault]:
    mine, other, made = ours.python, theirs.python, result.python
    if mine and other and mine.parsed and other.parsed and made and not made.parsed:
        return [Fault("the result is no Python")]
    if result.outline.note and not (ours.outline.note or theirs.outline.note):
        return [Fault("the result could not be read")]
    if result.errors > max(ours.errors, theirs.errors):
        return [Fault("the grammar finds faults in the result that neither side has")]
    return []


def _bound(versions: Sequence[Reading], result: Reading) -> list[Fault]:
    was, mine, other, made = (reading.python for reading in (*versions, result))
    if not (mine and other and made and mine.parsed and other.parsed and made.parsed):
        return []
    faults = []
    unbound = sorted(set(made.unbound) - set(mine.unbound) - set(other.unbound))
    if unbound:
        faults.append(Fault(f"{_listed(unbound)} used, and bound nowhere", tuple(unbound)))
    early = sorted(set(made.early) - set(mine.early) - set(other.early))
    if early:
        faults.append(Fault(f"{_listed(early)} used before it is bound", tuple(early)))
    if was is not None and was.parsed:
        for gone, using in ((mine, other), (other, mine)):
            names = _gone(was, gone, using, made)
            if names:
                faults.append(Fault(
                    f"{_listed(names)} gone on one side and newly used on the other", names))
    return faults


def _gone(
    was: PythonNames, gone: PythonNames, using: PythonNames, made: PythonNames,
) -> tuple[str, ...]:
    """Find members of classes that one side removed, and that the other uses in more places than
    before. Classes with bases are left out, because they may inherit the member."""
    matches = []
    for name, made_class in made.classes.items():
        before, without, after = (python_names.classes.get(name) for python_names
                                  in (was, gone, using))
        if before is None or without is None or after is None or made_class.bases:
            continue
        missing = set(before.members) - set(without.members) - set(made_class.members)
        matches += [
            f"{name}.{member}" for member in sorted(missing)
            if after.used.get(member, 0) > before.used.get(member, 0)
            and made_class.used.get(member, 0)
        ]
    return tuple(matches)


def _doubled(base: Reading, ours: Reading, theirs: Reading, result: Reading) -> list[Fault]:
    counts = [_named(reading) for reading in (base, ours, theirs, result)]
    names = {name for name, count in counts[3].items()
             if count > 1 and count > max(count[name] for count in counts[:3])}
    for before, mine, other, made in (
            [_regions(reading) for reading in (base, ours, theirs, result)],
            [_defined(reading) for reading in (base, ours, theirs, result)]):
        # Definitions that each version has once, and that a side moved, even if now adjacent.
        names |= {name for name, count in made.items()
                  if count > 1 and before[name] == mine[name] == other[name] == 1}
    matches = sorted(names)
    return [Fault(f"{_listed(matches)} there more than once", tuple(matches))] if matches else []


def _kept_after_all(
    base: Counter[str], ours: Counter[str], theirs: Counter[str], result: Counter[str],
) -> list[Fault]:
    """Find definitions that one side removed and the other only moved: to lines, they are new."""
    names = sorted(name for name, count in result.items()
                   if count and base[name] == 1 and {ours[name], theirs[name]} == {0, 1})
    return [Fault(f"{_listed(names)} gone on one side and still there",
                  tuple(names))] if names else []


def _regions(reading: Reading) -> Counter[str]:
    return Counter(_NUMBER.sub("", region.name) for region in reading.outline.regions
                   if region.kind in _DEFINITIONS)


def _defined(reading: Reading) -> Counter[str]:
    return Counter(reading.python.defined if reading.python is not None else {})


def _named(reading: Reading) -> Counter[str]:
    """Count the places of each name. Adjacent definitions of one name count once, such as
    overloads, or a property and its setter."""
    count: Counter[str] = Counter()
    before = ""
    for region in reading.outline.regions:
        if region.kind not in _DEFINITIONS:
            before = ""
            continue
        name = _NUMBER.sub("", region.name)
        if name != before:
            count[name] += 1
        before = name
    return count


def complete(
    versions: Sequence[bytes], result: bytes, imports: Sequence[Sequence[Item] | None],
    shared: Changes,
) -> list[Fault]:
    """Find lines that a merge by region has more or less often than both sides' changes require.

    Args:
        versions: base, ours, theirs.
        imports: the items of the four texts, where imports were merged as sets: their lines are
            left out.
        shared: equal changes of both sides, which therefore may count once.
    """
    counts = []
    for data, items in zip((*versions, result), imports, strict=True):
        count = lines_of(data)
        for item in walk(items or ()):
            if item.key.startswith("i:"):
                count.subtract(lines_of(item.text))
        counts.append(count)
    base, ours, theirs, made = counts
    wrong = []
    for line in base.keys() | ours.keys() | theirs.keys() | made.keys():
        both = ours[line] + theirs[line] - base[line]
        if not both - shared.added[line] <= made[line] <= both + shared.removed[line]:
            wrong.append(line)
    if not wrong:
        return []
    shown = min(wrong).decode("utf-8", "replace")[:60]
    return [Fault(f"{len(wrong)} lines are not as often there as they should be (as {shown!r})")]


def imported_once(versions: Sequence[Sequence[Item]], result: Sequence[Item]) -> list[Fault]:
    """Find names that the result of a merge by region imports from two places."""
    counts = []
    for items in (*versions, result):
        count: Counter[str] = Counter()
        for item in items:
            if item.key.startswith("i:"):
                count.update(bound_by(item))
        counts.append(count)
    names = sorted(name for name, times in counts[3].items()
                   if times > 1 and times > max(count[name] for count in counts[:3]))
    if not names or "*" in names:
        return []
    return [Fault(f"{_listed(names)} imported from two places", tuple(names))]


def imports_renamed(versions: Sequence[Sequence[Item]]) -> list[Fault]:
    """Find names that one side newly imports, and whose name or origin the other has renamed."""
    names = taken_away.imports(*([text for item in walk(items) if item.kind in BRINGS
                                  for text in brought_in(item)] for items in versions))
    return [Fault(f"{_listed(names)} newly imported, by what the other side renamed",
                  tuple(names))] if names else []


def lines_of(data: bytes) -> Counter[bytes]:
    """Count each line, without white space at its ends. Lines without words are left out."""
    return Counter(line for raw in data.split(b"\n") if _WORD.search(line := raw.strip()))


class Changes:
    """Lines that both sides added, and that both removed, in the same item."""

    def __init__(self) -> None:
        self.added: Counter[bytes] = Counter()
        self.removed: Counter[bytes] = Counter()

    def note(self, base: bytes, ours: bytes, theirs: bytes) -> None:
        """Count the equal lines in these changes of one item."""
        was = lines_of(base)
        mine, other = lines_of(ours), lines_of(theirs)
        self.added += (mine - was) & (other - was)
        self.removed += (was - mine) & (was - other)


def kept(versions: Sequence[Reading], result: Reading) -> list[Fault]:
    """Find regions that a merge by region lost, or kept against one side. Renames are excluded."""
    was, mine, other, made = (
        Counter(_NUMBER.sub("", region.name) for region in reading.outline.regions
                if region.kind != "block") for reading in (*versions, result))
    wrong = []
    for name in was | mine | other | made:
        both = mine[name] + other[name] - was[name]
        alike = min(mine[name] - was[name], other[name] - was[name])
        gone = min(was[name] - mine[name], was[name] - other[name])
        if not both - max(0, alike) <= made[name] <= both + max(0, gone):
            wrong.append(name)
    wrong.sort()
    return [Fault(f"{_listed(wrong)} lost or kept against one side", tuple(wrong))] if wrong else []


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    verb = "is" if len(names) == 1 else "are"
    return f"{shown} and {len(names) - 3} more {verb}" if len(names) > 3 else f"{shown} {verb}"
