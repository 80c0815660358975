"""Following names: through scopes, imports, packages and base classes, to where they are defined.

Owns the finding of places. What an expression stands for, which the bases of a class need, is
`resolving`'s business: it completes this class.
"""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Collection

from coordinator.meaning.facts import Binding, Scope
from coordinator.meaning.values import Hit, Place, Value, Values
from coordinator.meaning.world import World

#: A name is followed through so many imports.
STEPS_MAX = 60
#: Of a class, so many others that it comes from are known.
ORDER_MAX = 200


class Following(ABC):
    """Follows names in one world. Keeps what it has found: for one question or a few."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._orders: dict[tuple[str, str], tuple[list[Value], bool]] = {}

    @abstractmethod
    def evaluate(self, path: str, at: str, text: str) -> Values:
        """What an expression may stand for, seen from a scope."""

    def scope(self, path: str, scope_name: str) -> Scope | None:
        """A scope of a file; None if there is none of this id."""
        return self.world.facts(path).scopes.get(scope_name)

    def names(self, path: str, scope_name: str, name: str) -> list[Hit] | None:
        """What a bare name leads to, seen from a scope; None if it may be anything."""
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
        from one of Python's own types."""
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
        """Through imports, to where a name is defined; None if one of them leads outside."""
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
        """What one import leads to; None if outside."""
        if binding.name == "*":
            return []  # `import a.b` beside the name `a` that it makes
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
        """The classes in which an attribute is looked for, the class itself first; and whether
        these are all."""
        key = (path, scope)
        if key not in self._orders:
            self._orders[key] = ([Value("class", path, scope)], False)  # for what leads back here
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
        """The classes that a base, as written, stands for."""
        above = scope.above or ""
        if "[" in text and not text.endswith("[]"):
            text = text.partition("[")[0]
        values = self.evaluate(path, above, text)
        return [Value("class", value.path, value.scope) for value in values if value.kind
                == "class"]


def _is_plain_base(text: str) -> bool:
    return text.partition("[")[0].rpartition(".")[2] in ("object", "Generic", "Protocol", "ABC")


def _is_exported(name: str, exports: Collection[str] | None) -> bool:
    """Whether `from … import *` brings it, where a module has this `__all__`, or none."""
    return not name.startswith("_") if exports is None else name in exports
