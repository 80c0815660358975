"""Writing an expression of Python's tree as the short text that `facts` describes.

Owns the text of each kind of expression. Pure. It gets the ids of scopes from its caller.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from coordinator.meaning.facts import EXPRESSION_MAX, UNKNOWN

#: Calls that return the items of their first argument.
_SAME_ITEMS = frozenset({
    "sorted", "list", "tuple", "set", "frozenset", "reversed", "iter", "deque", "filter",
})
#: Calls of one argument, with the suffix of their result. `*` stands for the argument's items.
_OF_ONE = {"next": "*", "min": "*", "max": "*", "choice": "*", "type": "%", "copy": "",
           "deepcopy": ""}
_WELL_KNOWN = _SAME_ITEMS | _OF_ONE.keys() | {"cast", "getattr", "TypeVar"}


class Writer:
    """Writes the expressions of one file. `inner` returns the scope of an inner loop, or None."""

    def __init__(self, inner: Callable[[ast.AST], str | None]) -> None:
        self._inner = inner
        self._done: dict[ast.AST, str] = {}

    def text(self, node: ast.AST | None) -> str:
        """Return the text of an expression; `?` if it is unknown or too long."""
        if node is None:
            return UNKNOWN
        text = self._done.get(node)
        if text is None:
            text = self._text(node)
            if len(text) > EXPRESSION_MAX:
                last = f".{node.attr}" if isinstance(node, ast.Attribute) else ""
                text = UNKNOWN + last
            self._done[node] = text
        return text

    def _text(self, node: ast.AST) -> str:
        match node:
            case ast.Name():
                return node.id
            case ast.Attribute():
                return f"{self.text(node.value)}.{node.attr}"
            case ast.Call():
                return self._call(node)
            case ast.Constant():
                return f"'{type(node.value).__name__}"
            case ast.Await():
                return self.text(node.value) + "@"
            case ast.Subscript():
                return self.text(node.value) + _item(node.slice)
            case ast.NamedExpr():
                return self.text(node.value)
            case ast.Starred():
                return self.text(node.value) + "*"
        return self._alternatives(node) or _literal(node)

    def _alternatives(self, node: ast.AST) -> str:
        """Return the text of a choice or a collection; empty for any other node."""
        match node:
            case ast.IfExp():
                return one_of([self.text(node.body), self.text(node.orelse)])
            case ast.BoolOp():
                return one_of([self.text(value) for value in node.values])
            case ast.List() | ast.Set():
                return one_of([self.text(_bare(item)) for item in node.elts[:6]]) + "&"
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                inner = self._inner(node)
                item = self.text(node.elt)
                return f"$({inner}):{item}&" if inner and item != UNKNOWN else "'list"
        return ""

    def _call(self, node: ast.Call) -> str:
        function = node.func
        name = function.id if isinstance(function, ast.Name) else (
            function.attr if isinstance(function, ast.Attribute) else "")
        first = node.args[0] if node.args and not isinstance(node.args[0], ast.Starred) else None
        if first is not None and name in _WELL_KNOWN:
            result = self._call_well_known(node, name, first)
            if result is not None:
                return result
        return self.text(function) + "()"

    def _call_well_known(self, node: ast.Call, name: str, first: ast.expr) -> str | None:
        """Return the text of a call with a well-known result; None for any other call."""
        if name in _SAME_ITEMS and isinstance(node.func, ast.Name) and name != "filter":
            return self.text(first) + "*&"
        if name == "TypeVar":
            bound = next((keyword.value for keyword in node.keywords if keyword.arg
                          == "bound"), None)
            return f"$typevar({annotation(bound)})"
        if len(node.args) == 1:
            suffix = _OF_ONE.get(name)
            return None if suffix is None else self.text(first) + suffix
        second = node.args[1]
        if name == "getattr":
            return self._call_getattr(first, second)
        if name == "filter" and len(node.args) == 2:
            return self.text(second) + "*&"
        if name == "cast" and len(node.args) == 2:
            return f"$cast({annotation(first)})" if annotation(first) else UNKNOWN
        return None

    def _call_getattr(self, holder: ast.expr, name: ast.expr) -> str | None:
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and (
                name.value.isidentifier()):
            return f"{self.text(holder)}.{name.value}"
        return None


def alias(node: ast.expr) -> str:
    """Return the text of a type's possible alias (`Text = Union[str, bytes]`); otherwise empty."""
    if isinstance(node, ast.Subscript) or (
            isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)):
        text = annotation(node)
        return f"$alias({text})" if text else ""
    return ""


def one_of(texts: list[str]) -> str:
    """Write an expression that is any of these; `?` if all are unknown."""
    known_names = list(dict.fromkeys(text for text in texts if text not in (UNKNOWN, "'NoneType")))
    if not known_names:
        return UNKNOWN
    return known_names[0] if len(known_names) == 1 else "(" + "|".join(known_names) + ")"


def annotation(node: ast.expr | None) -> str:
    """Return an annotation as text, without quotes around it; empty if there is none."""
    if node is None:
        return ""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return encodable(node.value.strip()[:EXPRESSION_MAX])
    if isinstance(node, ast.Name):
        return node.id
    text = ast.unparse(node)
    return text if len(text) <= 2 * EXPRESSION_MAX else ""


def encodable(text: str) -> str:
    """Return a text without characters that cannot be encoded (half of a surrogate pair)."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _literal(node: ast.AST) -> str:
    """Return the type of an expression that always has the same type."""
    match node:
        case ast.JoinedStr():
            return "'str"
        case ast.Dict() | ast.DictComp():
            return "'dict"
        case ast.Tuple():
            return "'tuple"
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return "'bool"
        case ast.BinOp(op=ast.Mod() | ast.Add(), left=ast.Constant(value=str()) | ast.JoinedStr()):
            return "'str"
    return UNKNOWN


def _item(node: ast.expr) -> str:
    if isinstance(node, ast.Slice):
        return "[:]"
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return f"<{node.value}>"
    return "[]"


def _bare(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Starred) else node
