"""Drawing up a plan: edits grouped into tasks so that agents get in each other's way, as in life.

Owns the grouping. Everything random comes from one seed: the same two trees and the same seed give
the same plan on every machine. Pure but for reading the two trees.

Each task touches one to three files. A file with several hunks is given to several tasks, most
often the files with the most hunks: those are the hot ones. No file gets more than a share of all
tasks, for a file that every task needs only measures that one lease can be held by one at a time.
Whole-file operations are never shared: nobody edits a file while another moves it away.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from benchmarks.replay import think_time as thinking
from benchmarks.replay.changes import Change, Kind
from benchmarks.replay.difference import difference
from benchmarks.replay.plan import Plan, Task

#: At most this share of all tasks touches one file, unless asked otherwise.
HOT_SHARE = 0.25
#: This share of the tasks with several files does not declare one of them.
DISCOVERED_SHARE = 0.2
_FILES_OF_A_TASK = (1, 2, 3)
_WEIGHTS = (3, 4, 3)
#: With more files a task than this, too few places would be left for sharing; more tasks, then.
_FILES_MEAN_MAX = 2
_PRIORITIES = (0, 0, 0, 1, 2)

#: Changes that one task must carry together, each with the hunks that it carries.
_Piece = list[tuple[Change, tuple[int, ...]]]


def plan(
    old: Path,
    new: Path,
    *,
    seed: int,
    tasks_per_agent: int = 4,
    agents: int = 6,
    think: str = "lognormal:2s",
    hot_share: float = HOT_SHARE,
    discovered_share: float = DISCOVERED_SHARE,
) -> Plan:
    """The plan that carries the tree `old` to `new`.

    About `agents * tasks_per_agent` tasks: fewer when there are few edits, more when so many files
    changed that three a task would not do. No file is touched by more than `hot_share` of them (but
    by two in any case). Of the tasks with several files, `discovered_share` leave one undeclared.

    Raises:
        ValueError: `think` is malformed (see `think.parse`), or a number is not positive.
        OSError: a tree cannot be read.
    """
    if agents < 1 or tasks_per_agent < 1:
        raise ValueError("agents and tasks per agent must be at least 1")
    pace = thinking.parse(think)
    changes = difference(old, new)
    wanted = agents * tasks_per_agent
    chance = random.Random(seed)
    bundles = _bundles(changes)
    groups = [group for group in _groups(bundles, wanted, hot_share, chance) if group]
    chance.shuffle(groups)
    tasks = []
    for n, pieces in enumerate(groups, 1):
        parts = sorted(
            (part for piece in pieces for part in piece), key=lambda p: (p[0].path, p[1])
        )
        files, discovered = _declared(parts, chance, discovered_share)
        tasks.append(
            Task(
                id=f"R-{n}",
                title=title(parts),
                files=files,
                discovered=discovered,
                edits={change.path: hunks for change, hunks in parts},
                think_s=pace.draw(chance),
                priority=chance.choice(_PRIORITIES),
            )
        )
    return Plan(seed, agents, tuple(tasks), {change.path: change for change in changes})


def title(parts: Iterable[tuple[Change, tuple[int, ...]]]) -> str:
    """`Carry 3 edits to click/core.py and click/types.py; delete click/compat.py`."""
    edited: list[str] = []
    count = 0
    acts: list[str] = []
    for change, hunks in parts:
        if change.kind is Kind.EDIT:
            edited.append(change.path)
            count += len(hunks)
        elif change.kind is Kind.RENAME:
            acts.append(f"rename {change.source} to {change.path}")
        else:
            acts.append(f"{change.kind.value} {change.path}")
    if edited:
        names = " and ".join(filter(None, (", ".join(edited[:-1]), edited[-1])))
        acts.insert(0, f"carry {count} edit{'s' if count > 1 else ''} to {names}")
    text = "; ".join(acts)
    return text[:1].upper() + text[1:]


def _declared(
    parts: Sequence[tuple[Change, tuple[int, ...]]], chance: random.Random, share: float
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the task declares, and what it leaves to be discovered."""
    discovered: tuple[str, ...] = ()
    if len(parts) > 1 and chance.random() < share:
        discovered = chance.choice(parts)[0].paths
    files = tuple(
        path for change, _ in parts for path in change.paths if path not in discovered
    )
    return files, discovered


