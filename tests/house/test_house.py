"""Style that a machine can see: sizes, words, queries, generated documents, packaging."""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import apsw

from coordinator.client import asking
from coordinator.commands.forms import ACTED_ON
from coordinator.operations.listing import OPERATIONS
from coordinator.resources import packaged
from coordinator.store import database, migrations
from coordinator.store.events import Event
from coordinator.store.rows import LeaseRow, LogRow
from coordinator.store.salvage import COUNTERS
from coordinator.store.statements import STATEMENTS, TERMS_MAX, many
from coordinator.words import requests as rq
from coordinator.words.requests.table import MODULES
from generators.documents import stale

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = sorted((ROOT / "coordinator").rglob("*.py"))
BANNED = re.compile(r"(^|_)(utils?|helpers?|managers?|misc|common|stuff)(_|$)")


def bad_room(path: Path) -> str:
    """Why a module is no room of its own; empty: it is one."""
    text = path.read_text("utf-8")
    if text.count("\n") > 500:
        return "two nouns in one room?"
    if BANNED.search(path.stem):
        return "a name that says nothing"
    if text.strip() and path.name != "__init__.py" and not ast.get_docstring(ast.parse(text)):
        return "a module opens with what it owns"
    return ""


def test_each_module_is_a_room_of_its_own() -> None:
    assert {str(path.relative_to(ROOT)): why for path in SOURCES if (why := bad_room(path))} == {}


def test_a_bad_room_would_be_seen(tmp_path: Path) -> None:
    for called, text, why in (("a.py", '"""A."""\n' * 501, "two nouns"), ("file_utils.py", '"""A."""\n', "says nothing"),
                              ("a.py", "x = 1\n", "opens with"), ("a.py", '"""A."""\n', ""), ("__init__.py", "x = 1\n", "")):
        (tmp_path / called).write_text(text)
        assert why in bad_room(tmp_path / called) and bool(why) == bool(bad_room(tmp_path / called))


def test_only_the_clock_reads_a_clock() -> None:
    """Decisions get the time handed in; durations may be measured at the edges."""
    inner = [p for p in SOURCES if p.parent.name in ("rules", "service", "store", "words", "archive")]
    for path in inner:
        if path.name == "clock.py":
            continue
        text = path.read_text("utf-8")
        assert not re.search(r"\btime\.time|datetime\.now|utcnow|\bSystemClock\b", text), path
    assert "datetime('now')" not in packaged("schema.sql").read_text("utf-8")


def test_every_statement_fits_the_schema_and_is_used() -> None:
    db = database.in_memory()
    code = "".join(p.read_text("utf-8") for p in SOURCES)
    for name, text in STATEMENTS.items():
        with contextlib.suppress(apsw.BindingsError):  # numbered parameters count once
            for count in (0, 1, TERMS_MAX, 2000) if "{scope" in text else (0,):
                text = many(name, count)
                db.execute("EXPLAIN " + text, [None] * text.count("?"))
        assert f'"{name}"' in code or name.startswith("highest_"), f"{name} is never used"


def test_every_counter_is_among_those_that_a_restore_raises() -> None:
    used = {name for path in SOURCES for name in re.findall(r"""\.number\(["'](\w+)["']\)""", path.read_text("utf-8"))}
    assert used == set(COUNTERS)


def test_no_sql_outside_its_place() -> None:
    allowed = {"database.py", "rebuild.py", "statements.py"}
    for path in SOURCES:
        if path.parent.name in ("archive", "meaning") or path.name in allowed:
            continue
        found = re.search(r'"(SELECT|INSERT|UPDATE|DELETE) (?!coalesce\(max\(seq\))', path.read_text())
        assert not found, f"{path}: {found}"


def test_every_event_is_told() -> None:
    assert all(kind.SENTENCE for kind in Event.__subclasses__())


def test_generated_documents_are_fresh() -> None:
    assert stale() == []


