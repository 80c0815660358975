"""An agent in a session of its own: what others hold it cannot write, and nothing else differs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.namespaces.conftest import ONCE, Stand
from tests.waiting import gone, until

#: A command that goes on writing, and notes what it could.
WRITER = "(while :; do echo t >> a.py && echo w >> wrote || echo r >> refused; sleep 0.01; done) 2>/dev/null &"


def size(stand: Stand, path: str) -> int:
    file = stand.root / path
    return file.stat().st_size if file.exists() else 0


def test_a_lease_stops_a_command_that_runs_and_its_end_lets_it_go_on(stand: Stand) -> None:
    stand.write("a.py", "")
    agent = stand.agent()
    assert agent.does(WRITER) == 0
    for _ in range(3):
        before = size(stand, "wrote")
        until(lambda before=before: size(stand, "wrote") > before)  # type: ignore[misc]
        stand.coord("lock", "a.py", "--agent", "ann")
        granted, refused = stand.read("a.py"), size(stand, "refused")
        until(lambda refused=refused: size(stand, "refused") >= refused + 10)  # type: ignore[misc]
        assert stand.read("a.py") == granted, "not a byte after the grant was told"
        stand.coord("unlock", "a.py", "--agent", "ann")


def test_what_is_held_already_is_so_from_the_beginning(stand: Stand) -> None:
    for path in ("a.py", "b.py", "d/x", "d/e/y", "sql/one.sql"):
        stand.write(path, "one\n")
    stand.coord("lock", "a.py", "d/", "sql/*.sql", "--agent", "ann")
    agent = stand.agent()
    for command in ("echo H >> a.py", "echo H >> d/x", "echo H > d/new", "rm d/e/y", "mkdir d/f", "echo H > sql/one.sql",
                    "rm -f a.py", "mv a.py c.py", "echo H > t; mv t a.py", "chmod 0 a.py", "truncate -s 0 a.py",
                    "ln a.py l && echo H >> l", "ln -s a.py s; echo H >> s", "rm -rf d", "mv sql/one.sql sql/two.sql"):
        assert agent.does(command) != 0, command
    assert agent.does("echo two >> b.py") == 0 and stand.read("b.py") == "one\ntwo\n"
    assert {stand.read(path) for path in ("a.py", "d/x", "d/e/y", "sql/one.sql")} == {"one\n"}


def test_what_coord_keeps_is_not_a_commands_to_remove(stand: Stand) -> None:
    """It holds everybody's leases, and what is kept for a person's verdict."""
    stand.write("a.py", "one\n")
    stand.write("b.py", "one\n")
    stand.coord("lock", "a.py", "--agent", "ann")
    agent = stand.agent()
    assert agent.does("coord lock b.py > /dev/null") == 0 == agent.does("echo mine >> b.py")
    for command in ("rm -rf .coord", "mv .coord c", "mv .coord/coord.sqlite3 .", "echo H >> .coord/secret",
                    "rm .coord/socket", "echo H >> .coord/coord.sqlite3", "touch .coord/new",
                    "chmod 0 .coord", "rm -rf .coord/*", "coord init --agent codex --yes"):
        assert agent.does(command) != 0, command
    assert agent.does("coord locks -q | sort") == 0 and agent.said == ["a.py", "b.py"]
    assert agent.does("echo H >> a.py") != 0 == agent.does("echo more >> b.py")
    assert agent.does("coord unlock b.py > /dev/null") == 0, agent.said
    assert agent.does("mkdir .coord/steps/mine") == 0, "a resumable program that it starts has its notes there"
    stand.coord("down")
    assert agent.does("rm -rf .coord") != 0
    assert agent.does("coord locks -q | sort") == 0 and agent.said == ["a.py"], "one is started outside of it"


def test_of_coords_own_files_a_session_has_the_worktree_that_it_works_in(stand: Stand) -> None:
    stand.coord("up")
    for command in ("git -c user.name=x -c user.email=x@x commit -qm one --allow-empty", "git worktree add -q .coord/worktrees/run/one",
                    "git worktree add -q .coord/worktrees/run/two"):
        stand.run(*command.split())
    agent = stand.agent(cwd=stand.root / ".coord/worktrees/run/one")
    assert agent.does("echo mine > new && mkdir d && mv new d/ && git add d && rm -rf d") == 0, agent.said
    assert agent.does("echo H > ../two/new") != 0 != agent.does("rm -rf ../two")
    assert agent.does("rm -rf ../../../secret") != 0
    stand.write(".coord/worktrees/run/one/held", "one\n")
    other = stand.agent(cwd=stand.root / ".coord/worktrees/run/one")
    assert other.does("coord lock held > /dev/null") == 0, other.said
    assert agent.does("echo H >> held") != 0 == other.does("echo mine >> held")


def test_its_own_leases_are_its_own(stand: Stand) -> None:
    stand.write("a.py", "one\n")
    stand.write("d/x", "one\n")
    one, two = stand.agent(), stand.agent()
    name = "test -n \"$COORD_AGENT\" && echo $COORD_AGENT"
    assert one.does(name) == 0 == two.does(name) and one.said != two.said
    assert one.does('coord lock a.py d/ > /dev/null') == 0, one.said
    assert one.does("echo mine >> a.py && echo mine > d/new") == 0
    assert two.does("echo H >> a.py") != 0 and two.does("echo H > d/x") != 0
    assert one.does("coord unlock a.py > /dev/null") == 0
    assert two.does("echo theirs >> a.py") == 0
    assert stand.read("a.py") == "one\nmine\ntheirs\n"


@ONCE
def test_a_held_file_that_is_replaced_or_made_is_covered_again(stand: Stand) -> None:
    """By whoever holds it; a mount covers a file, not its name."""
    stand.write("a.py", "one\n")
    stand.coord("lock", "a.py", "d/new.py", "far/away/f", "--agent", "ann")
    agent = stand.agent()
    assert agent.does("echo H >> a.py") != 0
    for number in range(3):
        stand.write("t", f"{number}\n")
        stand.run("mv", "t", "a.py")
        until(lambda: agent.does("test -w a.py; echo >> a.py") != 0)
        stand.run("rm", "a.py")
        stand.write("a.py", "again\n")
        until(lambda: agent.does("echo >> a.py") != 0)
    stand.write("d/new.py", "new\n")
    until(lambda: agent.does("echo >> d/new.py") != 0)
    stand.write("far/away/f", "new\n")
    until(lambda: agent.does("echo >> far/away/f") != 0)
    stand.coord("unlock", "a.py", "--agent", "ann")
    assert agent.does("echo mine > a.py") == 0 and stand.read("a.py") == "mine\n"


def test_it_has_no_power_over_what_is_mounted(stand: Stand) -> None:
    stand.write("a.py", "one\n")
    stand.coord("lock", "a.py", "--agent", "ann")
    agent = stand.agent()
    for command in ("umount a.py", "umount -l a.py", 'mount -o remount,rw,bind "$PWD/a.py"',
                    'unshare -Urm sh -c "umount -l $PWD/a.py; echo H >> a.py"',
                    'unshare -m sh -c "umount -l $PWD/a.py && echo H >> a.py"',
                    f"nsenter -t {os.getpid()} -m sh -c 'cd \"$0\" && echo H >> a.py' \"$PWD\"",
                    f"nsenter -t {stand.keeper()} -U -m --preserve-credentials sh -c 'echo H >> \"$0\"' \"$PWD/a.py\"",
                    f'echo H >> "/proc/{os.getpid()}/root/$PWD/a.py"', f'echo H >> "/proc/{stand.keeper()}/root/$PWD/a.py"',
                    'echo H >> "/proc/self/root/$PWD/a.py"', "echo H >> /proc/self/cwd/a.py"):
        assert agent.does(f"({command}) 2>/dev/null") != 0, command
    assert stand.read("a.py") == "one\n"
    ask = ('python3 -c \'import os, socket, sys; link = socket.socket(socket.AF_UNIX); '
           'link.connect(os.environ["XDG_STATE_HOME"] + "/coord/namespaces"); '
           'link.sendall(b"{\\"n\\":1,\\"do\\":\\"hold\\",\\"root\\":\\"\\",\\"held\\":{}}\\n"); '
           'sys.exit(b"inside" not in link.recv(200))\'')
    assert agent.does(ask) == 0, "the keeper takes no orders from whoever is in a session"
    Path(stand.home, "ask.sh").write_text(ask)
    assert agent.does(f'unshare -Urm sh "{stand.home}/ask.sh"') == 0, "nor in a namespace that was made there"


def test_it_is_who_it_was(stand: Stand) -> None:
    agent = stand.agent()
    assert agent.does("id -u; id -g; pwd; umask") == 0
    bare = stand.run("sh", "-c", "id -u; id -g; pwd; umask").stdout.splitlines()
    assert agent.said == bare
    assert agent.ends() == 0
    assert stand.agent("exit 7").process.wait(15) == 7
    assert stand.agent("kill -9 $$").process.wait(15) == -signal.SIGKILL


@ONCE
def test_when_its_process_has_ended_the_agent_has(stand: Stand) -> None:
    stand.write("a.py", "one\n")
    agent = stand.agent()
    assert agent.does("coord lock a.py > /dev/null && echo half >> a.py && echo $COORD_AGENT") == 0
    name = agent.said[0]
    agent.process.kill()
    until(lambda: not stand.asks("locks")["items"])
    assert name not in [one["agent"] for one in stand.asks("agents")["items"]]
    assert "a.py" in stand.coord("review", "list"), "its partial work waits for a person"


@ONCE
def test_when_its_process_has_ended_while_no_coordinator_ran_the_agent_has(stand: Stand) -> None:
    stand.write("a.py", "one\n")
    agent = stand.agent()
    assert agent.does("coord lock a.py > /dev/null && echo half >> a.py") == 0
    pid = stand.daemon()
    os.kill(pid, signal.SIGKILL)
    until(lambda: gone(pid))
    agent.process.kill()
    agent.process.wait()
    stand.coord("up")
    until(lambda: not stand.asks("locks")["items"])
    assert "a.py" in stand.coord("review", "list")


@ONCE
def test_what_it_leaves_running_stays_in_the_session(stand: Stand) -> None:
    stand.write("a.py", "")
    agent = stand.agent()
    assert agent.does(WRITER) == 0
    agent.process.kill()
    agent.process.wait()
    until(lambda: not stand.asks("agents")["items"])
    before = size(stand, "wrote")
    until(lambda: size(stand, "wrote") > before)
    stand.coord("lock", "a.py", "--agent", "ann")
    granted, refused = stand.read("a.py"), size(stand, "refused")
    until(lambda: size(stand, "refused") >= refused + 10)
    assert stand.read("a.py") == granted


@ONCE
def test_a_killed_coordinator_opens_nothing(stand: Stand) -> None:
    stand.write("a.py", "one\n")
    stand.write("b.py", "one\n")
    stand.coord("lock", "a.py", "--agent", "ann")
    agent = stand.agent()
    pid = stand.daemon()
    os.kill(pid, signal.SIGKILL)
    until(lambda: gone(pid))
    assert agent.does("echo H >> a.py") != 0
    stand.coord("lock", "b.py", "--agent", "ann")
    assert stand.daemon() != pid
    assert agent.does("echo H >> a.py") != 0 and agent.does("echo H >> b.py") != 0
    stand.coord("unlock", "a.py", "--agent", "ann")
    assert agent.does("echo two >> a.py") == 0


def test_a_coordinator_that_an_agent_starts_runs_outside_of_its_session(stand: Stand) -> None:
    """By its hooks, or by any command: inside it would have no power over the sessions."""
    stand.write("a.py", "one\n")
    one, two = stand.agent(starts=True), stand.agent()
    pid = stand.daemon()
    os.kill(pid, signal.SIGKILL)
    until(lambda: gone(pid))
    assert one.does("env -u COORD_SESSION coord lock a.py > /dev/null") == 0, stand.errors()
    assert stand.daemon() != pid
    assert one.does("echo mine >> a.py") == 0 and two.does("echo H >> a.py") != 0
    stand.coord("lock", "b.py", "--agent", "ann")
    stand.write("b.py", "one\n")
    until(lambda: one.does("echo H >> b.py") != 0)


@pytest.mark.parametrize("parts", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_no_number_of_leases_ends_a_session(stand: Stand, parts: int) -> None:
    """Not told now, nor all at once when the next coordinator learns what there is: files that are not there, hard links
    (which are told to their holder), and names as long as they may be."""
    stand.write("a.py", "one\n")
    stand.write("one.txt", "one\n")
    stand.run("sh", "-c", "mkdir linked && for n in $(seq 400); do ln one.txt linked/a_name_that_is_quite_long_for_a_hard_link_$n; done")
    agent = stand.agent()
    long = "/".join(["ä" * 120] * 11)
    for part in range(parts):
        stand.coord("lock", *(f"{long}/{part}/{n}" for n in range(500)), "--agent", "ann")
    stand.coord("lock", *(f"linked/a_name_that_is_quite_long_for_a_hard_link_{n}" for n in range(1, 401)), "--agent", "ann")
    stand.coord("lock", "a.py", "--agent", "ann")
    assert agent.does("echo H >> a.py") != 0 == agent.does("echo mine > mine")
    other = stand.agent()
    assert other.does("echo H >> a.py") != 0
    stand.coord("down")
    stand.coord("up")
    assert agent.does("echo H >> a.py") != 0 == agent.does("echo mine > mine")
    assert "keeper" not in stand.state.log.read_text()
    assert agent.ends() == 0 == other.ends()


def test_a_killed_keeper_ends_the_session(stand: Stand) -> None:
    """What its agent may write is known to nobody any more."""
    stand.write("a.py", "")
    agent = stand.agent()
    assert agent.does(WRITER) == 0
    os.kill(stand.keeper(), signal.SIGKILL)
    assert agent.process.wait(15) == -signal.SIGKILL
    stand.coord("lock", "a.py", "--agent", "ann")
    granted = stand.read("a.py")
    until(lambda: not stand.left())
    assert stand.read("a.py") == granted
    assert stand.agent().does("echo H >> a.py") != 0, "and the next one has a new keeper"


@pytest.mark.parametrize("first", ["daemon", "keeper", "daemon that is asked meanwhile"])
def test_a_session_whose_keeper_and_coordinator_were_both_killed_is_ended_by_the_next(stand: Stand, first: str) -> None:
    """Nobody keeps it from what others hold, so nothing is granted over its head; and it is said."""
    stand.write("a.py", "")
    agent, other = stand.agent(), stand.agent()
    assert agent.does(WRITER) == 0 and other.does("true") == 0
    stand.coord("lock", "other.py", "--agent", "ann")
    who = [stand.daemon, stand.keeper]
    for pid in [one() for one in (reversed(who) if first == "keeper" else who)]:
        os.kill(pid, signal.SIGKILL)
        if first == "daemon that is asked meanwhile":
            stand.tries("locks")  # the next one finds a keeper, which is killed then
    stand.coord("lock", "a.py", "--agent", "ann")
    granted = stand.read("a.py")
    until(lambda: not stand.left())
    assert agent.process.wait(15) == other.process.wait(15) == -signal.SIGKILL
    assert stand.read("a.py") == granted
    assert [one["agent"] for one in stand.asks("agents")["items"]] == ["ann"]
    if first == "daemon":
        assert "had lost its keeper and its coordinator" in stand.tries("doctor").stdout and "had lost its keeper" in stand.coord("status")
    later = stand.agent()
    assert later.does("echo H >> a.py") != 0 == later.does("true"), "and the next one has a new keeper"
    stand.coord("down")
    stand.coord("up")
    assert later.does("true") == 0 and "had lost" not in stand.tries("doctor").stdout


def test_a_number_that_another_namespace_has_got_is_left_alone(stand: Stand) -> None:
    """Numbers of namespaces are given again: to a container of somebody's, say."""
    stand.coord("up")
    stand.coord("down")
    container = subprocess.Popen([*stand.become, "unshare", *([] if stand.uid == 0 else ["-r"]), "-m", "sh", "-c", "echo; exec sleep 600"], stdout=subprocess.PIPE)
    try:
        assert container.stdout is not None and container.stdout.readline() == b"\n"
        number = os.stat(f"/proc/{container.pid}/ns/mnt").st_ino
        stand.write(".coord/session-records", json.dumps([{"key": "k", "number": number, "agent": "shell", "ends": True}]))
        stand.coord("lock", "a.py", "--agent", "ann")
        assert container.poll() is None and "had lost" not in stand.tries("doctor").stdout
    finally:
        container.kill()
        container.wait()


