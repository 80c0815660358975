"""The facts that a walk over a file's tree collects: scopes, bindings, uses of names.

Owns the rules of binding: `self.x` belongs to the class, `global` to the module, the names of a
loop to the loop. Knows the targets of assignments. All other statements are `reading`'s business.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod

from coordinator.meaning.expressions import Writer
from coordinator.meaning.facts import (
    UNKNOWN,
    Binding,
    BindingKind,
    Marker,
    Scope,
    Shape,
    Site,
    last_name,
)

#: How many bindings of a name are kept.
BINDINGS_MAX = 24
_LOCAL = ("function", "lambda", "loop")


class Binder(ABC):
    """The facts collected so far. `at` is the id of the scope that the walk is in."""

    def __init__(self) -> None:
        self.scopes: dict[str, Scope] = {}
        self.markers: list[Marker] = []
        self.exports: list[str] | None = None
        self.at = ""
        self._sites: dict[tuple[str, str, Shape | None], list[int]] = {}
        self._taken: dict[str, int] = {}
        self._loops: dict[ast.AST, str] = {}
        self._globals: dict[str, set[str]] = {}
        self._inside_call: set[ast.AST] = set()
        self.text = Writer(self._loops.get).text

    @abstractmethod
    def visit(self, node: ast.AST) -> None:
        """Continue the walk within this node."""

    def used(self) -> list[Site]:
        """Return the sites, without uses of names that are local to a function."""
        kept: list[Site] = []
        for (scope, text, shape), lines in self._sites.items():
            if text.isidentifier() and self._is_local(scope, text):
                if shape is None:
                    continue
                if text != "cls" and all(
                        binding.kind == "param" for binding in self._bound(scope, text)):
                    continue
            kept.append(Site(scope, text, sorted(set(lines)), shape))
        return kept

    def _bound(self, scope: str, name: str) -> list[Binding]:
        scope_name: str | None = scope
        while scope_name is not None:
            here = self.scopes[scope_name]
            if name in here.bindings and (here.kind != "class" or scope_name == scope):
                return here.bindings[name]
            scope_name = here.above
        return []

    def _is_local(self, scope: str, name: str) -> bool:
        scope_name: str | None = scope
        while scope_name is not None:
            here = self.scopes[scope_name]
            if name in here.bindings and here.kind in _LOCAL:
                return all(binding.kind != "import" for binding in here.bindings[name])
            scope_name = here.above
        return False

    def open(self, scope: Scope) -> str:
        base = ".".join(name for name in (scope.above, scope.name) if name)
        if not scope.name:
            count = self._taken[base + "<"] = self._taken.get(base + "<", 0) + 1
            name = f"{base}.<{count}>" if base else f"<{count}>"
        else:
            count = self._taken[base] = self._taken.get(base, 0) + 1
            name = base if count == 1 else f"{base}#{count}"
        self.scopes[name] = scope
        return name

    def bind(self, name: str, kind: BindingKind, text: str, line: int, *, what: str = "",
             seen: str | None = None, scope: str | None = None) -> None:
        here = scope if scope is not None else self.at
        if scope is None and name in self._globals.get(here, ()):
            here, seen = "", seen or self.at
        if scope is None and self.scopes[here].kind == "loop" and kind != "param":
            seen = seen if seen is not None else here
        bound = self.scopes[here].bindings.setdefault(name, [])
        binding = Binding(kind, text, line, what, None if seen == here else seen)
        if len(bound) < BINDINGS_MAX and binding not in bound:
            bound.append(binding)

    def site(self, text: str, line: int, shape: Shape | None = None) -> None:
        if last_name(text):
            self._sites.setdefault((self.at, text, shape), []).append(line)

    def target(self, target: ast.expr, text: str, line: int, value: ast.expr | None = None,
               seen: str | None = None) -> None:
        """Bind the target left of `=`, or after `for` or `as`, to an expression."""
        match target:
            case ast.Name():
                self.bind(target.id, "value", text, line, seen=seen)
            case ast.Tuple() | ast.List():
                parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
                paired = len(parts) == len(target.elts) and not any(
                    isinstance(part, ast.Starred) for part in [*parts, *target.elts])
                for place, node in enumerate(target.elts):
                    if paired:
                        self.target(node, self.text(parts[place]), line, parts[place], seen)
                    elif isinstance(node, ast.Starred):
                        self.target(node.value, text, line, None, seen)
                    else:
                        told = text + f"<{place}>" if text != UNKNOWN else UNKNOWN
                        self.target(node, told, line, None, seen)
            case ast.Attribute():
                self._own(target, "value", text, line)
                self.visit(target.value)
            case _:
                self.visit(target)

    def _own(self, target: ast.Attribute, kind: BindingKind, text: str, line: int) -> None:
        """Bind `self.x = …` in a method as a name of its class."""
        scope = self.scopes[self.at]
        if (scope.kind == "function" and isinstance(target.value, ast.Name) and scope.params
                and target.value.id == scope.params[0].name and scope.above is not None
                and self.scopes[scope.above].kind == "class"
                and "staticmethod" not in scope.decorators):
            self.bind(target.attr, kind, text, line, seen=self.at, scope=scope.above)

    def items(self, target: ast.expr, source: ast.expr, line: int, seen: str | None = None) -> None:
        """Bind the target of a loop. Look through `enumerate` and `zip`."""
        if (isinstance(target, ast.Tuple) and isinstance(source, ast.Call)
                and isinstance(source.func, ast.Name)):
            if source.func.id == "enumerate" and len(target.elts) == 2 and source.args:
                self.target(target.elts[0], "'int", line, None, seen)
                self.items(target.elts[1], source.args[0], line, seen)
                return
            if source.func.id in ("zip", "zip_longest") and len(source.args) == len(target.elts):
                for node, given in zip(target.elts, source.args, strict=True):
                    self.items(node, given, line, seen)
                return
        text = self.text(source)
        self.target(target, text + "*" if text != UNKNOWN else UNKNOWN, line, None, seen)
