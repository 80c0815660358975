"""The database's file: sealed, copied, checked, shrunk; and what is said of a disk that refuses."""

from __future__ import annotations

import errno
import stat
from pathlib import Path

import apsw
import pytest

from coordinator.store import database
from coordinator.store.database import backup, check_seal, open_reader, open_writer, storage_refusal
from coordinator.store.migrations import MIGRATIONS, SCHEMA_VERSION
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.world import World


def titles(path: Path) -> list[str]:
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return [str(row[0]) for row in db.execute("SELECT title FROM tasks ORDER BY n")]
    finally:
        db.close()


def test_a_database_is_used_only_with_its_own_seal(tmp_path: Path) -> None:
    path = tmp_path / "d" / "coord.sqlite3"
    open_writer(path, seal="mine").close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    open_writer(path, seal="mine").close()
    check_seal(path, "mine")
    before = path.read_bytes()
    for wrong in ("theirs", "", "MINE"):
        with pytest.raises(Refusal) as refused:
            open_writer(path, seal=wrong)
        assert refused.value.code is Code.FOREIGN and str(path) in refused.value.message
        assert "adopt" in (refused.value.next or "")
    assert path.read_bytes() == before
    other = tmp_path / "other.sqlite3"
    db = apsw.Connection(str(other))
    check_seal(other, "mine")  # nothing is in it yet
    db.execute("CREATE VIEW meta AS SELECT 'seal' AS name, 'mine' AS value")
    with pytest.raises(Refusal):
        check_seal(other, "mine")  # a view would be run
    db.close()


def test_each_copy_is_whole_and_older_ones_move_up(world: World, tmp_path: Path) -> None:
    target = tmp_path / "backup.sqlite3"
    pauses: list[float] = []
    names = [f"t{n}" for n in range(5)]
    for n, name in enumerate(names):
        world.task(name, prompt="p" * 199_000)
        assert backup(world.db, target, 3, pause=pauses.append) == target
        have = [titles(p) for p in (target, target.with_name(target.name + ".1"), target.with_name(target.name + ".2")) if p.exists()]
        assert have == [names[: k + 1] for k in range(n, max(-1, n - 3), -1)]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600 and len(pauses) > 5 and min(pauses) >= 0
    world.task("last")
    backup(world.db, target, 3, roll=False)
    assert titles(target) == [*names, "last"] and titles(target.with_name(target.name + ".1")) == names[:4]
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("backup")) == [
        "backup.sqlite3", "backup.sqlite3.1", "backup.sqlite3.2"]
    assert not world.db.in_transaction
    world.task("goes on")