def test_whoever_is_in_another_container_is_in_no_session(stand: Stand) -> None:
    """A coordinator can be started there, also while sessions run outside."""
    stand.coord("up")
    agent = stand.agent()
    other = Path(stand.root.parent, "home/other")
    stand.run("mkdir", str(other))
    done = stand.run("unshare", "-rm", "sh", "-c", 'export XDG_RUNTIME_DIR="$1"; mount -t tmpfs none "$1"; '
                     'chmod 700 "$1"; cd "$1" && git init -q . && "$0" -P -m coordinator.cli.main lock x --agent ann && '
                     '"$0" -P -m coordinator.cli.main down', stand.python, str(other))
    assert done.returncode == 0, done.stderr
    ask = f"'{stand.python}' -P -c 'from coordinator.namespaces import orders; from pathlib import Path; " \
          "print(orders.start_outside(Path.cwd()))'"
    assert agent.does(ask) == 0 and agent.said[-1] == "True", agent.said
    assert agent.does(f"unshare -rm {ask}") == 0 and agent.said[-1] == "True", agent.said


@ONCE
def test_refusals_are_in_words_and_leave_no_agent(stand: Stand) -> None:
    stand.coord("up")
    for words, said in ((["shell"], "names no program"), (["shell", "--", "no-such-thing"], "no program called"),
                        (["nobody"], "nobody")):
        done = stand.tries("run", *words)
        assert done.returncode == (127 if said == "no program called" else 2) and said in done.stderr, done.stderr
    assert not stand.asks("agents")["items"]


