"""Pools with real programs: agents with ports of their own, and commands that make databases ready."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable

import pytest

from coordinator import settings as own_settings
from coordinator.files import trusted
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo, trust_settings
from tests.launch.conftest import CONFIG, Launch, pid_in
from tests.service.test_pools import free_ports
from tests.waiting import until

Start = Callable[..., Launch]


def configure(repo: Repo, text: str, trust: bool = True) -> None:
    repo.write("coord.toml", CONFIG + text)
    if trust:
        trust_settings(repo.root)
    else:
        trusted.withdraw(repo.root)


def ports(count: int, more: str = "") -> str:
    return f"[pools.port]\nvalues = {free_ports(count)}\nkind = \"port\"\nenv = \"PORT\"\n{more}"


def add(repo: Repo, title: str, *options: str) -> None:
    done = repo.coord("task", "add", title, *options)
    assert done.returncode == 0, done.stderr


SERVES = """
echo "$PORT" >> ports
python3 -m http.server "$PORT" --bind 127.0.0.1 > /dev/null 2> "log.$PORT" &
server=$!
n=0
while ! python3 -c "import socket; socket.create_connection(('127.0.0.1', $PORT))" 2> /dev/null; do
  n=$((n + 1)); [ $n -gt 100 ] && exit 1; sleep 0.1
