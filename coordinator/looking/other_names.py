"""The other names of files with hard links: one walk of a working tree for all files of a question.

It misses names that are unreadable or beyond its limit. It follows no link, and reads no content.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator

from coordinator.files.identity import identity

#: How many directory entries are searched for other names of files.
ENTRIES_MAX = 200_000


def names_of(files: Collection[str], base: str,
             check_time: Callable[[], None]) -> dict[str, list[str]]:
    """Return all names, sorted, that these files have in a working tree, relative to it. The files
    are given by `identity`. `base`: the tree's absolute path, with a slash. `check_time` ends a
    walk that takes too long."""
    numbers = {int(file.split(":")[1]) for file in files}
    matches: dict[str, list[str]] = {file: [] for file in files}
    for name, entry in _entries(base, check_time):
        if entry.inode() in numbers and name.isprintable():
            try:
                there = identity(base + name, entry.stat(follow_symlinks=False))
            except OSError:
                continue
            if there in matches:
                matches[there].append(name)
    return {file: sorted(names) for file, names in matches.items()}


def _entries(base: str, check_time: Callable[[], None]) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the entries of a working tree that are no directories."""
    left, todo = ENTRIES_MAX, [""]
    while todo and left > 0:
        directory = todo.pop()
        check_time()
        try:
            with os.scandir(base + directory) as entries:
                for entry in entries:
                    left -= 1
                    name = directory + entry.name
                    if entry.name == ".git" or name == ".coord":
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(name + "/")
                    else:
                        yield name, entry
        except OSError:
            continue
