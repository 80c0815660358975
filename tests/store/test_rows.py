"""A row's shape and the statements that are read as it have the same columns, in the same order."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import NamedTuple

import apsw
import apsw.ext
import msgspec

import coordinator
from coordinator.resources import packaged
from coordinator.store import rows
from coordinator.store.statements import STATEMENTS, many

SOURCES = Path(coordinator.__file__).parent
#: Methods of a view that read a statement as a shape: (shape, statement, …); functions that do: (view, shape, statement, …).
TYPED, NEAR = ("each", "first", "each_of"), ("near", "one_by_one")
#: Methods of a view that read a statement of one column: (statement, …).
SINGLE = ("values", "value")
#: Where a variable names the statement: those it may stand for.
MEANT = {
    ("slices/story/timeline.py", "name"): ("snapshot_seq", "event_last"),
    ("slices/story/story.py", "name"): ("events_last", "events_after"),
    ("slices/backlog/editing.py", "statement"): ("tasks_earlier", "tasks_later"),
    ("slices/backlog/task_lists.py", "statement"): ("task_after_of", "task_come_after"),
    ("slices/messages/messages.py", "statement"): ("messages_newest", "messages_newest_of_task"),
    ("kernel/retry_queue.py", "self.late"): ("changes_late", "steps_late"),
    ("kernel/retry_queue.py", "self.old"): ("changes_old", "steps_old"),
    ("slices/state/changes.py", "*asked"): ("changes_open_at", "changes_open"),
    ("kernel/leasing/git_turn.py", "statement"): ("leases_live", "leases_of_git"),
}
#: What gives on a shape, or a statement, that it is given.
PASSES_ON = {"store/ledger.py", "kernel/leasing/overlapping.py"}


class Reading(NamedTuple):
    """A call that reads rows: in which module, as which shape (None: single values), by which statements."""

    module: str
    shape: str | None
    statements: tuple[str, ...]


def is_view(node: ast.expr) -> bool:
    """Whether it is a view or a transaction, by its name."""
    return (isinstance(node, ast.Name) and node.id in ("view", "tx", "v", "self")) or (isinstance(node, ast.Attribute) and node.attr in ("_tx", "tx", "view"))


def taken_apart(call: ast.Call) -> tuple[str | None, ast.expr] | None:
    """The shape and the statement of a call that reads rows; None: it is another call."""
    match call:
        case ast.Call(func=ast.Attribute(value=view, attr=method), args=[shape, statement, *_]) if method in TYPED and is_view(view):
            return ast.unparse(shape), statement
        case ast.Call(func=ast.Name(id=function), args=[_, shape, statement, *_]) if function in NEAR:
            return ast.unparse(shape), statement
        case ast.Call(func=ast.Attribute(value=view, attr="counts"), args=[statement, *_]) if is_view(view):
            return "CountRow", statement
        case ast.Call(func=ast.Attribute(value=view, attr=method), args=[statement, *_]) if method in SINGLE and is_view(view):
            return None, statement
    return None


def named(module: str, node: ast.expr) -> tuple[str, ...]:
    """The statements that an argument may name."""
    if isinstance(node, ast.IfExp):
        return (*named(module, node.body), *named(module, node.orelse))
    if isinstance(node, ast.Constant):
        # (What names no statement fails where it runs; `make mutants` writes such names into the sources.)
        return (str(node.value),) if node.value in STATEMENTS else ()
    return MEANT[module, ast.unparse(node)]


def all_readings() -> list[Reading]:
    readings = []
    for path in sorted(SOURCES.rglob("*.py")):
        module = path.relative_to(SOURCES).as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and (parts := taken_apart(node)) is not None:
                shape, statement = parts
                if module in PASSES_ON and not isinstance(statement, ast.Constant):
                    continue
                readings.append(Reading(module, shape, named(module, statement)))
    return readings


def read_as() -> list[tuple[str, str]]:
    """Each shape (`module:name`) with each statement that some module reads as it."""
    return sorted({(f"{home(reading.module, reading.shape)}:{reading.shape}", name)
                   for reading in all_readings() if reading.shape is not None for name in reading.statements})


def home(module: str, shape: str) -> str:
    """The module that a shape comes from, as the module that reads it sees it."""
    seen = importlib.import_module("coordinator." + module.removesuffix(".py").replace("/", "."))
    shapes = seen
    for name in shape.split("."):
        shapes = getattr(shapes, name, None) or getattr(rows, name)
    return str(shapes.__module__)


def made_database() -> apsw.Connection:
    db = apsw.Connection(":memory:")
    db.execute(packaged("schema.sql").read_text("utf-8"))
    return db


def columns(db: apsw.Connection, statement: str) -> list[str]:
    text = many(statement, 1) if "{" in STATEMENTS[statement] else STATEMENTS[statement]
    return [name for name, _ in apsw.ext.query_info(db, text).description]


def test_many_pairs_are_known() -> None:
    assert len(read_as()) > 120


def test_a_statement_names_the_columns_of_its_row() -> None:
    db, wrong = made_database(), []
    for shape, statement in read_as():
        module, _, name = shape.partition(":")
        fields = msgspec.structs.fields(getattr(importlib.import_module(module), name.rpartition(".")[2]))
        names = columns(db, statement)
        if names != [field.name for field in fields][:len(names)] or any(field.required for field in fields[len(names):]):
            wrong.append((shape, statement, names))
    assert wrong == []


def test_what_is_read_as_single_values_has_one_column() -> None:
    singles = {name for reading in all_readings() if reading.shape is None for name in reading.statements}
    db = made_database()
    assert len(singles) > 60 and [name for name in sorted(singles) if len(columns(db, name)) != 1] == []


def test_no_statement_gives_whatever_columns_there_are() -> None:
    assert [name for name, text in STATEMENTS.items() if text.upper().startswith("SELECT *")] == []
