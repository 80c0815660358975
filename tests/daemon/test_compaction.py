"""Compaction of a long log: the space is given back, nobody waits for it, a crash harms nothing."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import apsw
import msgspec
import pytest

from coordinator.kernel import compaction
from coordinator.store import events as ev
from coordinator.store.database import WAL_KEPT_BYTES
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo
from tests.waiting import until
from tests.world import World

EVENTS = 60_000
#: So often another agent writes meanwhile: without a bound, a quick one fills what was given back.
ROUNDS = 300


def connected(repo: Repo) -> apsw.Connection:
    return apsw.Connection(str(repo.state.database))


def number(repo: Repo, sql: str) -> int:
    db = connected(repo)
    try:
        return int(str(db.execute(sql).get))
    finally:
        db.close()


@pytest.fixture
def long_log(repo: Repo) -> Repo:
    """A daemon whose log has many old events, and whose state is in a few of them."""
    with repo.client("ann") as ann:
        ann.acquire("kept.py", "key:k", ttl=3600)
        task = ann.call(rq.TaskAdd(title="kept")).task
    with repo.client() as client:
        client.call(rq.TaskCancel(task=task))  # an open one would keep the log
    repo.down()
    db = connected(repo)
    first = int(str(db.execute("SELECT max(seq) FROM events").get)) + 1
    text = msgspec.json.encode(ev.Noted(what="long ago " + "x" * 200, facts={})).decode()
    with db:
        db.executemany("INSERT INTO events VALUES (?, '2020-01-01T00:00:00.000Z', 'noted', NULL, NULL, NULL, ?)",
                       ((first + i, text) for i in range(EVENTS)))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()
    repo.coord("up")
    return repo


def whole(repo: Repo) -> None:
    with repo.client() as client:
        assert client.call(rq.Health(integrity=True)).integrity == "ok"
        told = client.call(rq.Replay())
        assert told.equal, told.differences
        assert {x.resource for x in client.call(rq.Locks()).items} >= {"kept.py", "key:k"}


def ask(repo: Repo, codes: list[Code]) -> None:
    """Compact, until the daemon goes."""
    try:
        repo.client(autostart=False).call(rq.Compact(keep_days=1))
    except Refusal as refusal:
        codes.append(refusal.code)


def test_the_space_is_given_back_and_others_are_served_meanwhile(long_log: Repo) -> None:
    repo, file = long_log, long_log.state.database
    before = file.stat().st_size
    assert before > EVENTS * 200
    done: list[rq.Compacted] = []
    asker = threading.Thread(target=lambda: done.append(repo.client().call(rq.Compact(keep_days=1))))
    asker.start()
    served = 0
    with repo.client("bob") as bob:
        while asker.is_alive():
            if served < ROUNDS:
                bob.acquire("hot.py")
                bob.release("hot.py")
            else:
                bob.call(rq.Locks())
            served += 1
        asker.join()
        assert done[0].events_removed >= EVENTS and done[0].bytes_freed > before * 0.8
        assert served > 20, "a step is over before anybody notices"

        def shrunk() -> bool:
            bob.acquire("hot.py")  # what is committed comes into the file in time
            bob.release("hot.py")
            return file.stat().st_size < before / 5

        until(shrunk)
    assert file.with_name("coord.sqlite3-wal").stat().st_size <= WAL_KEPT_BYTES
    whole(repo)
    repo.coord("down")
    repo.coord("up")
    whole(repo)
    assert repo.coord("compact").stdout.startswith("0 events and 0 blobs were removed")


def test_a_crash_between_two_steps_loses_nothing(long_log: Repo) -> None:
    repo = long_log
    codes: list[Code] = []
    asker = threading.Thread(target=ask, args=(repo, codes))
    asker.start()
    until(lambda: 0 < number(repo, "SELECT count(*) FROM events") < EVENTS)
    os.kill(repo.pid(), signal.SIGKILL)
    asker.join()
    assert codes == [Code.DAEMON_DOWN]
    assert number(repo, "SELECT count(*) FROM events") > 0
    whole(repo)
    with repo.client() as client:
        assert client.call(rq.Compact(keep_days=1)).events_removed > 0
        assert client.call(rq.Compact(keep_days=1)).events_removed == 0
    whole(repo)


def test_down_does_not_wait_for_it(long_log: Repo) -> None:
    repo = long_log
    asker = threading.Thread(target=ask, args=(repo, []))
    asker.start()
    until(lambda: number(repo, "SELECT count(*) FROM events") < EVENTS)
    assert repo.coord("down").stdout == "The coordinator has stopped.\n"
    asker.join()
    whole(repo)


def test_only_people_compact(repo: Repo) -> None:
    ann = repo.client("ann")
    ann.register()
    with pytest.raises(Refusal) as met:
        ann.call(rq.Compact())
    assert met.value.code is Code.UNAUTHORIZED


def test_a_database_of_an_older_version_learns_to_shrink(repo: Repo) -> None:
    assert repo.coord("lock", "a.py", "--agent", "ann").returncode == 0
    assert number(repo, "PRAGMA auto_vacuum") == 2
    repo.coord("down")
    db = connected(repo)
    db.execute("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM").fetchall()
    db.close()
    assert number(repo, "PRAGMA auto_vacuum") == 0
    assert "a.py" in repo.coord("locks").stdout
    assert number(repo, "PRAGMA auto_vacuum") == 2


def test_bytes_that_are_kept_meanwhile_stay(world: World, tmp_path: Path) -> None:
    """Found useless, and then wanted again before they were removed."""
    world.ledger.run(lambda tx: tx.keep("sha256:one", b"1"), 1)
    world.ledger.run(lambda tx: tx.keep("sha256:two", b"2"), 1)
    world.ledger.kept = kept = set[str]()
    found = world.view().values("blobs_unreferenced")
    assert sorted(found) == ["sha256:one", "sha256:two"]
    world.ledger.run(lambda tx: tx.keep("sha256:two", b"2"), 1)
    assert world.ledger.run(lambda tx: compaction.remove_blobs(tx, found, kept), 1) == 1
    assert world.view().blob("sha256:two") == b"2" and world.view().blob("sha256:one") is None
