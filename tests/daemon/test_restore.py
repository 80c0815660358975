"""`coord doctor --restore`: what can be had comes back, what is told is so, no number comes twice."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator.store import salvage
from coordinator.store.database import backup, in_memory, open_writer
from coordinator.store.rebuild import differences, rebuild, state
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from tests.conftest import Repo
from tests.waiting import until
from tests.world import World

NOISE = random.Random(7)


def noise(path: Path, *, first: int = 0, pages: int | None = None) -> None:
    """Overwrite pages (4 KiB) from `first` on."""
    size = path.stat().st_size // 4096
    with path.open("r+b") as file:
        for page in range(first, size if pages is None else min(size, first + pages)):
            file.seek(page * 4096)
            file.write(NOISE.randbytes(4096))


def truncated(repo: Repo) -> None:
    """Bring all into the database's file, and leave no log beside it."""
    db = apsw.Connection(str(repo.state.database))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()


def no_backups(repo: Repo) -> None:
    for copy in repo.state.path.glob("backup*"):
        copy.unlink()


def restored(repo: Repo) -> dict[str, Any]:
    done = repo.coord("doctor", "--restore", "--json")
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.fixture
def given_four(repo: Repo) -> tuple[list[int], list[str]]:
    """daemon-C4: four locks in a fresh repository; their tokens, and the secret ones."""
    with repo.client("ann") as ann:
        leases = [ann.acquire(f"f{i}").leases[0] for i in range(4)]
        ann.call(rq.TaskAdd(title="what is to be done"))
    repo.down()
    return [x.fencing_token for x in leases], [str(x.lease_token) for x in leases]


def test_tokens_go_on_above_all_that_were_given(repo: Repo, given_four: tuple[list[int], list[str]]) -> None:
    tokens, secrets = given_four
    truncated(repo)
    noise(repo.state.database)
    assert repo.coord("locks").returncode == 9
    done = repo.coord("doctor", "--restore")
    assert done.returncode == 0, done.stderr
    with repo.client("bob") as bob:
        assert [x.resource for x in bob.call(rq.Locks()).items] == ["f0", "f1", "f2", "f3"], "a copy had been made at the end"
        lease = bob.acquire("g").leases[0]
        assert lease.fencing_token > max(tokens) + 100_000
        assert lease.lease_token not in secrets
        task = bob.call(rq.TaskAdd(title="next")).task
        assert int(task[2:]) > 1000
        assert repo.client().call(rq.Replay()).equal
    said = re.search(r"Fencing tokens go on from (\d+)", done.stdout)
    assert said is not None and lease.fencing_token >= int(said[1])


def test_an_old_lease_token_is_worth_nothing(repo: Repo, given_four: tuple[list[int], list[str]]) -> None:
    _, secrets = given_four
    noise(repo.state.database)
    restored(repo)
    with repo.client("ann") as ann, pytest.raises(Refusal) as met:
        ann.call(rq.Release(agent="ann", resources=["f0"], lease_token=secrets[0]))
    assert met.value.code.value == "STALE_TOKEN"


@pytest.mark.parametrize("kept", ["nothing", "noise in the pages", "a torn log"])
def test_without_any_backup_the_log_is_read(repo: Repo, given_four: tuple[list[int], list[str]], kept: str) -> None:
    tokens, _ = given_four
    no_backups(repo)
    if kept == "nothing":
        truncated(repo)
        noise(repo.state.database)
        done = repo.coord("doctor", "--restore")
        assert done.returncode == 9 and "nothing can be read" in done.stderr and "nothing was changed" in done.stderr
        assert repo.state.database.exists()
        return
    if kept == "noise in the pages":
        truncated(repo)
        noise(repo.state.database, first=0, pages=1)  # where all else is said to be
    else:
        log = repo.state.database.with_name("coord.sqlite3-wal")
        noise(repo.state.database, first=1)
        with log.open("r+b") as file:
            file.truncate(log.stat().st_size * 2 // 3)
    told = restored(repo)
    assert told["base"] == "nothing" and told["events"] == told["last_seq"] > 0
    with repo.client("bob") as bob:
        assert bob.acquire("g").leases[0].fencing_token > max(tokens) + 100_000
        assert repo.client().call(rq.Replay()).equal
        if kept == "noise in the pages":
            assert len(bob.call(rq.Locks()).items) == 5 and bob.call(rq.TaskShow(task="T-1")).title == "what is to be done"
            assert told["lost_from"] is None


def test_what_happened_after_the_backup_comes_back(repo: Repo) -> None:
    with repo.client("ann") as ann:
        ann.acquire("before.py")
        until(lambda: repo.state.backup.exists(), 20)
        old = repo.state.backup.read_bytes()
        ann.acquire("after.py")
        task = ann.call(rq.TaskAdd(title="after")).task
        token = ann.acquire("last.py").leases[0].fencing_token
    repo.down()
    no_backups(repo)
    repo.state.backup.write_bytes(old)
    repo.state.backup.chmod(0o600)
    truncated(repo)
    noise(repo.state.database, first=0, pages=1)
    told = restored(repo)
    assert told["base"] == "backup.sqlite3" and told["events"] >= 3 and told["lost_from"] is None
    with repo.client("bob") as bob:
        assert {x.resource for x in bob.call(rq.Locks()).items} == {"before.py", "after.py", "last.py"}
        assert bob.call(rq.TaskShow(task=task)).title == "after"
        assert bob.acquire("g").leases[0].fencing_token > token + 100_000


def test_a_whole_database_loses_nothing(repo: Repo, given_four: tuple[list[int], list[str]]) -> None:
    told = restored(repo)
    assert told["lost_from"] is None
    with repo.client() as client:
        assert len(client.call(rq.Locks()).items) == 4


def test_it_is_not_done_under_a_running_daemon(repo: Repo) -> None:
    repo.coord("up")
    done = repo.coord("doctor", "--restore")
    assert done.returncode == 8 and "running already" in done.stderr


def test_a_first_backup_follows_the_first_writes(repo: Repo) -> None:
    """Within seconds, while the daemon runs; and again after more."""
    def has(title: str) -> bool:
        if not repo.state.backup.exists():
            return False
        db = apsw.Connection(str(repo.state.backup), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return bool(db.execute("SELECT 1 FROM tasks WHERE title = ?", (title,)).get)
        finally:
            db.close()

    with repo.client() as client:
        client.call(rq.TaskAdd(title="one"))
        until(lambda: has("one"), 10)
        client.call(rq.TaskAdd(title="two"))
        until(lambda: has("two"), 25)


# ------------------------------------------------------------ noise anywhere


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


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
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