@ONCE
def test_where_no_session_can_be_had_it_says_so(stand: Stand) -> None:
    stand.coord("up")
    stand.run("mkdir", "-p", str(stand.home / "coord/namespaces"))
    done = stand.tries("run", "shell", "--", "touch", "begun")
    assert done.returncode == 8 and "Is a directory" in done.stderr and "Nothing was started" in done.stderr, done.stderr
    assert not (stand.root / "begun").exists() and not stand.asks("agents")["items"]
    stand.run("rmdir", str(stand.home / "coord/namespaces"))
    stand.coord("down")
    stand.env["XDG_STATE_HOME"] = str(stand.home / ("long" * 40))
    stand.env["XDG_RUNTIME_DIR"] = str(stand.home)
    assert stand.agent("exit 5").process.wait(20) == 5, "its socket has a short name then"
    os.kill(int((stand.home / f"coord-{stand.uid}/namespaces.lock").read_text()), signal.SIGKILL)


@ONCE
def test_many_begin_at_once_while_leases_come_and_go(stand: Stand) -> None:
    """Each order's answer finds whoever asked."""
    stand.coord("up")
    for number in range(5):
        stand.write(f"f{number}", "one\n")
    program = "coord lock f%d > /dev/null && echo mine >> f%d && coord unlock f%d > /dev/null"
    going = [stand.agent(program % (number, number, number)) for number in range(5)]
    assert [one.process.wait(60) for one in going] == [0] * 5, stand.errors()
    assert {stand.read(f"f{number}") for number in range(5)} == {"one\nmine\n"}