def _bundles(changes: Sequence[Change]) -> list[list[Change]]:
    """Changes, joined where one needs another: a file where a directory was, or the reverse."""
    bundles: list[list[Change]] = []
    by_path: dict[str, list[Change]] = {}
    for change in sorted(changes, key=lambda c: (c.path, c.source)):
        bundle = [change]
        bundles.append(bundle)
        for path in change.paths:
            by_path[path] = bundle
    for change in changes:
        for path in change.paths:
            above = path
            while above := above.rpartition("/")[0]:
                if above in by_path and by_path[above] is not by_path[path]:
                    kept, joined = by_path[above], by_path[path]
                    kept += joined
                    bundles.remove(joined)
                    for name in (p for c in joined for p in c.paths):
                        by_path[name] = kept
    return bundles


def _groups(
    bundles: Sequence[list[Change]], wanted: int, hot_share: float, chance: random.Random
) -> list[list[_Piece]]:
    """Pieces per task; some tasks may stay empty."""
    if not bundles:
        return []
    limits = [len(b[0].hunks) if _may_be_shared(b) else 1 for b in bundles]
    count = max(min(wanted, sum(limits)), -(-len(bundles) // _FILES_MEAN_MAX))
    most = max(2, round(count * hot_share))
    limits = [min(limit, most) for limit in limits]
    room = chance.choices(_FILES_OF_A_TASK, _WEIGHTS, k=count)
    # Each file needs a place, and enough are left over for some to have several.
    while sum(room) < min(len(bundles) + count // 2, count * _FILES_OF_A_TASK[-1]):
        at = chance.choice([n for n, r in enumerate(room) if r < _FILES_OF_A_TASK[-1]])
        room[at] += 1
    shares = _shares([len(b[0].hunks) for b in bundles], limits, sum(room))
    groups: list[list[_Piece]] = [[] for _ in range(count)]
    for at in sorted(range(len(bundles)), key=lambda n: (-shares[n], n)):
        free = [n for n in range(count) if room[n]]
        chance.shuffle(free)
        # Empty tasks first, so that each gets something; then those with the most room.
        free.sort(key=lambda n: (bool(groups[n]), -room[n]))
        takers = free[: shares[at]] or [chance.randrange(count)]
        for piece, taker in zip(_pieces(bundles[at], len(takers)), takers, strict=True):
            groups[taker].append(piece)
            room[taker] = max(0, room[taker] - 1)
    return groups


def _may_be_shared(bundle: Sequence[Change]) -> bool:
    return len(bundle) == 1 and bundle[0].kind is Kind.EDIT


def _shares(sizes: Sequence[int], limits: Sequence[int], total: int) -> list[int]:
    """How many tasks each bundle goes to: one, and then to whichever has most edits a task."""
    shares = [1] * len(sizes)
    for _ in range(total - len(sizes)):
        open_ = [n for n in range(len(sizes)) if shares[n] < limits[n]]
        if not open_:
            break
        shares[max(open_, key=lambda n: (sizes[n] / shares[n], -n))] += 1
    return shares


def _pieces(bundle: Sequence[Change], count: int) -> list[_Piece]:
    """Cut one bundle into so many runs of neighbouring hunks, as even as can be."""
    if not _may_be_shared(bundle):
        return [[(c, _all_hunks(c)) for c in bundle]]
    (change,) = bundle
    hunks = range(len(change.hunks))
    cuts = [len(hunks) * n // count for n in range(count + 1)]
    return [[(change, tuple(hunks[a:b]))] for a, b in pairwise(cuts)]


def _all_hunks(change: Change) -> tuple[int, ...]:
    return tuple(range(len(change.hunks))) if change.kind is Kind.EDIT else ()