def test_a_copy_is_on_the_disk_before_it_takes_the_place_of_the_old_one(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, done = tmp_path / "backup.sqlite3", list[str]()
    sync, move = database.os.fsync, Path.replace
    monkeypatch.setattr(database.os, "fsync", lambda fd: (done.append("synced"), sync(fd))[1])
    monkeypatch.setattr(Path, "replace", lambda self, to: (done.append("moved"), move(self, to))[1])
    backup(world.db, target, 2)
    assert done == ["synced", "moved"]


def test_a_copy_that_fails_leaves_the_old_ones(world: World, tmp_path: Path) -> None:
    target = tmp_path / "backup.sqlite3"
    world.task("one")
    backup(world.db, target, 2)

    def full(spent_s: float) -> None:
        raise OSError(errno.ENOSPC, "full")

    with pytest.raises(OSError, match="full"):
        backup(world.db, target, 2, pause=full)
    assert titles(target) == ["one"] and not world.db.in_transaction
    backup(world.db, target, 2)
    assert titles(target.with_name(target.name + ".1")) == ["one"]


def test_a_reader_sees_what_is_committed_and_writes_nothing(world: World) -> None:
    reader = open_reader(world.state_dir.database)
    world.task("one")
    assert reader.execute("SELECT count(*) FROM tasks").get == 1
    with pytest.raises(apsw.ReadOnlyError):
        reader.execute("DELETE FROM tasks")
    reader.close()
    with pytest.raises(Refusal) as refused:
        open_reader(world.root / "nothing.sqlite3")
    assert refused.value.code is Code.STORAGE


def test_free_pages_are_given_back_step_by_step(world: World) -> None:
    for n in range(20):
        world.task(f"t{n}", prompt=f"{n}" * 60_000)
    world.clock.advance(200 * 86_400_000)
    for n in range(20):
        world.ask(rq.TaskCancel(task=f"T-{n + 1}"))
    world.clock.advance(200 * 86_400_000)
    world.ask(rq.Compact(keep_days=1))
    db = world.db
    free, size = database.free_pages(db), database.file_bytes(db)
    assert free > 10
    with db:
        assert database.give_back_pages(db, 4) == 4
    assert database.free_pages(db) == free - 4 and database.file_bytes(db) == size - 4 * 4096
    with db:
        assert database.give_back_pages(db, 10**6) == free - 4
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert world.state_dir.database.stat().st_size == database.file_bytes(db) <= size - 4096 * free
    assert database.integrity(db) == "ok"


def test_a_checkpoint_beside_the_writer_brings_all_into_the_file(world: World, tmp_path: Path) -> None:
    world.task("one")
    database.checkpoint(world.state_dir.database)
    copy = tmp_path / "copy.sqlite3"
    copy.write_bytes(world.state_dir.database.read_bytes())
    assert titles(copy) == ["one"]


def test_a_daemons_log_stays_warm(tmp_path: Path) -> None:
    path = tmp_path / "coord.sqlite3"
    database.close_writer(database.open_writer(path))
    assert path.with_name(path.name + "-wal").stat().st_size >= database.WAL_WARM_BYTES


@pytest.mark.parametrize(("bad", "said", "step"), [
    (apsw.FullError("x"), "the disk is full", "Make room"),
    (apsw.CorruptError("x"), "the database is damaged", "--restore"),
    (apsw.NotADBError("x"), "the database is damaged", "--restore"),
    (apsw.BusyError("x"), "another program holds the database", "Close it"),
    (apsw.ReadOnlyError("x"), "the database may not be written", "Give write access to "),
    (apsw.CantOpenError("x"), "the database may not be written", "Give write access to "),
    (apsw.IOError("what"), "the disk answered: what", "coord doctor"),
    (database.as_read("ok?"), "the database is damaged", "--restore"),
    (database.as_read("a\nerror code=266"), "the disk answered: disk I/O error (error code=266)", "coord doctor"),
    (database.as_read("error code=11"), "the database is damaged", "--restore"),
])
def test_each_failure_of_the_disk_has_its_words(tmp_path: Path, bad: Exception, said: str, step: str) -> None:
    path = tmp_path / "coord.sqlite3"
    refusal = storage_refusal(path, bad)
    assert refusal.code is Code.STORAGE and refusal.message == f"Nothing was changed: {said} ({path})."
    assert step in (refusal.next or "") and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_why_a_disk_may_not_be_written_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(self: Path, data: bytes) -> int:
        raise OSError(number, "because")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    for bad in (apsw.IOError("x"), apsw.CantOpenError("x")):
        refusal = storage_refusal(tmp_path / "x", bad)
        if number != errno.EROFS:
            assert "the disk is full (because)" in refusal.message and refusal.next == database.MAKE_ROOM
        elif isinstance(bad, apsw.CantOpenError):
            assert "the database may not be written (because)" in refusal.message
        else:
            assert "the disk answered: x" in refusal.message
    assert "the disk is full (" in storage_refusal(tmp_path / "x", apsw.FullError("x")).message


def test_newer_and_foreign_schemas_are_left_alone_and_older_ones_brought_forward(tmp_path: Path) -> None:
    path = tmp_path / "coord.sqlite3"
    db = open_writer(path)
    fresh = sorted(db.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall())
    settings = {name: db.execute(f"PRAGMA {name}").get for name in ("foreign_keys", "journal_mode", "auto_vacuum", "synchronous", "wal_autocheckpoint")}
    assert settings == {"foreign_keys": 1, "journal_mode": "wal", "auto_vacuum": 2, "synchronous": 2, "wal_autocheckpoint": 0}
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    db.close()
    for name, version in (("newer", SCHEMA_VERSION + 1), ("foreign", 0)):
        db = apsw.Connection(str(path))
        db.execute(f"PRAGMA user_version = {version}")
        db.close()
        with pytest.raises(Refusal) as refused:
            open_writer(path)
        assert refused.value.code is Code.VERSION_SKEW and f"schema version {version}" in refused.value.message, name
    assert fresh and MIGRATIONS


def test_a_damaged_file_is_told_and_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    path = tmp_path / "coord.sqlite3"
    path.write_bytes(b"no database at all, but long enough to be looked at " * 100)
    with pytest.raises(Refusal) as refused:
        open_writer(path)
    assert refused.value.code is Code.STORAGE and "damaged" in refused.value.message
    (tmp_path / "file").write_text("x")
    with pytest.raises(Refusal) as refused:
        open_writer(tmp_path / "file" / "coord.sqlite3")
    assert refused.value.code is Code.STORAGE and str(tmp_path / "file") in refused.value.message
