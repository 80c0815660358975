"""The definitions that a change takes away from a file's interface.

Owns the comparison of two versions of one file. It lists the changes that may break a user.
`judging` finds these users. An addition is no change here.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.meaning.facts import Binding, Facts, Param, Scope
from coordinator.meaning.resolving import Resolver
from coordinator.meaning.signatures import narrower
from coordinator.meaning.values import Place


class Changes:
    """The definitions of one file that a change takes away.

    Attributes:
        places: names of the module, or of a class, that are gone or accept less.
        constructors: ids of classes whose constructor changed.
        inherited: names that classes of the file had from a base, which they no longer have.
        names: all names under which these may be used.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.places: dict[Place, str] = {}
        self.constructors: set[str] = set()
        self.inherited: set[Place] = set()

    @property
    def names(self) -> set[str]:
        """The last names under which the changed definitions are used."""
        matches = {place.name for place in (*self.places, *self.inherited)}
        return matches - {"__init__", "__new__"}

    def __bool__(self) -> bool:
        return bool(self.places or self.constructors or self.inherited)


def compare(path: str, before: Resolver, after: Resolver) -> Changes:
    """Compare the two versions of this file.

    Args:
        before, after: the same files, but for this one.
    """
    old, new = before.world.facts(path), after.world.facts(path)
    changes = Changes(path)
    for scope_name, scope in old.scopes.items():
        if scope.kind not in ("module", "class") or _is_local(old, scope_name):
            continue
        other = new.scopes.get(scope_name)
        if other is None or other.kind != scope.kind:
            if scope.kind == "class":
                _remove_all(changes, path, scope_name, scope)
            continue
        for name in scope.bindings:
            why = _explain_loss(old, new, scope, other, name)
            if why:
                changes.places[Place(path, scope_name, name)] = why
        if scope.kind == "class":
            _compare_class(changes, scope_name, scope, other, before, after)
    if old.scopes and not new.scopes:
        _remove_all(changes, path, "", old.scopes[""])
    return changes


def _compare_class(
    changes: Changes, scope_name: str, old: Scope, new: Scope, before: Resolver, after: Resolver,
) -> None:
    if any(Place(changes.path, scope_name, name) in changes.places for name
           in ("__init__", "__new__")):
        changes.constructors.add(scope_name)
    if (old.fields != new.fields or old.decorators != new.decorators or old.bases != new.bases
            or ("__init__" in old.bindings) != ("__init__" in new.bindings)
            or ("__new__" in old.bindings) != ("__new__" in new.bindings)):
        changes.constructors.add(scope_name)
    if old.bases != new.bases:
        kept = set(after.order(changes.path, scope_name)[0])
        for value in before.order(changes.path, scope_name)[0][1:]:
            scope = before.scope(value.path, value.scope)
            if value not in kept and scope is not None:
                changes.inherited |= {Place(value.path, value.scope, name) for name
                                      in scope.bindings}


def _explain_loss(old: Facts, new: Facts, scope: Scope, other: Scope, name: str) -> str:
    """Return why a name of a scope offers less than before; empty if it does not."""
    was, now = scope.bindings[name], other.bindings.get(name)
    if now is None:
        return "it is gone"
    if all(binding.kind == "import" for binding in was):
        targets = {(binding.text, binding.name) for binding in was}
        return "" if targets <= {(binding.text, binding.name) for binding in now} or any(
            binding.kind != "import" for binding in now) else "it comes from elsewhere"
    before, after = _list_defined(old, was), _list_defined(new, now)
    if not before:
        return ""
    if not after:
        return "it is no function or class any more"
    if before[0].kind != after[0].kind:
        return "it is something else"
    if before[0].kind == "class" or _is_called_alike(before, after):
        return ""
    return "it is called in another way"


def _list_defined(facts: Facts, bindings: Iterable[Binding]) -> list[Scope]:
    return [facts.scopes[binding.text] for binding in bindings
            if binding.kind == "def" and binding.text in facts.scopes]


def _is_called_alike(before: list[Scope], after: list[Scope]) -> bool:
    """Whether every signature is still there, and no new one is called otherwise. Python calls the
    last definition, whatever the overloads before it declare."""
    return _list_signatures(before) == _list_signatures(after) or (
        all(any(_is_kept(was, now) for now in after) for was in before)
        and all(any(_is_kept(was, now) for was in before) for now in after))


def _is_kept(old: Scope, new: Scope) -> bool:
    if ("async" in old.marks and "yields" not in old.marks) != (
            "async" in new.marks and "yields" not in new.marks):
        return False
    return old.decorators == new.decorators and not narrower(old.params, new.params)


def _list_signatures(scopes: list[Scope]) -> list[tuple[list[Param], list[str], list[str]]]:
    return [(scope.params, scope.decorators, scope.marks) for scope in scopes]


def _remove_all(changes: Changes, path: str, scope_name: str, scope: Scope) -> None:
    for name in scope.bindings:
        changes.places[Place(path, scope_name, name)] = "it is gone"
    if scope.kind == "class":
        changes.constructors.add(scope_name)


def _is_local(facts: Facts, scope: str) -> bool:
    here: str | None = facts.scopes[scope].above
    while here is not None and here in facts.scopes:
        if facts.scopes[here].kind not in ("module", "class"):
            return True
        here = facts.scopes[here].above
    return False

