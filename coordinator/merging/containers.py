"""Merging the items of a file or of a class by three versions: base, ours, theirs. Pure.

The module decides which items are in the result, their order, and the blank lines between them.
`leaves` merges an item that both sides changed.

**The rule.** Items are matched over the three versions. If only one side changed, moved, renamed,
added or deleted an item, the result takes that side's. If one side deleted an item that the other
changed, it is in conflict. The side that moved items gives the order. If both sides moved items
differently, the list cannot be merged. An addition of the other side comes behind the item that it
follows there. Of two additions at one place ours is first. If the order of the two matters, as it
does for statements and annotated fields, they are in conflict.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from coordinator.merging import leaves
from coordinator.merging.checks import Changes
from coordinator.merging.items import Item, bound_by, distinguish_keys
from coordinator.merging.matching import RENAMED_MIN, pairs, renamed
from coordinator.merging.model import Clash, LineMerge, Segments

BASE, OURS, THEIRS = 0, 1, 2
#: Kinds of items that only import names.
_IMPORTING = leaves.BRINGS
_WORDS = re.compile(rb"\w+")
#: Lists with more items, equal nameless texts, or pairs of texts to compare are not merged.
ITEMS_MAX, ALIKE_MAX, COMPARED_MAX = 5_000, 100, 2_000
#: The least likeness of an item that both sides removed to the item that it was renamed to.
GONE_MIN = 0.75


@dataclass(slots=True)
class Slot:
    """One item over the three versions: its position in each, and its merged text."""

    positions: list[int | None]
    segments: Segments = field(default_factory=list)
    kept: bool = True


@dataclass(slots=True)
class Notes:
    """What the checks after the merge have to know of it, and how it is made."""

    renames: list[tuple[str, str]] = field(default_factory=list)
    imports: bool = False
    #: Whether an addition moves behind items that it needs from the other side, as in a second try.
    settles: bool = False
    shared: Changes = field(default_factory=Changes)


def merge(
    versions: Sequence[Sequence[Item]], lines: LineMerge, notes: Notes, name: str,
) -> Segments | None:
    """Merge lists of items; None if their items cannot be matched or ordered.

    Args:
        versions: base, ours, theirs; each begins with its head.
        name: the region's, for conflicts.
    """
    return _Merging(distinguish_keys(versions), lines, notes, name).merge()


class _Merging:
    def __init__(
        self, versions: Sequence[Sequence[Item]], lines: LineMerge, notes: Notes, name: str,
    ) -> None:
        self._versions = versions
        self._lines = lines
        self._notes = notes
        self._name = name
        self._slots: list[Slot] = []
        self._compared = 0
        #: For each version: position -> number of the slot; -1 until it is matched.
        self._numbers: list[list[int]] = [[-1] * len(items) for items in versions]

    def merge(self) -> Segments | None:
        if self._is_too_long() or not self._match() or self._has_rewritten_statement():
            return None
        for slot in self._slots:
            self._merge_slot(slot)
        order = self._find_order()
        if order is None:
            return None
        return self._join(self._mark_order_conflicts(
            self._move_behind_needs(order) if self._notes.settles else order))

    def _item(self, slot: Slot, version: int) -> Item | None:
        position = slot.positions[version]
        return None if position is None else self._versions[version][position]

    def _is_too_long(self) -> bool:
        """Whether matching would take too long. The caller of the merge waits for it."""
        for version in self._versions:
            alike = Counter(item.text.strip() for item in version if not item.key)
            if len(version) > ITEMS_MAX or max(alike.values(), default=0) > ALIKE_MAX:
                return True
        return False

    def _match(self) -> bool:
        """Find the slots. False if there was too much to compare."""
        base, ours, theirs = self._versions
        to_ours, to_theirs = pairs(base, ours), pairs(base, theirs)
        self._match_renames(to_ours, to_theirs, OURS)
        self._match_renames(to_theirs, to_ours, THEIRS)
        self._match_removed_by_both(to_ours, to_theirs)
        for position in range(len(base)):
            self._add_slot([position, to_ours.get(position), to_theirs.get(position)])
        new_ours = [index for index in range(len(ours)) if self._numbers[OURS][index] < 0]
        new_theirs = [index for index in range(len(theirs)) if self._numbers[THEIRS][index] < 0]
        both = pairs([ours[index] for index in new_ours], [theirs[index] for index in new_theirs])
        both = {mine: other for mine, other in both.items()
                if ours[new_ours[mine]].key
                or self._are_one_addition(new_ours[mine], new_theirs[other])}
        for index, position in enumerate(new_ours):
            other = both.get(index)
            self._add_slot([None, position, None if other is None else new_theirs[other]])
        for position in new_theirs:
            if self._numbers[THEIRS][position] < 0:
                self._add_slot([None, None, position])
        return self._compared <= COMPARED_MAX

    def _are_one_addition(self, mine: int, other: int) -> bool:
        """Whether equal additions of both sides, without a name, are one addition."""
        if (self._versions[OURS][mine].text.strip()
                != self._versions[THEIRS][other].text.strip()):
            return False
        before = []
        for version, position in ((OURS, mine), (THEIRS, other)):
            earlier = map(self._numbers[version].__getitem__, range(position - 1, -1, -1))
            before.append(next((number for number in earlier if number >= 0), -1))
        return before[0] == before[1]

    def _add_slot(self, positions: list[int | None]) -> None:
        for version, position in enumerate(positions):
            if position is not None:
                self._numbers[version][position] = len(self._slots)
        self._slots.append(Slot(positions))

    def _match_renames(self, mine: dict[int, int], other: dict[int, int], version: int) -> None:
        """Match items that one side renamed and the other side changed. If the other side left the
        item as it was, there is nothing to merge."""
        base, side = self._versions[BASE], self._versions[version]
        far = self._versions[OURS + THEIRS - version]
        taken = set(mine.values())
        keys = {item.key for item in far}
        new = [index for index, item in enumerate(side)
               if index not in taken and item.key and item.key not in keys]
        for position, item in enumerate(base):
            if position in mine or not item.key or item.kind in _IMPORTING:
                continue
            theirs = other.get(position)
            if theirs is None or far[theirs].text == item.text:
                continue
            number = self._find_renamed(item, [side[index] for index in new])
            if number is not None:
                mine[position] = new.pop(number)
                self._notes.renames.append((item.name, side[mine[position]].name))

    def _find_renamed(
        self, item: Item, candidates: Sequence[Item], least: float = RENAMED_MIN,
    ) -> int | None:
        self._compared += len(candidates)
        return renamed(item, candidates, least) if self._compared <= COMPARED_MAX else None

    def _match_removed_by_both(self, to_ours: dict[int, int], to_theirs: dict[int, int]) -> None:
        """Match items that both sides seem to have removed, but that a side only renamed."""
        base, ours, theirs = self._versions
        for position, item in enumerate(base):
            if (position in to_ours or position in to_theirs or not item.key
                    or item.kind in _IMPORTING):
                continue
            for side, matches in ((ours, to_ours), (theirs, to_theirs)):
                taken = set(matches.values())
                new = [n for n, other in enumerate(side) if n not in taken and other.key]
                number = self._find_renamed(item, [side[index] for index in new], GONE_MIN)
                if number is not None:
                    matches[position] = new[number]
                    self._notes.renames.append((item.name, side[new[number]].name))

    def _has_rewritten_statement(self) -> bool:
        """Whether both sides removed a statement without a name, and a side put another in its
        place. It may be the same statement, changed beyond recognition."""
        gone: set[int] = set()
        before = -1
        for n in self._numbers[BASE]:
            slot = self._slots[n]
            if slot.positions[OURS] is None and slot.positions[THEIRS] is None:
                item = self._versions[BASE][slot.positions[BASE] or 0]
                if not item.key or item.kind == "include":
                    gone.add(before)
            else:
                before = n
        if not gone:
            return False
        for version in (OURS, THEIRS):
            before = -1
            for position, n in enumerate(self._numbers[version]):
                slot = self._slots[n]
                if slot.positions[BASE] is not None:
                    before = n
                elif before in gone and None in slot.positions[OURS:]:
                    item = self._versions[version][position]
                    if not item.key or item.kind == "include":
                        return True
        return False

    def _merge_slot(self, slot: Slot) -> None:
        base, ours, theirs = (self._item(slot, version) for version in (BASE, OURS, THEIRS))
        if ours is not None and theirs is not None:
            slot.segments = leaves.both(base, ours, theirs, self._lines, self._notes, merge)
        elif base is None:
            added = ours or theirs
            assert added is not None
            slot.segments = [added.text]
        elif ours is None and theirs is None:
            slot.kept = False
            self._notes.shared.note(base.text, b"", b"")
        else:
            left = ours or theirs
            assert left is not None
            if left.text == base.text:
                slot.kept = False
                return
            why = "ours deleted it, theirs changed it" if ours is None else (
                "ours changed it, theirs deleted it")
            slot.segments = [Clash(left.name, why, base.text, ours.text if ours else b"",
                                   theirs.text if theirs else b"")]

    def _find_order(self) -> list[int] | None:
        """Return the slots of the result, in order; None if both sides gave an order."""
        kept = {n for n, slot in enumerate(self._slots) if slot.kept}
        common = {n for n in kept if None not in self._slots[n].positions}
        spine = self._find_spine(common)
        if spine is None:
            # Imports may be in either side's order, so the other items decide.
            spine = self._find_spine({n for n in common if not self._is_import(n)})
        if spine is None:
            return None
        order = [n for n in self._numbers[spine] if n in kept]
        self._insert_additions(order, kept, THEIRS if spine == OURS else OURS)
        return sorted(order, key=lambda n: self._find_kind(n) == "tail")

    def _insert_additions(self, order: list[int], kept: set[int], side: int) -> None:
        """Insert each item that only this side has behind its predecessor there."""
        placed = set(order)
        last = -1
        for n in self._numbers[side]:
            if n not in kept:
                continue
            if n in placed:
                last = order.index(n)
                continue
            position = last + 1
            if self._find_kind(n) != "first":
                while position < len(order) and (self._find_kind(order[position]) == "first" or (
                        side == THEIRS and self._is_added_by(order[position], OURS))):
                    position += 1
            order.insert(position, n)
            placed.add(n)
            last = position

    def _find_spine(self, among: set[int]) -> int | None:
        """Return the side that gives the order; None if both moved some of these differently."""
        base, ours, theirs = ([n for n in numbers if n in among] for numbers in self._numbers)
        if ours == base:
            return THEIRS if theirs != base else OURS
        return OURS if theirs in (base, ours) else None

    def _is_import(self, n: int) -> bool:
        position = self._slots[n].positions[OURS]
        return position is not None and self._versions[OURS][position].key.startswith("i:")

    def _find_kind(self, n: int) -> str:
        slot = self._slots[n]
        return next(item.kind for version in (OURS, THEIRS, BASE)
                    if (item := self._item(slot, version)))

    def _is_added_by(self, n: int, version: int) -> bool:
        place = self._slots[n].positions
        return place[BASE] is None and place[version] is not None and place[3 - version] is None

    def _move_behind_needs(self, order: list[int]) -> list[int]:
        """Move each addition of one side behind the items that it needs, if only the other side
        brought them. Neither side can have meant an order of the two."""
        result = list(order)
        brought = {
            version: {n: names for n in order if (names := self._list_brought_names(n, version))}
            for version in (OURS, THEIRS)
        }
        for n in reversed(order):
            version = next((v for v in (OURS, THEIRS) if self._is_added_by(n, v)), None)
            if version is None:
                continue
            item = self._versions[version][self._slots[n].positions[version] or 0]
            if not _runs_at_once(item):
                continue
            words = {word.decode("utf-8", "replace") for word in _WORDS.findall(item.text)}
            position = result.index(n)
            late = [place for place in map(result.index, brought[version])
                    if place > position and words & brought[version][result[place]]]
            if late:
                result.insert(max(late), result.pop(position))
        return result

    def _list_brought_names(self, n: int, version: int) -> set[str]:
        """Return the names that only the other side binds in this item."""
        other = self._item(self._slots[n], 3 - version)
        own = self._item(self._slots[n], version)
        if other is None or other.kind == "block":
            return set()
        return bound_by(other) - (bound_by(own) if own is not None else set())

    def _mark_order_conflicts(self, order: list[int]) -> list[int]:
        """Put additions of both sides at one place in conflict, if their order matters."""
        result: list[int] = []
        run: list[int] = []
        for n in [*order, None]:
            if n is not None and (self._is_added_by(n, OURS) or self._is_added_by(n, THEIRS)):
                run.append(n)
                continue
            result += self._merge_run(run)
            run = []
            if n is not None:
                result.append(n)
        return result

    def _merge_run(self, run: list[int]) -> list[int]:
        """Order neighbouring additions of both sides, or put them in conflict."""
        sides = [[n for n in run if self._is_added_by(n, version)] for version in (OURS, THEIRS)]
        items = [[self._versions[version][self._slots[n].positions[version] or 0] for n in side]
                 for version, side in zip((OURS, THEIRS), sides, strict=True)]
        if not all(any(item.ordered for item in side) for side in items):
            return self._order_by_need(sides, items) if all(sides) else run
        texts = [b"".join(item.text + (item.blank if position + 1 < len(side) else b"")
                          for position, item in enumerate(side)) for side in items]
        first = self._slots[sides[0][0]]
        first.segments = [Clash(
            self._name, "both added statements at one place, and their order may count", b"",
            texts[0], texts[1],
        )]
        return [sides[0][0]]

    def _order_by_need(
        self, sides: Sequence[list[int]], items: Sequence[Sequence[Item]],
    ) -> list[int]:
        """Order the additions of both sides at one place: ours first, but an item comes after the
        item that it needs. Each side's own order stays."""
        queues = [list(zip(*side, strict=True)) for side in zip(sides, items, strict=True)]
        result: list[int] = []
        while all(queues):
            (mine, other) = queues
            ranks = [_rank(queue[0][1]) for queue in queues]
            needs = [_needs(mine[0][1], other), _needs(other[0][1], mine)]
            result.append(queues[(ranks[1], needs[1]) < (ranks[0], needs[0])].pop(0)[0])
        return result + [n for queue in queues for n, _ in queue]

    def _join(self, order: list[int]) -> Segments:
        result: Segments = []
        for index, n in enumerate(order):
            result += self._slots[n].segments
            if index + 1 < len(order):
                result.append(self._find_blank(n, order[index + 1]))
        return result

    def _find_blank(self, n: int, following: int) -> bytes:
        """Return the blank lines between two items, from a version that has them as neighbours."""
        base, ours, theirs = (
            items[position].blank if position is not None and then == position + 1 else None
            for items, position, then in zip(self._versions, self._slots[n].positions,
                                             self._slots[following].positions, strict=True))
        if ours is not None and theirs is not None:
            if base is not None and ours == base:
                return theirs
            return ours if theirs == base or len(ours) >= len(theirs) else theirs
        for data in (ours, theirs, base):
            if data is not None:
                return data
        return self._choose_blank(n, following)

    def _choose_blank(self, n: int, following: int) -> bytes:
        """Return the blank lines between two items that are neighbours in no version."""
        if self._find_kind(n) == "head":
            return max((items[0].blank for items in self._versions if len(items) > 1), key=len)
        new = self._slots[following].positions
        for version in (OURS, THEIRS):  # as it followed another item
            then = new[version]
            if new[BASE] is None and then is not None and then > 0:
                return self._versions[version][then - 1].blank
        around = []
        old = self._slots[n].positions
        for items, position, then in zip(self._versions, old, new, strict=True):
            if position is not None and position + 1 < len(items):
                around.append(items[position].blank)
            if then is not None and then > 0:
                around.append(items[then - 1].blank)
        return max(around, key=len, default=b"")


def _runs_at_once(item: Item) -> bool:
    """Whether the names that the item uses must exist when it is read."""
    return (item.kind not in (*_IMPORTING, "function", "method", "first", "comment")
            or item.text.lstrip().startswith(b"@"))


def _needs(item: Item, others: Sequence[tuple[int, Item]]) -> bool:
    """Whether the item mentions a name that another of these items defines."""
    names = {item.key[2:].partition("#")[0] for _, item in others if item.key[:2] in ("r:", "a:")}
    return any(word.decode("utf-8", "replace") in names for word in _WORDS.findall(item.text))


def _rank(item: Item) -> int:
    """Rank an item by its place: 0 a docstring, 1 imports that must come first, 2 all others."""
    return 2 if item.kind != "first" else int(item.key != "<text>")
