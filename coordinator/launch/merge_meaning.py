"""Whether landing work fits what landed meanwhile, by the index of meaning.

The module owns the process that answers, and starts it when a landing first needs it. If there are
too many files, or the index cannot be read, it says nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock

from coordinator.files.git import FILES, NO_MODE, Entry, Git
from coordinator.meaning.outcomes import Versions
from coordinator.regions.languages import has_meaning
from coordinator.regions.outline import FILE_BYTES_MAX
from coordinator.source.meaning import Meaning
from coordinator.source.reader_process import NoAnswerError

#: Files of both sides together; of more, none is looked at.
FILES_MAX = 100
#: The most bytes of them, in all their versions.
BYTES_MAX = 16 << 20
#: How long a landing waits for the first reading of a repository (seconds).
READING_S = 60.0
#: How long one merge is examined (seconds).
SECONDS_MAX = 20.0


class MergeMeaning:
    """One launch's.

    Args:
        root: the repository's, a real path. `index`: where the index is kept.
    """

    def __init__(self, root: Path, index: Path) -> None:
        self._root, self._index = str(root), str(index)
        self._meaning: Meaning | None = None
        self._lock = Lock()
        #: The target's commit when the index was last brought up to date.
        self._read_at: str | None = None
        self._last: tuple[object, list[str]] = (None, [])

    def misfits(self, git: Git, tip: str, changes: Sequence[Entry], moved: Sequence[Entry],
                merged: Mapping[str, Entry], inside: Callable[[str], str | None]) -> list[str]:
        """Return a sentence for each misfit.

        Args:
            tip: the target's commit.
            changes, moved: what the branch and the target changed since they parted.
            merged: what lands in the place of files that both changed.
            inside: a path below the repository's root, of one below the working tree's top.

        Raises:
            GitError
        """
        mine, theirs = ({entry.path: entry for entry in side if has_meaning(entry.path)}
                        for side in (changes, moved))
        if not _can_tell(mine, theirs, merged):
            return []
        paths = sorted({*mine, *theirs})
        asked = tuple((path, mine.get(path), theirs.get(path)) for path in paths)
        with self._lock:
            if self._last[0] != asked:
                files = [versions for path in paths if (versions := _versions(
                    git, path, mine.get(path), theirs.get(path), merged.get(path), inside))]
                size = sum(map(_measure_versions, files))
                sentences = self._asked(git, tip, files, inside) if 0 < size <= BYTES_MAX else []
                self._last = asked, sentences
            return self._last[1]

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            if self._meaning is not None:
                self._meaning.close()

    def _asked(self, git: Git, tip: str, files: Sequence[Versions],
               inside: Callable[[str], str | None]) -> list[str]:
        if self._meaning is None:
            self._meaning = Meaning(self._root, self._index)
        if self._read_at is None and not self._is_read(self._meaning):
            return []
        with contextlib.suppress(NoAnswerError):
            if self._read_at is not None:
                since = (inside(entry.path) for entry in git.changes(self._read_at, tip))
                self._meaning.update([text for text in since if text and has_meaning(text)])
            self._read_at = tip
            return [misfit.why for misfit in self._meaning.misfits(SECONDS_MAX, files)]
        return []


    def _is_read(self, meaning: Meaning) -> bool:
        """Start reading the repository, and return whether that finished in time. Otherwise the
        reading continues in the background."""
        if meaning.progress().state not in ("listing", "reading", "done"):
            meaning.start()
        until = time.monotonic() + READING_S
        while meaning.is_reading() and time.monotonic() < until:
            time.sleep(0.02)
        return meaning.progress().state == "done"


def _can_tell(mine: Mapping[str, Entry], theirs: Mapping[str, Entry],
              merged: Mapping[str, Entry]) -> bool:
    """Whether the changes of two sides can be judged. A file that both changed without a merge is
    refused elsewhere."""
    both = mine.keys() & theirs.keys()
    return (bool(mine and theirs) and len({*mine, *theirs}) <= FILES_MAX
            and all(map(_is_plain, (*mine.values(), *theirs.values())))
            and both <= merged.keys())


def _measure_versions(file: Versions) -> int:
    return sum(len(data or b"") for data in (file.base, file.ours, file.theirs, file.merged))


def _versions(git: Git, path: str, mine: Entry | None, theirs: Entry | None,
              merged: Entry | None, inside: Callable[[str], str | None]) -> Versions | None:
    name = inside(path)
    entry = mine or theirs
    if name is None or entry is None:
        return None
    base = _blob(git, entry.old_mode, entry.old)
    ours = _blob(git, theirs.new_mode, theirs.new) if theirs is not None else base
    branch = _blob(git, mine.new_mode, mine.new) if mine is not None else base
    both = branch if theirs is None else ours if mine is None else (
        _blob(git, merged.new_mode, merged.new) if merged is not None else None)
    if max(len(data or b"") for data in (base, ours, branch, both)) > FILE_BYTES_MAX:
        return None
    return Versions(name, base, ours, branch, both)


def _blob(git: Git, mode: str, name: str) -> bytes | None:
    return git.blob(name) if mode in FILES else None


def _is_plain(entry: Entry) -> bool:
    return {entry.old_mode, entry.new_mode} <= {*FILES, NO_MODE}
