"""Judging a change: finding its broken callers, from the index and the file's two versions.

Owns the search for callers, and the sentence that explains each break. A use counts as broken if it
leads to a changed definition in the files before the change, and does not fit in the files after
it. So a use that fits both, or fitted neither, is never reported.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from coordinator.meaning import sentences as words
from coordinator.meaning.callables import Signature, both, signatures
from coordinator.meaning.changes import compare
from coordinator.meaning.dynamic import named, through_markers
from coordinator.meaning.facts import Facts, Param, Shape, Site, last_name
from coordinator.meaning.file_facts import facts_of
from coordinator.meaning.outcomes import Break, BreakKind, Outcome, Unseen, conclude
from coordinator.meaning.resolving import Resolver
from coordinator.meaning.signatures import misfit, overrides, swapped
from coordinator.meaning.terms import Term, term
from coordinator.meaning.values import COMMON, Hit, Place, Value
from coordinator.meaning.world import Stored, World
from coordinator.regions.languages import has_meaning, syntax_of

#: How many files that use a name are looked at. A person has to look at more.
FILES_MAX = 2000
#: How many subclasses of a class are followed when its constructor or method changed.
SUBCLASSES_MAX = 500
_CONSTRUCTORS = ("__init__", "__new__")


def judge(
    stored: Stored, path: str, old: bytes | None, new: bytes | None,
    held: Collection[str] = (),
) -> Outcome:
    """Judge a change of one file.

    Args:
        path: from the root, as the index has it.
        old, new: the file's bytes before and after; None where it is not there.
        held: the resources that the asker has leases on (`outcomes.conclude`).
    """
    if not has_meaning(path):
        return Outcome("ALLOW", path, note="no meaning is known of files of its kind")
    before = Facts() if old is None else facts_of(path, old)
    after = Facts() if new is None else facts_of(path, new)
    if before.note:
        return Outcome("ALLOW", path, note=f"what it was could not be read: {before.note}")
    if after.note:
        return conclude(path, [], [], [], held, f"it could not be read: {after.note}")
    return _Judge(
        path,
        Resolver(World(stored, {path: before if old is not None else None})),
        Resolver(World(stored, {path: after if new is not None else None})),
    ).outcome(held)


def breaks_of(stored: Stored, path: str, before: Facts | None,
              after: Mapping[str, Facts | None]) -> list[Break]:
    """Find the places that a change of one file breaks, with other files changed, too.

    Args:
        before: the file before. `after`: it, and other files that differ from the index.
    """
    return _Judge(path, Resolver(World(stored, {**after, path: before})),
                  Resolver(World(stored, after))).outcome(()).breaks


class _Use(NamedTuple):
    """A use of a name in a file, and its expression."""

    file: str
    facts: Facts
    site: Site
    term: Term


class _Judge:
    """The judgement of one change. `old` and `new` see the files before and after it."""

    def __init__(self, path: str, old: Resolver, new: Resolver) -> None:
        self.path = path
        self.old, self.new = old, new
        self.changes = compare(path, old, new)
        self.breaks: list[Break] = []
        self.unseen: list[Unseen] = []
        self.note = ""
        self._definers: dict[str, bool] = {}
        self._below: dict[Place, list[Value]] = {}
        #: The place that a changed import led to -> that import.
        self._through = {
            hit.place: place for place in self.changes.places if not place.scope
            for hit in old.follow(place) or [] if hit.place != place
        }

    def outcome(self, held: Collection[str]) -> Outcome:
        changes = self.changes
        if changes:
            made = {value for scope in changes.constructors for value in self._made_by(scope)}
            names = self._aliases(changes.names | {
                self._name_of(value) for value in made} - {""})
            homes = {value.path for value in made}
            for file in self._files(names, made):
                self._look_at(file, names, file in homes)
            self._compare_overrides()
        changed = [(f"{self.path}::{words.spelt(place)}", why)
                   for place, why in changes.places.items()]
        changed += [
            (f"{self.path}::{scope}", "it is made in another way") for scope in changes.constructors
            if Place(self.path, scope, "__init__") not in changes.places
        ]
        return conclude(self.path, changed, self.breaks, self.unseen, held, self.note)

    # Where to look

    def _made_by(self, scope: str) -> list[Value]:
        """Return the classes that this class's constructor makes: itself and its subclasses."""
        return [Value("class", self.path, scope), *self._subclasses(Place(self.path, scope, ""))]

    def _subclasses(self, place: Place) -> list[Value]:
        if place in self._below:
            return self._below[place]
        values: list[Value] = []
        waiting = [Value("class", place.path, place.scope)]
        while waiting and len(values) < SUBCLASSES_MAX:
            above = waiting.pop()
            for name in self._aliases({self._name_of(above)}):
                for file in self.old.world.files_with(name, "b", FILES_MAX):
                    for scope_name, scope in self._world_of(file).facts(file).scopes.items():
                        value = Value("class", file, scope_name)
                        if scope.kind == "class" and value not in values and any(
                            last_name(base.partition("[")[0]) == name
                            and above in self._resolver(file).base(file, scope, base)
                            for base in scope.bases
                        ):
                            values.append(value)
                            waiting.append(value)
        self._below[place] = values
        return values

    def _name_of(self, value: Value) -> str:
        scope = self.old.scope(value.path, value.scope) or self.new.scope(value.path, value.scope)
        return scope.name if scope is not None else ""

    def _resolver(self, file: str) -> Resolver:
        """Return the resolver for a file's uses: for the changed file that of its new version."""
        return self.new if file == self.path and self.new.world.has(file) else self.old

    def _world_of(self, file: str) -> World:
        return self._resolver(file).world

    def _aliases(self, names: set[str]) -> set[str]:
        """Return these names and the names under which other files import them."""
        result = set(names)
        waiting = list(names)
        while waiting and len(result) < 2000:
            name = waiting.pop()
            for file in self.old.world.files_with(name, "a", FILES_MAX):
                for scope in self._world_of(file).facts(file).scopes.values():
                    for other, bound in scope.bindings.items():
                        if other not in result and any(
                            binding.name == name if binding.kind == "import" else
                            binding.kind == "value" and last_name(binding.text) == name
                            for binding in bound
                        ):
                            result.add(other)
                            waiting.append(other)
        return result

    def _files(self, names: set[str], made: set[Value]) -> list[str]:
        matches = {value.path for value in made} | {self.path}
        for name in names:
            matches.update(self.old.world.files_with(name, "u", FILES_MAX + 1))
        if not self.new.world.has(self.path):
            module = self.path.removesuffix("/__init__.py").rpartition("/")[2].partition(".")[0]
            matches.update(self.old.world.files_with(module, "m", FILES_MAX + 1))
        if len(matches) > FILES_MAX:
            self.note = f"its names are used in more than {FILES_MAX} files; not all were looked at"
        return [text for text in sorted(matches)[:FILES_MAX] if self._world_of(text).has(text)]

    # Looking at one file

    def _look_at(self, file: str, names: set[str], home: bool) -> None:
        facts = self._world_of(file).facts(file)
        self._imports(file, facts, names)
        names = names | {
            other for scope in facts.scopes.values() if scope.kind == "function"
            for other, bound in scope.bindings.items() for binding in bound
            if binding.kind == "value" and last_name(binding.text) in names
        }
        for site in facts.sites:
            name = site.name()
            if name in names or (home and name in ("cls", "__class__", *_CONSTRUCTORS)):
                self._site(file, facts, site)
        self.unseen += through_markers(
            file, facts, list(self.changes.places), self.old, self._resolver(file))

    def _imports(self, file: str, facts: Facts, names: set[str]) -> None:
        for scope in facts.scopes.values():
            for bound in scope.bindings.values():
                for binding in bound:
                    if binding.kind != "import" or binding.name == "*":
                        continue
                    target = self._gone_import(file, binding.text, binding.name, names)
                    if target is not None:
                        what = binding.name or binding.text
                        self._report_break(
                            file, facts, binding.line, "import", target,
                            f"{words.where(facts, binding.line, file)} imports {what!r}; it is "
                            "gone")

    def _gone_import(
        self, file: str, written: str, name: str, names: set[str],
    ) -> Place | None:
        """Return the place that an import led to before the change, if it leads nowhere after it.
        """
        if name not in names and self.new.world.has(self.path):
            return None
        was, now = (resolver.world.module(written, file) for resolver in (self.old, self.new))
        if not name:
            return Place(self.path, "", "") if was == self.path and now is None else None
        if was is None:
            return None
        hits, _ = self.old.members(Value("module", was), name)
        touched = [hit.place for hit in hits if self._is_touched(hit.place)]
        through = Place(was, "", name)
        if not touched and through not in self.changes.places:
            return None
        if now is not None:
            module = Value("module", now)
            if self.new.members(module, name)[0] or self.new.answers(module, name):
                return None
        return next(iter(touched), through)

    def _is_touched(self, place: Place) -> bool:
        """Whether the change takes the place away, or the place is the changed file."""
        return place in self.changes.places or (place.path == self.path and not place.name)

    def _site(self, file: str, facts: Facts, site: Site) -> None:
        here = self._resolver(file)
        expression = term(site.text)
        if expression.kind == "name":
            scope = expression.scope if expression.scope is not None else site.scope
            was = named(self.old, file, scope, expression.name)
            now = named(self.new, file, scope, expression.name)
            if was and now is not None:
                self._compare_use(_Use(file, facts, site, expression), None, was, now)
            return
        if expression.kind != "attribute" or expression.inner is None:
            return
        values = here.term(file, site.scope, expression.inner)
        if not values and file == self.path:
            values = self.old.term(file, site.scope, expression.inner)
        for value in sorted(values, key=str):
            now = self.new.members(value, expression.name)[0]
            if now or not self.new.answers(value, expression.name):
                self._compare_use(_Use(file, facts, site, expression), value,
                                  self.old.members(value, expression.name)[0], now)
        if not values:
            self._compare_guess(file, facts, site, expression)

    def _compare_guess(self, file: str, facts: Facts, site: Site, expression: Term) -> None:
        """Compare a use with an unknown receiver, if only one class has the name."""
        if (expression.name in COMMON or expression.name in _CONSTRUCTORS
                or syntax_of(file) is not None):
            return  # The names that all objects have are unknown in other languages.
        places = [place for place in self.changes.places if place.name == expression.name]
        if len(places) != 1 or not self._is_alone(places[0]):
            return
        value = Value("object", self.path, places[0].scope)
        self._compare_use(_Use(file, facts, site, expression), value, [Hit(places[0], value)],
                          self.new.members(value, expression.name)[0], sure=False)

    def _is_alone(self, place: Place) -> bool:
        """Whether only this class and its subclasses have a member of this name."""
        if not place.scope:
            return False
        if place.name not in self._definers:
            family = {Value("class", place.path, place.scope),
                      *self._subclasses(Place(place.path, place.scope, ""))}
            self._definers[place.name] = all(
                Value("class", file, scope_name) in family
                for file in self.old.world.files_with(place.name, "d", 20)
                for scope_name, scope in self.old.world.facts(file).scopes.items()
                if (scope.kind == "class" and place.name in scope.bindings)
                or (scope_name == "" and place.name in scope.bindings
                    and any(binding.kind == "def" for binding in scope.bindings[place.name]))
            )
        return self._definers[place.name]

    def _compare_use(self, use: _Use, value: Value | None, was: list[Hit], now: list[Hit], *,
                     sure: bool = True) -> None:
        """Report a use that led to a changed definition, and does not fit the new one."""
        file, facts, site, expression = use
        for hit in was:
            before = self._signatures(self.old, hit)
            target = self._touched(hit, before)
            if target is None:
                continue
            kind = _kind(site, expression, value)
            if not now:
                self._report_lines(file, facts, site, kind, target, "it is gone", sure)
                continue
            if site.shape is None:
                continue
            after = [made for hit in now for made in self._signatures(self.new, hit)]
            why = self._explain_misfit(before, after, site.shape, expression.name)
            if why:
                self._report_lines(file, facts, site, kind, target, why, sure)
            elif site.shape.star or site.shape.stars:
                self._report_starred(file, facts, site)

    def _touched(self, hit: Hit, before: list[Signature]) -> Place | None:
        """Return the change that a use leads to; None if it leads to none."""
        if hit.place in self.changes.places or hit.place in self.changes.inherited:
            return hit.place
        if hit.place in self._through:
            return self._through[hit.place]
        for made in before:
            if made.place in self.changes.places:
                return made.place
            if made.place.path == self.path and made.place.scope in self.changes.constructors and (
                    made.place.name in (*_CONSTRUCTORS, "<fields>")):
                return Place(self.path, made.place.scope, "__init__")
        return None

    def _signatures(self, resolver: Resolver, hit: Hit) -> list[Signature]:
        return [made for value in sorted(resolver.value_at(hit), key=str)
                for made in signatures(resolver, value)]

    def _explain_misfit(
        self, before: list[Signature], after: list[Signature], shape: Shape, name: str,
    ) -> str:
        """Return why a call no longer fits; empty if it fits, or did not before."""
        if not before or not after or any(signature.params is None for signature
                                          in (*before, *after)):
            return ""
        if all(_misfit(signature, shape) for signature in before):
            return ""
        whys = [_misfit(signature, shape) for signature in after]
        if all(whys):
            return whys[-1]
        if len(before) == len(after) == 1 and before[0].params and after[0].params:
            text = swapped(before[0].params, after[0].params, shape)
            if text:
                return text
        return "it is async now and has to be awaited" if _waits_now(before, after) else ""

    def _compare_overrides(self) -> None:
        """Report overriding methods that no longer fit because one of the two changed."""
        for place in self.changes.places:
            scope = self.old.scope(place.path, place.scope)
            if scope is None or scope.kind != "class" or place.name in _CONSTRUCTORS or (
                    place.name.startswith("__") and not place.name.endswith("__")):
                continue
            mine = Value("object", place.path, place.scope)
            for value in self._subclasses(Place(place.path, place.scope, "")):
                theirs = self._resolver(value.path).scope(value.path, value.scope)
                if theirs is not None and place.name in theirs.bindings:
                    self._compare_override(place, mine, Value("object", value.path, value.scope),
                                           value.path)
            for value in self.new.order(place.path, place.scope)[0][1:]:
                theirs = self.new.scope(value.path, value.scope)
                if theirs is not None and place.name in theirs.bindings:
                    self._compare_override(
                        place, Value("object", value.path, value.scope), mine, self.path)
                    break

    def _compare_override(self, place: Place, base: Value, sub: Value, file: str) -> None:
        was = both(self.old, base, sub, place.name)
        now = both(self.new, base, sub, place.name)
        syntax = syntax_of(file)
        rest = (Param("...", "*", False),) if syntax is not None and syntax.fewer else ()
        if was is None or now is None or not overrides(was[0], (*was[1], *rest)) or overrides(
                now[0], (*now[1], *rest)):
            return
        scope = self._resolver(sub.path).scope(sub.path, sub.scope)
        bound = scope.bindings.get(place.name, []) if scope is not None else []
        facts = self._world_of(file).facts(file)
        line = bound[-1].line if bound else 1
        above, below = self._name_of(base), self._name_of(sub)
        self._report_break(file, facts, line, "override", place,
                           f"{below}.{place.name}() in {words.file_name(file)} takes the place of "
                           f"{above}.{place.name}(), and the two no longer take the same arguments")

    # Dynamic uses

    def _report_starred(self, file: str, facts: Facts, site: Site) -> None:
        for line in site.lines:
            self.unseen.append(Unseen(
                f"{file}::{facts.region(line)}", file, line,
                f"{words.where(facts, line, file)} calls {words.called(site)} with arguments that "
                "are known at run time only",
            ))

    # Words

    def _report_lines(self, file: str, facts: Facts, site: Site, kind: BreakKind, target: Place,
                      why: str, sure: bool) -> None:
        for line in site.lines:
            self._report_break(file, facts, line, kind, target,
                               f"{words.where(facts, line, file)} {words.does(site)}; {why}", sure)

    def _report_break(self, file: str, facts: Facts, line: int, kind: BreakKind, target: Place,
                      why: str, sure: bool = True) -> None:
        region = facts.region(line)
        self.breaks.append(Break(
            f"{file}::{region}", file, region, line, kind,
            f"{target.path}::{words.spelt(target)}", why, sure,
        ))


def _kind(site: Site, expression: Term, value: Value | None) -> BreakKind:
    if expression.inner is None:
        return "name"
    if expression.inner.text in ("self", "cls", "super()", "self.__class__"):
        return "self"
    return "name" if value is not None and value.kind in ("module", "folder") else "receiver"


def _misfit(signature: Signature, shape: Shape) -> str:
    return misfit(signature.params or (), shape)


def _waits_now(before: list[Signature], after: list[Signature]) -> bool:
    return not any(signature.waits for signature in before) and all(
        signature.waits for signature in after)
