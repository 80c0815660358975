"""The languages whose meaning is read: Python, and the rows of `languages.toml`.

Owns that table. Loads no grammar.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from coordinator import toml_tables
from coordinator.regions.languages import language_of, languages

_HERE = Path(__file__).parent
_PYTHON = (".py", ".pyi")


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of the table; its fields are told there."""

    name: str
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

    def query_text(self) -> str:
        """Its queries, one after the other."""
        folder = _HERE / "queries"
        return "\n".join((folder / query).read_text("utf-8") for query in self.queries)

    def patterns(self) -> tuple[str, ...]:
        """The names of its files, as shell patterns."""
        return languages()[self.name].files


@cache
def rows() -> dict[str, Row]:
    """All rows by their names."""
    fields = toml_tables.read((_HERE / "languages.toml").read_bytes())
    return {row.name: row for row in msgspec.convert(fields["language"], list[Row])}


def row_of(path: str) -> Row | None:
    """The row of a file, by its name; None: it is Python, or nothing is known of its meaning."""
    return None if path.endswith(_PYTHON) else _row(path.rpartition(".")[2])


@cache
def _row(ending: str) -> Row | None:
    return rows().get(language_of(f"x.{ending}") or "") if ending else None


def is_known(path: str) -> bool:
    """Whether meaning is read of such files. (Of Python's stubs it is not.)"""
    return path.endswith(".py") or row_of(path) is not None


def group(path: str) -> str:
    """What the languages have in common whose files may name each other."""
    row = row_of(path)
    return "python" if row is None else row.queries[0]
