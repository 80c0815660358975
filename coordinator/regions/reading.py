"""The facts for a merge beside a file's regions: statements, parts of definitions, faults.

Owns the shapes only. `reader` makes them, in the worker. All offsets are bytes of the given file,
and are valid for these bytes only.
"""

from __future__ import annotations

import msgspec

from coordinator.regions.outline import Outline, whole


class Piece(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A statement that is in no region of its own: directly in the file, or in a class.

    Attributes:
        kind: `import`, `comment`, `text` (a statement that is a string alone) or `statement`.
        name: the name that it assigns or declares, if it is a single name; otherwise empty.
        within: the first byte of the body that it is in (`Body.body`); -1 directly in the file.
    """

    start: int
    end: int
    kind: str
    name: str
    within: int


class Body(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The parts of a function or a class. Comments and decorators before `start` belong to it.

    Attributes:
        start: its own first byte (`def`, `async`, `function`, …).
        body: the first byte of its body.
        end: the byte after its last.
    """

    start: int
    body: int
    end: int


class ClassNames(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A class of a Python file.

    Attributes:
        bases: whether it has any, from which it may have more members.
        members: the names that it binds in its body, or by assigning to `self.NAME`.
        used: how often its functions read `self.NAME` or `cls.NAME`.
    """

    bases: bool
    members: list[str]
    used: dict[str, int]


class PythonNames(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The findings of Python's own parser on a file.

    Attributes:
        parsed: whether it is Python, for this interpreter.
        unbound: global names that are used and that nothing in the file binds.
        early: names of the module that are used, when it is imported, before they are bound.
        defined: how often the module's own statements define a name (no import, nothing in a
            branch).
        classes: the outermost classes, by name.
    """

    parsed: bool
    unbound: list[str] = []
    early: list[str] = []
    defined: dict[str, int] = {}
    classes: dict[str, ClassNames] = {}


class Reading(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One file, read for a merge.

    Attributes:
        errors: how many places the grammar could not read.
        python: None for other languages, and if Python's parser gave up.
    """

    outline: Outline
    errors: int = 0
    pieces: list[Piece] = []
    bodies: list[Body] = []
    python: PythonNames | None = None


def unread(data: bytes, language: str | None, note: str) -> Reading:
    """Return the reading of an undivided file, with this reason."""
    return Reading(whole(data, language, note))
