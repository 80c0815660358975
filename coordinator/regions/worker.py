"""The process that grammars run in: reads files' bytes, answers their outlines.

Started as `python -P -m coordinator.regions.worker` by `process`. A grammar is native code; a fault
in one, or a text that it never comes to an end with, ends this process and no other. It opens no
file and keeps nothing from one question to the next: one `Question` in, one `Outline`, `Reading`
or text out.
"""

from __future__ import annotations

import msgspec

from coordinator.regions.grammar import outline
from coordinator.regions.questions import Question
from coordinator.workers import serving

#: Memory that it may take (bytes): a tree takes some hundred times its text at worst.
MEMORY_BYTES_MAX = 3 << 30


def answer(body: bytes) -> bytes:
    """What this question comes to."""
    asked = msgspec.msgpack.decode(body, type=Question)
    serving.within(asked.seconds)
    if asked.kind == "outline":
        return msgspec.msgpack.encode(outline(asked.data, asked.language, nested=asked.nested))
    if asked.kind == "errors":
        from coordinator.regions.python_errors import misread

        return msgspec.msgpack.encode(misread(asked.data) if asked.language == "python" else "")
    from coordinator.regions.reader import read  # what only a merge asks for takes ms to read

    return msgspec.msgpack.encode(read(asked.data, asked.language))


def main() -> None:
    """What `process` starts."""
    serving.limit(MEMORY_BYTES_MAX)
    serving.serve(answer)


if __name__ == "__main__":
    main()
