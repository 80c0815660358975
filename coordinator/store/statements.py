"""The SQL statements. Each has a name and one place: a file of `queries/`, or `queries.sql` of the
slice that alone uses it.

A statement opens with `-- name: NAME`, then a line on its meaning. `{scopes}` stands for as many
`?` as there are scopes to look up, `{scope is one, or}` for as many terms; `many` asks for such
statements. `{lease}` stands for the columns of a lease's row. The DDL is in `schema.sql`.

Kept bytes are zlib streams (RFC 1950) in the database; two functions here make and read them.
"""

from __future__ import annotations

import re
import zlib
from functools import cache
from pathlib import Path

from coordinator.store.rows import LeaseRow
from coordinator.words.slices import SLICES

_FOLDER = Path(__file__).parent
_FILES = [*sorted((_FOLDER / "queries").glob("*.sql")),
          *(_FOLDER.parent / "slices" / name / "queries.sql" for name in SLICES)]
_TEXT = "\n".join(file.read_text("utf-8") for file in _FILES if file.is_file())
STATEMENTS: dict[str, str] = {
    name: body.strip().rstrip(";").replace("{lease}", ", ".join(LeaseRow.__struct_fields__))
    for name, body in re.findall(
        r"^-- name: (\w+)\n(?:--.*\n)*((?:(?!-- name:).*\n?)+)", _TEXT, re.MULTILINE
    )
}


#: `x = ? OR x = ?` takes a third of the time of `x IN (?, ?)`, for which SQLite builds a table
#: first; but it takes no expression of more than a thousand terms.
TERMS_MAX = 100


@cache
def many(name: str, count: int) -> str:
    """The statement `name` for `count` scopes."""
    marks = ",".join("?" * count)
    each = "scope = ? OR " * count if count <= TERMS_MAX else f"scope IN ({marks}) OR "
    return STATEMENTS[name].replace("{scopes}", marks).replace("{scope is one, or} ", each)


#: Contents of more bytes are deflated.
DEFLATED_FROM = 200


def packed(data: bytes) -> bytes:
    """The stream of these bytes. A few bytes are stored as they are, in one stored block (RFC 1951,
    3.2.4), because deflating them costs more than it saves."""
    size = len(data)
    if size > DEFLATED_FROM:
        return zlib.compress(data, 1)
    return b"".join((b"\x78\x01\x01", size.to_bytes(2, "little"),
                     (size ^ 0xFFFF).to_bytes(2, "little"), data,
                     zlib.adler32(data).to_bytes(4, "big")))
