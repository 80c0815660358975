"""Settings in TOML: a member put in, and taken out again, with all else left letter by letter.

tomlkit does the merging itself. coord's additions are recognised by the comment beside a plain
value, or by the command of a table. The module never writes a file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tomlkit

#: Stands beside a value that coord has put in.
MARK = "put in by coord init"


class BadToml(ValueError):
    """The text is not TOML, or of a form that nothing can be put into."""


def read_at(text: str, path: Sequence[str]) -> Any:
    """The value at `path`; None if there is none.

    Raises:
        BadToml.
    """
    value: Any = _plain(text)
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def with_member(text: str, path: Sequence[str], value: Any) -> str:
    """The text with `value` at `path`; tables on the way there are made.

    Raises:
        BadToml: also where that cannot be done without a change to something else.
    """
    import tomlkit  # few agents need it, and the coordinator imports this module

    wanted = _plain(text)
    document = tomlkit.parse(text)
    around: Any = document
    inside: Any = wanted
    for key in path[:-1]:
        if key not in around:
            around[key] = tomlkit.table(is_super_table=isinstance(value, dict))
        around, inside = around[key], inside.setdefault(key, {})
        if not isinstance(inside, dict):
            raise BadToml(f"`{'.'.join(path)}` cannot be put in: `{key}` is no table")
    made = tomlkit.item(value)
    if not isinstance(value, dict) and not isinstance(around, tomlkit.items.InlineTable):
        made.comment(MARK)
    around[path[-1]] = made
    inside[path[-1]] = value
    written = tomlkit.dumps(document)
    if _plain(written) != wanted:
        raise BadToml(f"`{'.'.join(path)}` cannot be put in without a change to something else")
    return written


def stripped(text: str, marks: Sequence[str]) -> str | None:
    """The text without what coord has put in, and without the tables that this leaves empty; None
    if nothing else is left.

    Raises:
        BadToml.
    """
    import tomlkit  # few agents need it, and the coordinator imports this module

    before = _plain(text)
    lines = text.splitlines(keepends=True)
    without = "".join(line for line in lines if not line.rstrip().endswith(f"# {MARK}"))
    _plain(without)
    document = tomlkit.parse(without)
    _strip(document, before, marks)
    written = tomlkit.dumps(document)
    return written if written.strip() else None


def _strip(
    around: tomlkit.container.Container, before: dict[str, Any], marks: Sequence[str]
) -> None:
    """Take out tables whose command is coord's, and those that are empty now and were not."""
    import tomlkit  # few agents need it, and the coordinator imports this module

    for key in list(around):
        child = around.item(key)
        if not isinstance(child, tomlkit.items.Table | tomlkit.items.InlineTable):
            continue
        text = " ".join(str(child.get(name, "")) for name in ("command", "args"))
        if any(mark in text for mark in marks):
            around.remove(key)
            continue
        was = before.get(key)
        _strip(child.value, was if isinstance(was, dict) else {}, marks)
        if was and not child.unwrap():
            around.remove(key)


def _plain(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as bad:
        raise BadToml(str(bad)) from None
