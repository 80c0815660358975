"""The process that reads source code: answers questions on files' bytes, and on a repository.

`reader_process` starts it as `python -P -m coordinator.source.worker [ROOT INDEX]`. A grammar is
native code, anybody may have written the files, and a judgement may take long: a fault, or a text
that it never comes to an end with, ends this process and no other. Without a root it opens no file
and keeps nothing from one question to the next. With one it reads only below it, and writes only
the index.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import msgspec

from coordinator.regions import reader
from coordinator.source.questions import (
    Answer,
    Asked,
    Divided,
    DivideFile,
    Errors,
    Failed,
    FileAnswer,
    FileQuestion,
    FindErrors,
    ForMerge,
    ReadForMerge,
)
from coordinator.workers import serving

if TYPE_CHECKING:
    from coordinator.source.repository_index import RepositoryIndex

#: Memory that it may take (bytes): a tree takes some hundred times its text at worst.
MEMORY_BYTES_MAX = 3 << 30
#: With an index it runs for long, and reads no file of the largest size.
INDEX_MEMORY_BYTES_MAX = 2 << 30
#: Whoever waits for an outline goes before who waits for a judgement.
INDEX_NICE = 5


def answer(body: bytes, repository: RepositoryIndex | None = None) -> bytes:
    """What this question comes to."""
    asked = msgspec.msgpack.decode(body, type=Asked)
    serving.within(asked.seconds)
    reply: Answer
    if isinstance(asked.question, FileQuestion):
        reply = _answer_file(asked.question)
    elif repository is not None:
        reply = repository.answer(asked.question)
    else:
        reply = Failed("it keeps no index")
    return msgspec.msgpack.encode(reply)


def _answer_file(question: FileQuestion) -> FileAnswer:
    match question:
        case DivideFile(data, language, nested):
            return Divided(reader.outline(data, language, nested=nested))
        case ReadForMerge(data, language):
            return ForMerge(reader.read_for_merge(data, language))
        case FindErrors(data, language):
            return Errors(reader.find_errors(data, language))


def main() -> None:
    """Answer the questions of `reader_process` until it asks no more."""
    if len(sys.argv) < 3:
        serving.limit(MEMORY_BYTES_MAX)
        serving.serve(answer)
        return
    from coordinator.source.repository_index import RepositoryIndex  # it takes long to load

    serving.limit(INDEX_MEMORY_BYTES_MAX)
    os.nice(INDEX_NICE)
    repository = RepositoryIndex(sys.argv[1], sys.argv[2])
    serving.serve(lambda body: answer(body, repository))


if __name__ == "__main__":
    main()
