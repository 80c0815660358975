"""The ground is taken away from under a running daemon: it ends in words, and nobody holds twice."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest

from coordinator import _command
from coordinator.client.client import Client
from coordinator.client.locating import connect
from coordinator.client.starting import start
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo
from tests.waiting import gone, until

Loss = Callable[[Repo], None]


def clean(repo: Repo) -> None:
    subprocess.run(["git", "clean", "-fdxq"], cwd=repo.root, check=True)


def whole(repo: Repo) -> None:
    subprocess.run(["rm", "-rf", repo.state.path], check=True)  # beside a daemon that removes its own


def state_renamed(repo: Repo) -> None:
    repo.state.path.rename(repo.root / "elsewhere")


def only_socket(repo: Repo) -> None:
    repo.state.socket().unlink()


def socket_replaced(repo: Repo) -> None:
    repo.state.socket().unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(repo.state.socket()))


def only_lock(repo: Repo) -> None:
    repo.state.lock.unlink()


def lock_replaced(repo: Repo) -> None:
    repo.state.lock.unlink()
    repo.state.lock.write_text("1")


def lock_and_socket(repo: Repo) -> None:
    repo.state.lock.unlink()
    repo.state.socket().unlink()


def database(repo: Repo) -> None:
    """And its copies: beside one nothing is begun anew (test_restore.py)."""
    repo.state.database.unlink()
    for copy in repo.state.path.glob("backup*"):
        copy.unlink()


def emptied(repo: Repo) -> None:
    repo.state.database.write_bytes(b"")
    for copy in repo.state.path.glob("backup*"):
        copy.unlink()


def log(repo: Repo) -> None:
    repo.state.database.with_name("coord.sqlite3-wal").unlink()


LOSSES: list[Loss] = [clean, whole, state_renamed, only_socket, socket_replaced, only_lock, lock_replaced, lock_and_socket, database, emptied, log]
losses = pytest.mark.parametrize("lose", LOSSES, ids=lambda one: one.__name__)


def refusal_of(ask: Callable[[], object]) -> Refusal:
    with pytest.raises(Refusal) as met:
        ask()
    return met.value


@losses
def test_it_ends_by_itself_and_says_why(repo: Repo, lose: Loss) -> None:
    repo.coord("up")
    pid = repo.pid()
    log = repo.state.log.open()  # it may be about to be removed
    lose(repo)
    until(lambda: gone(pid))
    assert "stopping: I" in log.read(), "Its …, by name"


@losses
def test_never_two_holders_and_never_one_token_twice(repo: Repo, lose: Loss) -> None:
    """A client that stays connected to the old daemon, and others who start a new one."""
    one, two = repo.client("one"), Client(repo.root, agent="two")
    first = one.acquire("f", "key:other").leases
    old = repo.pid()
    os.kill(old, signal.SIGSTOP)  # whatever it is about to do, it does after the new one
    held = one._wire._link
    assert held is not None and held._sock is not None
    if lose in (only_socket, socket_replaced):
        held.close()  # it may serve the connected for a moment: no other daemon can hold anything yet
    else:
        held._sock.sendall(b'{"id":90,"op":"acquire","token":"%s","params":{"agent":"one","resources":["g"]}}\n'
                       b'{"id":91,"op":"locks"}\n' % str(one.token).encode())
    lose(repo)
    if lose in (clean, whole, state_renamed, lock_and_socket):  # else it is still in the way
        got = two.acquire("g").leases[0]
        assert got.locked_by == "two" and got.fencing_token > max(x.fencing_token for x in first)
    os.kill(old, signal.SIGCONT)
    for line in (held._file.readline(), held._file.readline()) if held._sock else ():
        assert b'"error"' in line and b"SHUTTING_DOWN" in line, line
    until(lambda: gone(old))
    tokens = [x.fencing_token for x in first]
    with repo.client("cyd") as cyd:
        for client, resource in ((two, "g"), (cyd, "f2")):
            tokens.append(client.acquire(resource, reentrant=True).leases[0].fencing_token)
    assert len(set(tokens)) == len(tokens)
    with repo.client() as client:
        assert {x.resource: x.locked_by for x in client.call(rq.Locks()).items}["g"] == "two"


@losses
def test_down_and_the_next_command_work(repo: Repo, lose: Loss) -> None:
    assert repo.coord("lock", "f", "--agent", "one").returncode == 0
    old = repo.pid()
    lose(repo)
    done = repo.coord("down")
    assert done.returncode == 0, done.stderr
    again = repo.coord("lock", "g", "--agent", "two")
    assert again.returncode == 0, again.stderr
    until(lambda: gone(old))
    assert repo.pid() != old
    assert repo.coord("down").stdout == "The coordinator has stopped.\n"


@pytest.mark.parametrize(("lose", "quick"), [
    *((one, False) for one in LOSSES),
    *(pytest.param(one, True, marks=[pytest.mark.slow] if one not in (clean, only_socket) else []) for one in LOSSES)])
def test_the_next_command_alone_works(repo: Repo, lose: Loss, quick: bool) -> None:
    """Whether it meets the old coordinator before, or in the middle of, the end of it."""
    assert repo.coord("lock", "f", "--agent", "one").returncode == 0
    lose(repo)
    words = ["lock", "g", "--agent", "two"]
    again = (subprocess.run([sys.executable, "-I", "-S", _command.__file__, *words], cwd=repo.root, text=True, capture_output=True, timeout=60)
             if quick else repo.coord(*words))
    assert again.returncode == 0 and again.stdout.count("two") == 1, again
    assert repo.coord("down").stdout == "The coordinator has stopped.\n"


def test_what_is_on_disk_stays_where_only_lock_or_socket_went(repo: Repo) -> None:
    with repo.client("one") as one:
        for lose in (only_socket, only_lock, lock_and_socket):
            one.acquire("f", reentrant=True)
            old = repo.pid()
            lose(repo)
            until(lambda old=old: gone(old))  # type: ignore[misc]
            assert [x.locked_by for x in repo.client().call(rq.Locks()).items] == ["one"]
            one.acquire("f", reentrant=True)


def test_the_later_daemons_socket_outlives_the_older_one(repo: Repo) -> None:
    repo.coord("up")
    old = repo.pid()
    os.kill(old, signal.SIGSTOP)
    clean(repo)
    start(repo.state)
    new = repo.pid()
    os.kill(old, signal.SIGCONT)
    until(lambda: gone(old))
    assert repo.state.socket().exists() and repo.client(autostart=False).call(rq.Health()).pid == new != old


def test_a_root_that_is_gone_takes_its_daemon_along(make_repo: Callable[..., Repo]) -> None:
    for move in (False, True):
        repo = make_repo(f"r{move}")
        repo.coord("up")
        pid = repo.pid()
        if move:
            repo.root.rename(repo.root.with_name("elsewhere"))
        else:
            subprocess.run(["rm", "-rf", repo.root], check=True)
        until(lambda pid=pid: gone(pid))  # type: ignore[misc]
        assert not repo.root.exists(), "nothing of it came back"


def test_a_renamed_root_goes_on_at_its_new_place(make_repo: Callable[..., Repo]) -> None:
    """It ends; the next command there starts a new one, which has all that there was."""
    repo = make_repo("here")
    one = repo.client("one")
    token = one.acquire("f").leases[0].fencing_token
    pid = repo.pid()
    repo.root.rename(repo.root.with_name("there"))
    until(lambda: gone(pid))
    moved = Repo(repo.root.with_name("there"))
    try:
        assert [x.fencing_token for x in moved.client().call(rq.Locks()).items] == [token]
        assert moved.client("two").acquire("g").leases[0].fencing_token > token
    finally:
        moved.down()


def test_a_held_answer_is_no_grant_after_the_ground_is_gone(repo: Repo) -> None:
    """A waiter that would have been granted."""
    one, two = repo.client("one"), repo.client("two")
    one.acquire("f")
    two.register()
    link = two._wire._link
    assert link is not None and link._sock is not None
    link._sock.sendall(b'{"id":7,"op":"acquire","token":"%s","params":{"agent":"two","resources":["f"],"wait_s":60}}\n'
                       % str(two.token).encode())
    until(lambda: one.call(rq.Locks()).waiters)
    clean(repo)
    assert refusal_of(lambda: one.release("f")).code is Code.UNAUTHORIZED, "of the next one"
    assert b'"error"' in link._file.readline()


def test_the_lock_of_a_daemon_that_hangs_is_waited_for_in_words(repo: Repo) -> None:
    repo.coord("up")
    pid = repo.pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        done = repo.coord("serve")
        assert done.returncode == 8 and str(pid) in done.stderr
    finally:
        os.kill(pid, signal.SIGCONT)
    link = connect(repo.state)
    assert link is not None
    link.close()
