"""What the grammars' process is asked. Loads no grammar: both ends import this."""

from __future__ import annotations

from typing import Literal

import msgspec

#: Larger files (bytes) are not divided.
FILE_BYTES_MAX = 5_000_000

Kind = Literal["outline", "reading", "errors"]


class Question(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One file's bytes. `seconds` bounds the answer, also when nobody waits for it any more.
    `kind`: whether an `Outline` is asked for, a `Reading` (for a merge), or what is wrong that
    the grammar does not tell (a text; empty: nothing is)."""

    data: bytes
    language: str
    nested: bool
    seconds: float
    kind: Kind = "outline"
