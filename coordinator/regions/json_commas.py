"""The commas of JSON. They separate two members and belong to neither.

An author who adds a member behind another writes a comma behind that one, and has not changed it.
So members are compared without the comma behind them. If a member is added or removed, the commas
around it follow. Pure; knows comments, as many such files have them.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from itertools import pairwise

#: A token: a string, an unclosed string, a comment, a punctuation character, or other characters.
_TOKEN = re.compile(
    rb'"(?:[^"\\\n]|\\[^\n])*+"|(?P<open>"(?:[^"\\\n]|\\[^\n])*+)|//[^\n]*+'
    rb'|/\*.*?(?:\*/|\Z)|[{}\[\],:]|[^\s{}\[\],:"/]++|/', re.DOTALL)
_OPENS, _CLOSES, _COMMA = (b"{", b"["), (b"}", b"]"), b","
#: Tokens that are not JSON: a string that is not closed, a slash that begins no comment.
_NONE = (b'"', b"/")


def bare(text: bytes) -> bytes:
    """Return a member's text without the comma behind it."""
    for last, position in deque(_tokens(text), 1) if b"," in text else ():
        return text[:position] + text[position + 1:] if last == _COMMA else text
    return text


def mended(data: bytes) -> bytes:
    """Add the missing commas between members, and remove commas before the first or behind the
    last. A text that is not JSON stays as it is."""
    position, result, tokens = 0, [], list(_tokens(data))
    if any(token in _NONE for token, _ in tokens):
        return data
    for (part, start), (two, next_start) in pairwise([(b"", 0), *tokens]):
        if _ends(part) and _begins(two):
            result += [data[position:start + len(part)], _COMMA]
            position = start + len(part)
        elif part == _COMMA and two in (*_CLOSES, _COMMA):
            result.append(data[position:start])
            position = start + 1
        elif part in _OPENS and two == _COMMA:
            result.append(data[position:next_start])
            position = next_start + 1
    return b"".join([*result, data[position:]])


def ended(data: bytes) -> bytes:
    """Add a comma behind each last member that is on another line than its closing bracket. So
    members can be added and removed by lines, each by itself."""
    position, result = 0, []
    for (part, start), (two, next_start) in pairwise([(b"", 0), *_tokens(data)]):
        end = start + len(part)
        if _ends(part) and two in _CLOSES and b"\n" in data[end:next_start]:
            result += [data[position:end], _COMMA]
            position = end
    return b"".join([*result, data[position:]])


def signs(text: bytes) -> bytes:
    """Return the tokens of a text, without white space, comments, and a comma behind it."""
    return b" ".join(token for token, _ in _tokens(bare(text)))


def put_in(text: bytes, member: bytes, end: bytes) -> tuple[int, bytes] | None:
    """Return the place of a new last member in an object, and the bytes to write there. Only for an
    object without members, or with its closing bracket on a member's line. `end` is a line end.
    None if the text is no object."""
    tokens = list(_tokens(bare(text)))
    if len(tokens) < 2 or tokens[-1][0] != b"}":
        return None
    close = tokens[-1][1]
    position = len(text[:close].rstrip())
    if tokens[-2][0] == b"{":
        return position, end + member.rstrip() + end + _indent(text)
    return position, b" " + member.strip()


def _indent(text: bytes) -> bytes:
    return text[:len(text) - len(text.lstrip(b" \t"))]


def _tokens(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield each token with its position, without comments."""
    for match in _TOKEN.finditer(data):
        if not match[0].startswith((b"//", b"/*")):
            yield b'"' if match["open"] else match[0], match.start()


def _ends(token: bytes) -> bool:
    """Whether a value, or a name, ends with this token."""
    return token in _CLOSES or _is_word(token)


def _begins(token: bytes) -> bool:
    return token in _OPENS or _is_word(token)


def _is_word(token: bytes) -> bool:
    return bool(token) and token not in (*_OPENS, *_CLOSES, _COMMA, b":")
