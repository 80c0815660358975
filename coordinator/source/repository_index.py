"""One repository in the worker: reads its files, keeps their index, and judges changes of them.
Reads only below the root, and writes only the index."""

from __future__ import annotations

import time
from pathlib import Path

import apsw

from coordinator.files.beneath import Root
from coordinator.files.canonical import Tree
from coordinator.files.ignore import Ignore, manifest
from coordinator.meaning.facts import Facts
from coordinator.meaning.file_facts import FILE_BYTES_MAX, facts_of
from coordinator.meaning.index import Index
from coordinator.meaning.judging import judge
from coordinator.meaning.merged import misfits
from coordinator.regions.languages import has_meaning
from coordinator.source.protocol import (
    Failed,
    FindMisfits,
    JudgeChange,
    Judged,
    Listed,
    ListFiles,
    Misfits,
    RepositoryAnswer,
    RepositoryQuestion,
    Updated,
    UpdateFiles,
)
from coordinator.words.file_names import blake2b
from coordinator.words.resource_names import resource

#: The most files that one listing names for the index.
FILES_MAX = 100_000
#: A repository with more files, even of unknown languages, is not listed.
LISTED_MAX = 1_000_000
#: A file that changed so lately (seconds) may change again within one tick of its clock.
_FRESH_S = 2.0


class RepositoryIndex:
    """Answers questions about one repository.

    Raises:
        OSError: the root is not there.
        apsw.Error: the index cannot be kept there.
    """

    def __init__(self, root: str, index: str) -> None:
        self._root = root
        self._files = Root(root)
        self._index = Index(index)

    def answer(self, question: RepositoryQuestion) -> RepositoryAnswer:
        """Answer a question. An error of the disk or the index becomes the answer `Failed`."""
        try:
            match question:
                case ListFiles():
                    return self._list_files()
                case UpdateFiles():
                    return self._update_files(question)
                case JudgeChange():
                    if question.changed:
                        self._update_files(UpdateFiles(question.changed))
                    return Judged(judge(self._index, question.path, question.old, question.new,
                                        frozenset(question.held)))
                case FindMisfits():
                    return Misfits(misfits(self._index, question.files))
        except (OSError, apsw.Error) as error:
            return Failed(str(error))

    def _list_files(self) -> Listed:
        whole = resource("./", "dir")
        paths = manifest(self._root, whole, Ignore(Tree(Path(self._root))), LISTED_MAX)
        to_index = [path for path in paths if has_meaning(path)][:FILES_MAX]
        gone = set(self._index.paths()) - set(to_index)
        return Listed(sorted([*to_index, *gone]), len(to_index))

    def _update_files(self, question: UpdateFiles) -> Updated:
        renewed = 0
        with self._index.batch():
            for path in question.failed:
                self._index.put(path, b"", Facts(note="reading it failed"))
            for path in question.paths:
                renewed += self._update_file(path)
        return Updated(renewed)

    def _update_file(self, path: str) -> bool:
        """Bring the index up to date with one file, and return whether its facts were new."""
        known_digest, known_stamp = self._index.known(path) or (None, None)
        stamp = self._make_stamp(path)
        if stamp is not None and known_stamp == stamp:
            return False
        content = self._files.snapshot(path, FILE_BYTES_MAX)
        if content.kind not in ("file", "large"):
            self._index.drop(path)
            return False
        if content.data is None:
            self._index.put(path, b"", Facts(note=f"larger than {FILE_BYTES_MAX:,} bytes"))
            return True
        digest = blake2b(content.data, digest_size=16).digest()
        if known_digest == digest:
            self._index.restamp(path, stamp or "")
            return False
        self._index.put(path, digest, facts_of(path, content.data), stamp or "")
        return True

    def _make_stamp(self, path: str) -> str | None:
        """Make a text that changes whenever the file changes; None while that is not certain."""
        status = self._files.stat(path)
        if status is None or time.time() - status.st_mtime < _FRESH_S:
            return None
        return f"{status.st_mtime_ns}-{status.st_size}-{status.st_ino}"
