"""The language of a file, and how it is read: the table `languages.toml`.

Owns reading the table. It loads no grammar: `grammar` does, in a process of its own.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec

from coordinator import toml_tables

_HERE = Path(__file__).parent
_SHEBANG = re.compile(rb"#![^\n]*?([A-Za-z][A-Za-z_+-]*)[0-9.]*(?:[ \t][^\n]*)?\r?(?:\n|\Z)")
_ENV = re.compile(rb"#![^\n]*/env[ \t]+(?:-\S+[ \t]+)*([A-Za-z][A-Za-z_+-]*)")


class Syntax(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How code of a language expresses meaning. The table explains the fields."""

    queries: tuple[str, ...]
    modules: str
    separator: str
    constructor: str = ""
    spare: bool = False
    fewer: bool = False
    implicit: bool = False
    names: frozenset[str] = frozenset()
    members: dict[str, tuple[str, str]] = {}
    calls: dict[str, str] = {}
    makes: dict[str, str] = {}
    awaits: frozenset[str] = frozenset()
    through: frozenset[str] = frozenset()
    no_argument: frozenset[str] = frozenset()
    spread: frozenset[str] = frozenset()


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of the table, which explains its fields."""

    name: str
    files: tuple[str, ...]
    grammar: str
    query: str
    programs: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    meaning: Syntax | None = None


@cache
def languages() -> dict[str, Language]:
    """Return all rows by their names, in the table's order."""
    fields = toml_tables.read((_HERE / "languages.toml").read_bytes())
    rows = msgspec.convert(fields["language"], list[Language])
    return {row.name: row for row in rows}


def read_queries(files: tuple[str, ...]) -> str:
    """Return the joined text of these files below queries/."""
    return "\n".join((_HERE / "queries" / file).read_text("utf-8") for file in files)


def language_of(path: str, data: bytes = b"") -> str | None:
    """Return the language of a file by its name, or by its first line; None if no row has it."""
    name = path.rpartition("/")[2]
    for folded in (name, name.lower()):
        for row in languages().values():
            if any(fnmatchcase(folded, pattern) for pattern in row.files):
                return row.name
    if not data.startswith(b"#!") or "." in name.strip("."):
        return None
    match = _ENV.match(data) or _SHEBANG.match(data)
    program = match[1].decode() if match else ""
    return next((row.name for row in languages().values() if program in row.programs), None)


def syntax_of(path: str) -> Syntax | None:
    """Return the syntax of a file by its name; None for Python, or if its meaning is not read."""
    is_python = path.endswith((".py", ".pyi"))
    return None if is_python else _syntax_by_ending(path.rpartition(".")[2])


@cache
def _syntax_by_ending(ending: str) -> Syntax | None:
    language = language_of(f"x.{ending}") if ending else None
    return languages()[language].meaning if language is not None else None


def has_meaning(path: str) -> bool:
    """Whether the meaning of such files is read. Python's stubs are left out."""
    return path.endswith(".py") or syntax_of(path) is not None


def group(path: str) -> str:
    """Return the group of languages whose files may name each other."""
    syntax = syntax_of(path)
    return "python" if syntax is None else syntax.queries[0]
