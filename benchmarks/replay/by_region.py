"""A plan whose tasks lease regions of files, where their edits change nothing else.

Owns which regions that are, and what a region's text becomes. An edit that adds or removes a
region, or changes what is between them, leases its file as before. Runs where grammars may be
loaded: in the benchmark and in its agents' own processes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.replay.changes import Change, Kind, mixture, segments
from benchmarks.replay.plan import Plan, Task, path_of
from coordinator.regions.differences import changed
from coordinator.regions.languages import language_of
from coordinator.regions.reader import outline


class Text(NamedTuple):
    """A region's new text, and the name of what it was made from."""

    name: str
    text: str
    was: str


def by_region(plan: Plan) -> Plan:
    """The plan with regions in place of files, wherever that can be."""
    return plan._replace(tasks=tuple(_task(plan, task) for task in plan.tasks))


def regions(path: str, before: bytes, after: bytes) -> list[str] | None:
    """The regions that differ and are in both; None: more than such regions does, or the blank
    lines below one, which a commit leaves as they are."""
    language = language_of(path, before[:200])
    old, new = outline(before, language), outline(after, language)
    names = changed(old, before, new, after)
    if not names or not set(names) <= set(old.names()) & set(new.names()):
        return None
    were, are = ({one.name: data[one.start:one.end] for one in found.regions}
                 for found, data in ((old, before), (new, after)))
    return names if all(_below(were[name]) == _below(are[name]) for name in names) else None


def _below(text: bytes) -> bytes:
    """The blank lines at a region's end."""
    return text[len(text.rstrip()):]


def texts(path: str, before: bytes, after: bytes, names: Sequence[str]) -> list[Text]:
    """What these regions are, and are to be.

    Raises:
        UnicodeDecodeError: the file is not UTF-8.
    """
    language = language_of(path, before[:200])
    old = {one.name: one for one in outline(before, language).regions}
    new = {one.name: one for one in outline(after, language).regions}
    out = []
    for name in names:
        if any(name.startswith(f"{other}.") for other in names):
            continue  # it is a part of that one
        was, now = old[name], new[name]
        out.append(Text(name, after[now.start:now.end].decode(), "sha256:" + hashlib.sha256(
            before[was.start:was.end]).hexdigest()))
    return out


def _task(plan: Plan, task: Task) -> Task:
    finer: dict[str, list[str]] = {}
    for path, hunks in task.edits.items():
        change = plan.changes[path]
        names = _of(change, hunks) if change.kind is Kind.EDIT else None
        if names is not None:
            finer[path] = [f"{path}::{name}" for name in names]

    def leased(files: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one for file in files for one in finer.get(file, [file])))

    return task._replace(files=leased(task.files), discovered=leased(task.discovered))


def _of(change: Change, hunks: Sequence[int]) -> list[str] | None:
    old = change.old.data if change.old else b""
    made = mixture(segments(old, change.hunks), set(hunks or range(len(change.hunks))))
    try:
        made.decode()
    except UnicodeDecodeError:
        return None
    return regions(path_of(change.path), old, made)
