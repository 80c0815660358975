"""The possible values of an expression: through assignments, calls, containers, `with` and `await`.

Owns the evaluation, over the files of one `World`. It evaluates single expressions and looks only
at the files that they lead through. It computes nothing in advance. Unknown values are left out: an
empty set means "unknown", never "nothing".
"""

from __future__ import annotations

from collections.abc import Callable

from coordinator.meaning.annotations import Annotations, union
from coordinator.meaning.facts import Binding, Scope
from coordinator.meaning.terms import Term, annotation_tree, term
from coordinator.meaning.values import (
    BUILTINS,
    LISTS,
    NOTHING,
    OUTSIDE,
    PLAIN,
    PROPERTIES,
    Hit,
    Place,
    Value,
    Values,
    builtin,
    classes_of,
    container_call,
    each_of,
    item_of,
    listed,
)
from coordinator.meaning.world import World

#: How deep expressions within one another are followed.
DEPTH_MAX = 60
#: How many other expressions are followed for one expression.
STEPS_MAX = 20_000
#: An expression with more possible values is unknown.
VALUES_MAX = 40


class Resolver(Annotations):
    """Evaluates expressions in one world. It keeps its results: for one question or a few."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._values: dict[tuple[str, str, str], Values] = {}
        self._open: set[tuple[str, str, str]] = set()
        self._places: set[Hit] = set()
        self._depth = 0
        self._steps = 0
        self._cuts = 0

    def evaluate(self, path: str, scope: str, text: str) -> Values:
        """Return an expression's possible values, seen from a scope."""
        return self.term(path, scope, term(text))

    def term(self, path: str, scope: str, expression: Term) -> Values:
        """Return a parsed expression's possible values, seen from a scope."""
        if expression.kind in ("unknown", "alias", "typevar"):
            return NOTHING
        if not self._depth:
            self._steps = 0
        if expression.kind in ("any", "cast", "builtin") or expression.scope is not None:
            return self._step_into(path, scope, expression, None)
        key = (path, scope, expression.text)
        if key in self._values:
            return self._values[key]
        cuts = self._cuts
        values = self._step_into(path, scope, expression, key)
        if cuts == self._cuts or not self._depth:
            self._values[key] = values  # a result that was cut short within a cycle is not kept
        return values

    def _step_into(self, path: str, scope: str, expression: Term,
                key: tuple[str, str, str] | None) -> Values:
        """Evaluate a new expression. Return nothing if it leads too deep, or back to this `key`."""
        self._steps += 1
        if self._depth > DEPTH_MAX or self._steps > STEPS_MAX or key in self._open:
            self._cuts += 1
            return NOTHING
        if key is not None:
            self._open.add(key)
        self._depth += 1
        try:
            values = self._once(path, scope, expression)
            if expression.kind in ("name", "attribute"):
                values |= self._narrowed(path, scope, expression.text)
        finally:
            self._depth -= 1
            if key is not None:
                self._open.discard(key)
        return values if len(values) <= VALUES_MAX else NOTHING

    def _narrowed(self, path: str, scope_name: str, text: str) -> Values:
        values = NOTHING
        scopes = self.world.facts(path).scopes
        here: str | None = scope_name
        while here is not None and (scope := scopes.get(here)) is not None:
            for made in scope.narrowed.get(text, ()):
                values |= self.evaluate(path, here, made)
            if scope.kind in ("function", "class"):
                break
            here = scope.above
        return values

    def _once(self, path: str, scope: str, expression: Term) -> Values:
        match expression.kind:
            case "name":
                return self._name(path, expression.scope if expression.scope is not None else scope,
                                  expression.name)
            case "any":
                return union(self.term(path, scope, part) for part in expression.parts)
            case "builtin":
                return NOTHING if expression.name == "NoneType" else builtin(expression.name)
            case "cast":
                tree = annotation_tree(expression.name)
                return self.annotated(path, scope, tree) if tree is not None else NOTHING
        assert expression.inner is not None
        return self._apply_step(path, scope, expression, expression.inner)

    def _apply_step(self, path: str, scope: str, expression: Term, inner: Term) -> Values:
        """Apply the expression's last step to the values of its inner expression."""
        if (expression.kind == "call" and inner.kind == "name"
                and inner.name == "super"):
            return self._super(path, scope)
        values = self.term(path, scope, inner)
        match expression.kind:
            case "attribute":
                return union(self.attribute(value, expression.name) for value in values)
            case "list":
                return listed(values)
            case "class":
                return classes_of(values)
        does: dict[str, Callable[[Value], Values]] = {
            "call": self.called, "each": self._each, "await": self._awaited,
            "enter": self._entered, "part": lambda value: frozenset({value}),
            "item": lambda value: self._item(value, expression.name),
        }
        return union(does[expression.kind](value) for value in values)

    def _name(self, path: str, scope: str, name: str) -> Values:
        hits = self.names(path, scope, name)
        if hits is None:
            return OUTSIDE
        if not hits:
            return frozenset({Value("type", scope=name)}) if name in BUILTINS else NOTHING
        return union(self.value_at(hit) for hit in hits)

    def _super(self, path: str, scope_name: str) -> Values:
        here: str | None = scope_name
        scopes = self.world.facts(path).scopes
        method: Scope | None = None
        while here is not None and (scope := scopes.get(here)) is not None:
            if scope.kind == "class" and method is not None:
                kind = self.binding_kind(method)
                value = Value("class" if kind != "object" or method.name == "__new__" else "object",
                              path, here)
                return frozenset({Value("super", path, here, owner=value)})
            if scope.kind == "function":
                method = scope
            here = scope.above
        return NOTHING

    def attribute(self, value: Value, name: str) -> Values:
        """Return the possible values of an attribute of a value."""
        if value.kind == "outside":
            return OUTSIDE
        if value.kind in ("builtin", "type"):
            return frozenset({Value("method", scope=name, owner=value)})
        if name == "__class__" and value.kind == "object":
            return frozenset({Value("class", value.path, value.scope)})
        if name == "__dict__" or value.kind in ("callable", "method"):
            return NOTHING
        hits, _ = self.members(value, name)
        return union(self.value_at(hit) for hit in hits)

    def value_at(self, hit: Hit) -> Values:
        """Return the values of a place. A member is bound to its owner."""
        place, value = hit
        if place.name == "":
            return frozenset({Value("folder" if place.scope == "/" else "module", place.path)})
        scope = self.scope(place.path, place.scope)
        if scope is None:
            return NOTHING
        bound = scope.bindings.get(place.name, [])
        declared = [binding for binding in bound if binding.kind == "type"]
        if hit in self._places:
            self._cuts += 1
            return NOTHING
        self._places.add(hit)
        try:
            return union(self._bound(place, scope, binding, value) for binding in declared or bound)
        finally:
            self._places.discard(hit)

    def _bound(self, place: Place, scope: Scope, binding: Binding, owner: Value | None) -> Values:
        path = place.path
        scope_name = binding.at if binding.at is not None else place.scope
        match binding.kind:
            case "def":
                made = self.scope(path, binding.text)
                if made is None:
                    return NOTHING
                if made.kind == "class":
                    return frozenset({Value("class", path, binding.text)})
                value = Value("function", path, binding.text, owner=owner)
                if self.binding_kind(made) == "property":
                    owned = owner is not None and owner.kind in ("object", "super")
                    return self.called(value) if owned else NOTHING
                return frozenset({value})
            case "import":
                return union(
                    self.value_at(hit) for hit in self._imported(path, binding, {place}) or [])
            case "value":
                if binding.text.startswith(("$alias(", "$typevar(")):
                    return frozenset({Value("typevar", path, scope_name)})
                return self.evaluate(path, scope_name, binding.text)
            case "type":
                tree = annotation_tree(binding.text)
                return self.annotated(path, scope_name, tree, owner) if tree else NOTHING
        return self._param(path, place.scope, scope, int(binding.text))

    def _param(self, path: str, scope_name: str, scope: Scope, number: int) -> Values:
        param = scope.params[number]
        above = scope.above or ""
        owner = self.scope(path, above)
        if number == 0 and owner is not None and owner.kind == "class" and param.kind in ("", "/"):
            match self.binding_kind(scope):
                case "object" | "property":
                    return frozenset({Value("object", path, above)})
                case "class":
                    return frozenset({Value("class", path, above)})
        if not param.annotation:
            return NOTHING
        tree = annotation_tree(param.annotation)
        values = self.annotated(path, above, tree) if tree is not None else NOTHING
        if param.kind == "*":
            return listed(values)
        return builtin("dict", builtin("str"), values) if param.kind == "**" else values

    def binding_kind(self, function: Scope) -> str:
        """Return the binding of a function in a class: `object`, `class`, `static` for none, or
        `property` if reading it calls it."""
        names = {_last(text) for text in function.decorators}
        if "staticmethod" in names or "abstractstaticmethod" in names:
            return "static"
        if "classmethod" in names or "abstractclassmethod" in names or function.name in (
                "__new__", "__init_subclass__", "__class_getitem__"):
            return "class"
        return "property" if names & PROPERTIES else "object"

    def called(self, value: Value) -> Values:
        """Return the result of calling a value."""
        match value.kind:
            case "class":
                return frozenset({Value("object", value.path, value.scope, value.args)})
            case "type":
                return _made(value.scope)
            case "method":
                assert value.owner is not None
                if value.owner.kind == "builtin":
                    return container_call(value.scope, value.owner)
                return builtin(value.owner.scope)
            case "callable":
                return value.args[0] if value.args else NOTHING
            case "outside":
                return OUTSIDE
            case "object":
                return union(
                    self.called(made) for made in self.attribute(value, "__call__")
                    if made.kind == "function"
                )
            case "function":
                return self._returned(value)
        return NOTHING

    def _returned(self, value: Value) -> Values:
        scope = self.scope(value.path, value.scope)
        if scope is None:
            return NOTHING
        names = {_last(text) for text in scope.decorators}
        values = self._find_result(value, scope)
        if not scope.returns and "yields" in scope.marks:
            return listed(NOTHING)
        if names & {"contextmanager", "asynccontextmanager"}:
            return builtin("manager", union(
                each_of(value) for value in values if value.kind == "builtin" and value.scope
                == "list"))
        if "async" in scope.marks and "yields" not in scope.marks:
            return builtin("coroutine", values)
        if names - PLAIN - PROPERTIES and not values:
            return NOTHING
        return values

    def _find_result(self, value: Value, scope: Scope) -> Values:
        """Return a function's declared result; without one, the values that it returns."""
        if not scope.returns:
            return union(self.evaluate(value.path, value.scope, text) for text in scope.given)
        tree = annotation_tree(scope.returns)
        if tree is None:
            return NOTHING
        own = self.own_kind(scope, value.owner, tree)
        return own if own is not None else self.annotated(value.path, scope.above or "", tree,
                                                          value.owner)

    def _each(self, value: Value) -> Values:
        if value.kind == "builtin":
            return each_of(value)
        if value.kind == "object":
            for name in ("__iter__", "__aiter__"):
                made = self.attribute(value, name)
                if made:
                    return union(
                        self._each(other_value) if other_value != value else self._next(value)
                        for function in made for other_value in self.called(function)
                    )
            return union(self.called(other_value) for other_value
                         in self.attribute(value, "__getitem__"))
        if value.kind == "class":  # an Enum
            return frozenset({Value("object", value.path, value.scope)})
        return OUTSIDE if value.kind == "outside" else NOTHING

    def _next(self, value: Value) -> Values:
        values = union(self.called(other_value) for other_value
                       in self.attribute(value, "__next__"))
        return values or union(
            self._awaited(given) for other_value in self.attribute(value, "__anext__")
            for given in self.called(other_value)
        )

    def _awaited(self, value: Value) -> Values:
        if value.kind == "builtin" and value.scope == "coroutine":
            return value.args[0] if value.args else NOTHING
        return OUTSIDE if value.kind == "outside" else NOTHING

    def _entered(self, value: Value) -> Values:
        if value.kind == "builtin":
            if value.scope == "manager":
                return value.args[0] if value.args else NOTHING
            return frozenset({value})
        if value.kind == "object":
            given = union(self.called(other_value) for other_value
                          in self.attribute(value, "__enter__"))
            return given or union(
                self._awaited(made) for other_value in self.attribute(value, "__aenter__")
                for made in self.called(other_value)
            )
        return OUTSIDE if value.kind == "outside" else NOTHING

    def _item(self, value: Value, place: str) -> Values:
        if value.kind == "builtin":
            return item_of(value, place)
        if value.kind == "object":
            return union(self.called(other_value) for other_value
                         in self.attribute(value, "__getitem__"))
        if value.kind in ("class", "type"):
            return frozenset({value})
        return OUTSIDE if value.kind == "outside" else NOTHING


def _last(text: str) -> str:
    """Return the last name of a decorator: `functools.lru_cache()` is `lru_cache`."""
    return text.partition(" ")[0].removesuffix("()").rpartition(".")[2]


def _made(name: str) -> Values:
    if name in LISTS:
        return builtin("list")
    if name in ("dict", "str", "bytes", "int", "float", "bool", "tuple"):
        return builtin(name)
    return OUTSIDE
