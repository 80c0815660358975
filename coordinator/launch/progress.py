"""Signs that an agent's work moves: new output, or a file below its leases that was touched.

A living process is no sign: a hung one lives too. Looks at sizes and times only; reads no content.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from coordinator.words.resource_names import kind_of, literal_prefix

#: Entries below leased directories that are looked at each time.
ENTRIES_MAX = 2_000


class Signs:
    """Compares what is on disk with how it was when last asked."""

    def __init__(self, log: Path, root: Path, resources: Sequence[str]) -> None:
        self._log = log
        self._places = list(_places(root, resources))
        self.output_bytes = 0
        self._seen = self._begun = self._newest()

    def changed(self) -> bool | None:
        """Whether any file below the leases is another than at the start, as far as sizes and times
        tell; None: no files are leased."""
        return self._newest() != self._begun if self._places else None

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
        """The latest change below the leases (ns), and how many files there are."""
        latest, count = 0, 0
        for place in self._places:
            for entry in _files(place):
                try:
                    changed = os.stat(entry).st_mtime_ns  # noqa: PTH116 - thousands of them
                except OSError:
                    continue
                latest, count = max(latest, changed), count + 1
        return latest, count


def _places(root: Path, resources: Sequence[str]) -> Iterator[Path]:
    for name in dict.fromkeys(r.removeprefix("shared:") for r in resources):
        kind = kind_of(name)
        if kind == "glob":
            yield root / literal_prefix(name)
        elif kind == "region":
            yield root / name.rpartition("::")[0]
        elif kind != "key":
            yield root / name


def _files(place: Path) -> Iterator[str]:
    if not place.is_dir():
        yield str(place)
        return
    left = ENTRIES_MAX
    for folder, folders, names in os.walk(place):
        folders[:] = [name for name in folders if name not in (".git", ".coord", "node_modules")]
        yield folder
        for name in names:
            yield os.path.join(folder, name)  # noqa: PTH118 - thousands of them
        left -= len(names)
        if left <= 0:
            return
