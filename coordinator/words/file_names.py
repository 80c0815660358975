"""File names as text: every name that a kernel takes, as text that is always valid UTF-8.

A file's name is bytes. Nearly all are UTF-8 and stand as they are. A byte that is not becomes one
character of a private range, U+EF80 to U+EFFF, whose last eight bits are the byte. A name that
really contains such a character gets its three bytes. So each name has one text, and each text
leads back to one name, and a database or a JSON reply can hold it. People are shown `\\xe4` as
`shown` writes it.

No lease can name such a file (`resource_names.check_text` refuses the private characters), but it
is compared, kept and put back like any other.

Hashes of short texts are also here: the same as `hashlib`'s, without OpenSSL, which takes
milliseconds to load. For large amounts `hashlib` is several times faster.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import blake2b, sha256
else:
    try:  # CPython's own; another Python has the module of everybody
        from _blake2 import blake2b

        if sys.version_info >= (3, 12):
            from _sha2 import sha256
        else:
            from _sha256 import sha256
    except ImportError:
        from hashlib import blake2b, sha256

_FIRST, _LAST = "\uef80", "\uefff"
_BASE = 0xEF00
_ODD = re.compile(f"[\udc80-\udcff{_FIRST}-{_LAST}]")
_PRIVATE = re.compile(f"[{_FIRST}-{_LAST}]")


def from_bytes(name: bytes) -> str:
    """The text of a name, or of a path of several."""
    return _ODD.sub(_hidden, name.decode("utf-8", "surrogateescape"))


def to_bytes(text: str) -> bytes:
    """The name of a text."""
    if text.isascii():
        return text.encode("ascii")
    return _PRIVATE.sub(_surrogate, text).encode("utf-8", "surrogateescape")


def shown(text: str) -> str:
    """The text as people read it: `\\xe4` for a byte that is no UTF-8. There is no way back."""
    if text.isascii():
        return text
    return _PRIVATE.sub(lambda match: f"\\x{ord(match[0]) - _BASE:02x}", text)


def hides_bytes(text: str) -> str | None:
    """The first character of `text` that stands for a byte outside of UTF-8; None if there is none.
    """
    if text.isascii():
        return None
    match = _PRIVATE.search(text)
    return match[0] if match else None


def _hidden(match: re.Match[str]) -> str:
    sign = match[0]
    if sign <= "\udcff":
        return chr(_BASE + ord(sign) - 0xDC00)
    return "".join(chr(_BASE + byte) for byte in sign.encode())


def _surrogate(match: re.Match[str]) -> str:
    return chr(0xDC00 + ord(match[0]) - _BASE)


__all__ = ["blake2b", "sha256"]
