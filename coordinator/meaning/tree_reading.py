"""From the bytes of a file to its facts, by its language's grammar and queries.

Owns the meaning of a query's captures (queries/README.md), and nothing of a single language:
languages are rows of `languages.toml`. Code that the queries do not catch is unknown, and no break
of unknown code is reported.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from tree_sitter import Node

from coordinator.meaning.facts import (
    EXPRESSION_MAX,
    NAME_SIGNS,
    SIGNS_OF_NAMES,
    UNKNOWN,
    Binding,
    BindingKind,
    Facts,
    Param,
    ParamKind,
    Scope,
    ScopeKind,
    Shape,
    Site,
    last_name,
    regions_of,
)
from coordinator.meaning.reading import GIVEN_MAX
from coordinator.regions import grammar, reader
from coordinator.regions.grammar import Captures
from coordinator.regions.languages import Syntax

#: Larger files (bytes) have no facts: they are generated bundles, and take seconds.
FILE_BYTES_MAX = 400_000
#: How deep expressions within one another are read.
DEPTH_MAX = 40
_SCOPES = ("function", "method", "class", "lambda")
_PARAMS: dict[str, tuple[int, ParamKind, bool]] = {
    "required": (0, "/", True), "optional": (1, "/", False), "rest": (2, "*", False),
}
#: The other kinds of matches.
_GROUPS = (*_PARAMS, "import", "export", "bind", "own", "base", "returns", "given", "call", "use")
_SPARE = Param("...", "*", False)


def read(data: bytes, language: str, syntax: Syntax) -> Facts:
    """Read the facts of these bytes. Any bytes give an answer."""
    if len(data) > FILE_BYTES_MAX:
        return Facts(note=f"larger than {FILE_BYTES_MAX:,} bytes")
    parsed = reader.read(data, language)
    if parsed.tree is None:
        return Facts(note=parsed.outline.note)
    walk = _Walk(syntax, grammar.match_meaning(parsed.tree.root_node, language))
    return Facts(walk.scopes, walk.sites(), [], None, regions_of(parsed.outline))


@dataclass(slots=True)
class _Mark:
    """A scope of the tree: the bytes that it spans, and the mark around it."""

    start: int
    end: int
    kind: str
    captures: Captures
    around: int
    id: str = ""
    params: dict[tuple[int, int], tuple[int, Param]] = field(default_factory=dict)


class _Walk:
    """The walk over one file."""

    def __init__(self, syntax: Syntax, matches: list[Captures]) -> None:
        self._syntax = syntax
        self.scopes: dict[str, Scope] = {"": Scope("module", "", None, 1, 1 << 30)}
        self._taken: dict[str, int] = {}
        self._marks = _marks(matches)
        self._starts = [mark.start for mark in self._marks]
        self._sites: dict[tuple[str, str, Shape | None], list[int]] = {}
        by = _group(matches)
        self._open_all()
        for what in _PARAMS:
            for match in by.get(what, ()):
                self._param(what, match)
        self._close_params()
        static = {match["import"][0].id for match in by.get("import", ()) if "static" in match}
        for match in by.get("import", ()):
            if "static" in match or match["import"][0].id not in static:
                self._import(match)
        for match in [*by.get("bind", ()), *by.get("own", ())]:
            self._bound(match)
        for match in by.get("export", ()):
            self._export(match)
        for match in [*by.get("base", ()), *by.get("returns", ()), *by.get("given", ())]:
            self._of_scope(match)
        called: set[int] = set()
        for match in by.get("call", ()):
            called.add(match["callee"][0].id)
            self._call(match)
        for match in by.get("use", ()):
            if match["use"][0].id not in called:
                self._use(match["use"][0])

    def sites(self) -> list[Site]:
        """Return the uses of names."""
        return [Site(scope, text, sorted(set(lines)), shape)
                for (scope, text, shape), lines in self._sites.items()]

    # Scopes

    def _open_all(self) -> None:
        """Open the outermost classes first: code outside a class may belong to it."""
        for mark in sorted(self._marks, key=lambda mark: (
                mark.kind != "class" or mark.around >= 0, mark.start, -mark.end)):
            self._open(mark)

    def _open(self, mark: _Mark) -> None:
        owner = _text(mark.captures, "owner")
        above = self._marks[mark.around].id if mark.around >= 0 else ""
        if owner and owner in self.scopes and self.scopes[owner].kind == "class":
            above = owner
        in_class = self.scopes[above].kind == "class" and mark.kind == "method"
        scope = self._make_scope(mark, above, in_class)
        mark.id = self._taken_id(scope)
        self.scopes[mark.id] = scope
        if scope.kind == "lambda":
            return
        self._bind(above if not owner or in_class else mark.id, scope.name, "def", mark.id,
                   scope.line)
        if in_class:
            own = _text(mark.captures, "self") or "this"
            mark.params[(-1, -1)] = (3, Param(own, "/"))
        elif mark.kind == "function" and self._syntax.constructor:
            self._bind(mark.id, "this", "value", UNKNOWN, scope.line)

    def _make_scope(self, mark: _Mark, above: str, in_class: bool) -> Scope:
        captures = mark.captures
        name = _text(captures, "name")
        if in_class and (not name or name == self._syntax.constructor):
            name = "__init__"
        line, last = _lines(captures[mark.kind][0])
        kind: ScopeKind = "class" if mark.kind == "class" else "function" if name else "lambda"
        return Scope(
            kind, name if kind != "lambda" else "", above, line, last,
            decorators=["classmethod"] if in_class and "static" in captures else [],
            marks=["async"] if "async" in captures else [],
            bindings={}, params=[], bases=[], given=[],
        )

    def _taken_id(self, scope: Scope) -> str:
        base = ".".join(name for name in (scope.above, scope.name or "<") if name)
        count = self._taken[base] = self._taken.get(base, 0) + 1
        if scope.name:
            return base if count == 1 else f"{base}#{count}"
        return f"{base}{count}>"

    def _find_scope(self, node: Node) -> int:
        """Find the innermost mark around a node, other than its own; -1 for the module."""
        position = bisect_right(self._starts, node.start_byte) - 1
        while position >= 0:
            mark = self._marks[position]
            inside = mark.start <= node.start_byte and node.end_byte <= mark.end
            if inside and (mark.start, mark.end) != (node.start_byte, node.end_byte):
                return position
            is_before = mark.end <= node.start_byte and not inside
            position = mark.around if is_before else position - 1
        return -1

    def _scope_at(self, node: Node) -> str:
        position = self._find_scope(node)
        return self._marks[position].id if position >= 0 else ""

    # Parameters

    def _param(self, what: str, match: Captures) -> None:
        node = match[what][0]
        position = self._find_scope(node)
        while position >= 0 and self._marks[position].kind == "class":
            position = self._marks[position].around
        if position < 0:
            return
        rank, kind, required = _PARAMS[what]
        key = node.start_byte, node.end_byte
        name = _text(match, "name") or f"<{key[0]}>"
        parameter = self._marks[position].params.get(key)
        if parameter is None or parameter[0] <= rank:
            annotation = self._annotation(match["annotation"][0]) if "annotation" in match else ""
            if not annotation and parameter is not None:
                annotation = parameter[1].annotation
            self._marks[position].params[key] = rank, Param(name, kind, required, annotation)

    def _close_params(self) -> None:
        for mark in self._marks:
            scope = self.scopes[mark.id]
            if scope.kind == "class":
                continue
            params = [param for _,
                      (_, param) in sorted(mark.params.items(), key=lambda pair: pair[0])]
            for number, param in enumerate(params):
                if param.name.startswith("<"):
                    params[number] = Param(f"argument {number + 1}", param.kind, param.required)
                else:
                    self._bind(mark.id, param.name, "param", str(number), scope.line)
            scope.params = [*params, _SPARE] if self._syntax.spare else params

    # Names

    def _bind(self, scope: str, name: str, kind: BindingKind, text: str, line: int,
              what: str = "", seen: str | None = None) -> None:
        bound = self.scopes[scope].bindings.setdefault(name, [])
        binding = Binding(kind, text, line, what, None if seen == scope else seen)
        if name.isidentifier() and binding not in bound:
            bound.append(binding)

    def _import(self, match: Captures) -> None:
        module = _text(match, "module").translate(SIGNS_OF_NAMES)
        scope = self._scope_at(match["import"][0])
        line, _ = _lines(match["import"][0])
        if "all" in match:
            self.scopes[""].wildcards = [*self.scopes[""].wildcards, module]
            return
        what = "default" if "default" in match else _text(match, "what")
        name = _text(match, "name") or module.rpartition(self._syntax.separator)[2]
        if "static" in match:
            package, _, owner = module.rpartition(self._syntax.separator)
            self._bind("", owner, "import", package, line, owner)
            self._bind(scope, name, "value", f"{owner}.{what}", line)
        else:
            self._bind(scope, name, "import", module, line, what)

    def _export(self, match: Captures) -> None:
        name, what = _text(match, "name"), _text(match, "what")
        line, _ = _lines(match["export"][0])
        if "module" in match:
            self._bind("", name, "import", _text(match, "module").translate(SIGNS_OF_NAMES), line,
                       what)
        elif name != what:
            self._bind("", name, "value", what, line)

    def _bound(self, match: Captures) -> None:
        own = "own" in match
        node = match["own" if own else "bind"][0]
        scope = seen = self._scope_at(node)
        if own:
            here: str | None = scope
            while here is not None and self.scopes[here].kind != "class":
                here = self.scopes[here].above
            if here is None:
                return
            scope = here
        line, _ = _lines(node)
        value = match.get("value", [None])[0]
        for name in match["name"]:
            word = _word(name)
            if any(binding.kind in ("def", "import") for binding
                   in self.scopes[scope].bindings.get(word, ())):
                continue  # the definition or import is the binding
            text = self._annotation(match["annotation"][0]) if "annotation" in match else ""
            if text:
                self._bind(scope, word, "type", text, line)
            else:
                self._bind(scope, word, "value", self._seen(seen, self._value(value)), line,
                           seen=seen)

    def _of_scope(self, match: Captures) -> None:
        what = next(item for item in ("base", "returns", "given") if item in match)
        node = match[what][0]
        position = self._find_scope(node)
        wanted = ("class",) if what == "base" else ("function", "method", "lambda")
        while position >= 0 and self._marks[position].kind not in wanted:
            position = self._marks[position].around
        if position < 0:
            return
        scope = self.scopes[self._marks[position].id]
        if what == "returns":
            scope.returns = self._annotation(node)
            return
        if what == "base":
            text = self._annotation(node) or self._value(node)
            if text != UNKNOWN:
                scope.bases = [*scope.bases, text]
            return
        text = self._seen(self._marks[position].id, self._value(node))
        if text != UNKNOWN and text not in scope.given and len(scope.given) < GIVEN_MAX:
            scope.given = [*scope.given, text]

    # Uses

    def _call(self, match: Captures) -> None:
        callee = match["callee"][0]
        text = self._value(callee) if callee.type in self._syntax.names else (
            self._annotation(callee) or self._value(callee))
        if "object" in match:
            text = f"{self._value(match['object'][0])}.{text}"
        if text in ("super()", "this"):
            text += ".__init__"
        given = [node for node in match["arguments"][0].named_children
                 if node.type not in self._syntax.no_argument]
        spread = [node for node in given if node.type in self._syntax.spread]
        shape = Shape(len(given) - len(spread), star=bool(spread))
        scope = self._scope_at(callee)
        self._site(scope, self._seen(scope, text, called=True), _lines(callee)[1], shape)

    def _use(self, node: Node) -> None:
        scope = self._scope_at(node)
        text = self._seen(scope, self._value(node))
        if not (text.isidentifier() and self._is_local(scope, text)):
            self._site(scope, text, _lines(node)[1], None)

    def _site(self, scope: str, text: str, line: int, shape: Shape | None) -> None:
        if last_name(text):
            self._sites.setdefault((scope, text, shape), []).append(line)

    def _is_local(self, scope_name: str, name: str) -> bool:
        here: str | None = scope_name
        while here:
            scope = self.scopes[here]
            if scope.kind != "class" and name in scope.bindings:
                return True
            here = scope.above
        return False

    def _seen(self, scope: str, text: str, *, called: bool = False) -> str:
        """Write an expression whose first name may be a member of the class around it."""
        if not self._syntax.implicit or not text[:1].isalpha():
            return text
        name = text[: next((n for n, sign in enumerate(text) if not (sign.isalnum() or sign == "_")
                            ), len(text))]
        if name in ("this", "super") or self._is_local(scope, name):
            return text
        here: str | None = scope
        while here and self.scopes[here].kind != "class":
            here = self.scopes[here].above
        if here and (name in self.scopes[here].bindings or (
                called and name == text and name not in self.scopes[""].bindings)):
            return f"this.{text}"
        return text

    # Expressions

    def _value(self, node: Node | None, depth: int = 0) -> str:
        """Write the text of an expression (`facts`); `?` if it is unknown."""
        if node is None or depth > DEPTH_MAX:
            return UNKNOWN
        text = self._write_value(node, depth)
        if len(text) > EXPRESSION_MAX:
            text = f"?.{last_name(text)}"
        return text if not text.startswith("?") or last_name(text) else UNKNOWN

    def _write_value(self, node: Node, depth: int) -> str:
        """Write an expression of any length, by the kind of its node."""
        syntax, kind = self._syntax, node.type
        if kind in syntax.names:
            return _name_value(node)
        if kind in syntax.calls:
            callee = syntax.calls[kind]
            return (self._value(node.child_by_field_name(callee), depth + 1) if callee
                    else self._member(node, depth)) + "()"
        if kind in syntax.makes:
            made = self._annotation(node.child_by_field_name(syntax.makes[kind]), depth + 1)
            return f"{made or UNKNOWN}()"
        if kind in syntax.members:
            return self._member(node, depth)
        if node.named_children and (kind in syntax.awaits or kind in syntax.through):
            inner = self._value(node.named_children[0], depth + 1)
            return inner + "@" if kind in syntax.awaits else inner
        return UNKNOWN

    def _member(self, node: Node, depth: int) -> str:
        owner, name = (node.child_by_field_name(member) if member else None
                       for member in self._syntax.members[node.type])
        word = _word(name) if name is not None else ""
        if not word.isidentifier():
            return UNKNOWN
        return f"{self._value(owner, depth + 1)}.{word}" if owner is not None else word

    def _annotation(self, node: Node | None, depth: int = 0) -> str:
        """Write a type in Python's notation; empty if no class can be this type."""
        if node is None or depth > DEPTH_MAX:
            return ""
        if node.type in self._syntax.names or node.type in self._syntax.members:
            text = self._value(node, depth + 1)
            return text if text.replace(".", "_").isidentifier() else ""
        children = node.named_children
        if node.type in self._syntax.through or node.type in ("type_annotation", "generic_type"):
            return self._annotation(children[0], depth + 1) if children else ""
        if node.type in ("array_type", "slice_type"):
            inner = self._annotation(children[0], depth + 1) if children else ""
            return f"list[{inner}]" if inner else ""
        if node.type == "union_type":
            return " | ".join(filter(None, (
                self._annotation(child, depth + 1) for child in children)))
        return ""