done
while [ "$(wc -l < ports)" -lt 2 ]; do sleep 0.1; done
python3 - <<END
import urllib.request
text = urllib.request.urlopen("http://127.0.0.1:$PORT/").read().decode()
assert "ports" in text
END
code=$?
kill $server
exit $code
"""


def test_two_agents_serve_at_once_and_do_not_meet(repo: Repo, launch: Start) -> None:
    configure(repo, ports(2))
    add(repo, "one", "--needs", "port")
    add(repo, "two", "--needs", "port")
    report = launch(SERVES).report()
    assert report["tasks"] == {"done": 2}, report
    used = repo.read("ports").split()
    assert len(set(used)) == 2, used
    for port in used:
        assert "Address already in use" not in repo.read(f"log.{port}")
    prompts = [path.read_text() for path in repo.state.runs.rglob("*prompt*")]
    assert any(f"`PORT={used[0]}`" in text for text in prompts), prompts
    with repo.client() as client:
        assert client.call(rq.Locks()).items == []


def test_a_stranger_keeps_its_port_and_is_named(repo: Repo) -> None:
    configure(repo, ports(2))
    first, second = (item.value for item in _values(repo))
    server = subprocess.Popen([sys.executable, "-c", "import socket, time\ns = socket.socket()\n"
                               f"s.bind(('127.0.0.1', {first}))\ns.listen()\nprint(flush=True)\ntime.sleep(99)"],
                              stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        given = repo.coord("env", "port", "--agent", "ann")
        assert given.stdout == f"export PORT={second}\n" and given.returncode == 0
        assert f"{first} of the pool port was passed over" in given.stderr
        assert repo.coord("env", "port", "--agent", "ann").stdout == f"export PORT={second}\n"
        listed = repo.coord("ports")
        rows = {line.split()[0]: line for line in listed.stdout.splitlines()}
        assert f"({server.pid})" in rows[first] and "python" in rows[first], listed.stdout
        assert "ann" in rows[second] and "Free of them: 0." in listed.stdout
        refused = repo.coord("env", "port", "--agent", "bob")
        assert refused.returncode == 3 and "ann" in refused.stderr and refused.stdout == ""
        held = json.loads(repo.coord("locks", "--json").stdout)["items"]
        assert [item["resource"] for item in held] == [f"key:pool:port:{second}"]
    finally:
        server.kill()
        server.wait()
    assert repo.coord("env", "port", "--agent", "bob").stdout == f"export PORT={first}\n"
    assert repo.coord("env", "--release", "--agent", "ann").stdout == "unset PORT\n"
    assert repo.coord("env", "--agent", "ann").stdout == ""
    shell = subprocess.run(["sh", "-c", f'eval "$("{sys.executable}" -m coordinator.cli.main env port --agent cid)"; '
                            'echo "$PORT"'], cwd=repo.root, capture_output=True, text=True, check=False)
    assert shell.stdout == f"{second}\n", shell.stderr


def _values(repo: Repo) -> list[rq.PoolValue]:
    with repo.client() as client:
        return client.call(rq.PoolValues()).items


def test_a_killed_agents_port_comes_back(repo: Repo, launch: Start) -> None:
    configure(repo, ports(1))
    add(repo, "one", "--needs", "port")
    going = launch('[ -e killed ] && { echo "$PORT" > again; exit 0; }; echo $$ > pid; echo "$PORT" > port; '
                   'touch killed; sleep 60', n=1)
    pid = pid_in(repo.root / "pid")
    held = next(item for item in _values(repo) if item.locked_by)
    assert held.value == repo.read("port").strip() and held.task == "T-1"
    os.kill(pid, signal.SIGKILL)
    assert going.report()["tasks"] == {"done": 1}
    assert repo.read("again") == repo.read("port")
    assert [item.locked_by for item in _values(repo)] == [None]


DATABASE = """
[pools.db]
values = ["app_1", "app_2"]
env = "DATABASE_URL"
template = "{value}.sqlite"
create = '''echo "create $COORD_VALUE" >> calls; python3 -c "import sqlite3; sqlite3.connect('$DATABASE_URL').execute('CREATE TABLE IF NOT EXISTS t (x)')"'''
reset = '''echo "reset $DATABASE_URL" >> calls; python3 -c "
import sqlite3; db = sqlite3.connect('$DATABASE_URL'); db.execute('DELETE FROM t'); db.commit()"'''
drop = 'echo "drop $COORD_VALUE" >> calls; rm "$DATABASE_URL"'
"""
WRITES = """
python3 - <<END
import sqlite3, sys
db = sqlite3.connect("$DATABASE_URL")
assert db.execute("SELECT count(*) FROM t").fetchone() == (0,)
db.execute("INSERT INTO t VALUES (1)"); db.commit()
END
code=$?
echo "agent $DATABASE_URL" >> calls
exit $code
"""


def test_commands_make_a_value_ready_once_and_take_it_away(repo: Repo, launch: Start) -> None:
    configure(repo, DATABASE)
    db = sqlite3.connect(repo.root / "app_1.sqlite")
    db.execute("CREATE TABLE t (x)")
    db.execute("INSERT INTO t VALUES (7)")
    db.commit()
    db.close()
    add(repo, "one", "--needs", "db")
    assert launch(WRITES, n=1).report()["tasks"] == {"done": 1}
    assert repo.read("calls").splitlines() == ["create app_1", "reset app_1.sqlite", "agent app_1.sqlite", "drop app_1"]
    assert not (repo.root / "app_1.sqlite").exists()


def test_a_command_that_fails_says_so_and_the_value_goes_back(repo: Repo, launch: Start) -> None:
    configure(repo, DATABASE.replace("reset = '''", "reset = '''echo no such server >&2; exit 3; "))
    add(repo, "one", "--needs", "db", "--attempts-max", "1")
    report = launch("touch began", n=1).report()
    assert report["tasks"] == {"dead": 1} and not (repo.root / "began").exists()
    assert "`pools.db.reset` failed for app_1: no such server" in json.dumps(report)
    assert [item.locked_by for item in _values(repo)] == [None, None]
    typed = repo.coord("env", "db", "--agent", "ann")
    assert typed.returncode == 2 and typed.stdout == "" and "no such server" in typed.stderr
    assert [item.locked_by for item in _values(repo)] == [None, None]


def test_nothing_of_a_pool_that_nobody_trusts_runs(repo: Repo, launch: Start) -> None:
    configure(repo, DATABASE + '[pools.path]\nvalues = ["evil"]\nenv = "PATH"\n' + ports(1), trust=False)
    loaded = own_settings.load(repo.root, {})
    assert [*loaded.settings.pools] == ["port"] and {*loaded.untrusted} == {"watch.enabled", "pools.db", "pools.path"}
    for name in ("db", "path"):
        refused = repo.coord("env", name, "--agent", "ann")
        assert refused.returncode == 2 and "No pool is called" in refused.stderr and "coord trust" in refused.stderr
    assert repo.coord("task", "add", "one", "--needs", "db").returncode == 2
    assert not (repo.root / "calls").exists()
    repo.down()
    trust_settings(repo.root)
    assert repo.coord("env", "db", "--agent", "ann").stdout == "export DATABASE_URL=app_1.sqlite\n"
    assert repo.read("calls").splitlines() == ["create app_1", "reset app_1.sqlite"]
    assert repo.coord("env", "db", "--agent", "ann").stdout == "export DATABASE_URL=app_1.sqlite\n"
    assert len(repo.read("calls").splitlines()) == 2, "once"
    repo.write("coord.toml", repo.read("coord.toml").replace("{value}.sqlite", "{value}.other"))
    assert "pools.db" in own_settings.load(repo.root, {}).untrusted, "another template is another pool"


def test_an_exhausted_pool_waits(repo: Repo, launch: Start) -> None:
    configure(repo, ports(1))
    add(repo, "one", "--needs", "port")
    add(repo, "two", "--needs", "port")
    with repo.client("ann") as ann, repo.client("bob") as bob:
        first = ann.call(rq.TaskClaim(agent="ann", task="T-1"))
        with pytest.raises(Refusal) as refused:
            bob.call(rq.TaskClaim(agent="bob", wait_s=0.3))
        assert refused.value.code is Code.NOTHING_TO_DO
        ann.call(rq.TaskDone(agent="ann", task="T-1"))
        assert bob.call(rq.TaskClaim(agent="bob", wait_s=5)).environment == first.environment
        assert until(lambda: [item.locked_by for item in _values(repo)] == ["bob"])


def test_a_port_is_looked_at_by_all_addresses() -> None:
    from coordinator.workers import listening

    first, second = free_ports(2)
    with socket.socket(socket.AF_INET6) as server:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        server.bind(("::1", first))
        assert listening.find_taken([first, second]) in ([], [first]), "it is bound, and listens not yet"
        server.listen()
        assert listening.find_taken([first, second]) == [first]
        assert listening.list_listeners([first, second])[first].pid == os.getpid()
    assert listening.find_taken([first, second]) == []
