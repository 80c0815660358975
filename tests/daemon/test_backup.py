"""The rolling backup: made at the start, whole, and restored with tokens that go on rising."""

from __future__ import annotations

import apsw

from coordinator.store.database import backup, integrity
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.waiting import until
from tests.world import World


def test_copies_roll_and_are_whole(world: World) -> None:
    for i in range(4):
        world.acquire("ann", f"f{i}.py")
        backup(world.db, world.state_dir.backup, 3)
    names = sorted(p.name for p in world.state_dir.path.glob("backup*"))
    assert names == ["backup.sqlite3", "backup.sqlite3.1", "backup.sqlite3.2"]
    counts = []
    for name in names:
        db = apsw.Connection(str(world.state_dir.path / name), flags=apsw.SQLITE_OPEN_READONLY)
        assert integrity(db) == "ok"
        counts.append(db.execute("SELECT count(*) FROM file_locks").get)
    assert counts == [4, 3, 2]


def test_a_daemon_makes_one_at_its_start(repo: Repo) -> None:
    repo.client("ann").call(rq.TaskAdd(title="t"))
    until(lambda: repo.state.backup.exists())
    assert repo.state.backup.stat().st_mode & 0o77 == 0
