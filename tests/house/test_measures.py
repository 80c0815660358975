"""What `make house` counts."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def house() -> ModuleType:
    spec = importlib.util.spec_from_file_location("house", ROOT / "scripts" / "house.py")
    assert spec is not None and spec.loader is not None
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("code", "count"), [
    ("for name, state in db.execute(q):\n    pass", 1),
    ("f({name for name, *_ in tx.rows('x')})", 1),
    ("first = tx.row('x')\nuse(first[0])", 1),
    ("use((tx.row('x') or (0,))[0])", 1),
    ("use(tx.rows('x')[0][1])", 2),
    ("use(next(iter(db.execute(q)))[0])", 1),
    ("known = db.execute(q).fetchall()\nuse(known[0][1])", 2),
    ("for one in sorted(db.execute(q)):\n    use(one[2])", 1),
    ("left = [one for one in db.execute(q) if one]\nuse(left[0])", 1),
    ("((a, b),) = db.execute(q)", 1),
    ("def f(row):\n    return row[1]", 1),
    ("def f(event: tuple[Any, ...]):\n    return event[1]", 1),
    ("for number, row in enumerate(view.each(LeaseRow, 'x')):\n    use(row.scope)", 0),
    ("def f(row: LeaseRow):\n    return row.scope", 0),
    ("for (name,) in db.execute(q):\n    use(name)", 0),
    ("for row in view.each(LeaseRow, 'x'):\n    use(row.scope)", 0),
    ("rows = [LeaseRow(*row) for row in db.execute(q)]\nuse(rows[0].scope)", 0),
])
def test_a_row_taken_apart_by_position_is_counted_under_any_name(house: ModuleType, code: str, count: int) -> None:
    assert house.count_rows_by_position(ast.parse(code)) == count


def test_what_a_command_is_registered_by_is_not_counted_as_a_long_signature(house: ModuleType) -> None:
    command, plain = ast.parse("@command('x')\ndef f(a): pass\ndef g(a): pass").body
    assert house.is_command(command) and not house.is_command(plain)
