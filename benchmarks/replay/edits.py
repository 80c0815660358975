"""Carrying some hunks into a file into which other hunks may, or may not, have been carried.

Several tasks edit one file, in whatever order they get its lease. None of them is told which
others came before: like a person with an editor, each finds out from the bytes. At any time the
content is a *mixture*: the unchanged segments, and between them the old or the new side of each
hunk. Which side it is, is found by walking all mixtures at once.

That needs no two mixtures to be equal, or an edit would be taken for another and be lost without
anybody's fault: `told_apart` joins hunks until this holds. (It can fail where text repeats: one
line `x` too many before or behind a run of lines `x`.) Content that is no mixture was torn by a
writer that died, or written by a stranger. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from benchmarks.replay.changes import Change, Hunk, Segments, mixture, segments

#: Above this many simultaneous doubts, hunks are joined without looking further.
_DOUBTS_MAX = 64


class Torn(ValueError):
    """The content is not a mixture of the file's old and new parts."""


def applied(current: bytes, parts: Segments) -> set[int] | None:
    """The hunks whose new side stands in `current`; None: it is no mixture.

    Exact when the hunks are `told_apart`; otherwise one of the possible answers.
    """
    if not current.startswith(parts.fixed[0]):
        return None
    # Per hunk: position behind it and its following segment -> position before it, and side.
    came_from: list[dict[int, tuple[int, int]]] = []
    positions = [len(parts.fixed[0])]
    for n, sides in enumerate(parts.sides):
        reached: dict[int, tuple[int, int]] = {}
        for at in positions:
            for side in (0, 1):
                text = sides[side]
                if current.startswith(text, at):
                    behind = at + len(text)
                    if current.startswith(parts.fixed[n + 1], behind):
                        reached.setdefault(behind + len(parts.fixed[n + 1]), (at, side))
        came_from.append(reached)
        positions = list(reached)
    if len(current) not in positions:
        return None
    at = len(current)
    chosen: set[int] = set()
    for n in range(len(came_from) - 1, -1, -1):
        at, side = came_from[n][at]
        if side:
            chosen.add(n)
    return chosen


def with_hunks(current: bytes, change: Change, hunks: Collection[int]) -> bytes:
    """`current` with these hunks carried out too; those that are in already stay.

    Raises:
        Torn: `current` is no mixture, so nobody can say where the hunks belong.
    """
    parts = segments(change.old.data if change.old else b"", change.hunks)
    chosen = applied(current, parts)
    if chosen is None:
        raise Torn(f"{change.path} is neither old nor new nor anything in between")
    return mixture(parts, chosen | set(hunks))


def told_apart(old: bytes, hunks: Sequence[Hunk]) -> tuple[Hunk, ...]:
    """The same difference, with hunks joined where two mixtures would be equal."""
    result = list(hunks)
    while (span := _doubtful(segments(old, result))) is not None:
        first, last = span
        result[first : last + 1] = [_joined(old, result[first : last + 1])]
    return tuple(result)


def _joined(old: bytes, hunks: Sequence[Hunk]) -> Hunk:
    start, end = hunks[0].start, hunks[-1].start + len(hunks[-1].old)
    between = segments(old[start:end], [h._replace(start=h.start - start) for h in hunks])
    return Hunk(start, old[start:end], mixture(between, set(range(len(hunks)))))


def _doubtful(parts: Segments) -> tuple[int, int] | None:
    """First and last of a run of hunks that can be carried out in two ways to equal bytes.

    Two writers spell out two choices of sides, segment by segment. As long as what one has written
    begins with what the other has, they may yet become equal; `ahead` is what the one has more.
    Once neither is ahead though they chose differently, they are equal.
    """
    doubts: dict[bytes, int] = {}  # ahead -> the hunk at which the two choices parted
    for n, (old, new) in enumerate(parts.sides):
        after = parts.fixed[n + 1]
        found: dict[bytes, int] = {}
        for ahead, parted in [(b"", n), *doubts.items()]:
            for mine, theirs in ((old, old), (old, new), (new, old), (new, new)):
                if not ahead and mine == theirs:
                    continue  # they have not parted yet
                longer, shorter = ahead + mine + after, theirs + after
                if len(longer) < len(shorter):
                    longer, shorter = shorter, longer
                if longer.startswith(shorter):
                    rest = longer[len(shorter) :]
                    if not rest:
                        return parted, n
                    found[rest] = min(parted, found.get(rest, parted))
        if len(found) > _DOUBTS_MAX:
            return min(found.values()), n
        doubts = found
    return None
