"""Matching the items of two versions.

Items are matched by name if they have one, otherwise by their text, their neighbours and their
likeness. Pure. It does not decide what is kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from coordinator.merging.items import Item

#: The least likeness of a renamed item to its earlier text, and that of a changed item.
RENAMED_MIN, CHANGED_MIN = 0.6, 0.5
#: Longer texts (words) are compared by their words, in any order.
WORDS_MAX = 3000
_WORDS = re.compile(rb"\w+|[^\w\s]")


def likeness(data: bytes, other: bytes) -> float:
    """Return how much two texts have in common, from 0 to 1."""
    a, b = _WORDS.findall(data), _WORDS.findall(other)
    if not a or not b:
        return float(a == b)
    if max(len(a), len(b)) > WORDS_MAX:
        return 2 * (Counter(a) & Counter(b)).total() / (len(a) + len(b))
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    if matcher.real_quick_ratio() < CHANGED_MIN or matcher.quick_ratio() < CHANGED_MIN:
        return 0.0
    return matcher.ratio()


def pairs(base: Sequence[Item], side: Sequence[Item]) -> dict[int, int]:
    """Match positions in `base` to positions in `side` of the same item, without renames."""
    result: dict[int, int] = {}
    named = {item.key: index for index, item in enumerate(side) if item.key}
    for position, item in enumerate(base):
        if item.key and item.key in named:
            result[position] = named[item.key]
    mine, theirs = list(map(_identify, base)), list(map(_identify, side))
    taken = set(result.values())
    for block in SequenceMatcher(None, mine, theirs, autojunk=False).get_matching_blocks():
        for step in range(block.size):
            a, b = block.a + step, block.b + step
            if a not in result and b not in taken and not base[a].key and not side[b].key:
                result[a] = b
                taken.add(b)
    _match_texts(base, side, result, taken)
    _match_between(base, side, result, taken)
    return result


def _identify(item: Item) -> str | bytes:
    """Return the identity of an item: its key, otherwise its text."""
    return item.key or item.text.strip()


def _match_texts(
    base: Sequence[Item], side: Sequence[Item], matches: dict[int, int], taken: set[int],
) -> None:
    """Match moved items without a name: their text is there once on both sides."""
    left: dict[bytes, list[int]] = {}
    right: dict[bytes, list[int]] = {}
    for position, item in enumerate(base):
        if position not in matches and not item.key:
            left.setdefault(item.text.strip(), []).append(position)
    for position, item in enumerate(side):
        if position not in taken and not item.key:
            right.setdefault(item.text.strip(), []).append(position)
    for text, places in left.items():
        if len(places) == 1 and len(right.get(text, ())) == 1:
            matches[places[0]] = right[text][0]
            taken.add(right[text][0])


def _match_between(
    base: Sequence[Item], side: Sequence[Item], matches: dict[int, int], taken: set[int],
) -> None:
    """Match changed items without a name: each is like an item between the same neighbours."""
    free: list[int] = []
    for position in range(len(base) + 1):
        if position < len(base) and position not in matches:
            if not base[position].key:
                free.append(position)
            continue
        if free:
            before = matches.get(free[0] - 1, -1)
            after = matches[position] if position < len(base) else len(side)
            last = before
            for mine in free:
                best, best_like = -1, CHANGED_MIN
                for other in range(last + 1, after):
                    if other in taken or side[other].key or side[other].kind != base[mine].kind:
                        continue
                    like = likeness(base[mine].text, side[other].text)
                    if like >= best_like:
                        best, best_like = other, like
                        break
                if best >= 0:
                    matches[mine] = last = best
                    taken.add(best)
        free = []


def renamed(item: Item, candidates: Sequence[Item], least: float = RENAMED_MIN) -> int | None:
    """Return the candidate that an item was renamed to; None if none fits, or two could."""
    scored = sorted(
        ((likeness(item.text, other.text), position) for position, other in enumerate(candidates)
         if other.kind == item.kind and (other.items is None) == (item.items is None)),
        reverse=True,
    )
    if not scored or scored[0][0] <= least:
        return None
    if len(scored) > 1 and scored[1][0] > scored[0][0] - 0.1:
        return None
    return scored[0][1]
