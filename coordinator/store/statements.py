"""Every SQL statement but the DDL has a name and one place: `queries.sql` beside this file.

A statement opens with `-- name: NAME`, then a line on its meaning. `{scopes}` in one stands for as
many `?` as there are scopes to look up; such statements are asked for with `many`.
"""

import re
from functools import cache
from importlib.resources import files

_TEXT = (files("coordinator.store") / "queries.sql").read_text("utf-8")
STATEMENTS: dict[str, str] = {
    name: body.strip().rstrip(";")
    for name, body in re.findall(
        r"^-- name: (\w+)\n(?:--.*\n)*((?:(?!-- name:).*\n?)+)", _TEXT, re.MULTILINE
    )
}


@cache
def many(name: str, count: int) -> str:
    """The statement `name` for `count` scopes."""
    return STATEMENTS[name].replace("{scopes}", ",".join("?" * count))
