"""Following names through scopes, imports, packages and base classes to their definitions.

Owns the search for places. Bases are expressions: `resolving` evaluates them in a subclass.
"""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Collection

from coordinator.meaning.facts import Binding, Scope
from coordinator.meaning.values import Hit, Place, Value, Values
from coordinator.meaning.world import World

#: How many imports a name is followed through.
STEPS_MAX = 60
#: How many base classes of a class are known.
ORDER_MAX = 200


class Following(ABC):
    """Follows names in one world. It keeps its results, so it serves one question or a few."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._orders: dict[tuple[str, str], tuple[list[Value], bool]] = {}

    @abstractmethod
    def evaluate(self, path: str, at: str, text: str) -> Values:
        """Return an expression's possible values, seen from a scope."""

    def scope(self, path: str, scope_name: str) -> Scope | None:
        """Return a scope of a file; None if no scope has this id."""
        return self.world.facts(path).scopes.get(scope_name)

    def names(self, path: str, scope_name: str, name: str) -> list[Hit] | None:
        """Follow a bare name, seen from a scope; None if it may be anything."""
        scopes = self.world.facts(path).scopes
        here: str | None = scope_name
        while here is not None:
            scope = scopes.get(here)
            if scope is None:
                return None
            if name in scope.bindings and (scope.kind != "class" or here == scope_name):
                return self.follow(Place(path, here, name))
            here = scope.above
        return self._from_wildcards(path, name)

    def members(self, value: Value, name: str) -> tuple[list[Hit], bool]:
        """Follow an attribute of a value. The second result says, if no place was found, whether
        the attribute is surely missing."""
        if value.kind == "module":
            return self._of_module(value.path, name)
        if value.kind == "folder":
            inner = self.world.in_folder(value.path, name)
            return ([Hit(Place(inner, "", ""))], False) if inner else ([], False)
        if value.kind in ("class", "object", "super"):
            order, complete = self.order(value.path, value.scope)
            if value.kind == "super":
                order = order[1:]
            for other_value in order:
                scope = self.scope(other_value.path, other_value.scope)
                if scope is not None and name in scope.bindings:
                    owner = value.owner if value.kind == "super" and value.owner else value
                    hits = self.follow(Place(other_value.path, other_value.scope, name))
                    return [Hit(hit.place, owner) for hit in hits or []], hits is not None
            return [], complete and not self.answers(value, name)
        return [], False

    def answers(self, value: Value, name: str) -> bool:
        """Whether a value may have an attribute that no file here defines: by `__getattr__`, or
        from a type of Python's own."""
        if value.kind == "module":
            module = self.scope(value.path, "")
            return module is not None and "__getattr__" in module.bindings
        if hasattr(object, name):
            return True
        for other_value in self.order(value.path, value.scope)[0]:
            scope = self.scope(other_value.path, other_value.scope)
            if scope is None:
                continue
            if "__getattr__" in scope.bindings or "__getattribute__" in scope.bindings:
                return True
            for base in scope.bases:
                for origin in self.evaluate(other_value.path, scope.above or "",
                                            base.partition("[")[0]):
                    kind = vars(builtins).get(origin.scope) if origin.kind == "type" else None
                    if kind is not None and hasattr(kind, name):
                        return True
        return False

    def follow(self, place: Place) -> list[Hit] | None:
        """Follow imports to the definition of a name; None if an import leads outside."""
        return self._follow(place, set())

    def _follow(self, place: Place, seen: set[Place]) -> list[Hit] | None:
        if place in seen or len(seen) > STEPS_MAX:
            return []
        seen.add(place)
        scope = self.scope(place.path, place.scope)
        bound = scope.bindings.get(place.name, []) if scope is not None else []
        if any(binding.kind != "import" for binding in bound):
            return [Hit(place)]
        found_hits: list[Hit] = []
        outside = False
        for binding in bound:
            hits = self._imported(place.path, binding, seen)
            outside = outside or hits is None
            found_hits += hits or []
        return None if outside and not found_hits else found_hits

    def _imported(self, path: str, binding: Binding, seen: set[Place]) -> list[Hit] | None:
        """Follow one import; None if it leads outside."""
        if binding.name == "*":
            return []  # `import a.b` next to the name `a` that it makes
        value = self._module_value(binding.text, path)
        if value is None:
            return None
        if not binding.name:
            return [Hit(Place(value.path, "" if value.kind == "module" else "/", ""))]
        if value.kind == "folder":
            inner = self.world.in_folder(value.path, binding.name)
            return [Hit(Place(inner, "", ""))] if inner else None
        hits, known = self._of_module(value.path, binding.name, seen)
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
            if not _is_exported(name, self.world.facts(value.path).exports):
                continue
            hits, _ = self._of_module(value.path, name, seen)
            if hits:
                return hits
        for sibling in self.world.siblings(path, name):
            hits = self._follow(Place(sibling, "", name), seen) or []
            if hits:
                return hits
        return [] if known else None

    def _module_value(self, written: str, importer: str) -> Value | None:
        path = self.world.module(written, importer)
        if path is not None:
            return Value("module", path)
        folder = self.world.folder(written, importer)
        return Value("folder", folder) if folder is not None else None

    def order(self, path: str, scope: str) -> tuple[list[Value], bool]:
        """Return the classes in which an attribute is looked up, the class itself first, and
        whether the list is complete."""
        key = (path, scope)
        if key not in self._orders:
            # for a base that leads back here
            self._orders[key] = ([Value("class", path, scope)], False)
            self._orders[key] = self._order(path, scope)
        return self._orders[key]

    def _order(self, path: str, scope_name: str) -> tuple[list[Value], bool]:
        scope = self.scope(path, scope_name)
        if scope is None or scope.kind != "class":
            return [], False
        values = [Value("class", path, scope_name)]
        complete = True
        for base in scope.bases:
            classes = self.base(path, scope, base)
            if not classes:
                complete = complete and _is_plain_base(base)
            for value in classes:
                order, whole = self.order(value.path, value.scope)
                complete = complete and whole
                values = [kept for kept in values if kept not in order] + order
        return values[:ORDER_MAX], complete

    def base(self, path: str, scope: Scope, text: str) -> list[Value]:
        """Return the classes that a base, as written, names."""
        above = scope.above or ""
        if "[" in text and not text.endswith("[]"):
            text = text.partition("[")[0]
        values = self.evaluate(path, above, text)
        return [Value("class", value.path, value.scope) for value in values if value.kind
                == "class"]


def _is_plain_base(text: str) -> bool:
    return text.partition("[")[0].rpartition(".")[2] in ("object", "Generic", "Protocol", "ABC")


def _is_exported(name: str, exports: Collection[str] | None) -> bool:
    """Whether `from … import *` brings in the name, from a module with this `__all__` (or none)."""
    return not name.startswith("_") if exports is None else name in exports
