"""Following names: what a use may lead to, through imports, classes, annotations and assignments.

Owns the following, over the files of one `World`. It is asked for single expressions and looks only
at what these lead through; nothing is worked out in advance. What it does not know it leaves out:
an empty set of values is "unknown", never "nothing".
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable

from coordinator.meaning.facts import Binding, Facts, Param, Scope
from coordinator.meaning.terms import Term, annotation_tree, term
from coordinator.meaning.values import (
    BUILTINS,
    DICTS,
    INNER,
    LISTS,
    MANAGERS,
    NOTHING,
    OUTSIDE,
    PLAIN,
    PROPERTIES,
    Hit,
    Place,
    Value,
    Values,
    builtin,
    container_call,
    each_of,
    item_of,
    listed,
)
from coordinator.meaning.world import World

#: A name is followed through so many steps.
DEPTH_MAX = 60
#: For one expression, so many others are followed.
STEPS_MAX = 20_000
#: An expression may stand for so many things; more are unknown.
VALUES_MAX = 40


class Resolver:
    """Follows names in one world. Keeps what it has found: for one question or a few."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._values: dict[tuple[str, str, str], Values] = {}
        self._open: set[tuple[str, str, str]] = set()
        self._places: set[Hit] = set()
        self._depth = 0
        self._steps = 0
        self._cuts = 0
        self._orders: dict[tuple[str, str], tuple[list[Value], bool]] = {}

    # Names and members

    def scope(self, path: str, at: str) -> Scope | None:
        """A scope of a file; None if there is none of this id."""
        return self.world.facts(path).scopes.get(at)

    def names(self, path: str, at: str, name: str) -> list[Hit] | None:
        """What a bare name leads to, seen from a scope; None if it may be anything."""
        scopes = self.world.facts(path).scopes
        here: str | None = at
        while here is not None:
            scope = scopes.get(here)
            if scope is None:
                return None
            if name in scope.bindings and (scope.kind != "class" or here == at):
                return self.follow(Place(path, here, name))
            here = scope.above
        return self._from_wildcards(path, name)

    def members(self, value: Value, name: str) -> tuple[list[Hit], bool]:
        """What an attribute of a value leads to; and whether, if to nothing, it is not there."""
        if value.kind == "module":
            return self._of_module(value.path, name)
        if value.kind == "folder":
            inner = self.world.in_folder(value.path, name)
            return ([Hit(Place(inner, "", ""))], False) if inner else ([], False)
        if value.kind in ("class", "object", "super"):
            order, complete = self.order(value.path, value.scope)
            if value.kind == "super":
                order = order[1:]
            for one in order:
                scope = self.scope(one.path, one.scope)
                if scope is not None and name in scope.bindings:
                    of = value.of if value.kind == "super" and value.of is not None else value
                    hits = self.follow(Place(one.path, one.scope, name))
                    return [Hit(hit.place, of) for hit in hits or []], hits is not None
            return [], complete and not self.answers(value, name)
        return [], False

    def answers(self, value: Value, name: str) -> bool:
        """Whether a value may have an attribute that no file here defines: by `__getattr__`, or from
        one of Python's own types."""
        if value.kind == "module":
            module = self.scope(value.path, "")
            return module is not None and "__getattr__" in module.bindings
        if hasattr(object, name):
            return True
        for one in self.order(value.path, value.scope)[0]:
            scope = self.scope(one.path, one.scope)
            if scope is None:
                continue
            if "__getattr__" in scope.bindings or "__getattribute__" in scope.bindings:
                return True
            for base in scope.bases:
                for found in self.evaluate(one.path, scope.above or "", base.partition("[")[0]):
                    kind = vars(builtins).get(found.scope) if found.kind == "type" else None
                    if kind is not None and hasattr(kind, name):
                        return True
        return False

    def follow(self, place: Place) -> list[Hit] | None:
        """Through imports, to where a name is defined; None if one of them leads outside."""
        return self._follow(place, set())

    def _follow(self, place: Place, seen: set[Place]) -> list[Hit] | None:
        if place in seen or len(seen) > DEPTH_MAX:
            return []
        seen.add(place)
        scope = self.scope(place.path, place.scope)
        bound = scope.bindings.get(place.name, []) if scope is not None else []
        if any(one.kind != "import" for one in bound):
            return [Hit(place)]
        found: list[Hit] = []
        outside = False
        for one in bound:
            hits = self._imported(place.path, one, seen)
            outside = outside or hits is None
            found += hits or []
        return None if outside and not found else found

    def _imported(self, path: str, one: Binding, seen: set[Place]) -> list[Hit] | None:
        """What one import leads to; None if outside."""
        if one.name == "*":
            return []  # `import a.b` beside the name `a` that it makes
        value = self._module_value(one.text, path)
        if value is None:
            return None
        if not one.name:
            return [Hit(Place(value.path, "" if value.kind == "module" else "/", ""))]
        if value.kind == "folder":
            inner = self.world.in_folder(value.path, one.name)
            return [Hit(Place(inner, "", ""))] if inner else None
        hits, known = self._of_module(value.path, one.name, seen)
        return hits if hits or known else None

    def _of_module(
        self, path: str, name: str, seen: set[Place] | None = None,
    ) -> tuple[list[Hit], bool]:
        facts = self.world.facts(path)
        module = facts.scopes.get("")
        if module is None:
            return [], False
        if name in module.bindings:
            hits = self._follow(Place(path, "", name), seen if seen is not None else set())
            if hits:
                return hits, True
            inner = self.world.submodule(path, name)
            if inner and inner != path:
                return [Hit(Place(inner, "", ""))], True
            return [], hits is not None
        inner = self.world.submodule(path, name)
        if inner:
            return [Hit(Place(inner, "", ""))], True
        wild = self._from_wildcards(path, name, seen)
        return wild or [], wild is not None and "__getattr__" not in module.bindings

    def _from_wildcards(
        self, path: str, name: str, seen: set[Place] | None = None,
    ) -> list[Hit] | None:
        module = self.scope(path, "")
        if module is None:
            return None
        mark = Place(path, "*", name)
        if seen is not None and mark in seen:
            return []
        seen = seen if seen is not None else set()
        seen.add(mark)
        known = True
        for written in module.wildcards:
            value = self._module_value(written, path)
            if value is None or value.kind != "module":
                known = False
                continue
            exports = self.world.facts(value.path).exports
            if (exports is not None and name not in exports) or (
                    exports is None and name.startswith("_")):
                continue
            hits, _ = self._of_module(value.path, name, seen)
            if hits:
                return hits
        return [] if known else None

    def _module_value(self, written: str, importer: str) -> Value | None:
        path = self.world.module(written, importer)
        if path is not None:
            return Value("module", path)
        folder = self.world.folder(written, importer)
        return Value("folder", folder) if folder is not None else None

    # Classes

    def order(self, path: str, at: str) -> tuple[list[Value], bool]:
        """The classes in which an attribute is looked for, the class itself first; and whether
        these are all."""
        key = (path, at)
        if key not in self._orders:
            self._orders[key] = ([Value("class", path, at)], False)  # for what leads back here
            self._orders[key] = self._order(path, at)
        return self._orders[key]

    def _order(self, path: str, at: str) -> tuple[list[Value], bool]:
        scope = self.scope(path, at)
        if scope is None or scope.kind != "class":
            return [], False
        found = [Value("class", path, at)]
        complete = True
        for base in scope.bases:
            classes = self.base(path, scope, base)
            if not classes:
                complete = complete and _is_plain_base(base)
            for one in classes:
                order, whole = self.order(one.path, one.scope)
                complete = complete and whole
                found = [kept for kept in found if kept not in order] + order
        return found[:200], complete

    def base(self, path: str, scope: Scope, text: str) -> list[Value]:
        """The classes that a base, as written, stands for."""
        above = scope.above or ""
        if "[" in text and not text.endswith("[]"):
            text = text.partition("[")[0]
        values = self.evaluate(path, above, text)
        return [Value("class", one.path, one.scope) for one in values if one.kind == "class"]

    # Values

    def evaluate(self, path: str, at: str, text: str) -> Values:
        """What an expression may stand for, seen from a scope."""
        return self._term(path, at, term(text))

    def _term(self, path: str, at: str, one: Term) -> Values:
        if one.kind in ("unknown", "alias", "typevar"):
            return NOTHING
        key = (path, at, one.text if one.scope is None else f"{one.scope}:{one.text}")
        plain = one.kind not in ("any", "cast", "builtin") and one.scope is None
        if plain and key in self._values:
            return self._values[key]
        if not self._depth:
            self._steps = 0
        self._steps += 1
        if self._depth > DEPTH_MAX or key in self._open or self._steps > STEPS_MAX:
            self._cuts += 1
            return NOTHING
        cuts = self._cuts
        if plain:
            self._open.add(key)
        self._depth += 1
        try:
            found = self._once(path, at, one)
            if one.kind in ("name", "attribute"):
                found |= self._narrowed(path, at, one.text)
        finally:
            self._depth -= 1
            self._open.discard(key)
        if len(found) > VALUES_MAX:
            found = NOTHING
        if plain and (cuts == self._cuts or not self._depth):
            self._values[key] = found  # what was cut short within a circle is not kept
        return found

    def _narrowed(self, path: str, at: str, text: str) -> Values:
        found = NOTHING
        scopes = self.world.facts(path).scopes
        here: str | None = at
        while here is not None and (scope := scopes.get(here)) is not None:
            for made in scope.narrowed.get(text, ()):
                found |= self.evaluate(path, here, made)
            if scope.kind in ("function", "class"):
                break
            here = scope.above
        return found

    def _once(self, path: str, at: str, one: Term) -> Values:
        match one.kind:
            case "name":
                return self._name(path, one.scope if one.scope is not None else at, one.name)
            case "any":
                return _union(self._term(path, at, part) for part in one.parts)
            case "builtin":
                return NOTHING if one.name == "NoneType" else builtin(one.name)
            case "cast":
                tree = annotation_tree(one.name)
                return self.annotated(path, at, tree) if tree is not None else NOTHING
        assert one.of is not None
        if one.kind == "call" and one.of.kind == "name" and one.of.name == "super":
            return self._super(path, at)
        values = self._term(path, at, one.of)
        match one.kind:
            case "attribute":
                return _union(self.attribute(value, one.name) for value in values)
            case "list":
                return listed(values)
            case "class":
                return frozenset(Value("class", value.path, value.scope) for value in values
                                 if value.kind == "object")
        does: dict[str, Callable[[Value], Values]] = {
            "call": self.called, "each": self._each, "await": self._awaited,
            "enter": self._entered, "part": lambda value: frozenset({value}),
            "item": lambda value: self._item(value, one.name),
        }
        return _union(does[one.kind](value) for value in values)

    def _name(self, path: str, at: str, name: str) -> Values:
        hits = self.names(path, at, name)
        if hits is None:
            return OUTSIDE
        if not hits:
            return frozenset({Value("type", scope=name)}) if name in BUILTINS else NOTHING
        return _union(self.value_at(hit) for hit in hits)

    def _super(self, path: str, at: str) -> Values:
        here: str | None = at
        scopes = self.world.facts(path).scopes
        method: Scope | None = None
        while here is not None and (scope := scopes.get(here)) is not None:
            if scope.kind == "class" and method is not None:
                kind = self.binding_kind(method)
                of = Value("class" if kind != "object" or method.name == "__new__" else "object",
                           path, here)
                return frozenset({Value("super", path, here, of=of)})
            if scope.kind == "function":
                method = scope
            here = scope.above
        return NOTHING

    def attribute(self, value: Value, name: str) -> Values:
        """What an attribute of a value may stand for."""
        if value.kind == "outside":
            return OUTSIDE
        if value.kind in ("builtin", "type"):
            return frozenset({Value("method", scope=name, of=value)})
        if name == "__class__" and value.kind == "object":
            return frozenset({Value("class", value.path, value.scope)})
        if name == "__dict__" or value.kind in ("callable", "method"):
            return NOTHING
        hits, _ = self.members(value, name)
        return _union(self.value_at(hit) for hit in hits)

    def value_at(self, hit: Hit) -> Values:
        """What stands at a place; of a member, as its owner has it."""
        place, of = hit
        if place.name == "":
            return frozenset({Value("folder" if place.scope == "/" else "module", place.path)})
        scope = self.scope(place.path, place.scope)
        if scope is None:
            return NOTHING
        bound = scope.bindings.get(place.name, [])
        declared = [one for one in bound if one.kind == "type"]
        if hit in self._places:
            self._cuts += 1
            return NOTHING
        self._places.add(hit)
        try:
            return _union(self._bound(place, scope, one, of) for one in declared or bound)
        finally:
            self._places.discard(hit)

    def _bound(self, place: Place, scope: Scope, one: Binding, of: Value | None) -> Values:
        path = place.path
        at = one.at if one.at is not None else place.scope
        match one.kind:
            case "def":
                made = self.scope(path, one.text)
                if made is None:
                    return NOTHING
                if made.kind == "class":
                    return frozenset({Value("class", path, one.text)})
                value = Value("function", path, one.text, of=of)
                if self.binding_kind(made) == "property":
                    owned = of is not None and of.kind in ("object", "super")
                    return self.called(value) if owned else NOTHING
                return frozenset({value})
            case "import":
                return _union(
                    self.value_at(hit) for hit in self._imported(path, one, {place}) or [])
            case "value":
                if one.text.startswith("$alias("):
                    return frozenset({Value("typevar", path, at, of=None)})
                if one.text.startswith("$typevar("):
                    return frozenset({Value("typevar", path, at)})
                return self.evaluate(path, at, one.text)
            case "type":
                tree = annotation_tree(one.text)
                return self.annotated(path, at, tree, of) if tree is not None else NOTHING
            case "param":
                return self._param(path, place.scope, scope, int(one.text))
        return NOTHING

    def _param(self, path: str, at: str, scope: Scope, number: int) -> Values:
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
        found = self.annotated(path, above, tree) if tree is not None else NOTHING
        if param.kind == "*":
            return listed(found)
        return builtin("dict", builtin("str"), found) if param.kind == "**" else found

    def binding_kind(self, function: Scope) -> str:
        """What a function in a class is bound to: `object`, `class`, nothing (`static`); or
        `property`, if reading it calls it."""
        names = {_last(text) for text in function.decorators}
        if "staticmethod" in names or "abstractstaticmethod" in names:
            return "static"
        if "classmethod" in names or "abstractclassmethod" in names or function.name in (
                "__new__", "__init_subclass__", "__class_getitem__"):
            return "class"
        return "property" if names & PROPERTIES else "object"

    # What is done with values

    def called(self, value: Value) -> Values:
        """What calling a value gives."""
        match value.kind:
            case "class":
                return frozenset({Value("object", value.path, value.scope, value.args)})
            case "type":
                return _made(value.scope)
            case "method":
                assert value.of is not None
                if value.of.kind == "builtin":
                    return container_call(value.scope, value.of)
                return builtin(value.of.scope)
            case "callable":
                return value.args[0] if value.args else NOTHING
            case "outside":
                return OUTSIDE
            case "object":
                return _union(
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
        above = scope.above or ""
        if not scope.returns:
            found = _union(self.evaluate(value.path, value.scope, text) for text in scope.given)
            if "yields" in scope.marks:
                return listed(NOTHING)
        else:
            tree = annotation_tree(scope.returns)
            own = self._own_kind(scope, value.of, tree) if tree is not None else None
            if own is not None:
                found = own
            elif tree is not None:
                found = self.annotated(value.path, above, tree, value.of)
            else:
                found = NOTHING
        if names & {"contextmanager", "asynccontextmanager"}:
            return builtin("manager", _union(
                each_of(one) for one in found if one.kind == "builtin" and one.scope == "list"))
        if "async" in scope.marks and "yields" not in scope.marks:
            return builtin("coroutine", found)
        if names - PLAIN - PROPERTIES and not found:
            return NOTHING
        return found

    def _own_kind(self, scope: Scope, of: Value | None, tree: ast.expr) -> Values | None:
        """The result where a method gives one of the kind that it is called on."""
        if of is None or of.kind not in ("object", "class", "super"):
            return None
        said = tree
        while isinstance(said, ast.Subscript) and _last_of(said.value) in (
                "Optional", "Iterator", "Generator", "Awaitable"):
            said = said.slice.elts[0] if isinstance(said.slice, ast.Tuple) else said.slice
        if not isinstance(said, ast.Name | ast.Attribute):
            return None
        name = _last_of(said)
        first = scope.params[0].annotation if scope.params else ""
        if name != "Self" and not (first and name in (first, *_inner_names(first))):
            return None
        if name != "Self" and name != first and not first.lower().startswith("type["):
            return None
        if name == first and not self._is_typevar(of, scope, name):
            return None
        own = frozenset({Value("object", of.path, of.scope, of.args)})
        return listed(own) if said is not tree and _last_of_head(tree) in LISTS else own

    def _is_typevar(self, of: Value, scope: Scope, name: str) -> bool:
        order, _ = self.order(of.path, of.scope)
        for one in order:
            hits = self.names(one.path, "", name)
            for hit in hits or []:
                found = self.scope(hit.place.path, hit.place.scope)
                bound = found.bindings.get(hit.place.name, []) if found is not None else []
                if any(made.text.startswith("$typevar(") for made in bound):
                    return True
        return False

    def _each(self, value: Value) -> Values:
        if value.kind == "builtin":
            return each_of(value)
        if value.kind == "object":
            for name in ("__iter__", "__aiter__"):
                made = self.attribute(value, name)
                if made:
                    return _union(
                        self._each(one) if one != value else self._next(value)
                        for function in made for one in self.called(function)
                    )
            return _union(self.called(one) for one in self.attribute(value, "__getitem__"))
        if value.kind == "class":  # of an Enum
            return frozenset({Value("object", value.path, value.scope)})
        return OUTSIDE if value.kind == "outside" else NOTHING

    def _next(self, value: Value) -> Values:
        found = _union(self.called(one) for one in self.attribute(value, "__next__"))
        return found or _union(
            self._awaited(given) for one in self.attribute(value, "__anext__")
            for given in self.called(one)
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
            given = _union(self.called(one) for one in self.attribute(value, "__enter__"))
            return given or _union(
                self._awaited(made) for one in self.attribute(value, "__aenter__")
                for made in self.called(one)
            )
        return OUTSIDE if value.kind == "outside" else NOTHING

    def _item(self, value: Value, place: str) -> Values:
        if value.kind == "builtin":
            return item_of(value, place)
        if value.kind == "object":
            return _union(self.called(one) for one in self.attribute(value, "__getitem__"))
        if value.kind in ("class", "type"):
            return frozenset({value})
        return OUTSIDE if value.kind == "outside" else NOTHING

    # Annotations

    def annotated(
        self, path: str, at: str, node: ast.expr, of: Value | None = None, depth: int = 0,
    ) -> Values:
        """What something with this annotation may be, seen from a scope.

        Args:
            of: whose member it is: what type variables and `Self` stand for.
        """
        if depth > 12:
            return NOTHING
        again = depth + 1
        match node:
            case ast.Constant(value=str()):
                tree = annotation_tree(node.value.strip())
                return self.annotated(path, at, tree, of, again) if tree is not None else NOTHING
            case ast.Constant():
                return NOTHING
            case ast.BinOp():
                return (self.annotated(path, at, node.left, of, again)
                        | self.annotated(path, at, node.right, of, again))
            case ast.Name() | ast.Attribute():
                return self._annotated_name(path, at, node, of, again)
            case ast.Subscript():
                parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                return self._annotated_with(path, at, node.value, parts, of, again)
        return NOTHING

    def _annotated_name(
        self, path: str, at: str, node: ast.expr, of: Value | None, depth: int,
    ) -> Values:
        name = _last_of(node)
        if name == "Self" and of is not None and of.path:
            return frozenset({Value("object", of.path, of.scope, of.args)})
        hits = self._spelt(path, at, node)
        if hits is None:
            return _known_outside(name)
        if not hits:
            return _known_outside(name) if name in BUILTINS else NOTHING
        return _union(self._instance(hit, of, depth) for hit in hits)

    def _instance(self, hit: Hit, of: Value | None, depth: int) -> Values:
        scope = self.scope(hit.place.path, hit.place.scope)
        found = NOTHING
        for one in scope.bindings.get(hit.place.name, []) if scope is not None else ():
            at = one.at if one.at is not None else hit.place.scope
            if one.kind == "def":
                made = self.scope(hit.place.path, one.text)
                if made is not None and made.kind == "class":
                    found |= {Value("object", hit.place.path, one.text)}
            elif one.kind == "value":
                inner = term(one.text)
                if inner.kind == "typevar" and of is not None:
                    found |= self._stands_for(of, hit.place.name)
                if inner.kind in ("alias", "typevar") and inner.name:
                    tree = annotation_tree(inner.name)
                    if tree is not None and not (inner.kind == "typevar" and found):
                        found |= self.annotated(hit.place.path, at, tree, of, depth)
                elif inner.kind in ("name", "attribute", "any"):
                    found |= frozenset(
                        Value("object", value.path, value.scope)
                        for value in self._term(hit.place.path, at, inner)
                        if value.kind == "class"
                    )
            elif one.kind == "type" and "TypeAlias" in one.text:
                continue
        return found

    def _stands_for(self, of: Value, name: str) -> Values:
        """What a type variable stands for in a member of this object."""
        if of.kind not in ("object", "super"):
            return NOTHING
        scope = self.scope(of.path, of.scope)
        if scope is None:
            return NOTHING
        names = self._variables(scope)
        if name in names and names.index(name) < len(of.args):
            return of.args[names.index(name)]
        for base in scope.bases:  # class Boxes(Base[Box]): what Base's variable is here
            tree = annotation_tree(base) if "[" in base and not base.endswith("[]") else None
            if not isinstance(tree, ast.Subscript) or _last_of(tree.value) in (
                    "Generic", "Protocol"):
                continue
            parts = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
            for one in self.base(of.path, scope, base):
                args = tuple(self.annotated(of.path, scope.above or "", part, of) for part in parts)
                found = self._stands_for(Value("object", one.path, one.scope, args), name)
                if found:
                    return found
        return NOTHING

    def _variables(self, scope: Scope) -> list[str]:
        """The type variables of a class, in order."""
        found: list[str] = []
        for base in scope.bases:
            tree = annotation_tree(base) if "[" in base and not base.endswith("[]") else None
            if isinstance(tree, ast.Subscript):
                names = [one.id for one in ast.walk(tree.slice) if isinstance(one, ast.Name)]
                if _last_of(tree.value) in ("Generic", "Protocol"):
                    return names
                found += [one for one in names if one not in found]
        return found

    def _annotated_with(
        self, path: str, at: str, head: ast.expr, parts: list[ast.expr], of: Value | None,
        depth: int,
    ) -> Values:
        name = _last_of(head)
        hits = self._spelt(path, at, head)
        if hits:
            args = tuple(self.annotated(path, at, part, of, depth) for part in parts)
            return frozenset(
                value._replace(args=args) if value.kind == "object" else value
                for hit in hits for value in self._instance(hit, of, depth)
            )
        kinds = [self.annotated(path, at, part, of, depth) for part in parts]
        if name in ("Annotated", "Final", "ClassVar"):
            return kinds[0]
        if name in INNER:
            return _union(kinds)
        if name in ("Type", "type"):
            return frozenset(Value("class", one.path, one.scope) for one in kinds[0]
                             if one.kind == "object")
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

    def _spelt(self, path: str, at: str, node: ast.expr) -> list[Hit] | None:
        """What a dotted name leads to; None if outside."""
        if isinstance(node, ast.Name):
            return self.names(path, at, node.id)
        if isinstance(node, ast.Attribute):
            above = self._spelt(path, at, node.value)
            if above is None:
                return None
            found: list[Hit] = []
            for hit in above:
                for value in self.value_at(hit):
                    found += self.members(value, node.attr)[0]
            return found
        return []


def _union(parts: Iterable[Values]) -> Values:
    return frozenset().union(*parts)


def _last(text: str) -> str:
    """The last name of a decorator: `functools.lru_cache()` is `lru_cache`."""
    return text.partition(" ")[0].removesuffix("()").rpartition(".")[2]


def _last_of(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _last_of_head(node: ast.expr) -> str:
    return _last_of(node.value) if isinstance(node, ast.Subscript) else _last_of(node)


def _inner_names(annotation: str) -> list[str]:
    tree = annotation_tree(annotation)
    return [one.id for one in ast.walk(tree) if isinstance(one, ast.Name)] if tree else []


def _is_plain_base(text: str) -> bool:
    return text.partition("[")[0].rpartition(".")[2] in ("object", "Generic", "Protocol", "ABC")


def _known_outside(name: str) -> Values:
    if name in ("Any", "object", "None"):
        return NOTHING
    if name in LISTS:
        return builtin("list")
    if name in DICTS:
        return builtin("dict")
    return builtin(name) if name in BUILTINS else OUTSIDE


def _made(name: str) -> Values:
    if name in LISTS:
        return builtin("list")
    if name in ("dict", "str", "bytes", "int", "float", "bool", "tuple"):
        return builtin(name)
    return OUTSIDE


__all__ = ["Facts", "Param", "Resolver"]
