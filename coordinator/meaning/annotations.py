"""The possible values of an annotated name.

Owns the reading of annotations: containers, unions, type variables, `Self`, aliases. The unknown
have none.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterable

from coordinator.meaning.facts import Scope
from coordinator.meaning.following import Following
from coordinator.meaning.terms import Term, annotation_tree, term
from coordinator.meaning.values import (
    BUILTINS,
    DICTS,
    INNER,
    LISTS,
    MANAGERS,
    NOTHING,
    OUTSIDE,
    Hit,
    Value,
    Values,
    builtin,
    classes_of,
    listed,
)

#: How deep annotations within one another are followed.
NESTED_MAX = 12


def _made_with(name: str, parts: list[ast.expr], kinds: list[Values]) -> Values:
    """Return the values of `name[parts]`, a type of Python's own. `kinds`: the values of each part.
    """
    if name in ("Annotated", "Final", "ClassVar"):
        return kinds[0]
    if name in INNER:
        return union(kinds)
    if name in ("Type", "type"):
        return classes_of(kinds[0])
    if name in LISTS:
        return listed(kinds[0])
    if name in DICTS:
        return builtin("dict", *kinds) if len(kinds) == 2 else builtin("dict")
    if name in ("Tuple", "tuple"):
        if any(isinstance(part, ast.Constant) and part.value is ... for part in parts):
            return listed(kinds[0])
        return builtin("tuple", *kinds)
    if name in ("Awaitable", "Coroutine"):
        return builtin("coroutine", kinds[-1])
    if name in MANAGERS:
        return builtin("manager", kinds[0])
    if name == "Callable":
        return frozenset({Value("callable", args=(kinds[-1],))})
    return builtin("str") if name == "Literal" else OUTSIDE


class Annotations(Following):
    """Reads annotations. `resolving` completes it."""

    @abstractmethod
    def value_at(self, hit: Hit) -> Values:
        """Return the values of a place."""

    @abstractmethod
    def term(self, path: str, scope: str, expression: Term) -> Values:
        """Return an expression's possible values, seen from a scope."""

    def annotated(
        self, path: str, scope: str, node: ast.expr, value: Value | None = None, depth: int = 0,
    ) -> Values:
        """Return the values of a name with this annotation, seen from a scope.

        Args:
            value: the owner of the member, which gives type variables and `Self` their values.
        """
        if depth > NESTED_MAX:
            return NOTHING
        again = depth + 1
        match node:
            case ast.Constant(value=str() as said):
                tree = annotation_tree(said.strip())
                return self.annotated(path, scope, tree, value,
                                      again) if tree is not None else NOTHING
            case ast.Constant():
                return NOTHING
            case ast.BinOp():
                return (self.annotated(path, scope, node.left, value, again)
                        | self.annotated(path, scope, node.right, value, again))
            case ast.Name() | ast.Attribute():
                return self._annotated_name(path, scope, node, value, again)
            case ast.Subscript():
                parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                return self._annotated_with(path, scope, node.value, parts, value, again)
        return NOTHING

    def _annotated_name(
        self, path: str, scope: str, node: ast.expr, value: Value | None, depth: int,
    ) -> Values:
        name = _last_of(node)
        if name == "Self" and value is not None and value.path:
            return frozenset({Value("object", value.path, value.scope, value.args)})
        hits = self._spelt(path, scope, node)
        if hits is None:
            return _known_outside(name)
        if not hits:
            return _known_outside(name) if name in BUILTINS else NOTHING
        return union(self._instance(hit, value, depth) for hit in hits)

    def _instance(self, hit: Hit, value: Value | None, depth: int) -> Values:
        scope = self.scope(hit.place.path, hit.place.scope)
        values = NOTHING
        for binding in scope.bindings.get(hit.place.name, []) if scope is not None else ():
            if binding.kind == "def":
                made = self.scope(hit.place.path, binding.text)
                if made is not None and made.kind == "class":
                    values |= {Value("object", hit.place.path, binding.text)}
            elif binding.kind == "value":
                scope_name = binding.at if binding.at is not None else hit.place.scope
                inner = term(binding.text)
                if inner.kind == "typevar" and value is not None:
                    values |= self._stands_for(value, hit.place.name)
                if not (inner.kind == "typevar" and values):
                    values |= self._instance_named(hit.place.path, scope_name, inner, value, depth)
        return values

    def _instance_named(self, path: str, scope: str, expression: Term, owner: Value | None,
                        depth: int) -> Values:
        """Return the objects of the type that this expression names."""
        if expression.kind in ("alias", "typevar") and expression.name:
            tree = annotation_tree(expression.name)
            return self.annotated(path, scope, tree, owner, depth) if tree is not None else NOTHING
        if expression.kind in ("name", "attribute", "any"):
            return frozenset(Value("object", value.path, value.scope)
                             for value in self.term(path, scope, expression) if value.kind
                             == "class")
        return NOTHING

    def _stands_for(self, value: Value, name: str) -> Values:
        """Return the values of a type variable in a member of this object."""
        if value.kind not in ("object", "super"):
            return NOTHING
        scope = self.scope(value.path, value.scope)
        if scope is None:
            return NOTHING
        names = self._variables(scope)
        if name in names and names.index(name) < len(value.args):
            return value.args[names.index(name)]
        for base in scope.bases:  # class Boxes(Base[Box]): the value of Base's variable here
            tree = annotation_tree(base) if "[" in base and not base.endswith("[]") else None
            if not isinstance(tree, ast.Subscript) or _last_of(tree.value) in (
                    "Generic", "Protocol"):
                continue
            parts = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
            for other_value in self.base(value.path, scope, base):
                args = tuple(self.annotated(value.path, scope.above or "", part, value) for part
                             in parts)
                values = self._stands_for(Value("object", other_value.path, other_value.scope,
                                                args), name)
                if values:
                    return values
        return NOTHING

    def _variables(self, scope: Scope) -> list[str]:
        """Return the type variables of a class, in order."""
        result: list[str] = []
        for base in scope.bases:
            tree = annotation_tree(base) if "[" in base and not base.endswith("[]") else None
            if isinstance(tree, ast.Subscript):
                names = [node.id for node in ast.walk(tree.slice) if isinstance(node, ast.Name)]
                if _last_of(tree.value) in ("Generic", "Protocol"):
                    return names
                result += [name for name in names if name not in result]
        return result

    def _annotated_with(
        self, path: str, scope: str, head: ast.expr, parts: list[ast.expr], owner: Value | None,
        depth: int,
    ) -> Values:
        hits = self._spelt(path, scope, head)
        kinds = [self.annotated(path, scope, part, owner, depth) for part in parts]
        if hits:
            args = tuple(kinds)
            return frozenset(
                value._replace(args=args) if value.kind == "object" else value
                for hit in hits for value in self._instance(hit, owner, depth)
            )
        return _made_with(_last_of(head), parts, kinds)

    def _spelt(self, path: str, scope: str, node: ast.expr) -> list[Hit] | None:
        """Follow a dotted name to its places; None if it leads outside."""
        if isinstance(node, ast.Name):
            return self.names(path, scope, node.id)
        if isinstance(node, ast.Attribute):
            above = self._spelt(path, scope, node.value)
            if above is None:
                return None
            hits: list[Hit] = []
            for hit in above:
                for value in self.value_at(hit):
                    hits += self.members(value, node.attr)[0]
            return hits
        return []

    def own_kind(self, scope: Scope, value: Value | None, tree: ast.expr) -> Values | None:
        """Return the result of a method that returns its receiver's kind; None for others."""
        if value is None or value.kind not in ("object", "class", "super"):
            return None
        node = tree
        while isinstance(node, ast.Subscript) and _last_of(node.value) in (
                "Optional", "Iterator", "Generator", "Awaitable"):
            node = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
        if not isinstance(node, ast.Name | ast.Attribute):
            return None
        name = _last_of(node)
        first = scope.params[0].annotation if scope.params else ""
        if not _is_own(name, first) or (
                name == first and not self._is_typevar(value, scope, name)):
            return None
        own = frozenset({Value("object", value.path, value.scope, value.args)})
        return listed(own) if node is not tree and _last_of_head(tree) in LISTS else own

    def _is_typevar(self, value: Value, scope: Scope, name: str) -> bool:
        order, _ = self.order(value.path, value.scope)
        for other_value in order:
            hits = self.names(other_value.path, "", name)
            for hit in hits or []:
                found_scope = self.scope(hit.place.path, hit.place.scope)
                bound = found_scope.bindings.get(hit.place.name,
                                                 []) if found_scope is not None else []
                if any(made.text.startswith("$typevar(") for made in bound):
                    return True
        return False


def union(parts: Iterable[Values]) -> Values:
    """Return all these values together."""
    return frozenset().union(*parts)


def _last_of(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _last_of_head(node: ast.expr) -> str:
    return _last_of(node.value) if isinstance(node, ast.Subscript) else _last_of(node)


def _inner_names(annotation: str) -> list[str]:
    tree = annotation_tree(annotation)
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)] if tree else []


def _known_outside(name: str) -> Values:
    if name in ("Any", "object", "None"):
        return NOTHING
    if name in LISTS:
        return builtin("list")
    if name in DICTS:
        return builtin("dict")
    return builtin(name) if name in BUILTINS else OUTSIDE


def _is_own(name: str, first: str) -> bool:
    """Whether the annotation `name` of a result means the kind of the method's first parameter,
    whose annotation is `first`."""
    if name == "Self":
        return True
    return bool(first) and name in (first, *_inner_names(first)) and (
        name == first or first.lower().startswith("type["))
