"""The signatures of callable values.

Owns the search for a constructor's parameters, and which parameters binding takes away. The
constructor may be the class's own, or made by a dataclass or a named tuple. Unknown parameters are
None, and are never judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from coordinator.meaning.facts import Param, Scope
from coordinator.meaning.resolving import Resolver
from coordinator.meaning.values import PLAIN, PROPERTIES, Hit, Place, Value

_DATA = frozenset({"dataclass", "define", "frozen", "mutable", "attrs", "s", "pydantic_dataclass"})


class Signature(NamedTuple):
    """The parameters that one callable accepts.

    Attributes:
        params: without the implicit first parameter; None if unknown.
        place: the definition that it is made from; the class, if its fields make it.
        marks: those of `facts.Scope`.
    """

    params: tuple[Param, ...] | None
    place: Place
    marks: tuple[str, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether the result of a call has to be awaited."""
        return "async" in self.marks and "yields" not in self.marks


def signatures(resolver: Resolver, value: Value) -> list[Signature]:
    """Return the signatures of a value. A call fits if it fits one. Empty if unknown."""
    if value.kind == "function":
        return of_function(resolver, value)
    if value.kind == "class":
        return of_class(resolver, value)
    if value.kind == "object":
        return [signature for made in resolver.attribute(value, "__call__") if made.kind
                == "function"
                for signature in of_function(resolver, made)]
    return []


def both(
    resolver: Resolver, base: Value, sub: Value, name: str,
) -> tuple[tuple[Param, ...], tuple[Param, ...]] | None:
    """Return the parameters of the method of this name in both classes. None if they are unknown,
    or if a class has several such methods."""
    matches: list[tuple[Param, ...]] = []
    for value in (base, sub):
        scope = resolver.scope(value.path, value.scope)
        if scope is None or name not in scope.bindings:
            return None
        made = [
            signature for method
            in resolver.value_at(Hit(Place(value.path, value.scope, name), value))
            if method.kind == "function" for signature in signatures(resolver, method)
        ]
        if len(made) != 1 or made[0].params is None:
            return None
        matches.append(made[0].params)
    return matches[0], matches[1]


def of_function(resolver: Resolver, value: Value) -> list[Signature]:
    """Return the signatures of a function, bound as the value is."""
    scope = resolver.scope(value.path, value.scope)
    if scope is None:
        return []
    above = resolver.scope(value.path, scope.above or "")
    in_class = above is not None and above.kind == "class"
    place = Place(value.path, scope.above or "", scope.name)
    marks = tuple(scope.marks)
    if not is_plain(resolver, value.path, scope):
        return [Signature(None, place, marks)]
    params = tuple(scope.params)
    if in_class and value.owner is not None and params and params[0].kind in ("/", "") and (
            _is_bound(resolver, scope, value.owner)):
        params = params[1:]
    return [Signature(params, place, marks)]


def _is_bound(resolver: Resolver, scope: Scope, value: Value) -> bool:
    """Whether a method gets its first parameter implicitly when it is read from this value."""
    kind = resolver.binding_kind(scope)
    if scope.name == "__new__" or kind == "static":
        return False
    return kind == "class" or value.kind == "object" or (value.kind == "super"
                                                         and value.owner is not None)


def is_plain(resolver: Resolver, path: str, scope: Scope) -> bool:
    """Whether a function's decorators leave its signature as it is."""
    for text in scope.decorators:
        name = text.removesuffix("()").rpartition(".")[2]
        if name in PLAIN or name in PROPERTIES:
            continue
        if not _passes_through(resolver, path, scope.above or "", text):
            return False
    return True


def _passes_through(resolver: Resolver, path: str, scope_name: str, text: str) -> bool:
    """Whether a decorator of these files returns a callable with the signature of its argument."""
    called = text.endswith("()")
    values = resolver.evaluate(path, scope_name, text.removesuffix("()"))
    for value in values:
        scope = resolver.scope(value.path, value.scope) if value.kind == "function" else None
        if scope is None:
            return False
        if not (_makes_same(resolver, value, scope) if called else _is_same(scope)):
            return False
    return bool(values)


