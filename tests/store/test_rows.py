"""A row's shape and the statements that are read as it have the same columns, in the same order."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import apsw
import apsw.ext
import msgspec

import coordinator
from coordinator.resources import packaged
from coordinator.store import rows
from coordinator.store.statements import STATEMENTS, many
from coordinator.words.slices import import_parts

SOURCES = Path(coordinator.__file__).parent
#: Methods that read a statement's rows as a shape: (shape, statement, …).
TYPED = ("each", "first", "each_of")
#: The shapes of rows that there are: the store's, and each slice's own.
SHAPES = {name: shape for module in (rows, *import_parts("rows")) for name, shape in vars(module).items() if name.endswith("Row")}


@cache
def read_as() -> frozenset[tuple[str, str]]:
    """Each shape with each statement that some module reads as it."""
    pairs = {("LeaseRow", "rivals")}
    for path in SOURCES.rglob("*.py"):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if any(f".{method}(" in text for method in TYPED) else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TYPED and len(node.args) > 1:
                shape, *statements = node.args[0], *named(node.args[1])
                if isinstance(shape, ast.Name) and shape.id.endswith("Row"):
                    pairs |= {(shape.id, name) for name in statements}
    return frozenset(pairs)


def named(node: ast.expr) -> list[str]:
    """The statements that an argument may name."""
    if isinstance(node, ast.IfExp):
        return [*named(node.body), *named(node.orelse)]
    # (What names no statement fails where it runs; `make mutants` writes such names into the sources.)
    return [str(node.value)] if isinstance(node, ast.Constant) and node.value in STATEMENTS else []


def columns(db: apsw.Connection, statement: str) -> list[str]:
    text = many(statement, 1) if "{" in STATEMENTS[statement] else STATEMENTS[statement]
    return [name for name, _ in apsw.ext.query_info(db, text).description]


def test_many_pairs_are_known() -> None:
    assert len(read_as()) > 60


def test_a_statement_names_the_columns_of_its_row() -> None:
    db = apsw.Connection(":memory:")
    db.execute(packaged("schema.sql").read_text("utf-8"))
    wrong = []
    for shape, statement in sorted(read_as()):
        fields = msgspec.structs.fields(SHAPES[shape])
        names = columns(db, statement)
        if names != [field.name for field in fields][:len(names)] or any(field.required for field in fields[len(names):]):
            wrong.append((shape, statement, names))
    assert wrong == []


def test_no_statement_gives_whatever_columns_there_are() -> None:
    assert [name for name, text in STATEMENTS.items() if text.upper().startswith("SELECT *")] == []