def _group(matches: list[Captures]) -> dict[str, list[Captures]]:
    """Group the matches by their kind, without scopes."""
    groups: dict[str, list[Captures]] = {}
    for match in matches:
        for name in _GROUPS:
            if name in match:
                groups.setdefault(name, []).append(match)
                break
    return groups


def _marks(matches: list[Captures]) -> list[_Mark]:
    """Return the scopes, outer before inner. Of a node's matches, the one with a name counts."""
    best: dict[tuple[int, int], tuple[str, Captures]] = {}
    for match in matches:
        kind = next((text for text in _SCOPES if text in match), None)
        if kind is None:
            continue
        node = match[kind][0]
        key = node.start_byte, -node.end_byte
        counted = best.get(key)
        if counted is None or ("name" not in counted[1] and (
                "name" in match or (counted[0] == "lambda" and kind != "lambda"))):
            best[key] = kind, match
    marks: list[_Mark] = []
    open_: list[int] = []
    for (start, end), (kind, match) in sorted(best.items(), key=lambda pair: pair[0]):
        while open_ and marks[open_[-1]].end < -end:
            open_.pop()
        marks.append(_Mark(start, -end, kind, match, open_[-1] if open_ else -1))
        open_.append(len(marks) - 1)
    return marks


def _text(captures: Captures, name: str) -> str:
    return _word(captures[name][0]) if name in captures else ""


def _name_value(node: Node) -> str:
    word = _word(node)
    if word == "super":
        return "super()"
    return word if word.isidentifier() else UNKNOWN


def _word(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace").translate(NAME_SIGNS)


def _lines(node: Node) -> tuple[int, int]:
    return node.start_point.row + 1, node.end_point.row + 1
