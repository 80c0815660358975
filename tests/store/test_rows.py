"""A row's shape and the statements that are read as it have the same columns, in the same order."""

from __future__ import annotations

import ast
from pathlib import Path

import apsw
import apsw.ext
import msgspec
import pytest

import coordinator
from coordinator.resources import packaged
from coordinator.store import rows
from coordinator.store.statements import STATEMENTS, many

SOURCES = Path(coordinator.__file__).parent
#: Methods that read a statement's rows as a shape: (shape, statement, …).
TYPED = ("each", "first", "each_of")


def read_as() -> set[tuple[str, str]]:
    """Each shape with each statement that some module reads as it."""
    pairs = set()
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TYPED and len(node.args) > 1:
                shape, *statements = node.args[0], *named(node.args[1])
                if isinstance(shape, ast.Name) and shape.id.endswith("Row"):
                    pairs |= {(shape.id, name) for name in statements}
    return pairs | {("LeaseRow", "rivals")}


def named(node: ast.expr) -> list[str]:
    """The statements that an argument may name."""
    if isinstance(node, ast.IfExp):
        return [*named(node.body), *named(node.orelse)]
    # (What names no statement fails where it runs; `make mutants` writes such names into the sources.)
    return [str(node.value)] if isinstance(node, ast.Constant) and node.value in STATEMENTS else []


def columns(statement: str) -> list[str]:
    db = apsw.Connection(":memory:")
    db.execute(packaged("schema.sql").read_text("utf-8"))
    text = many(statement, 1) if "{" in STATEMENTS[statement] else STATEMENTS[statement]
    return [name for name, _ in apsw.ext.query_info(db, text).description]


def test_many_pairs_are_known() -> None:
    assert len(read_as()) > 60


@pytest.mark.parametrize(("shape", "statement"), sorted(read_as()))
def test_a_statement_names_the_columns_of_its_row(shape: str, statement: str) -> None:
    fields = msgspec.structs.fields(getattr(rows, shape))
    names = columns(statement)
    assert len(names) <= len(fields) and all(not field.required for field in fields[len(names):])
    assert names == [field.name for field in fields][:len(names)]


def test_no_statement_gives_whatever_columns_there_are() -> None:
    assert [name for name, text in STATEMENTS.items() if text.upper().startswith("SELECT *")] == []
