"""A replay's plan: which tasks carry which edits, and how it is kept in a file.

Owns the shape of a plan and its JSON. Worker processes load it, so it imports little; how a plan
is drawn up stands in `planning`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.replay.changes import Change, Entry, Hunk, Kind

_FORMAT = 1


def path_of(resource: str) -> str:
    """The file of a region; any other resource is a file."""
    return resource.rpartition("::")[0] or resource


class Task(NamedTuple):
    """One agent's piece of work.

    `files` are the resources it declares (files, or regions of them); `discovered` are those it
    finds out about only while working, and must acquire then. `edits` maps each changed path to the
    hunks to carry into it; an empty list means the whole-file operation (and all hunks of a renamed
    file).
    """

    id: str
    title: str
    files: tuple[str, ...]
    discovered: tuple[str, ...]
    edits: dict[str, tuple[int, ...]]
    think_s: float
    priority: int


class Plan(NamedTuple):
    """All tasks, and the changes that they refer to by path."""

    seed: int
    agents: int
    tasks: tuple[Task, ...]
    changes: dict[str, Change]

    def task(self, task_id: str) -> Task:
        """The task with this id.

        Raises:
            KeyError: there is none.
        """
        for task in self.tasks:
            if task.id == task_id:
                return task
        raise KeyError(task_id)

    def shared_files(self) -> dict[str, int]:
        """Paths that more than one task touches, with the number of tasks; most shared first."""
        counts: dict[str, int] = {}
        for task in self.tasks:
            for path in {path_of(one) for one in (*task.files, *task.discovered)}:
                counts[path] = counts.get(path, 0) + 1
        hot = [(path, n) for path, n in counts.items() if n > 1]
        return dict(sorted(hot, key=lambda item: (-item[1], item[0])))

    def save(self, path: Path) -> None:
        """Write as JSON. Bytes become text one to one (Latin-1), so that it can be read."""
        body = {
            "format": _FORMAT,
            "seed": self.seed,
            "agents": self.agents,
            "tasks": [task._asdict() for task in self.tasks],
            "changes": [_packed(change) for change in self.changes.values()],
        }
        path.write_text(json.dumps(body), encoding="ascii")

    @classmethod
    def load(cls, path: Path) -> Plan:
        """Read what `save` wrote.

        Raises:
            ValueError: it is no plan, or one of another format.
            OSError: it cannot be read.
        """
        body = json.loads(path.read_bytes())
        if not isinstance(body, dict) or body.get("format") != _FORMAT:
            raise ValueError(f"{path} is no replay plan of format {_FORMAT}")
        tasks = tuple(
            Task(
                t["id"],
                t["title"],
                tuple(t["files"]),
                tuple(t["discovered"]),
                {name: tuple(hunks) for name, hunks in t["edits"].items()},
                t["think_s"],
                t["priority"],
            )
            for t in body["tasks"]
        )
        changes = (_unpacked(change) for change in body["changes"])
        return cls(body["seed"], body["agents"], tasks, {c.path: c for c in changes})


def _packed(change: Change) -> dict[str, Any]:
    return {
        "kind": change.kind.value,
        "path": change.path,
        "source": change.source,
        "old": _packed_entry(change.old),
        "new": _packed_entry(change.new),
        # The old side is a slice of the old file; only its place is kept.
        "hunks": [(h.start, len(h.old), h.new.decode("latin-1")) for h in change.hunks],
    }


def _packed_entry(entry: Entry | None) -> list[Any] | None:
    return None if entry is None else [entry.data.decode("latin-1"), *entry[1:]]


def _unpacked(raw: dict[str, Any]) -> Change:
    old, new = (
        None if e is None else Entry(e[0].encode("latin-1"), e[1], e[2])
        for e in (raw["old"], raw["new"])
    )
    before = old.data if old else b""
    hunks = tuple(
        Hunk(start, before[start : start + length], text.encode("latin-1"))
        for start, length, text in raw["hunks"]
    )
    return Change(Kind(raw["kind"]), raw["path"], raw["source"], old, new, hunks)
