"""The daemon as a process: starting, stopping, dying, and all the places it must work from."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

import coordinator._hook as hook_file
from coordinator.client.client import Client
from coordinator.client.locating import connect
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import BARE, Repo
from tests.waiting import gone, until

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("from_nothing")
def test_it_starts_by_itself_serves_and_stops(repo: Repo) -> None:
    done = repo.coord("lock", "a.py", "--agent", "ann")
    assert done.returncode == 0 and "a.py" in done.stdout
    assert "starting the coordinator" in done.stderr
    pid = repo.pid()
    up = repo.coord("up")
    assert "running already" in up.stdout and str(pid) in up.stdout
    second = repo.coord("serve")
    assert second.returncode == 8 and str(pid) in second.stderr
    assert repo.coord("down").stdout == "The coordinator has stopped.\n"
    until(lambda: gone(pid))
    assert not repo.state.socket().exists()
    assert repo.coord("down").stdout == "No coordinator was running.\n"
    assert (repo.root / ".coord/.gitignore").read_text() == "*\n"
    status = subprocess.run(["git", "status", "--porcelain"], cwd=repo.root,
                            capture_output=True, text=True, check=True)
    assert status.stdout == ""


@pytest.mark.usefixtures("from_nothing")
def test_kill_9_loses_nothing(repo: Repo) -> None:
    with repo.client("ann") as ann:
        lease = ann.acquire("a.py", "key:x").leases[0]
        task = ann.call(rq.TaskAdd(title="t"))
        pid = repo.pid()
        os.kill(pid, signal.SIGKILL)
        until(lambda: gone(pid))
        assert repo.state.socket().exists(), "a dead socket is what is left"
        held = ann.call(rq.Locks()).items
        assert [x.fencing_token for x in held] == [lease.fencing_token, lease.fencing_token + 1]
        # (numbers are taken from the database in blocks: what was left of one is skipped)
        assert ann.acquire("b.py").leases[0].fencing_token > lease.fencing_token + 1
        assert ann.call(rq.TaskShow(task=task.task)).title == "t"
        assert repo.pid() != pid


@pytest.mark.usefixtures("from_nothing")
def test_sigterm_drains(repo: Repo) -> None:
    ann, bob = repo.client("ann"), repo.client("bob")
    ann.acquire("a.py")
    answers: list[Code] = []

    def wait() -> None:
        try:
            bob.acquire("a.py", wait=60)
        except Refusal as refusal:
            answers.append(refusal.code)

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: repo.client().call(rq.Locks()).waiters)
    os.kill(repo.pid(), signal.SIGTERM)
    thread.join(10)
    # (the client may also have found the restarted daemon and gone on waiting: then it is refused)
    assert answers == [Code.SHUTTING_DOWN]


@pytest.mark.skipif(not Path("/proc/net/unix").exists(), reason="asks Linux who is connected")
def test_whoever_meets_one_that_ends_is_served_by_the_next(repo: Repo) -> None:
    """What it had not begun is asked of the next one, also what must not be done twice; no edit of
    an agent is stopped by it."""
    edit = {"session_id": "s", "cwd": str(repo.root), "hook_event_name": "PreToolUse", "tool_name": "Write",
            "tool_input": {"file_path": str(repo.root / "a.py"), "content": "1"}}
    hook = [sys.executable, "-I", "-S", "-E", str(hook_file.__file__), str(repo.state.socket()), "claude-code"]
    made = 0
    for _ in range(4):
        repo.coord("up")
        clients = [repo.client() for _ in range(6)]
        clients[0].call(rq.Locks())  # one that is connected already
        old = repo.pid()
        os.kill(old, signal.SIGSTOP)  # so that all of them come within one moment
        with ThreadPoolExecutor(9) as pool:
            added = [pool.submit(one.call, rq.TaskAdd(title="t")) for one in clients]
            hooked = [pool.submit(subprocess.run, hook, input=json.dumps(edit).encode(), capture_output=True,
                                  check=False, env={**BARE, "PATH": os.environ["PATH"]}) for _ in range(3)]
            made += len(added)
            try:
                until(lambda: sockets(repo) >= 10)
                os.kill(old, signal.SIGTERM)
            finally:
                os.kill(old, signal.SIGCONT)
            assert len({one.result().task for one in added}) == 6
            assert [one.result().returncode for one in hooked] == [0, 0, 0], hooked[0].result()
        for one in clients:
            one.close()
        until(lambda: sockets(repo) == 1)
        assert repo.pid() != old
        assert len(repo.client().call(rq.Tasks()).items) == made


def sockets(repo: Repo) -> int:
    """That it listens on, and that are connected to it."""
    name = str(repo.state.socket())
    return sum(line.endswith(name) for line in Path("/proc/net/unix").read_text().splitlines())


@pytest.mark.parametrize("name", ["plain", "with space", "Ünï©ode", "x" * 120])
@pytest.mark.parametrize("git", [True, False])
def test_any_folder_will_do(make_repo: Callable[..., Repo], name: str, git: bool) -> None:
    repo = make_repo(name, git=git)
    deep = repo.root / "a" / "b"
    deep.mkdir(parents=True)
    if not git:
        assert repo.coord("init").returncode == 0
    assert repo.coord("lock", "f.py", "--agent", "ann", cwd=deep).returncode == 0
    with repo.client() as client:
        assert [x.resource for x in client.call(rq.Locks()).items] == ["a/b/f.py"]


def test_a_linked_worktree_shares_the_coordinator(repo: Repo, tmp_path: Path) -> None:
    git = ["git", "-C", str(repo.root), "-c", "user.name=n", "-c", "user.email=e@x"]
    subprocess.run([*git, "commit", "-qm", "x", "--allow-empty"], check=True)
    twin = tmp_path / "twin"
    subprocess.run([*git, "worktree", "add", "-q", str(twin)], check=True)
    assert repo.coord("lock", "a.py", "--agent", "ann").returncode == 0
    refused = repo.coord("lock", "a.py", "--agent", "bob", cwd=twin)
    assert refused.returncode == 3 and "ann" in refused.stderr
    assert not (twin / ".coord").exists()


@pytest.mark.usefixtures("from_nothing")
def test_many_starters_one_daemon(repo: Repo) -> None:
    starters = [
        subprocess.Popen([sys.executable, "-m", "coordinator.cli.main", "up"], cwd=repo.root,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    outs = [p.communicate(timeout=60) for p in starters]
    assert [p.returncode for p in starters] == [0] * 4, outs
    pids = {out.split(b"pid ")[1].split(b")")[0] for out, _ in outs}
    assert len(pids) == 1


@pytest.mark.usefixtures("from_nothing")
def test_a_damaged_database_is_kept_and_can_be_restored(repo: Repo) -> None:
    with repo.client("ann") as ann:
        ann.acquire("a.py")
        token = ann.acquire("b.py").leases[0].fencing_token
    repo.coord("down")
    shutil.copy(repo.state.database, repo.state.backup)
    damaged = b"not a database, but somebody's data" * 1000
    repo.state.database.write_bytes(damaged)
    refused = repo.coord("locks")
    assert refused.returncode == 9 and "doctor --restore" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert repo.state.database.read_bytes() == damaged, "the file must be kept as it is"
    restored = repo.coord("doctor", "--restore")
    assert restored.returncode == 0, restored.stderr
    assert any(p.read_bytes() == damaged for p in repo.state.path.glob("damaged-*"))
    with repo.client("cyd") as cyd:
        assert {x.resource for x in cyd.call(rq.Locks()).items} == {"a.py", "b.py"}
        assert cyd.acquire("c.py").leases[0].fencing_token > token + 100_000


def test_a_newer_database_is_left_alone(repo: Repo) -> None:
    repo.coord("up")
    repo.coord("down")
    db = sqlite3.connect(repo.state.database)
    db.execute("PRAGMA user_version = 99")
    db.commit()
    db.close()
    before = repo.state.database.read_bytes()
    refused = repo.coord("status")
    assert refused.returncode == 11 and "99" in refused.stderr
    assert repo.state.database.read_bytes() == before


@pytest.mark.usefixtures("from_nothing")
def test_bad_settings_are_named(repo: Repo) -> None:
    (repo.root / "coord.toml").write_text("[leases]\nttl = 5\n")
    refused = repo.coord("up")
    assert refused.returncode == 2 and "ttl" in refused.stderr and "coord.toml" in refused.stderr
    (repo.root / "coord.toml").write_text("[leases\n")
    refused = repo.coord("up")
    assert refused.returncode == 2 and "line 1" in refused.stderr


def test_settings_from_the_environment_are_shown_with_their_source(repo: Repo) -> None:
    repo.coord("init")
    done = repo.coord("doctor", env={"COORD_LEASES_TTL_S": "77"})
    line = next(x for x in done.stdout.splitlines() if "leases.ttl_s " in x)
    assert "77.0" in line and "COORD_LEASES_TTL_S" in line


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare (util-linux)")
def test_a_full_disk_refuses_and_recovers(tmp_path: Path) -> None:
    """In a mount namespace of its own, on a tiny disk."""
    probe = subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("user namespaces are not allowed here")
    script = Path(__file__).with_name("full_disk.py")
    mount = tmp_path / "small"
    mount.mkdir()
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c",
         f'mount -t tmpfs -o size=48m none "{mount}" && exec "{sys.executable}" "{script}" "{mount}"'],
        capture_output=True, text=True, timeout=120, check=False, cwd=Path.cwd(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "refused": "STORAGE", "alive": True, "reads": True, "recovered": True, "integrity": "ok",
    }


def test_strangers_on_the_socket(repo: Repo) -> None:
    """Rubbish, half lines, several requests at once: each gets its answer, nobody else is hurt."""
    repo.coord("up")
    sock = connect(repo.state)
    assert sock is not None
    file = sock.makefile("rb")
    for line, code in (
        (b"rubbish\n", "INVALID"), (b"{}\n", "INVALID"), (b'{"op":"nope","id":1}\n', "INVALID"),
        (b'{"op":"acquire","id":2,"params":{"agent":"a","resources":["x"],"bogus":1}}\n', "INVALID"),
        (b'{"op":"acquire","id":3,"params":{"agent":"a","resources":"x"}}\n', "INVALID"),
        (b'{"op":"locks","id":4,"v":99}\n', "VERSION_SKEW"),
        (b'{"op":"locks","id":5,"token":"wrong"}\n', "UNAUTHORIZED"),
        (b'{"op":"acquire","id":6,"params":' + b"[" * 100_000 + b"}\n", "INVALID"),
    ):
        sock.sendall(line)
        reply = json.loads(file.readline())
        assert reply["error"]["code"] == code, (line[:60], reply)
        assert reply["error"]["next"]
    sock.sendall(b"".join(b'{"op":"health","id":%d}\n' % i for i in range(50)))
    assert sorted(json.loads(file.readline())["id"] for _ in range(50)) == list(range(50))
    sock.sendall(b'{"op":"locks"')
    sock.close()
    assert repo.coord("locks").returncode == 0
    other = connect(repo.state)
    assert other is not None
    with contextlib.suppress(BrokenPipeError):  # it hangs up when it has heard enough
        other.sendall(b'{"op":"locks","params":{"agent":"' + b"x" * (9 * 1024 * 1024))
    reply = other.makefile("rb").readline()
    assert json.loads(reply)["error"]["code"] == "LIMIT"


def test_events_are_told_as_they_happen(repo: Repo) -> None:
    repo.coord("up")
    heard: list[str] = []
    sock = connect(repo.state)
    assert isinstance(sock, socket.socket)
    sock.sendall(b'{"op":"subscribe","id":0}\n')
    file = sock.makefile("rb")
    file.readline()
    with repo.client("ann") as ann:
        ann.acquire("a.py")
        while "lease_granted" not in heard:
            heard.append(json.loads(file.readline())["event"]["kind"])
    assert heard == ["agent_registered", "lease_granted"]


def test_a_claim_waits_until_there_is_a_task(repo: Repo) -> None:
    ann, boss = repo.client("ann"), repo.client()
    got: list[str] = []
    thread = threading.Thread(target=lambda: got.append(ann.claim(wait=30).task.task))
    ann.register()
    thread.start()
    boss.call(rq.TaskAdd(title="now"))
    thread.join(10)
    assert got == ["T-1"]


def together(repo: Repo, *requests: rq.Request[Any]) -> dict[int, dict[str, Any]]:
    """Send all in one packet, so that they share a transaction; the answers by their place."""
    sock = connect(repo.state)
    assert sock is not None
    lines = [
        json.dumps({"id": n, "op": r.op, "params": msgspec.to_builtins(r)}) + "\n"
        for n, r in enumerate(requests)
    ]
    answers: dict[int, dict[str, Any]] = {}
    with sock, sock.makefile("rb") as replies:
        sock.settimeout(10)
        sock.sendall("".join(lines).encode())
        for line in replies:
            answer = json.loads(line)
            answers[answer["id"]] = answer
            if len(answers) == len(requests):
                break
    return answers


def test_who_waits_is_told_of_what_happened_in_the_same_transaction(repo: Repo) -> None:
    repo.client("ann").acquire("a.py")
    repo.client("bob").register()
    answers = together(
        repo,
        rq.Acquire(agent="bob", resources=["a.py"], wait_s=60),
        rq.TaskClaim(agent="bob", wait_s=60),
        rq.Release(agent="ann", resources=["a.py"]),
        rq.TaskAdd(title="now"),
    )
    assert answers[0]["ok"]["leases"][0]["locked_by"] == "bob"
    assert answers[1]["ok"]["task"]["task"] == "T-1"


def test_a_waiting_acquisition_is_granted_at_once(repo: Repo) -> None:
    ann, bob = repo.client("ann"), repo.client("bob")
    ann.acquire("a.py")
    got: list[str] = []
    thread = threading.Thread(
        target=lambda: got.append(bob.acquire("a.py", wait=30).leases[0].locked_by)
    )
    thread.start()
    until(lambda: repo.client().call(rq.Locks()).waiters)
    ann.release("a.py")
    thread.join(5)
    assert got == ["bob"]
    assert Client(repo.root, agent="cyd").call(rq.Locks()).items[0].locked_by == "bob"


def test_the_wait_ends_with_a_refusal(repo: Repo) -> None:
    repo.client("ann").acquire("a.py")
    bob = repo.client("bob")
    with pytest.raises(Refusal) as met:
        bob.acquire("a.py", wait=0.05, retry=False)
    assert met.value.code is Code.LOCKED
    assert repo.client().call(rq.Locks()).waiters == []


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_it_may_open_as_many_files_as_the_machine_allows_it(repo: Repo) -> None:
    """Each wait of a program is a connection; the usual soft limit is for programs of the seventies."""
    subprocess.run(["sh", "-c", f"ulimit -S -n 256; '{sys.executable}' -m coordinator.cli.main up"], cwd=repo.root, check=True, capture_output=True)
    soft, hard = next(line.split()[3:5] for line in Path(f"/proc/{repo.pid()}/limits").read_text().splitlines() if line.startswith("Max open files"))
    assert soft == hard