def _makes_same(resolver: Resolver, value: Value, scope: Scope) -> bool:
    """Whether the decorators that a function makes return their argument's signature."""
    if "Callable[[" in scope.returns:
        given, _, back = scope.returns.partition("Callable[[")[2].partition("]")
        return given.strip() == back.strip(" ,]") and bool(given.strip())
    inner = [other_scope for other_scope in resolver.world.facts(value.path).scopes.values()
             if other_scope.kind == "function" and other_scope.above == value.scope
             and other_scope.name in scope.given]
    return bool(inner) and all(map(_is_same, inner))


def _is_same(scope: Scope) -> bool:
    first = scope.params[0].annotation if scope.params else ""
    return bool(first) and first == scope.returns


def of_class(resolver: Resolver, value: Value) -> list[Signature]:
    """Return the signatures of a class's constructor."""
    order, complete = resolver.order(value.path, value.scope)
    made = Value("object", value.path, value.scope)
    for position, other_value in enumerate(order):
        scope = resolver.scope(other_value.path, other_value.scope)
        if scope is None:
            return []
        if any(text.startswith("metaclass=") and not text.endswith("ABCMeta")
               for text in scope.options):
            return []
        for name in ("__init__", "__new__"):
            if name == "__init__" and (fields := _data(resolver, order[position:], other_value,
                                                       scope)):
                return [fields]
            if name in scope.bindings:
                return _own(resolver, other_value, scope, name, made)
        if any(_outside_base(resolver, other_value.path, scope, base) for base in scope.bases):
            return []
    return [Signature((), Place(value.path, value.scope, "__init__"))] if complete else []


def _own(
    resolver: Resolver, value: Value, scope: Scope, name: str, made: Value,
) -> list[Signature]:
    found_signatures: list[Signature] = []
    for bound in scope.bindings[name]:
        function = resolver.scope(value.path, bound.text) if bound.kind == "def" else None
        if function is None:
            return []
        for made_of in of_function(resolver, Value("function", value.path, bound.text, owner=made)):
            params = made_of.params
            if name == "__new__" and params is not None:
                made_of = made_of._replace(params=params[1:])
            found_signatures.append(made_of)
    return found_signatures


def _outside_base(resolver: Resolver, path: str, scope: Scope, base: str) -> bool:
    bare = base.partition("[")[0]
    if bare.rpartition(".")[2] in ("object", "Generic", "Protocol", "ABC"):
        return False
    return not resolver.base(path, scope, base)


def _data(
    resolver: Resolver, order: list[Value], value: Value, scope: Scope,
) -> Signature | None:
    """Return the constructor that a data class's fields make; None for other classes."""
    place = Place(value.path, value.scope, "<fields>")
    if any(base.rpartition(".")[2] == "NamedTuple" for base in scope.bases):
        return Signature(
            tuple(Param(name, "", not default) for name, _, default in scope.fields), place)
    if not _is_data(scope) or any("no_init" in text for text in scope.decorators):
        return None
    if "__init__" in scope.bindings:
        return None
    fields: dict[str, Param] = {}
    for above in reversed(order):
        made = resolver.scope(above.path, above.scope)
        if made is None or not _is_data(made):
            continue
        fields |= {param.name: param for param in _list_fields(made)}
        if not made.fields and _is_attrs(made) and made.bindings:
            return Signature(None, place)  # fields without annotations are not read
    return Signature(tuple(fields.values()), place)


def _list_fields(scope: Scope) -> Iterator[Param]:
    """Yield the parameters that the fields of this class alone make."""
    by_name = any(" kw_only" in text for text in scope.decorators)
    for name, annotation, default in scope.fields:
        kind = annotation.partition("[")[0].rpartition(".")[2]
        if kind == "KW_ONLY":
            by_name = True
        elif kind != "ClassVar" and "init=False" not in default:
            only = by_name or "kw_only=True" in default
            yield Param(name.lstrip("_") if _is_attrs(scope) else name, "=" if only else "",
                        not _has_default(default))


def _is_data(scope: Scope) -> bool:
    return any(
        text.partition(" ")[0].removesuffix("()").rpartition(".")[2] in _DATA
        for text in scope.decorators
    )


def _is_attrs(scope: Scope) -> bool:
    return not any("dataclass" in text for text in scope.decorators)


def _has_default(default: str) -> bool:
    if not default:
        return False
    head, *marks = default.split(" ")
    if head.removesuffix("()").rpartition(".")[2] in ("field", "ib", "Factory", "attrib"):
        return any(mark in ("default", "factory", "default_factory") for mark in marks)
    return True
