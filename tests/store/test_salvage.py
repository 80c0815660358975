"""Salvage: whatever pages are damaged, what comes back is a state that once was, and no number comes
twice."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator.store import salvage
from coordinator.store.database import backup, in_memory, open_writer
from coordinator.store.rebuild import differences, rebuild, state
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from tests.effort import examples
from tests.world import World


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], tuple[Path, Path, int, int]]:
    """(a database with a long log, a backup from the middle of it, its last event, the backup's)."""
    folder = tmp_path_factory.mktemp("story")
    world = World(folder / "w")
    chance = random.Random(3)
    for i in range(220):
        agent, name = f"a{chance.randrange(4)}", f"d{chance.randrange(5)}/f{chance.randrange(9)}.py"
        try:
            if chance.random() < 0.5:
                world.acquire(agent, name, description="x" * chance.randrange(300))
            elif chance.random() < 0.5:
                world.task(f"t{i}", name, prompt="p" * chance.randrange(900))
            else:
                world.ask(rq.TaskClaim(agent=agent))
        except Refusal:
            pass
        world.clock.advance(1000)
        if i == 90:
            backup(world.db, folder / "backup.sqlite3", 1)
    last = int(str(world.db.execute("SELECT max(seq) FROM events").get))
    world.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    shutil.copy(world.state_dir.database, folder / "whole.sqlite3")
    world.close()
    old = apsw.Connection(str(folder / "backup.sqlite3"))
    middle = int(str(old.execute("SELECT max(seq) FROM events").get))
    old.close()
    return lambda: (folder / "whole.sqlite3", folder / "backup.sqlite3", last, middle)


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(spots=st.lists(st.tuples(st.floats(0, 1), st.integers(64, 9000)), max_size=6), with_backup=st.booleans(),
       cut=st.floats(0.3, 1), seed=st.integers(0, 2**32))
def test_whatever_is_damaged_a_state_that_once_was_comes_back(
    story: Callable[[], tuple[Path, Path, int, int]], tmp_path_factory: pytest.TempPathFactory, spots: list[tuple[float, int]],
    with_backup: bool, cut: float, seed: int,
) -> None:
    whole, kept, last, middle = story()
    folder = tmp_path_factory.mktemp("wreck")
    damaged = folder / "coord.sqlite3"
    raw = bytearray(whole.read_bytes())
    for place, length in spots:
        at = int(place * (len(raw) - length))
        raw[at : at + length] = random.Random(seed + at).randbytes(length)
    damaged.write_bytes(raw[: int(len(raw) * cut)] if seed % 2 else raw)
    fresh = folder / "fresh.sqlite3"
    pattern = kept
    if with_backup:
        shutil.copy(kept, fresh)
    else:
        pattern = folder / "pattern.sqlite3"
        open_writer(pattern).close()
    (folder / "copies").mkdir()
    wreck = salvage.Wreck(folder / "copies", damaged, pattern)
    db = open_writer(fresh)
    done = salvage.rescue(db, wreck, "backup" if with_backup else "nothing", {"fencing": 5}, "2026-01-01T00:00:00.000Z")
    wreck.close()
    assert done.last_seq >= (middle if with_backup else 0)
    truth = apsw.Connection(str(whole), flags=apsw.SQLITE_OPEN_READONLY)
    then, _ = rebuild(truth, done.last_seq) if done.last_seq else (in_memory(), 0)
    assert state(db) == state(then), "a state that once was, whole"
    if not spots and not seed % 2:
        assert done.last_seq == last and done.lost_from is None
    if done.lost_from is not None:
        assert done.lost_from == done.last_seq + 1 and done.last_seq < (done.lost_to or 0) <= last
    given_ever = {str(name): int(str(value)) for name, value in truth.execute("SELECT name, value FROM counters")}
    assert all(done.counters[name] > value for name, value in given_ever.items())
    db.close()
    truth.close()


def test_a_snapshot_in_the_damaged_file_is_gone_on_from(world: World, tmp_path: Path) -> None:
    """The log was compacted after the backup."""
    world.acquire("ann", "a.py")
    backup(world.db, tmp_path / "backup.sqlite3", 1)
    world.acquire("ann", "b.py")
    world.clock.advance(90 * 86_400_000)
    world.ask(rq.Sweep())
    assert world.ask(rq.Compact(keep_days=1)).events_removed
    world.acquire("bob", "c.py")
    world.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    (tmp_path / "copies").mkdir()
    wreck = salvage.Wreck(tmp_path / "copies", world.state_dir.database, tmp_path / "backup.sqlite3")
    db = open_writer(tmp_path / "backup.sqlite3")
    done = salvage.rescue(db, wreck, "backup", {}, "2026-01-01T00:00:00.000Z")
    wreck.close()
    assert done.base == "snapshot" and done.lost_from is None
    assert state(db) == world.rows()
    assert differences(db)[1] == []
    db.close()
