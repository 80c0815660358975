"""Whether a write would be based on content that others have replaced meanwhile. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple


class Known(NamedTuple):
    """The facts about one file when an agent is about to write it. Hashes; None: no such file."""

    read: str | None
    """The content that the agent last read or wrote."""
    now: str | None
    """The present content."""
    last: str | None
    """The newest content whose writer was looked for."""
    last_by: str | None
    """That writer, if a lease tells it."""
    partial: bool
    """Whether the agent has written regions of it since, while the rest had changed: the present
    content is its writing then, and yet it does not know all of it."""
    held_since_read: bool
    """Whether the agent has had the exclusive lease ever since it read: no other could lawfully
    have changed it, so any change is the agent's own."""
    by_others: bool = False
    """Known exception: the present content is by another, or is from a time without a process of
    the agent's session."""


def replaced(knowledge: Known, agent: str) -> bool:
    """Whether the agent's knowledge is out of date because of others."""
    if knowledge.read == knowledge.now:
        return False
    if knowledge.last == knowledge.now and knowledge.last_by == agent and not knowledge.partial:
        return False
    return not knowledge.held_since_read or knowledge.by_others


def carries(base: str, shown: str, now: str, new: str) -> bool:
    """Whether a new content carries the change from `base` to `shown`, as far as `now` has it.

    Every line that the change added is there as often, and no line that it removed is back. A
    change that only moves lines, or blank ones, leaves no trace here.
    """
    counts = [Counter(filter(str.strip, text.splitlines())) for text in (base, shown, now, new)]
    before, after, here, there = counts
    came = [line for line in after if after[line] > before[line]]
    went = [line for line in before if before[line] > after[line]]
    return bool(came or went) and all(
        there[line] >= min(after[line], here[line]) for line in came
    ) and all(there[line] <= max(after[line], here[line]) for line in went)


#: More lines that differ than these are compared by their counts alone.
DIFFERENT_MAX = 2_000


def lost(before: str, after: str, now: str) -> bool:
    """Whether a content lacks the edit that made `after` of `before`, whatever else it has: lines
    that the edit brought are gone, or, if it brought none, all that it took away is back."""
    old, new, here = (text.splitlines() for text in (before, after, now))
    came = {position for position in range(len(new)) if new[position].strip()} - _matching(new, old)
    if came:
        return not came <= _matching(new, here)
    went = {position for position in range(len(old)) if old[position].strip()} - _matching(old, new)
    return bool(went) and went <= _matching(old, here)


def _matching(lines: Sequence[str], others: Sequence[str]) -> set[int]:
    """The places of lines that another text has, too, in the same order."""
    first = 0
    while first < min(len(lines), len(others)) and lines[first] == others[first]:
        first += 1
    last = 0
    while (last < min(len(lines), len(others)) - first
           and lines[-1 - last] == others[-1 - last]):
        last += 1
    end = len(lines) - last
    result = {*range(first), *range(end, len(lines))}
    left, right = lines[first:end], others[first : len(others) - last]
    if len(left) + len(right) > DIFFERENT_MAX:
        there = set(right)
        return result | {first + position for position, line in enumerate(left) if line in there}
    for block in SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks():
        result.update(range(first + block.a, first + block.a + block.size))
    return result


class Watched(NamedTuple):
    """One file that others hold, before and after a command that had no right to change it."""

    before: str | None
    now: str | None
    recorded: str | None
    """The newest content that its holder is known to have written."""
    holder_busy: bool
    """Whether the holder was in the middle of a write or command of its own at any time between."""


def violated(seen: Watched) -> bool:
    """Whether the command changed the file, as far as can be told."""
    return seen.now not in (seen.before, seen.recorded) and not seen.holder_busy


#: Lines around a difference that must have been shown with it.
AROUND = 3
#: The prefix of lines that programs number (`cat -n`, `nl`, `grep -n`).
_NUMBER = re.compile(r"^[ \t]*[0-9]+[ \t:|-]", re.MULTILINE)


def shown(before: str, now: str, output: str) -> bool:
    """Whether a printed text shows the present file to a reader who knew it as `before`: it
    contains everything between the first and the last differing line, with the lines around."""
    old, new = before.splitlines(), now.splitlines()
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    part = "\n".join(new[max(first - AROUND, 0) : len(new) - max(last - AROUND, 0)])
    if not part.strip():
        return False  # blank lines are in every output
    text = "\n".join(output.splitlines())
    return any(f"\n{part}\n" in f"\n{name}\n" for name in (text, _NUMBER.sub("", text)))
