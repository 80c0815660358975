"""Whether a change stays within a function's body, where nobody else sees it. Told of Python, from
its text. Pure; what is not plain does not."""

from __future__ import annotations

import re

#: A function up to its body: comments and decorators of a line each, a head of one line.
_HEAD = re.compile(rb"(?:[ \t]*(?:[#@][^\n]*)?\n)*[ \t]*(?:async[ \t]+)?def[ \t][^\n]*:[ \t]*\r?\n")
#: What a body tells others.
_TOLD = re.compile(rb"\b(?:self|cls)\.\w+[^\n]*=|\bglobal\b|\bnonlocal\b|\byield\b|\bawait\b|"
                   rb"\bsetattr\b|\bdef\b|\bclass\b|\bimport\b")


def is_body_alone(before: bytes, after: bytes) -> bool:
    """Whether all that differs is within one function's body, where nobody else sees it: the head
    is the same, and so is what a body tells others (attributes, globals, whether it yields)."""
    one, two = _HEAD.match(before), _HEAD.match(after)
    return (one is not None and two is not None and one[0] == two[0]
            and _TOLD.findall(before) == _TOLD.findall(after))
