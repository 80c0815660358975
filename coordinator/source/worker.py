"""The process that reads source code: answers questions about files' bytes, and about a repository.

`reader_process` starts it as `python -P -m coordinator.source.worker [ROOT INDEX]`. A grammar is
native code, and an attacker may have written the files. So a fault, or a text that never comes to
an end, ends this process and no other. Without a root it opens no file and keeps nothing.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import msgspec

from coordinator.regions import reader
from coordinator.source import protocol
from coordinator.workers import serving

if TYPE_CHECKING:
    from coordinator.source.repository_index import RepositoryIndex

#: The most memory (bytes): a tree takes some hundred times its text at worst.
MEMORY_BYTES_MAX = 3 << 30
#: With an index it runs for long, and reads no file of the largest size.
INDEX_MEMORY_BYTES_MAX = 2 << 30
#: An outline has priority over a judgement.
INDEX_NICE = 5


def answer(body: bytes, repository: RepositoryIndex | None = None) -> bytes:
    """Answer this question."""
    asked = msgspec.msgpack.decode(body, type=protocol.Asked)
    serving.within(asked.seconds)
    if isinstance(asked.question, protocol.FileQuestion):
        reply: protocol.Answer = _answer_file(asked.question)
    elif repository is not None:
        reply = repository.answer(asked.question)
    else:
        reply = protocol.Failed("it keeps no index")
    return msgspec.msgpack.encode(reply)


def _answer_file(question: protocol.FileQuestion) -> protocol.FileAnswer:
    match question:
        case protocol.DivideFile(data, language, nested):
            return protocol.Divided(reader.outline(data, language, nested=nested))
        case protocol.ReadForMerge(data, language):
            return protocol.ForMerge(reader.read_for_merge(data, language))
        case protocol.FindErrors(data, language):
            return protocol.Errors(reader.find_errors(data, language))


def main() -> None:
    """Answer the questions of `reader_process` until it asks no more."""
    if len(sys.argv) < 3:
        serving.limit(MEMORY_BYTES_MAX)
        serving.serve(answer)
        return
    from coordinator.source.repository_index import RepositoryIndex  # its import takes long

    serving.limit(INDEX_MEMORY_BYTES_MAX)
    os.nice(INDEX_NICE)
    repository = RepositoryIndex(sys.argv[1], sys.argv[2])
    serving.serve(lambda body: answer(body, repository))


if __name__ == "__main__":
    main()
