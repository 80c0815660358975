"""The text of a file that a command names, byte for byte."""

from __future__ import annotations

import sys
from pathlib import Path

from coordinator.words import file_names
from coordinator.words.refusals import Code, Refusal
from coordinator.words.wrong_values import in_words


def read_text(source: str) -> str:
    """The whole text of a file; of `-`, that of standard input. Its line ends stay as they are.

    Raises:
        Refusal: INVALID: no such file, or not UTF-8.
    """
    try:
        raw = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        return raw.decode()
    except (OSError, UnicodeDecodeError) as bad:
        raise Refusal(
            Code.INVALID, f"The text in {file_names.shown(source)} could not be read "
            f"({in_words(bad)}). Nothing was written.",
            next="Name a file with the whole new text in UTF-8, or `-`.",
        ) from None
