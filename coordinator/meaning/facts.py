"""Facts of one file: its definitions and its uses of names, as values that can be stored.

Owns their shapes, and the text form of an expression. It reads no file and decides nothing.

An expression is kept as a short text. It can be followed later, when the facts of its file and of
the other files are known. It is a name and the steps applied to it, from left to right:

    console.print      an attribute
    make()             the result of a call (arguments are dropped)
    rows[]             an item; `rows<1>` the item at a fixed place, `rows[:]` a part of it
    rows*              an item of a loop over it
    task@              the awaited result
    lock^              the object that `with` binds
    row&               a list of such objects
    self%              the class of it
    'str               a value of this built-in type
    (a|b)              one of the two
    $(f.<1>):x         `x`, as seen from the scope `f.<1>`
    $cast(int)         a value of this annotation; `$alias(…)` the type itself, `$typevar(…)` a
                       type variable with this bound
    ?                  unknown
"""

from __future__ import annotations

from typing import Literal

import msgspec

from coordinator.regions.outline import Outline

#: Longer expressions (characters) become `?`.
EXPRESSION_MAX = 240
UNKNOWN = "?"
#: Characters of names in other languages, mapped to letters that Python accepts, and back.
NAME_SIGNS = str.maketrans({"#": "\u02d1", "$": "\u02e2"})
SIGNS_OF_NAMES = str.maketrans({"\u02d1": "#", "\u02e2": "$"})

ParamKind = Literal["/", "", "*", "=", "**"]
ScopeKind = Literal["module", "class", "function", "lambda", "loop"]
BindingKind = Literal["def", "import", "value", "type", "param"]
MarkerKind = Literal["getattr", "setattr", "eval", "exec", "wildcard", "__import__", "starred"]


class Param(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A parameter. Its kind: `/` positional only, empty for positional or by name, `*` the other
    positional ones, `=` by name only, `**` the other names."""

    name: str
    kind: ParamKind = ""
    required: bool = True
    annotation: str = ""


class Shape(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How a call passes its arguments."""

    positional: int = 0
    keywords: tuple[str, ...] = ()
    star: bool = False
    """Whether it has `*more`."""
    stars: bool = False
    """Whether it has `**more`."""


class Binding(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One way in which a name of a scope gets its value.

    Attributes:
        kind: `def`: `text` is the scope; `import`: `text` is the module as written, with its dots,
            and `name` the name taken from it, empty for the module itself; `value`: `text` is an
            expression; `type`: `text` is an annotation; `param`: `text` is its place.
        at: the scope that `text` is seen from; None for the binding's own.
    """

    kind: BindingKind
    text: str
    line: int
    name: str = ""
    at: str | None = None


class Site(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The uses of one expression in one scope. Equal uses on several lines share a site."""

    scope: str
    text: str
    lines: list[int]
    shape: Shape | None = None
    """None if it is not called here."""

    def name(self) -> str:
        """Return the last name of the expression."""
        return last_name(self.text)


class Marker(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A use that cannot be followed.

    Attributes:
        kind: the name of the called function; `wildcard`: `from x import *`; `starred`: `f(*more)`.
        text: its argument: an expression, or the module.
        prefix: the literal beginning of the name that is looked up.
    """

    kind: MarkerKind
    scope: str
    line: int
    text: str = UNKNOWN
    prefix: str = ""


class Scope(msgspec.Struct, array_like=True):
    """A module, class, function, lambda, or loop within an expression.

    Attributes:
        name: its last name; empty without one.
        above: the id of the scope that it is in; None for the module.
        params, returns, given: of a function; the annotation of its result, or else (some of) the
            expressions that it returns.
        decorators, bases: expressions. `options`: the keywords of a class (`metaclass=…`).
        marks: of `async`, `yields`.
        bindings: by name. `narrowed`: further values of an expression, by `isinstance` and `match`.
        wildcards: modules of which all is imported.
        fields: of a class, its annotated names in order: (name, annotation, default's expression).
    """

    kind: ScopeKind
    name: str
    above: str | None
    line: int
    last: int
    params: list[Param] = []
    returns: str = ""
    given: list[str] = []
    decorators: list[str] = []
    bases: list[str] = []
    options: list[str] = []
    marks: list[str] = []
    bindings: dict[str, list[Binding]] = {}
    narrowed: dict[str, list[str]] = {}
    wildcards: list[str] = []
    fields: list[tuple[str, str, str]] = []


class Facts(msgspec.Struct, array_like=True):
    """The facts of one file.

    Attributes:
        scopes: by id: the names joined by dots, the second of one name `f#2`, one without a name
            `<1>`; the module's is empty.
        exports: the names in `__all__`; None if there is none, or it cannot be read.
        regions: (first line, last line, name), as `coordinator.regions` names them, in order.
        note: why there are no facts, otherwise empty.
    """

    scopes: dict[str, Scope] = {}
    sites: list[Site] = []
    markers: list[Marker] = []
    exports: list[str] | None = None
    regions: list[tuple[int, int, str]] = []
    note: str = ""

    def region(self, line: int) -> str:
        """Return the name of the innermost region that has this line."""
        text = "<header>"
        for first, last, name in self.regions:
            if first > line:
                break
            if line <= last:
                text = name
        return text


def last_name(text: str) -> str:
    """Return the last name of an expression; empty if it does not end in a name."""
    tail = text[text.rfind(".") + 1:]
    if tail.isidentifier() and tail.isascii():
        return tail  # the usual case, asked for each name in a file
    position = len(text)
    while position and (text[position - 1].isalnum() or text[position - 1] == "_"):
        position -= 1
    return text[position:] if position == 0 or text[position - 1] in ".:" else ""


def regions_of(outline: Outline) -> list[tuple[int, int, str]]:
    """Return the regions of a file, as `Facts.regions` has them."""
    regions = [(region.first_line, region.last_line, region.name) for region in outline.regions
               if region.kind not in ("header", "file")]
    return sorted(regions, key=lambda region: (region[0], -region[1]))
