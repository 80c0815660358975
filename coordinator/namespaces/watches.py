"""Noticing that a held path has another file: its holder replaced it, made it, or moved it in.

A mount covers a file and not a name, so the keeper has to look again then. The module owns one
inotify descriptor. If a path's directory is missing, it watches the nearest directory above.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterable, Set

from coordinator.namespaces import kernel

log = logging.getLogger("coord.namespaces")


class Watches:
    """The directories around the held paths."""

    def __init__(self) -> None:
        self.descriptor = kernel.watcher()
        self._directory: dict[int, str] = {}  # number of the watch -> directory
        self._number: dict[str, int] = {}
        self._around: dict[str, set[str]] = {}  # directory -> held paths that are seen from it
        self._from: dict[str, str] = {}  # held path -> directory
        self._full = False

    def add(self, paths: Iterable[str]) -> None:
        """See these, too."""
        for path in paths:
            if path not in self._from:
                self._place(path)

    def forget(self, paths: Iterable[str]) -> None:
        """Stop watching these; an empty watch stays until its directory goes."""
        for path in paths:
            directory = self._from.pop(path, None)
            if directory is not None:
                self._around[directory].discard(path)

    def changed(self) -> set[str]:
        """The held paths at which something was put since, or that have a directory now."""
        result: set[str] = set()
        for number, mask, name in kernel.seen(self.descriptor):
            if mask & kernel.IN_Q_OVERFLOW:
                result |= self._from.keys()
                continue
            directory = self._directory.get(number)
            if directory is None:
                continue
            around = self._around.get(directory, set())
            if not name:  # the directory itself was moved or removed
                result |= around
                self._drop(number, directory)
                continue
            path = f"{directory.rstrip('/')}/{os.fsdecode(name)}"
            if path in around:
                result.add(path)
            elif around:
                result |= {text for text in around if text.startswith(path + "/")}
        for path in result:
            self._again(path)
        return result

    def _again(self, path: str) -> None:
        """Look again for the path's directory, which may exist now, or be another one."""
        directory = self._from.get(path)
        if directory is None or directory != os.path.dirname(path):
            self.forget([path])
            self._place(path)

    def _drop(self, number: int, directory: str) -> set[str]:
        del self._directory[number]
        del self._number[directory]
        around = self._around.pop(directory, set())
        for path in around:
            del self._from[path]
        return around

    def _place(self, path: str) -> None:
        parent = directory = os.path.dirname(path)
        while not self._sees(directory):
            if directory == "/":
                return
            directory = os.path.dirname(directory)
        while directory != parent:  # what came after the look is not reported
            below = os.path.join(directory, os.path.relpath(parent, directory).partition("/")[0])
            if not self._sees(below):
                break
            directory = below
        self._around.setdefault(directory, set()).add(path)
        self._from[path] = directory

    def _sees(self, directory: str) -> bool:
        return directory in self._number or self._watch(directory)

    def _watch(self, directory: str) -> bool:
        try:
            number = kernel.watch(self.descriptor, os.fsencode(directory))
        except OSError as bad:
            if bad.errno == errno.ENOSPC and not self._full:
                self._full = True
                log.error("no more directories can be watched (fs.inotify.max_user_watches)")
            return False
        old = self._directory.get(number)
        lost = self._drop(number, old) if old is not None else ()  # it was moved here
        self._directory[number], self._number[directory] = directory, number
        self.add(lost)
        return True

    def all(self) -> Set[str]:
        """The held paths that are seen."""
        return self._from.keys()