@ONCE
def test_it_goes_on_where_it_was_started(stand: Stand) -> None:
    stand.write("pkg/web/f.txt", "one\n")
    stand.coord("lock", "pkg/web/f.txt", "--agent", "ann")
    below = Path(stand.root, "pkg/web")
    done = subprocess.run(
        [*stand.become, stand.python, "-P", "-m", "coordinator.cli.main", "run", "shell", "--", "sh", "-c",
         "pwd; echo H >> f.txt"], cwd=below, env=stand.env, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines()[-1] == str(below) and done.returncode and stand.read("pkg/web/f.txt") == "one\n"


def test_a_keeper_that_ends_while_it_is_asked_is_followed_by_another(stand: Stand) -> None:
    """One that has had no session for a while ends by itself, at any moment."""
    door = stand.home / "coord/namespaces"
    stand.run("mkdir", "-m", "700", "-p", str(door.parent))
    ending = subprocess.Popen(
        [*stand.become, stand.python, "-c", "import os, socket, sys; d = socket.socket(socket.AF_UNIX); d.bind(sys.argv[1]); "
         "d.listen(); print(flush=True); d.accept(); os.unlink(sys.argv[1])", str(door)], stdout=subprocess.PIPE)
    assert ending.stdout is not None
    ending.stdout.readline()
    stand.write("a.py", "")
    agent = stand.agent()
    assert ending.wait(5) == 0, "it was asked first"
    ending.stdout.close()
    stand.coord("lock", "a.py", "--agent", "ann")
    assert agent.does("echo H >> a.py") != 0


@ONCE
def test_what_has_typed_commands_join_a_session_is_out_of_the_way_of_one_that_is_in_it(stand: Stand) -> None:
    """Claude Code quotes a command once more for it, and a long one does not fit then. A person's own word counts."""
    stand.write("says", '#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (stand.root / "says").chmod(0o755)
    for typed, first in (([], "--settings"), (["--model", "x"], "--settings"), (["--settings", "theirs"], "--settings\ntheirs"), (["--settings=theirs"], "--settings=theirs")):
        said = stand.run(stand.python, "-P", "-m", "coordinator.cli.main", "run", "--program", str(stand.root / "says"), "claude-code", "--", *typed)
        assert said.stdout.startswith(first) and said.stdout.count("--settings") == 1, (typed, said)
        assert ("CLAUDE_CODE_SHELL_PREFIX" in said.stdout) == ("theirs" not in said.stdout)


def test_a_session_has_its_value_of_a_pool_and_gives_it_back_at_its_end(stand: Stand) -> None:
    stand.write("coord.toml", '[pools.lamp]\nvalues = ["a", "b"]\nenv = "LAMP_SERIAL"\nsession = true\n')
    first, second = stand.agent(), stand.agent()
    assert first.does('echo "$LAMP_SERIAL"') == 0 == second.does('echo "$LAMP_SERIAL"')
    assert sorted(first.said + second.said) == ["a", "b"]
    assert first.does("coord env") == 0 and first.said[0].startswith("export LAMP_SERIAL=")
    assert stand.agent('test -z "$LAMP_SERIAL"').process.wait(15) == 0, "none is left, and it begins all the same"
    assert "No value of the pool lamp is free" in stand.errors()
    first.process.kill()
    until(lambda: len(stand.asks("locks")["items"]) == 1)
    typed = stand.run(stand.python, "-P", "-m", "coordinator.cli.main", "run", "shell", "--needs", "lamp", "--", "sh", "-c",
                      'echo "$LAMP_SERIAL"')
    assert typed.stdout.strip() in ("a", "b"), typed.stderr
