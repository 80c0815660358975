"""The meaning worker reads the repository's files, keeps the index, and answers questions.

`process` starts this worker as `python -P -m coordinator.meaning.worker ROOT INDEX`. Anybody may
have written the files, and a judgement may take long. So a crash or a timeout ends this process and
no other. The worker reads only below the root, and writes only the index.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import apsw
import msgspec

from coordinator.files.beneath import Root
from coordinator.files.canonical import Tree
from coordinator.files.ignore import Ignore, manifest
from coordinator.meaning.facts import Facts
from coordinator.meaning.file_facts import FILE_BYTES_MAX, facts_of
from coordinator.meaning.frames import (
    Answer,
    Asked,
    Failed,
    Judged,
    Judgement,
    Listed,
    Listing,
    Merge,
    Misfits,
    Question,
    Update,
    Updated,
)
from coordinator.meaning.index import Index
from coordinator.meaning.judging import judge
from coordinator.meaning.languages import is_known
from coordinator.meaning.merged import misfits
from coordinator.words.file_names import blake2b
from coordinator.words.resource_names import resource
from coordinator.workers import serving

#: The worker may take so much memory (bytes).
MEMORY_BYTES_MAX = 2 << 30
#: One listing names no more files for the index than this.
FILES_MAX = 100_000
#: The worker lists no repository that has more files, also of unknown languages.
LISTED_MAX = 1_000_000
#: A file that changed so lately (seconds) may change again within one tick of its clock.
_FRESH_S = 2.0


class Worker:
    """Answers questions about one repository.

    Raises:
        OSError: the root is not there.
        apsw.Error: the index cannot be kept there.
    """

    def __init__(self, root: str, index: str) -> None:
        self._root = root
        self._files = Root(root)
        self._index = Index(index)

    def answer(self, question: Question) -> Answer:
        """Answer a question. An error of the disk or the index becomes the answer `Failed`."""
        try:
            match question:
                case Listing():
                    return self._list_files()
                case Update():
                    return self._update_files(question)
                case Judgement():
                    if question.changed:
                        self._update_files(Update(question.changed))
                    return Judged(judge(self._index, question.path, question.old, question.new,
                                        frozenset(question.held)))
                case Merge():
                    return Misfits(misfits(self._index, question.files))
        except (OSError, apsw.Error) as error:
            return Failed(str(error))

    def _list_files(self) -> Listed:
        whole = resource("./", "dir")
        paths = manifest(self._root, whole, Ignore(Tree(Path(self._root))), LISTED_MAX)
        to_index = [path for path in paths if is_known(path)][:FILES_MAX]
        gone = set(self._index.paths()) - set(to_index)
        return Listed(sorted([*to_index, *gone]), len(to_index))

    def _update_files(self, asked: Update) -> Updated:
        renewed = 0
        with self._index.batch():
            for path in asked.failed:
                self._index.put(path, b"", Facts(note="reading it failed"))
            for path in asked.paths:
                renewed += self._update_file(path)
        return Updated(renewed)

    def _update_file(self, path: str) -> bool:
        """Bring the index up to date with one file, and tell whether its facts were new."""
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


def main() -> None:
    """Answer the questions of `process` until it asks no more."""
    serving.limit(MEMORY_BYTES_MAX)
    os.nice(5)
    worker = Worker(sys.argv[1], sys.argv[2])

    def answer(body: bytes) -> bytes:
        asked = msgspec.msgpack.decode(body, type=Asked)
        serving.within(asked.seconds)
        return msgspec.msgpack.encode(worker.answer(asked.question))

    serving.serve(answer)


if __name__ == "__main__":
    main()
