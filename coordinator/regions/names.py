"""Names of regions: how a file's definition is written behind `path::`.

Owns the only escaping, and the numbering of equal names. A name is parts joined by dots
(`words.resource_names`). In a part, `.` `/` `:` `#` `%` `<` `>` `\\`, and unprintable characters
become `%` and two hexadecimal digits for each byte of UTF-8. So a dot always separates, `#` is
always a number, and angle brackets are always ours. White space becomes one blank. A part longer
than `PART_BYTES_MAX` is cut and ends in `~` and eight digits of its hash. An empty one is `%`.

Pure text; knows no files and no grammars.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence

from coordinator.words.resource_names import HEADER

#: The longest part of a name (bytes of UTF-8, escaped).
PART_BYTES_MAX = 120
#: How many bytes of a raw name are kept. The others become a hash.
RAW_BYTES_MAX = 2000
#: How many parts of a dotted name (`a.b.c`) of a file are kept.
PATH_PARTS_MAX = 8
#: How many characters of a statement's first words become its name.
BLOCK_CHARS_MAX = 60

_PLAIN = re.compile(r"[A-Za-z0-9_$@-]+")
_ESCAPED = frozenset("./:#%<>\\")
_PARTS = re.compile(r"""(?:"[^"]*"|'[^']*'|<[^<>]*>|[^.:\\\s<"'])+""")
_WORDS = re.compile(r"\w+")


def part(raw: bytes) -> str:
    """Return one part of a name, from the file's bytes. Quotes around it are dropped."""
    if len(raw) > RAW_BYTES_MAX:
        raw = raw[:RAW_BYTES_MAX] + hashlib.sha256(raw).hexdigest().encode()
    text = raw.decode("utf-8", "surrogateescape")
    if _PLAIN.fullmatch(text) and len(text) <= PART_BYTES_MAX:
        return text
    text = " ".join(text.split())
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`":
        text = text[1:-1]
    text = unicodedata.normalize("NFC", " ".join(text.split()))
    return _bounded("".join(_escaped(sign) for sign in text) or "%")


def parts(raw: bytes) -> list[str]:
    """Return the parts of a name that is written in parts: `a.b`, `a::b`, `"a.b".c`."""
    text = re.sub(r"<[^<>]*>", "", raw.decode("utf-8", "surrogateescape"))
    matches: list[str] = _PARTS.findall(text)[:]
    if len(matches) > PATH_PARTS_MAX:
        matches[PATH_PARTS_MAX - 1:] = [".".join(matches[PATH_PARTS_MAX - 1:])]
    return [part(text.encode("utf-8", "surrogateescape")) for text in matches] or ["%"]


def nearest(name: str, known: Sequence[str], count: int = 3) -> list[str]:
    """Return the names most like `name`, the best first: those with its last part, then those with
    many of its characters in order. At most 2,000 are compared."""
    last = name.rpartition(".")[2].casefold()

    def likeness(other: str) -> float:
        theirs = other.rpartition(".")[2].casefold().partition("#")[0]
        whole = difflib.SequenceMatcher(None, name.casefold(), other.casefold()).ratio()
        return (theirs == last) + max(whole, difflib.SequenceMatcher(None, last, theirs).ratio())

    named = [text for text in known[:2000] if text != HEADER]
    return sorted(named, key=likeness, reverse=True)[:count] or [HEADER]


def is_known(name: str, known: Iterable[str]) -> bool:
    """Whether a region has this name, or would be inside it (`tool` of `tool.ruff`)."""
    name = unicodedata.normalize("NFC", name)
    return name == HEADER or any(text == name or text.startswith(name + ".") for text in known)


class Ids:
    """Gives each region of one file a unique name."""

    def __init__(self) -> None:
        self._taken: dict[tuple[str, ...], int] = {(HEADER,): 1}

    def take(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """Return this path; from its second use on with `#2`, `#3`, … behind it."""
        count = self._taken[path] = self._taken.get(path, 0) + 1
        return path if count == 1 else (*path[:-1], f"{path[-1]}#{count}")

    def block(self, raw: bytes) -> str:
        """Return the name of a statement: its first words, in angle brackets."""
        words: list[str] = []
        for line in raw.split(b"\n")[:4]:
            head = re.split(rb"[{;]", line, maxsplit=1)[0].decode("utf-8", "ignore")
            words += _WORDS.findall(unicodedata.normalize("NFC", head))
            if len(words) > 1:
                break
        text = " ".join(words)
        return f"<{text[:BLOCK_CHARS_MAX].rstrip() or 'block'}>"


def _escaped(sign: str) -> str:
    if sign not in _ESCAPED and sign.isprintable():
        return sign
    raw = sign.encode("utf-8", "surrogateescape")
    return "".join(f"%{byte:02X}" for byte in raw)


def _bounded(text: str) -> str:
    raw = text.encode()
    if len(raw) <= PART_BYTES_MAX:
        return text
    kept = raw[: PART_BYTES_MAX - 9].decode("utf-8", "ignore")
    return f"{kept.rstrip()}~{hashlib.sha256(raw).hexdigest()[:8]}"
