"""Parsing the texts of expressions and annotations.

Owns their grammar, which `facts` describes. Pure. A malformed text gives the unknown expression.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import Literal, NamedTuple

from coordinator.meaning.facts import UNKNOWN

TermKind = Literal[
    "name", "attribute", "call", "item", "part", "each", "await", "enter", "list", "class",
    "builtin", "any", "cast", "typevar", "alias", "unknown",
]
_NAME = re.compile(r"\w+")
_POSTFIX: dict[str, TermKind] = {
    "()": "call", "[]": "item", "[:]": "part", "*": "each", "@": "await", "^": "enter",
    "&": "list", "%": "class",
}
_SIGNS = re.compile(r"\(\)|\[:?\]|[*@^&%]|<-?\d+>|\.(\w+)")


class Term(NamedTuple):
    """A parsed expression.

    Attributes:
        name: of a name, attribute or built-in type; of an item, its place if it is fixed; of the
            kinds `cast`, `typevar`, `alias`, the annotation.
        inner: the expression that it is applied to. `parts`: of `any`, all alternatives.
        scope: the scope that a name is seen from, if it is not that of the whole.
        text: how it is written.
    """

    kind: TermKind
    name: str = ""
    inner: Term | None = None
    parts: tuple[Term, ...] = ()
    scope: str | None = None
    text: str = UNKNOWN


_NOTHING = Term("unknown")


@lru_cache(maxsize=20_000)
def term(text: str) -> Term:
    """Parse the text of an expression."""
    try:
        found_term, position = _term(text, 0, 0)
    except (ValueError, IndexError):
        return _NOTHING
    return found_term if position == len(text) else _NOTHING


@lru_cache(maxsize=20_000)
def annotation_tree(text: str) -> ast.expr | None:
    """Parse an annotation; None if it cannot be read."""
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _term(text: str, position: int, depth: int) -> tuple[Term, int]:
    if depth > 20:
        raise ValueError
    start = position
    found_term, position = _primary(text, position, depth)
    if found_term.kind != "unknown":
        found_term = found_term._replace(text=text[start:position])
    while position < len(text):
        sign = _SIGNS.match(text, position)
        if sign is None:
            break
        position = sign.end()
        whole = text[start:position]
        if sign[1]:
            found_term = Term("attribute", sign[1], found_term, text=whole)
        elif sign[0][0] == "<":
            found_term = Term("item", sign[0][1:-1], found_term, text=whole)
        else:
            found_term = Term(_POSTFIX[sign[0]], "", found_term, text=whole)
    return found_term, position


def _primary(text: str, position: int, depth: int) -> tuple[Term, int]:
    sign = text[position]
    if sign == "(":
        parts: list[Term] = []
        while text[position] in "(|":
            expression, position = _term(text, position + 1, depth + 1)
            parts.append(expression)
        if text[position] != ")":
            raise ValueError
        return Term("any", parts=tuple(parts)), position + 1
    if sign == "?":
        return _NOTHING, position + 1
    if sign == "'":
        name = _NAME.match(text, position + 1)
        if name is None:
            raise ValueError
        return Term("builtin", name[0]), name.end()
    if sign == "$":
        begin = text.index("(", position)
        end = _closing(text, begin)
        word, inner = text[position + 1:begin], text[begin + 1:end]
        if word == "":
            if text[end + 1] != ":":
                raise ValueError
            found_term, after = _primary(text, end + 2, depth + 1)
            return _seen_from(found_term, inner), after
        if word not in ("cast", "typevar", "alias"):
            raise ValueError
        kind: TermKind = "cast" if word == "cast" else "alias" if word == "alias" else "typevar"
        return Term(kind, inner), end + 1
    name = _NAME.match(text, position)
    if name is None:
        raise ValueError
    return Term("name", name[0], text=name[0]), name.end()


def _seen_from(expression: Term, scope: str) -> Term:
    if expression.kind == "name":
        return expression._replace(scope=expression.scope if expression.scope is not None
                                   else scope)
    return expression._replace(
        inner=_seen_from(expression.inner, scope) if expression.inner is not None else None,
        parts=tuple(_seen_from(part, scope) for part in expression.parts),
    )


def _closing(text: str, begin: int) -> int:
    """Return the position of the closing bracket. Brackets in quotes are skipped."""
    depth, quote = 0, ""
    for position in range(begin, len(text)):
        sign = text[position]
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'" and depth and text[begin - 1] != "$":
            quote = sign
        elif sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
            if not depth:
                return position
    raise ValueError
