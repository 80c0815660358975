"""Opening a database: what each kind of file becomes, or is refused with, to the word."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Any

import apsw
import pytest

from coordinator.daemon import log_summary
from coordinator.store import database
from coordinator.store.database import in_memory, open_writer
from coordinator.store.migrations import SCHEMA_VERSION
from coordinator.store.rebuild import rebuild, restore_into, state
from coordinator.words.refusals import Refusal
from tests.golden import assert_golden, said
from tests.world import World

OLDEST = Path(__file__).parents[1] / "data/schema-1.sql"


def shape(db: apsw.Connection) -> dict[str, str]:
    """Each table and index as it was made, without remarks and white space."""
    made = db.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    return {name: "".join(re.sub("--.*", "", sql).split()) for name, sql in made}


def oldest(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.execute(OLDEST.read_text("utf-8"))
    db.execute("INSERT INTO counters VALUES ('task', 7)")
    db.execute("PRAGMA user_version = 1")
    db.close()


def test_a_database_of_the_first_version_is_brought_forward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "coord.sqlite3"
    oldest(path)
    before = path.stat().st_size
    monkeypatch.setattr(database, "REWRITTEN_BYTES_MAX", before - 1)  # too large to be rewritten
    open_writer(path, warm=False).close()
    monkeypatch.undo()
    db = apsw.Connection(str(path))
    assert db.execute("PRAGMA user_version").get == SCHEMA_VERSION and db.execute("PRAGMA auto_vacuum").get == 0
    db.close()
    db = open_writer(path, warm=False)
    assert shape(db) == shape(in_memory()) and db.execute("PRAGMA auto_vacuum").get == 2
    assert db.execute("SELECT value FROM counters WHERE name = 'task'").get == 7
    db.close()


def test_waypoints_of_an_older_version_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "coord.sqlite3"
    db = open_writer(path, warm=False)
    db.execute("INSERT INTO waypoints VALUES (1, x'00', x'00')")
    db.close()
    db = open_writer(path, warm=False)
    assert db.execute("SELECT count(*) FROM waypoints").get == 1
    db.close()
    monkeypatch.setitem(database.MIGRATIONS, SCHEMA_VERSION, "SELECT 1")
    monkeypatch.setattr(database, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    db = open_writer(path, warm=False)
    assert db.execute("SELECT count(*) FROM waypoints").get == 0
    db.close()


def test_a_version_that_cannot_be_brought_forward_stays_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "coord.sqlite3"
    oldest(path)
    db = apsw.Connection(str(path))
    db.execute("PRAGMA user_version = 2")  # which has columns that this one lacks
    db.close()
    with pytest.raises(apsw.SQLError):
        open_writer(path, warm=False)
    db = apsw.Connection(str(path))
    assert db.execute("PRAGMA user_version").get == 2 and "waypoints" not in shape(db), "whole, or not at all"
    db.close()


def test_what_an_older_version_lacks_is_made_as_the_schema_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "coord.sqlite3"
    db = open_writer(path, warm=False)
    whole = shape(db)
    db.execute("INSERT INTO counters VALUES ('task', 7)")
    db.execute(f"DROP TABLE messages; DROP INDEX tasks_by_rank; PRAGMA user_version = {SCHEMA_VERSION - 1}")
    db.close()
    monkeypatch.setattr(database, "MIGRATIONS", {})
    db = open_writer(path, warm=False)
    assert shape(db) == whole and db.execute("PRAGMA user_version").get == SCHEMA_VERSION
    assert db.execute("SELECT value FROM counters WHERE name = 'task'").get == 7
    db.close()


def test_how_a_connection_is_set(tmp_path: Path) -> None:
    names = ("foreign_keys", "journal_mode", "auto_vacuum", "synchronous", "wal_autocheckpoint", "journal_size_limit", "temp_store",
             "cache_size", "busy_timeout")
    for synchronous, level in (("FULL", 2), ("NORMAL", 1)):
        db = open_writer(tmp_path / f"{synchronous}.sqlite3", synchronous=synchronous)
        assert {name: db.execute(f"PRAGMA {name}").get for name in names} == {
            "foreign_keys": 1, "journal_mode": "wal", "auto_vacuum": 2, "synchronous": level, "wal_autocheckpoint": 0,
            "journal_size_limit": database.WAL_KEPT_BYTES, "temp_store": 2, "cache_size": -16000, "busy_timeout": 2000}
        assert db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 1
        database.close_writer(db)
    reader = database.open_reader(tmp_path / "FULL.sqlite3")
    assert reader.execute("PRAGMA busy_timeout").get == 2000
    reader.close()
    cold = open_writer(tmp_path / "cold.sqlite3", warm=False)
    cold.execute("SELECT 1 FROM meta").fetchall()
    assert (tmp_path / "cold.sqlite3-wal").stat().st_size < database.WAL_WARM_BYTES
    cold.close()


def test_what_is_said_of_a_file_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ""

    def refused(case: str, path: Path, **more: Any) -> None:
        nonlocal text
        with pytest.raises(Refusal) as no:
            open_writer(path, **more)
        text += said(case, no.value).replace(str(tmp_path), "FOLDER")

    mine = tmp_path / "mine.sqlite3"
    open_writer(mine, seal="mine", warm=False).close()
    refused("another's", mine, seal="theirs")
    bare = tmp_path / "bare.sqlite3"
    open_writer(bare, warm=False).close()
    refused("sealed by nobody", bare, seal="mine")
    for version in (SCHEMA_VERSION + 1, 0):
        db = apsw.Connection(str(bare))
        db.execute(f"PRAGMA user_version = {version}")
        db.close()
        refused(f"version {version}", bare)
    text = text.replace(f"version {SCHEMA_VERSION + 1}", "version NEXT").replace(f"up to {SCHEMA_VERSION}.", "up to THIS.")
    (tmp_path / "file").write_text("x")
    refused("below a file", tmp_path / "file/db")
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        def no_room(*args: object, number: int = number, **more: object) -> None:
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as patch:
            patch.setattr(Path, "mkdir", no_room)
            refused(os.strerror(number), tmp_path / "new/db")
    raw = bytearray(mine.read_bytes())
    raw[8 * 4096:] = b"\xff" * (len(raw) - 8 * 4096)
    mine.write_bytes(raw)
    refused("pages are damaged", mine)
    mine.write_bytes(b"noise" * 2000)
    refused("no database", mine)
    assert_golden("database.txt", text)
    empty = tmp_path / "empty.sqlite3"
    empty.write_bytes(b"")
    open_writer(empty, seal="mine", warm=False).close()
    open_writer(empty, seal="mine", warm=False).close()


def test_a_snapshot_is_made_beside_the_coordinator(
    world: World, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    nice: list[int] = []
    monkeypatch.setattr(os, "nice", nice.append)
    for n in range(3):
        world.task(f"t{n}")
    assert log_summary.main(["snapshot", str(world.state_dir.database), "2"]) == 0 and nice == [log_summary.NICE]
    body = capfdbinary.readouterr().out
    then, applied = rebuild(world.db, 2)
    assert applied == 2
    made = in_memory()
    restore_into(made, body)
    assert state(made) == state(then) != world.rows()
    assert made.execute("SELECT task_id FROM ready_tasks ORDER BY n").fetchall() == [("T-1",), ("T-2",)]
    monkeypatch.setattr(os, "nice", lambda by: (_ for _ in ()).throw(OSError(1, "not allowed")))
    assert log_summary.main(["snapshot", str(world.root / "absent"), "2"]) == 1
    assert b"Nothing was changed" in capfdbinary.readouterr().err


def test_a_snapshot_of_an_older_schema_fills_what_it_has(tmp_path: Path, world: World) -> None:
    """Columns that came since are at the end, and have their defaults."""
    import zlib

    import msgspec

    world.acquire("ann", "a")
    (lease,) = world.rows()["file_locks"]
    older = {"file_locks": [lease[:-1]], "tasks": [], "agents": [world.rows()["agents"][0][:-5]]}
    made = in_memory()
    restore_into(made, zlib.compress(msgspec.json.encode(older)))
    assert state(made)["file_locks"] == [lease] and len(state(made)["agents"][0]) == 17


@pytest.mark.parametrize("foreign", [False, True])
def test_one_whose_maker_was_killed_at_that_is_opened(tmp_path: Path, foreign: bool) -> None:
    """A journal that has to be rolled back is beside it, which nobody can who only reads."""
    making = apsw.Connection(str(tmp_path / "making"))
    making.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
    if not foreign:
        making.execute("DROP TABLE meta")
    making.execute("PRAGMA cache_size = 1; BEGIN IMMEDIATE; CREATE TABLE half (a)")
    making.executemany("INSERT INTO half VALUES (?)", [("x" * 500,)] * 200)  # more than it keeps in memory
    path = tmp_path / "there/coord.sqlite3"
    path.parent.mkdir()
    for ending in ("", "-journal"):
        path.with_name(path.name + ending).write_bytes((tmp_path / f"making{ending}").read_bytes())
    making.close()
    before = {one.name: one.read_bytes() for one in path.parent.iterdir()}
    assert len(before) == 2
    with pytest.raises(apsw.ReadOnlyError):
        apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY).execute("SELECT 1 FROM sqlite_schema").get  # noqa: B018
    if foreign:
        with pytest.raises(Refusal, match="not made by the coordinator"):
            open_writer(path, seal="ours")
        assert {one.name: one.read_bytes() for one in path.parent.iterdir()} == before, "of another's nothing is touched"
        return
    db = open_writer(path, seal="ours")
    assert db.execute("PRAGMA user_version").get == SCHEMA_VERSION and db.execute("PRAGMA auto_vacuum").get == 2
    db.close()
    open_writer(path, seal="ours").close()