def test_the_readme_tells_only_commands_that_exist() -> None:
    help_text = subprocess.run(
        [sys.executable, "-m", "coordinator.cli.main", "--help"], capture_output=True, text=True,
        check=True,
    ).stdout
    known = set(re.findall(r"^  (\w[\w-]*) ", help_text, re.MULTILINE))
    written = [ROOT / "README.md", *sorted((ROOT / "context_archive").glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    for document in written:
        for command in re.findall(r"`coord (\w[\w-]*)", document.read_text("utf-8")):
            assert command in known, f"{document.name} names `coord {command}`"


def test_make_targets_in_documents_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for target in re.findall(r"`make ([a-z-]+)", document.read_text("utf-8")):
            assert target in targets, f"{document.name} names `make {target}`"


def test_a_fresh_schema_equals_a_migrated_one() -> None:
    """From the first version (kept beside this file's data) through every migration."""
    assert set(migrations.MIGRATIONS) <= set(range(1, migrations.SCHEMA_VERSION))
    old = apsw.Connection(":memory:")
    old.execute((ROOT / "tests/data/schema-1.sql").read_text("utf-8"))
    old.execute("INSERT INTO counters VALUES ('task', 7)")
    held = "(fencing_token, file_path, locked_by, locked_at, task_description, expires_at, kind," \
        " mode, scope, slot, acquisition_id, ttl_ms, max_until)"
    old.execute(f"INSERT INTO file_locks {held} VALUES (5, 'a.py', 'ann', 't0', '', 't1', 'file',"
                " 'exclusive', 'p/a.py/', '', 'A-5', 1000, 't2')")
    database.migrate(old, 1)
    assert old.execute("SELECT file_path, locked_by, max_until, warned FROM file_locks").fetchall() == [
        ("a.py", "ann", "t2", 0)]
    assert old.execute("PRAGMA user_version").get == migrations.SCHEMA_VERSION
    assert old.execute("SELECT value FROM counters").get == 7, "what was there stays"
    assert _shape(old) == _shape(database.in_memory())


def test_rows_have_the_columns_of_their_tables() -> None:
    """Statements that ask for `*` rely on it."""
    db = database.in_memory()
    for row, table in ((LeaseRow, "file_locks"), (LogRow, "events")):
        assert list(row.__struct_fields__) == [str(r[1]) for r in db.execute(f"PRAGMA table_info({table})")]


def _shape(db: apsw.Connection) -> dict[str, str]:
    """Each table and index as it was made, without remarks and white space."""
    made = db.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    return {name: "".join(re.sub("--.*", "", sql).split()) for name, sql in made}


def test_agents_is_no_package_and_travels_in_the_wheel(tmp_path: Path) -> None:
    assert not (ROOT / "agents/__init__.py").exists()
    assert not (ROOT / "context_archive/__init__.py").exists()
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)], cwd=ROOT,
        capture_output=True, text=True, check=False, env={**os.environ, "COORD_PAGE": "off"},
    )
    assert done.returncode == 0, done.stderr
    names = set(zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist())
    assert "coordinator/_data/schema.sql" in names
    assert "coordinator/_data/agents/shell.toml" in names
    assert {"coordinator/regions/languages.toml", "coordinator/regions/queries/python.scm",
            "coordinator/regions/queries/go.meaning.scm"} <= names
    assert not [n for n in names if n.startswith("agents/")]


def test_dependencies_are_those_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["license"] == "MIT" and project["scripts"] == {
        "coord": "coordinator._command:run", "coord-plugin": "coordinator._plugin:run"}


def test_operations_have_a_meaning_and_a_path_of_their_own() -> None:
    paths = [operation.request.http for operation in OPERATIONS.values()]
    assert len(set(paths)) == len(paths)
    assert all(operation.meaning for operation in OPERATIONS.values())


def test_what_is_asked_in_another_way_is_there() -> None:
    assert set(asking.SLOW_S) | asking.REPEATABLE <= set(OPERATIONS)


def test_a_shape_is_read_in_from_the_module_that_has_it() -> None:
    """The table (`make docs-check` holds it to the source) leads to each shape."""
    for module, names in MODULES.items():
        there = importlib.import_module(module)
        assert all(getattr(rq, name) is getattr(there, name) for name in names.split()), module
    for name, fields in ACTED_ON.items():
        assert set(fields) <= set(getattr(rq, name).__struct_fields__), name


def test_changes_that_no_test_notices_are_of_code_that_there_is() -> None:
    """`make mutants` holds more against its list; this needs no mutation tester."""
    text = (ROOT / "context_archive" / "mutants.md").read_text("utf-8")
    lines = {line.strip() for path in SOURCES for line in path.read_text("utf-8").splitlines()}
    functions = re.findall(r"^### (?:\w+\.)?(\w+)$", text, re.M)
    assert functions
    for name in functions:
        assert any(re.match(rf"(async )?def {name}\(", line) for line in lines), name
    for part in re.split(r"^### ", text, flags=re.M)[1:]:
        assert re.split(r"^```$", part, flags=re.M)[-1].strip(), f"no reason: {part}"
        for old in re.findall(r"^- (.*)$", part, re.M):
            assert old.strip() in lines, old
