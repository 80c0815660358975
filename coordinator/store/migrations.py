"""Migrations: what each version of the schema changed in tables that were there before, from
`migrations.sql`."""

import re
from pathlib import Path

from coordinator.resources import packaged

_PARTS = dict(re.findall(
    r"^-- part: (.+)\n((?:(?!-- part:).*\n?)+)",
    Path(__file__).with_name("migrations.sql").read_text("utf-8"), re.MULTILINE))
#: Which version a database says that `schema.sql` has made.
SCHEMA_VERSION = int(re.findall(
    r"^PRAGMA user_version = (\d+);", packaged("schema.sql").read_text("utf-8"), re.MULTILINE)[0])
#: For rows of the state that have no purpose yet.
OF_ROWS: str = _PARTS["rows without a purpose"]
#: From version N to N+1, where tables change.
MIGRATIONS: dict[int, str] = {int(name): sql for name, sql in _PARTS.items() if name.isdecimal()}
MIGRATIONS[26] += OF_ROWS + _PARTS["events without a purpose"]
