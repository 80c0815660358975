"""Which language a file is in: the table `languages.toml`, and who is found in it.

Owns reading the table. Loads no grammar: that is `grammar`'s business, in a process of its own.
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


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of the table; its fields are told there."""

    name: str
    files: tuple[str, ...]
    grammar: str
    query: str
    programs: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()

    def query_text(self) -> str:
        """Its query file."""
        return (_HERE / "queries" / self.query).read_text("utf-8")


@cache
def languages() -> dict[str, Language]:
    """All rows by their names, in the table's order."""
    fields = toml_tables.read((_HERE / "languages.toml").read_bytes())
    rows = msgspec.convert(fields["language"], list[Language])
    return {row.name: row for row in rows}


def language_of(path: str, data: bytes = b"") -> str | None:
    """The language of a file, by its name, else by the first line of its bytes; None if no row
    has it."""
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
