"""Signs that an agent's work moves: new output, or a file below its leases that was touched.

A living process is no sign, because a hung one lives, too. The module looks only at files' entries
(sizes, times, modes, links) and reads no content.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from coordinator.words.resource_names import kind_of, literal_prefix

#: Entries below leased directories that are looked at each time.
ENTRIES_MAX = 2_000
#: How many files are compared at an attempt's end; of more nothing is said.
COMPARED_MAX = 100_000


class Signs:
    """Compares the present files with those of the last call."""

    def __init__(self, log: Path, root: Path, resources: Sequence[str]) -> None:
        self._log = log
        self._places = list(_places(root, resources))
        self.output_bytes = 0
        self._seen = self._newest()
        self._begun = self._picture()

    def changed(self) -> bool | None:
        """Whether any file below the leases has changed since the start, is gone, new or renamed,
        or has another mode. None if no files are leased, or too many to compare."""
        if not self._places or self._begun is None:
            return None
        now = self._picture()
        return None if now is None else now != self._begun

    def moved(self) -> bool:
        """Whether anything moved since the last call (the first: since the start)."""
        size = self._size()
        newest = self._newest()
        moved = size != self.output_bytes or newest != self._seen
        self.output_bytes, self._seen = size, newest
        return moved

    def _size(self) -> int:
        try:
            return self._log.stat().st_size
        except OSError:
            return 0

    def _newest(self) -> tuple[int, int]:
        """Return the latest change below the leases (ns), and the number of files there."""
        latest, count = 0, 0
        for place in self._places:
            for entry in _entries(place, ENTRIES_MAX):
                try:
                    changed = os.stat(entry).st_mtime_ns  # noqa: PTH116 - thousands of them
                except OSError:
                    continue
                latest, count = max(latest, changed), count + 1
        return latest, count

    def _picture(self) -> dict[str, tuple[int, ...]] | None:
        """Return the facts of each file below the leases; None if there are too many."""
        result: dict[str, tuple[int, ...]] = {}
        for place in self._places:
            for entry in _entries(place):
                if entry not in result and (facts := _facts(entry)):
                    result[entry] = facts
                    if len(result) > COMPARED_MAX:
                        return None
        return result


def _places(root: Path, resources: Sequence[str]) -> Iterator[Path]:
    for name in dict.fromkeys(r.removeprefix("shared:") for r in resources):
        kind = kind_of(name)
        if kind == "glob":
            yield root / literal_prefix(name)
        elif kind == "region":
            yield root / name.rpartition("::")[0]
        elif kind != "key":
            yield root / name


def _entries(place: Path, enough: int | None = None) -> Iterator[str]:
    """Yield a leased file, or a leased directory and its content, until there are `enough` files.
    """
    yield str(place)
    if not place.is_dir():
        return
    left = enough
    for folder, folders, names in os.walk(place):
        folders[:] = [name for name in folders if name not in (".git", ".coord", "node_modules")]
        for name in (*folders, *names):
            yield os.path.join(folder, name)  # noqa: PTH118 - thousands of them
        if left is not None:
            left -= len(names)
            if left <= 0:
                return


def _facts(path: str) -> tuple[int, ...]:
    """The facts that tell one state of a file from another; empty if there is no file.

    The kernel sets the time of the last change of state (ctime) itself. So it also shows changes
    that keep the time of writing: a rename, `chmod`, a link, times set back. A directory's times
    depend on its entries, which are compared themselves. A write through a link changes its target.
    """
    try:
        status = os.lstat(path)
        if stat.S_ISDIR(status.st_mode):
            return status.st_mode, status.st_ino
        facts = (status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns,
                 status.st_ctime_ns)
    except OSError:
        return ()
    if not stat.S_ISLNK(status.st_mode):
        return facts
    try:
        to = os.stat(path)  # noqa: PTH116 - thousands of them
    except OSError:
        return facts
    if stat.S_ISDIR(to.st_mode):
        return *facts, to.st_mode, to.st_ino
    return *facts, to.st_mode, to.st_ino, to.st_size, to.st_mtime_ns, to.st_ctime_ns
