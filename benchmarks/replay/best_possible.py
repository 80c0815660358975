"""How fast a replay could be at best, to say how much of that a coordinator got.

Owns two numbers about a plan. Both are bounds from below: no schedule is faster, and there may be
none that is as fast. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.replay.plan import Task, path_of

#: A discovered file is wanted only from the middle of a task on.
DISCOVERED_AFTER = 0.5


def serial_s(tasks: Sequence[Task]) -> float:
    """Seconds that one agent alone would think."""
    return sum(task.think_s for task in tasks)


def best_possible_wall(tasks: Sequence[Task], agents: int) -> float:
    """Seconds of thinking below which `agents` agents cannot be done.

    The greatest of: all thinking shared out evenly; the longest task; and the heaviest set of tasks
    that no two agents may do at once. Such sets are the tasks of one file (a discovered file counts
    from the middle of the task on), made larger, greedily, by tasks that share some declared file
    with each of them.
    """
    if not tasks:
        return 0.0
    serial = [_file_s(tasks, path) for path in _paths(tasks)]
    return max(
        serial_s(tasks) / max(agents, 1),
        max(task.think_s for task in tasks),
        max(serial, default=0.0),
        max((_clique_s(tasks, path) for path in _paths(tasks)), default=0.0),
    )


def by_file(task: Task) -> Task:
    """The task as if it leased the files of its regions."""
    def whole(resources: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(map(path_of, resources)))

    return task._replace(files=whole(task.files), discovered=whole(task.discovered))


def _paths(tasks: Sequence[Task]) -> list[str]:
    return sorted({path for task in tasks for path in (*task.files, *task.discovered)})


def _file_s(tasks: Sequence[Task], path: str) -> float:
    """How long the file is held in all, by the tasks that touch it."""
    declared = sum(t.think_s for t in tasks if _has(t.files, path))
    late = sum(t.think_s for t in tasks if _has(t.discovered, path))
    return declared + late * (1 - DISCOVERED_AFTER)


def _clique_s(tasks: Sequence[Task], path: str) -> float:
    """The weight of a set of tasks, any two of which share a declared file."""
    clique = [t for t in tasks if _has(t.files, path)]
    others = [t for t in tasks if not _has(t.files, path)]
    for task in sorted(others, key=lambda t: (-t.think_s, t.id)):
        if clique and all(_meet(task.files, member.files) for member in clique):
            clique.append(task)
    return sum(t.think_s for t in clique)


def _has(resources: Sequence[str], one: str) -> bool:
    """Whether these contain a file or region, or the file that the region is in."""
    return one in resources or path_of(one) in resources


def _meet(some: Sequence[str], others: Sequence[str]) -> bool:
    return any(_has(others, one) for one in some) or any(_has(some, one) for one in others)
