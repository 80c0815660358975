"""What must hold of a merge's result, whoever made it.

Owns the checks: each compares the result with the three versions that it was made from, and gives a
sentence for what it found. What was wrong in a version already is no fault of the merge. Pure: the
readings come from the worker.

The first three hold of git's own clean merges, too: git knows lines, and a name that is used on one
side and gone on the other is on no line that both changed. The others are for merges by region,
which could do what lines cannot.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.merging.items import Item, walk
from coordinator.regions.reading import PythonNames, Reading

_NUMBER = re.compile(r"#\d+(?=\.|\Z)")
_WORD = re.compile(rb"\w")


@dataclass(frozen=True, slots=True)
class Fault:
    """What a check found: a sentence, and the names that it is about."""

    why: str
    names: tuple[str, ...] = ()


def sound(versions: Sequence[Reading], result: Reading) -> list[Fault]:
    """What is wrong with a result as text of its language, by any merge.

    Args:
        versions: base, ours, theirs.
    """
    base, ours, theirs = versions
    return [*_parsed(ours, theirs, result), *_bound(base, ours, theirs, result),
            *_doubled(base, ours, theirs, result)]


def _parsed(ours: Reading, theirs: Reading, result: Reading) -> list[Fault]:
    mine, other, made = ours.python, theirs.python, result.python
    if mine and other and mine.parsed and other.parsed and made and not made.parsed:
        return [Fault("the result is no Python")]
    if result.outline.note and not (ours.outline.note or theirs.outline.note):
        return [Fault("the result could not be read")]
    if result.errors > max(ours.errors, theirs.errors):
        return [Fault("the grammar finds faults in the result that neither side has")]
    return []


def _bound(base: Reading, ours: Reading, theirs: Reading, result: Reading) -> list[Fault]:
    was, mine, other, made = (one.python for one in (base, ours, theirs, result))
    if not (mine and other and made and mine.parsed and other.parsed and made.parsed):
        return []
    out = []
    unbound = sorted(set(made.unbound) - set(mine.unbound) - set(other.unbound))
    if unbound:
        out.append(Fault(f"{_listed(unbound)} used, and bound nowhere", tuple(unbound)))
    early = sorted(set(made.early) - set(mine.early) - set(other.early))
    if early:
        out.append(Fault(f"{_listed(early)} used before it is bound", tuple(early)))
    if was is not None and was.parsed:
        for gone, using in ((ours, other), (theirs, mine)):
            names = _gone(base, gone, was, using, made, result)
            if names:
                out.append(Fault(
                    f"{_listed(names)} gone on one side and newly used on the other", names))
    return out


def _gone(
    base: Reading, gone: Reading, was: PythonNames, using: PythonNames, made: PythonNames,
    result: Reading,
) -> tuple[str, ...]:
    """Methods that one side took away, and that the other calls in more places than before."""
    missing = _methods(base) - _methods(gone) - _methods(result)
    return tuple(sorted(
        name for name in missing
        if using.used.get(f"self.{name}", 0) > was.used.get(f"self.{name}", 0)
        and made.used.get(f"self.{name}", 0)
    ))


def _methods(reading: Reading) -> set[str]:
    return {one.name.rpartition(".")[2].partition("#")[0] for one in reading.outline.regions
            if one.kind == "method"} | {one.name for one in reading.pieces if one.within >= 0}


def _doubled(base: Reading, ours: Reading, theirs: Reading, result: Reading) -> list[Fault]:
    counts = [_named(one) for one in (base, ours, theirs, result)]
    names = sorted(name for name, count in counts[3].items()
                   if count > 1 and count > max(one[name] for one in counts[:3]))
    return [Fault(f"{_listed(names)} there more than once", tuple(names))] if names else []


def _named(reading: Reading) -> Counter[str]:
    """How many of each name there are. Those that stand next to each other count as one: what is
    overloaded, a property and its setter."""
    count: Counter[str] = Counter()
    before = ""
    for region in reading.outline.regions:
        if region.kind not in ("function", "method", "class", "constants"):
            before = ""
            continue
        name = _NUMBER.sub("", region.name)
        if name != before:
            count[name] += 1
        before = name
    return count


def complete(
    versions: Sequence[bytes], result: bytes, imports: Sequence[Sequence[Item] | None],
) -> list[Fault]:
    """What is wrong with a merge by region: a line that one side added or took out is not so often
    there as both sides together make it.

    Args:
        versions: base, ours, theirs.
        imports: the items of the four texts, where imports were merged as sets: their lines are
            left out.
    """
    counts = []
    for data, items in zip((*versions, result), imports, strict=True):
        count = Counter(line for raw in data.split(b"\n")
                        if _WORD.search(line := raw.strip()))
        for item in walk(items or ()):
            if item.kind == "import":
                count.subtract(line for raw in item.text.split(b"\n")
                               if _WORD.search(line := raw.strip()))
        counts.append(count)
    base, ours, theirs, made = counts
    wrong = [
        line for line in base.keys() | ours.keys() | theirs.keys() | made.keys()
        if not _right(base[line], ours[line], theirs[line], made[line])
    ]
    if not wrong:
        return []
    shown = min(wrong).decode("utf-8", "replace")[:60]
    return [Fault(f"{len(wrong)} lines are not as often there as they should be (as {shown!r})")]


def _right(base: int, ours: int, theirs: int, made: int) -> bool:
    both = ours + theirs - base
    if ours == base or theirs == base:
        return made == both
    if ours > base and theirs > base:
        return max(ours, theirs) <= made <= both
    if ours < base and theirs < base:
        return max(0, both) <= made <= min(ours, theirs)
    return made == both


def kept(versions: Sequence[Reading], result: Reading) -> list[Fault]:
    """What is wrong with a merge by region that renamed nothing: a region that should be there is
    not, or one is that should not."""
    was, mine, other, made = (
        {_NUMBER.sub("", one.name) for one in reading.outline.regions if one.kind != "block"}
        for reading in (*versions, result))
    due = {name for name in mine | other if name not in was or (name in mine and name in other)}
    wrong = sorted(made ^ due)
    return [Fault(f"{_listed(wrong)} lost or kept against one side", tuple(wrong))] if wrong else []


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    verb = "is" if len(names) == 1 else "are"
    return f"{shown} and {len(names) - 3} more {verb}" if len(names) > 3 else f"{shown} {verb}"
