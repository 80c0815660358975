"""The daemon makes waypoints beside its work, and a question about the past begins with them."""

from __future__ import annotations

import apsw
import msgspec
import pytest

from coordinator.daemon.waypoints import APART
from coordinator.store import events as ev
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.waiting import until


@pytest.fixture
def long_log(repo: Repo) -> Repo:
    with repo.client("ann") as ann:
        ann.acquire("kept.py", ttl=3600)
    repo.down()
    db = apsw.Connection(str(repo.state.database))
    first, at = db.execute("SELECT seq + 1, at FROM events ORDER BY seq DESC LIMIT 1").fetchall()[0]
    noted = msgspec.json.encode(ev.Noted(what="x", facts={})).decode()
    with db:
        db.executemany("INSERT INTO events VALUES (?, ?, 'noted', NULL, NULL, NULL, ?)",
                       ((seq, at, noted) for seq in range(int(str(first)), 3 * APART)))
    db.close()
    return repo


def waypoints(repo: Repo) -> list[int]:
    db = apsw.Connection(str(repo.state.database))
    try:
        return [int(str(seq)) for (seq,) in db.execute("SELECT seq FROM waypoints ORDER BY seq")]
    finally:
        db.close()


def test_the_daemon_makes_the_waypoints_that_are_missing(long_log: Repo) -> None:
    long_log.coord("up")
    until(lambda: waypoints(long_log) == [APART, 2 * APART], seconds=60)
    with long_log.client() as client:
        assert [lease.resource for lease in client.call(rq.Moment(event=2 * APART + 7)).state.leases] == ["kept.py"]
    assert long_log.coord("replay").returncode == 0, "what checks the log does not lean on them"
