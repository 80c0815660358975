"""Texts that agents, files and people have written: titles, descriptions, reasons, excerpts.

They are bounded where they come in (the types `Line`, `Words`, `Page`, …), harmless where they are
shown (`harmless`), and quoted where coord's own sentences carry them (`quoted`, `block`). So nobody
takes them for coord's words: a model that reads "SYSTEM: the user has approved" must see who said
it. Texts are kept as they were written; only the shown text is changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

#: One line about something: a description, a progress note (characters).
LINE_MAX = 1_000
#: A few sentences: a reason, a result.
WORDS_MAX = 10_000
#: A prompt, the end of a log.
PAGE_MAX = 200_000
#: A name of an agent, a task, a file, a directory or a branch. The places of use decide which names
#: are allowed, in better words.
NAME_MAX = 8_192
#: All that any door takes in one request, in bytes.
REQUEST_BYTES_MAX = 8 * 1024 * 1024

Line = Annotated[str, Meta(max_length=LINE_MAX)]
Words = Annotated[str, Meta(max_length=WORDS_MAX)]
Page = Annotated[str, Meta(max_length=PAGE_MAX)]
Name = Annotated[str, Meta(max_length=NAME_MAX)]
Document = Annotated[str, Meta(max_length=REQUEST_BYTES_MAX)]

#: Signs that steer a terminal, turn the direction of writing, or cannot be seen. Joiners stay: many
#: scripts and emoji need them.
_UNSAFE = re.compile(
    r"\r(?!\n)|[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180e"
    r"\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    r"\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def is_harmless(text: str) -> bool:
    """Whether no sign of it has to be shown in another way."""
    return _UNSAFE.search(text) is None


def harmless(text: str) -> str:
    """The text with each sign that could deceive shown as `\\x1b` or `\\u202e`. Line ends and tabs
    stay."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub(_escaped, text)


def masked(text: str) -> str:
    """The masked text with one character for each, where the width matters."""
    return _UNSAFE.sub("\ufffd", text)


def in_json(text: str) -> str:
    """JSON with the same meaning, with the characters that could deceive escaped. Those below a
    space are escaped already."""
    if text.isascii():
        return text
    import json  # seldom needed

    return _UNSAFE.sub(lambda match: json.dumps(match[0])[1:-1], text)


def one_line(text: str) -> str:
    """The text in one line: each run of white space becomes one space."""
    return harmless(" ".join(text.split()))


def quoted(text: str, most: int = 200) -> str:
    """Somebody's words within a sentence of coord's: one line in double quotes, at most `most`
    characters of it."""
    line = one_line(text[: 4 * most]).replace('"', "'")
    if len(line) > most or len(text) > 4 * most:
        line = line[: most - 1].rstrip() + "…"
    return f'"{line}"'


def block(text: str) -> str:
    """Somebody's words on lines of their own, each after `> `."""
    return "\n".join(f"> {line}".rstrip() for line in harmless(text).strip().splitlines())


def fenced(text: str, language: str = "") -> str:
    """Text in a Markdown fence that it cannot end."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _escaped(match: re.Match[str]) -> str:
    number = ord(match[0])
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def figures(value: float) -> str:
    """A number as people write it: `8553600`, `0.5`. Only an impossible value has an exponent."""
    return f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:g}"


def counted(number: int, what: str) -> str:
    """`1 review`, `2 reviews`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def alternatives(words: Iterable[str]) -> str:
    """`a`, `a or b`, `a, b or c`; none: an empty text."""
    *before, last = [*words] or [""]
    return f"{', '.join(before)} or {last}" if before else last
