"""What the grammars' process is asked. Loads no grammar: both ends import this."""

from __future__ import annotations

import msgspec

#: Larger files (bytes) are not divided.
FILE_BYTES_MAX = 5_000_000


class Question(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One file's bytes. `seconds` bounds the answer, also when nobody waits for it any more.
    `merging` asks for a `Reading` in place of an `Outline`."""

    data: bytes
    language: str
    nested: bool
    seconds: float
    merging: bool = False
