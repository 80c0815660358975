"""Salvage, to the number: what came back, what did not, and all contents with it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.store import salvage
from coordinator.store.database import backup, open_writer
from coordinator.store.rebuild import state
from coordinator.store.salvage import STEP, Rescue
from coordinator.words import requests as rq
from tests.world import World

AT = "2026-01-01T00:00:00.000Z"
#: Any type of value may stand in an event now, as it may in a damaged page.
OPEN_TO_ALL = ("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE events (seq INTEGER PRIMARY KEY, "
               "at, kind, agent, task, resource, data)' WHERE name = 'events'; PRAGMA writable_schema = RESET")
Damage = Callable[[Any], object]


def half_done(world: World) -> None:
    """A review with contents of each kind."""
    place = world.root / "d"
    place.mkdir()
    for name, mode, data in (("plain", 0o600, b"one"), ("run", 0o700, b"one"), ("large", 0o644, b"1" * 100_000)):
        (place / name).write_bytes(data)
        (place / name).chmod(mode)
    os.symlink("plain", place / "link")
    world.acquire("ann", "d/", ttl_s=5)
    (place / "link").unlink()
    for name in ("plain", "run", "large", "link"):
        (place / name).write_bytes(b"half")
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())


def rescued(world: World, tmp_path: Path, damage: Damage = lambda db: None, floor: dict[str, int] | None = None,
            base: Path | None = None, keep: bool = False) -> tuple[Rescue, Any]:
    """What a new database has after this damage."""
    world.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    place = tmp_path / "state"
    shutil.copytree(world.state_dir.path, place)
    db = open_writer(place / world.state_dir.database.name, warm=False)
    db.execute("PRAGMA ignore_check_constraints = ON")
    damage(db)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()
    if base is None:
        open_writer(tmp_path / "pattern.sqlite3", warm=False).close()
    (tmp_path / "copies").mkdir()
    wreck = salvage.Wreck(tmp_path / "copies", place / world.state_dir.database.name, base or tmp_path / "pattern.sqlite3")
    fresh = open_writer(base or tmp_path / "fresh.sqlite3", warm=False)
    done = salvage.rescue(fresh, wreck, base.name if base else "nothing", floor or {}, AT)
    wreck.close()
    return done, fresh


def blobs(db: Any) -> set[tuple[Any, ...]]:
    return set(db.execute("SELECT hash, size, data, mode FROM blobs").fetchall())


def test_every_content_comes_back_with_what_is_known_of_it(world: World, tmp_path: Path) -> None:
    half_done(world)
    done, db = rescued(world, tmp_path, floor={"fencing": 7, "task": 9})
    last = world.ledger.seq
    assert done == Rescue(base="nothing", base_seq=0, last_seq=last, last_at=world.view().now, events=last, counters={
        "fencing": 64 + STEP, "waiter": STEP, "task": 9 + STEP, "review": 1 + STEP, "notice": 1 + STEP, "unlock": STEP, "commit": STEP, "change": STEP, "step": STEP,
        "work": STEP, "verification": STEP, "message": STEP})
    assert state(db) == world.rows() and blobs(db) == blobs(world.db)
    assert {row[3] for row in blobs(db)} >= {0o600, 0o700}
    assert dict(db.execute("SELECT name, value FROM counters").fetchall()) == done.counters
    (event,) = db.execute("SELECT * FROM events WHERE seq > ?", (last,)).fetchall()
    assert event[:6] == (last + 1, AT, "counters_raised", None, None, None) and '"task":1000009' in event[6]
    db.close()


def test_a_number_that_only_the_damaged_file_shows_was_given(world: World, tmp_path: Path) -> None:
    world.task("t")
    done, db = rescued(world, tmp_path, lambda db: db.execute("UPDATE counters SET value = 500 WHERE name = 'task'"),
                       floor={"notice": 40, "task": 400})
    assert (done.counters["task"], done.counters["notice"], done.counters["review"]) == (500 + STEP, 40 + STEP, STEP)
    db.close()


@pytest.mark.parametrize("first", ["of an empty database", "noise"])
def test_where_the_first_page_is_lost_that_of_a_backup_tells_where_things_lie(world: World, tmp_path: Path, first: str) -> None:
    world.task("t1")
    backup(world.db, tmp_path / "base.sqlite3", 1)
    for n in range(40):
        world.task(f"more {n}", prompt="p" * 500)
    world.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    empty = open_writer(tmp_path / "empty.sqlite3", warm=False)
    for (table,) in empty.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        empty.execute(f"DROP TABLE {table}")
    empty.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    empty.close()
    damaged = tmp_path / "state" / "coord.sqlite3"
    damaged.parent.mkdir()
    raw = bytearray(world.state_dir.database.read_bytes())
    raw[:4096] = (tmp_path / "empty.sqlite3").read_bytes()[:4096] if first != "noise" else b"?" * 4096
    damaged.write_bytes(raw)
    (tmp_path / "copies").mkdir()
    wreck = salvage.Wreck(tmp_path / "copies", damaged, tmp_path / "base.sqlite3")
    db = open_writer(tmp_path / "base.sqlite3", warm=False)
    done = salvage.rescue(db, wreck, "base", {}, AT)
    wreck.close()
    assert (done.base_seq, done.last_seq, done.events, done.lost_from) == (1, 41, 40, None)
    assert state(db) == world.rows()
    db.close()


def test_a_content_that_is_not_what_its_name_says_is_lost(world: World, tmp_path: Path) -> None:
    half_done(world)
    names = {row[0]: row for row in blobs(world.db)}
    reviewed = {name for row in world.ask(rq.ReviewShow(review="R-1")).files for name in (row.baseline_hash, row.flagged_hash)}
    executable, link = (next(name for name in names if mark in name) for mark in ("+x", "link:"))
    large = next(name for name, row in names.items() if not row[2])
    other = next(row[2] for name, row in names.items() if name not in (executable, link, large))

    def damage(db: Any) -> None:
        db.execute("UPDATE blobs SET data = ? WHERE hash = ?", (other, link))
        db.execute("UPDATE blobs SET size = size + 1 WHERE hash = ?", (executable,))
        (Path(db.filename).parent / "blobs" / large.partition(":")[2]).write_bytes(b"cut off")

    done, db = rescued(world, tmp_path, damage)
    assert blobs(db) == blobs(world.db) - {names[executable], names[link], names[large]}
    assert done.blobs_lost == 3 and {executable, link, large} <= reviewed and done.lost_from is None
    db.close()


def test_what_stands_only_in_the_log_beside_the_file_comes_back(world: World, tmp_path: Path) -> None:
    world.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    world.task("t")
    shutil.copytree(world.state_dir.path, tmp_path / "state")
    (tmp_path / "copies").mkdir()
    wreck = salvage.Wreck(tmp_path / "copies", tmp_path / "state" / world.state_dir.database.name, None)
    db = open_writer(tmp_path / "fresh.sqlite3", warm=False)
    assert salvage.rescue(db, wreck, "nothing", {}, AT).last_seq == world.ledger.seq
    wreck.close()
    assert state(db) == world.rows()
    db.close()


def test_what_only_a_lease_needs_is_no_loss_of_a_review(world: World, tmp_path: Path) -> None:
    world.write("a", "one\n")
    world.acquire("ann", "a")
    done, db = rescued(world, tmp_path, lambda db: db.execute("DELETE FROM blobs"))
    assert done.blobs_lost == 0 and blobs(db) == set() and state(db) == world.rows()
    db.close()


@pytest.mark.parametrize(("damage", "lost"), [
    ("DELETE FROM events WHERE seq = 4", True),
    ("DELETE FROM events WHERE seq >= 4", False),
    ("UPDATE events SET agent = 'eve' WHERE seq = 4", True),
    ("UPDATE events SET kind = 'noted' WHERE seq = 4", True),
    ("UPDATE events SET resource = 'x' WHERE seq = 4", True),
    ("UPDATE events SET task = 'x' WHERE seq = 4", True),
    *((f"{OPEN_TO_ALL}; UPDATE events SET {column} = {value} WHERE seq = 4", True)
      for column in ("at", "kind", "data") for value in ("NULL", "5", "x'00'")),
    ("UPDATE events SET at = 'yesterday' WHERE seq = 4", True),
    ("UPDATE events SET data = '{' WHERE seq = 4", True),
    ("UPDATE events SET data = '[]' WHERE seq = 4", True),
    ("UPDATE events SET data = replace(data, 'T-1', 'T-9') WHERE seq = 4", True),
])
def test_only_events_without_a_gap_are_taken(world: World, tmp_path: Path, damage: str, lost: bool) -> None:
    for n in range(1, 4):
        world.task(f"t{n}", f"f{n}")
    world.task("last")
    then = [row[0] for row in world.db.execute("SELECT at FROM events ORDER BY seq")]
    seq = world.ledger.seq
    task = int(str(world.db.execute("SELECT seq FROM events WHERE kind = 'task_added' AND task = 'T-3'").get))
    done, db = rescued(world, tmp_path, lambda db: db.execute(damage.replace("seq = 4", f"seq = {task}").replace("seq >= 4", f"seq >= {task}")
                                                             .replace("T-1", "T-3")))
    assert (done.last_seq, done.events, done.last_at) == (task - 1, task - 1, then[task - 2])
    assert (done.lost_from, done.lost_to) == ((task, seq) if lost else (None, None))
    assert [row[0] for row in db.execute("SELECT task_id FROM tasks ORDER BY n")] == ["T-1", "T-2"]
    assert done.counters["task"] == 4 + STEP, "what the damaged file says of it counts"
    assert db.execute("SELECT max(seq) FROM events").get == (seq if lost else task - 1) + 1
    assert db.execute("SELECT count(*) FROM ready_tasks").get == 2
    db.close()


@pytest.mark.parametrize("gap", [False, True])
def test_a_snapshot_is_gone_on_from_only_where_the_log_does_not_reach(world: World, tmp_path: Path, gap: bool) -> None:
    world.task("t1")
    backup(world.db, tmp_path / "base.sqlite3", 1)
    base_seq = world.ledger.seq
    world.task("t2")
    from coordinator.store import rebuild
    seq = world.ledger.seq
    body = rebuild.snapshot(world.db, seq)
    world.task("t3")

    def damage(db: Any) -> None:
        db.execute("INSERT INTO snapshots VALUES (?, ?, ?)", (seq, "then", body))
        if gap:
            db.execute("DELETE FROM events WHERE seq = ?", (seq,))

    done, db = rescued(world, tmp_path, damage, base=tmp_path / "base.sqlite3")
    assert (done.base, done.base_seq) == (("snapshot", seq) if gap else ("base.sqlite3", base_seq))
    assert (done.events, done.last_seq, done.lost_from) == (1 if gap else 2, seq + 1, None)
    assert state(db) == world.rows()
    assert db.execute("SELECT seq, at, state FROM snapshots").fetchall() == ([(seq, AT, body)] if gap else [])
    db.close()


def test_nothing_at_all_can_be_had_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "copies").mkdir()
    for name, data in (("absent", None), ("empty", b""), ("noise", b"x" * 9000)):
        place = tmp_path / name
        if data is not None:
            place.write_bytes(data)
        folder = tmp_path / f"{name} copies"
        folder.mkdir()
        wreck = salvage.Wreck(folder, place, None)
        assert (wreck.snapshot(), wreck.counter("task"), wreck.blob("sha256:x"), wreck.beyond(0)) == (None, 0, None, None)
        assert list(wreck.events(0)) == []
        db = open_writer(tmp_path / f"{name} fresh.sqlite3", warm=False)
        done = salvage.rescue(db, wreck, "nothing", {"review": 3}, AT)
        wreck.close()
        assert (done.base, done.base_seq, done.last_seq, done.lost_to) == ("nothing", 0, 0, None)
        assert done.counters == dict.fromkeys(("fencing", "waiter", "task", "notice", "unlock", "commit", "change", "step", "work", "verification", "message"), STEP) | {"review": 3 + STEP}
        db.close()
