"""The process that meaning is worked out in: reads files, keeps the index, answers questions.

Started as `python -P -m coordinator.meaning.worker ROOT INDEX` by `process`. Files are of anybody's
making, and a judgement may take long; both end here and nowhere else. It reads below the root and
writes the index alone.
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

#: Memory that it may take (bytes).
MEMORY_BYTES_MAX = 2 << 30
#: More files are not indexed.
FILES_MAX = 100_000
#: Nor is a repository that has more of any kind.
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
        """The answer; what the disk refused is one, too."""
        try:
            match question:
                case Listing():
                    return self._list()
                case Update():
                    return self._update(question)
                case Judgement():
                    if question.changed:
                        self._update(Update(question.changed))
                    return Judged(judge(self._index, question.path, question.old, question.new,
                                        frozenset(question.held)))
                case Merge():
                    return Misfits(misfits(self._index, question.files))
        except (OSError, apsw.Error) as bad:
            return Failed(str(bad))

    def _list(self) -> Listed:
        wanted = resource("./", "dir")
        every = manifest(self._root, wanted, Ignore(Tree(Path(self._root))), LISTED_MAX)
        there = [text for text in every if is_known(text)][:FILES_MAX]
        gone = set(self._index.paths()) - set(there)
        return Listed(sorted([*there, *gone]), len(there))

    def _update(self, asked: Update) -> Updated:
        count = 0
        with self._index.batch():
            for path in asked.failed:
                self._index.put(path, b"", Facts(note="reading it failed"))
            for path in asked.paths:
                count += self._update_file(path)
        return Updated(count)

    def _update_file(self, path: str) -> bool:
        """Bring one file up to date; whether it was read."""
        known = self._index.known(path)
        stamp = self._stamp(path)
        if known is not None and stamp is not None and known[1] == stamp:
            return False
        content = self._files.snapshot(path, FILE_BYTES_MAX)
        if content.kind not in ("file", "large"):
            self._index.drop(path)
            return False
        if content.data is None:
            self._index.put(path, b"", Facts(note=f"larger than {FILE_BYTES_MAX:,} bytes"))
            return True
        name = blake2b(content.data, digest_size=16).digest()
        if known is not None and known[0] == name:
            self._index.restamp(path, stamp or "")
            return False
        self._index.put(path, name, facts_of(path, content.data), stamp or "")
        return True

    def _stamp(self, path: str) -> str | None:
        """What tells one state of a file from another; None while that is not sure."""
        status = self._files.stat(path)
        if status is None or time.time() - status.st_mtime < _FRESH_S:
            return None
        return f"{status.st_mtime_ns}-{status.st_size}-{status.st_ino}"


def main() -> None:
    """What `process` starts."""
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
