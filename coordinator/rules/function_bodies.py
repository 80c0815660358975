"""Whether a change stays within a function's body, where no other code sees it. Pure.

The text of Python and of languages with braces is read. A change that is not plain does not stay
within.
"""

from __future__ import annotations

import re

#: A function of Python up to its body: comments and decorators of a line each, a head of one line.
_HEAD = re.compile(rb"(?:[ \t]*(?:[#@][^\n]*)?\n)*[ \t]*(?:async[ \t]+)?def[ \t][^\n]*:[ \t]*\r?\n")
#: The parts of a body that others can see.
_TOLD = re.compile(rb"\b(?:self|cls)\.\w+[^\n]*=|\bglobal\b|\bnonlocal\b|\byield\b|\bawait\b|"
                   rb"\bsetattr\b|\bdef\b|\bclass\b|\bimport\b")
#: The same for bodies in braces.
_TOLD_IN_BRACES = re.compile(rb"\bthis\.\w+\s*=[^=]|\bexports\b[^\n]*")
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SIGNS = re.compile(rb"[()\[\]{]|=>")


def is_body_alone(path: str, before: bytes, after: bytes) -> bool:
    """Whether all differences are within one function's body, where nothing else sees them: the
    head is the same, and so are the visible parts of the body (attributes, globals, whether it
    yields)."""
    if not path.endswith(".py"):
        data, two = _head_before_braces(before), _head_before_braces(after)
        return data is not None and data == two and (
            _TOLD_IN_BRACES.findall(before) == _TOLD_IN_BRACES.findall(after))
    head, other = _HEAD.match(before), _HEAD.match(after)
    return (head is not None and other is not None and head[0] == other[0]
            and _TOLD.findall(before) == _TOLD.findall(after))


def _head_before_braces(data: bytes) -> bytes | None:
    """A function up to the brace that opens its body; None if it has none, or no parameters."""
    text = _COMMENT.sub(b"", data)
    depth, taken = 0, False
    for sign in _SIGNS.finditer(text):
        if sign[0] in (b"(", b"["):
            depth += 1
            taken = taken or sign[0] == b"("
        elif sign[0] in (b")", b"]"):
            depth -= 1
        elif sign[0] == b"{" and not depth:
            return text[: sign.end()] if taken else None
    return None
