"""`coord doctor --restore`: what can be had comes back, what is told is so, no number comes twice."""

from __future__ import annotations

import json
import os
import random
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from tests.conftest import Repo
from tests.waiting import until

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


@pytest.mark.parametrize("how", ["its log is gone", "an older one"])
def test_nor_is_one_taken_that_knows_less_than_its_copy(repo: Repo, how: str) -> None:
    with repo.client("ann") as ann:
        ann.health()
        older = repo.state.database.read_bytes()
        ann.acquire("f0")
        until(lambda: repo.state.backup.exists(), 20)
    os.kill(repo.pid(), signal.SIGKILL)
    if how == "an older one":
        repo.state.database.write_bytes(older)
    for part in ("-wal", "-shm"):
        repo.state.database.with_name(f"coord.sqlite3{part}").unlink()
    done = repo.coord("lock", "f0", "--agent", "bob")
    assert done.returncode == 9 and ("has lost what happened last" in done.stderr or "is empty" in done.stderr), done
    assert repo.coord("doctor", "--restore").returncode == 0
    with repo.client("bob") as bob:
        assert [x.locked_by for x in bob.call(rq.Locks()).items] == ["ann"]


@pytest.mark.parametrize("how", ["gone", "empty"])
def test_nothing_is_begun_anew_where_a_copy_tells_of_what_was_there(repo: Repo, given_four: tuple[list[int], list[str]], how: str) -> None:
    if how == "gone":
        repo.state.database.unlink()
    else:
        repo.state.database.write_bytes(b"")
    kept = repo.state.backup.read_bytes()
    for words in (["lock", "f0", "--agent", "bob"], ["up"], ["status"]):
        done = repo.coord(*words)
        assert done.returncode == 9 and f"coord.sqlite3 is {how}," in done.stderr and "doctor --restore" in done.stderr, done
    assert how in repo.coord("doctor").stdout
    assert repo.state.backup.read_bytes() == kept, "no copy is made of nothing"
    done = repo.coord("doctor", "--restore")
    assert done.returncode == 0 and ("there was none any more" in done.stdout) is (how == "gone"), done
    with repo.client("bob") as bob:
        assert [x.locked_by for x in bob.call(rq.Locks()).items] == ["ann"] * 4
        assert bob.call(rq.TaskShow(task="T-1")).title == "what is to be done"
        assert bob.acquire("g").leases[0].fencing_token > max(given_four[0]) + 100_000


@pytest.mark.parametrize("how", ["gone", "empty"])
def test_nor_where_only_an_older_copy_tells_of_it(repo: Repo, given_four: tuple[list[int], list[str]], how: str) -> None:
    repo.state.backup.rename(repo.state.backup.with_name("backup.sqlite3.1"))
    for left in repo.state.path.glob("coord.sqlite3*"):
        left.unlink()
    if how == "empty":
        repo.state.database.touch(0o600)
    done = repo.coord("lock", "f0", "--agent", "bob")
    assert done.returncode == 9 and f"coord.sqlite3 is {how}, but backup.sqlite3.1 beside it" in done.stderr, done
    assert repo.coord("doctor", "--restore").returncode == 0
    with repo.client("bob") as bob:
        assert [x.locked_by for x in bob.call(rq.Locks()).items] == ["ann"] * 4


def test_nor_where_it_is_lost_again_before_a_new_copy_is_made(repo: Repo, given_four: tuple[list[int], list[str]]) -> None:
    """The copies are its own still, though its secret is a new one since."""
    for _ in range(2):
        for left in repo.state.path.glob("coord.sqlite3*"):
            left.unlink()
        assert repo.coord("lock", "f0", "--agent", "bob").returncode == 9
        assert repo.coord("doctor", "--restore").returncode == 0
    with repo.client("bob") as bob:
        assert [x.locked_by for x in bob.call(rq.Locks()).items] == ["ann"] * 4


@pytest.mark.parametrize("copy", ["none", "noise", "another's"])
def test_without_a_copy_of_its_own_it_begins_with_nothing(repo: Repo, make_repo: Callable[..., Repo], given_four: tuple[list[int], list[str]], copy: str) -> None:
    no_backups(repo)
    if copy == "noise":
        repo.state.backup.write_bytes(NOISE.randbytes(40_960))
    elif copy == "another's":
        other = make_repo("other")
        with other.client("cyd") as cyd:
            cyd.acquire("theirs")
        other.down()
        repo.state.backup.write_bytes(other.state.backup.read_bytes())
        repo.state.backup.chmod(0o600)
    repo.state.database.unlink()
    with repo.client("bob") as bob:
        assert bob.acquire("f0").leases[0].fencing_token > max(given_four[0])


def test_it_is_not_done_under_a_running_daemon(repo: Repo) -> None:
    repo.coord("up")
    done = repo.coord("doctor", "--restore")
    assert done.returncode == 8 and "running already" in done.stderr


@pytest.mark.slow
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
