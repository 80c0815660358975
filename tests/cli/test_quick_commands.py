"""The `coord` command as it is typed: a small client, and the coordinator does the work. What comes out is what the program itself
would print; what is not served so, the program does."""

from __future__ import annotations

import inspect
import os
import re
import signal
import socket
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator import _command, _served
from coordinator.cli import modules, typer_program
from coordinator.cli.command_table import MODULES
from coordinator.commands.listing import parse_served
from coordinator.commands.parsing import Typed, parse
from coordinator.commands.signatures import COMMANDS, GROUPS
from coordinator.daemon.command_lines import FIELDS
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.waiting import gone, until

QUICK = [sys.executable, "-I", "-S", _command.__file__]
PROGRAM = [sys.executable, "-P", "-m", "coordinator.cli.main"]


def typed(repo: Repo, how: list[str], *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("COORD_") and k not in ("COLUMNS", "FORCE_COLOR")}
    return subprocess.run([*how, *words], cwd=repo.root, text=True, capture_output=True, timeout=120, env={**kept, **env})


@pytest.fixture
def busy(repo: Repo) -> Repo:
    (repo.root / "context_archive").mkdir()
    repo.write("context_archive/a.md", "# One\n\n## 1. Parser\n\nHow the parser works.\n")
    for name in ("a.py", "d/b.py", "ü x.py"):
        repo.write(name, "x = 1\n")
    with repo.client() as boss:
        boss.call(rq.Acquire(agent="ann", resources=["a.py", "ü x.py"], description="looks \x1b[31m at it"))
        boss.call(rq.Register(agent="bob"))
        for n in range(3):
            boss.call(rq.TaskAdd(title=f"Task {n} 漢字 " + "long " * 30 * (n == 1), resources=["d/"] if n else []))
        boss.call(rq.RequestFile(agent="bob", resource="a.py", reason="I need it " * 20))
        boss.call(rq.SignalAdd(agent="ann", subject="d/", name="warning", note="take care"))
        boss.call(rq.MessageSend(agent="ann", to="bob", text="two\nlines"))
        boss.call(rq.ArchiveIndexNow())
        boss.call(rq.StatePut(agent="ann", key="key:a", version=0, value=msgspec.Raw(b'{"n": 1}')))
    return repo


#: Commands that the coordinator carries out: those that know no file of the program.
SERVED = {name for module, names in MODULES.items() if module.startswith(("commands.", "slices.")) for name in names} - {"state change"}
SAME = [
    "locks", "locks --waiting", "locks --json", "locks d/b.py", "task list", "task list --state dead", "task list --json", "task show T-2", "task show 9", "request list",
    "request list --state nonsense", "review list", "signal list", "dead list", "messages --agent bob", "events -n 5", "events --json -n 3", "explain a.py",
    "explain ann", "status", "status --json", "archive search parser", "archive show 1", "archive show nothing", "lock a.py --agent bob", "lock a.py --agent bob --json", "lock a.py",
    "lock a.py --agent ann --ttl soon", "lock a.py --agent ann --mode odd", "unlock d/b.py --agent ann", "unlock --agent ann", "renew --agent bob", "task claim T-9 --agent bob",
    "task done T-1 --agent bob", "tell nobody hello", "limit --agent nobody --for 5m", "lock ../out --agent ann", "locks -q", "locks --short", "task list -q --limit 1", "task list --limit 0", "task show T-1 --short", "request list -q", "signal list --short", "review list -q", "review show R-9", "messages -q", "status --short", "agents", "agents list", "agents -q",
    "agents --short", "events -q -n 2", "archive search parser -q", "state list", "state get key:a", "state get key:b --json", "state history key:a", "state changes", "state changes --state odd", "state put key:a x --agent ann",
    "state next key:b --agent ann", "sweep", "lost-writes", "lock --bogus", "task", "nonsense", "task list --limit x",
]


@pytest.mark.parametrize("columns", ["", "60", pytest.param("120", marks=pytest.mark.slow)])
def test_what_is_printed_is_what_the_program_prints(busy: Repo, columns: str) -> None:
    env = {"COLUMNS": columns} if columns else {}
    for line in SAME:
        for _ in range(3):  # an age that grows by a sign between the two moves where a text is cut
            ours, theirs = typed(busy, QUICK, *line.split(), **env), busy.coord(*line.split(), env=env)
            if (_steady(ours.stdout), _steady(ours.stderr)) == (_steady(theirs.stdout), _steady(theirs.stderr)):
                break  # and what an agent is told, it is told once
        assert ours.returncode == theirs.returncode, (line, ours, theirs)
        for one, two in ((ours.stdout, theirs.stdout), (ours.stderr, theirs.stderr)):
            assert _steady(one) == _steady(two), line


def _steady(text: str) -> list[str]:
    """Without what rises from one call to the next: instants and numbers of events and of places in line."""
    return [re.sub(r"  +", "  ", re.sub(r"(<?\d+[dhms]?)+", "0", line)).rstrip() for line in text.splitlines()]


def test_what_it_loads(busy: Repo) -> None:
    """Modules that are built into the interpreter, and nothing else."""
    for line in ("locks", "lock d/b.py --agent ann", "task list", "lock --help"):
        done = typed(busy, [sys.executable, "-I", "-S", "-X", "importtime", _command.__file__], *line.split())
        assert done.returncode == 0, done
        loaded = {row.rpartition("|")[2].strip() for row in done.stderr.splitlines() if row.startswith("import time:")}
        ours = {name for name in loaded if name not in sys.builtin_module_names and not name.startswith(("encodings", "_frozen", "imported", "zipimport"))}
        assert ours <= {"_socket", "codecs", "_codecs", "io", "abc"}, ours


def test_each_declared_command_is_made_of_its_signature() -> None:
    """The names of parameters and their defaults are those of the function that carries it out."""
    for name, command in COMMANDS.items():
        places = list(inspect.signature(command.function).parameters.values())[command.asks:]
        assert [(p.name, p.default) for p in places] == [
            (p.name, inspect.Parameter.empty if p.required else p.default) for p in command.parameters], name
        assert command.help or command.hidden, name
    assert {name for name in COMMANDS if not COMMANDS[name].needs_program} == SERVED


modules.read_group("")
_ROOT = typer_program.build_program()


def find_leaf(name: str) -> Any:
    command = _ROOT
    for word in name.split():
        command = command.commands[word]
    return command


@st.composite
def lines(draw: st.DrawFn) -> tuple[str, list[str]]:
    name = draw(st.sampled_from(sorted(name for name in COMMANDS if name not in GROUPS and not COMMANDS[name].takes_all)))
    options = sorted(COMMANDS[name].options) or ["--json"]
    value = st.sampled_from(["a.py", "3", "-1", "1.5", "T-1", "", "--", "-", "--json", "x=y", "key:a:b", "10s", "-x", "none", "text", "70000"])
    word = st.one_of(value, st.sampled_from(options), st.builds(lambda o, v: f"{o}={v}", st.sampled_from(options), value), st.just("--help"),
                     st.builds(lambda o, v: o + v, st.sampled_from(options), value))
    return name, draw(st.lists(word, max_size=6))


@settings(max_examples=300)
@given(lines())
def test_words_mean_what_they_mean_to_typer(line: tuple[str, list[str]]) -> None:
    """Where the program, or the coordinator, does without Typer, commands get what Typer would give them."""
    name, words = line
    typed = parse([*name.split(), *words])
    if typed is None:
        return  # left to Typer
    assert typed.name == name
    theirs = find_leaf(name).make_context(name, list(words)).params
    assert set(typed.values) == set(theirs)
    for key, value in typed.values.items():
        there = list(theirs[key]) if isinstance(theirs[key], tuple) else getattr(theirs[key], "value", theirs[key])  # older Typers: tuples
        if isinstance(value, Path):  # Typer makes it when it calls the function
            there = Path(there)
        assert value == there or (value is None and not there), (key, value, theirs)


def test_what_needs_the_program_is_not_served() -> None:
    for line, served in (("events -n 3", True), ("events --follow", False), ("status", True), ("status -w", False), ("review show R-1", True), ("review show R-1 -y", False),
                         ("state put key:a 1", True), ("state put key:a -", False), ("state change key:a 1", False), ("doctor", False), ("review keep R-1", False)):
        assert (parse_served(line.split()) is not None) == served, line


def test_a_line_that_is_not_understood_is_typers() -> None:
    for line in ("", "nonsense", "task", "task nonsense", "doctor --bogus", "task show", "up extra", "ps --json=1",
                 "run claude -- --json", "doctor --help", "-h"):
        assert parse(line.split()) is None, line
    assert parse(["ps", "--json"]) == Typed("ps", {"as_json": True})


def test_help_is_the_programs_own(repo: Repo) -> None:
    for words in ((), ("lock",), ("task", "claim"), ("launch",), ("nonsense",)):
        ours, theirs = (typed(repo, how, *words, "--help", COLUMNS="80") for how in (QUICK, PROGRAM))
        assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr)
    for words in (("help",), ("help", "lock"), ("help", "task", "claim"), ("help", "nonsense"), ("help", "exit-codes"), ("help", "--json"), ("help", "task", "nonsense")):
        ours, theirs = (typed(repo, how, *words, COLUMNS="80") for how in (QUICK, PROGRAM))
        assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr), words
    assert typed(repo, QUICK, "lock", "--help", COLUMNS="50").stdout == typed(repo, PROGRAM, "lock", "--help", COLUMNS="50").stdout


def test_where_nobody_serves_the_program_starts_one(repo: Repo) -> None:
    repo.write("a.py", "x\n")
    done = typed(repo, QUICK, "lock", "a.py", "--agent", "ann")
    assert done.returncode == 0 and done.stdout.startswith("a.py  exclusive  ann"), done


def test_another_program_does_for_itself(busy: Repo) -> None:
    """A client that was installed at another time is not served: it may mean other words."""
    for stamp, served in ((_served.make_stamp(_command.__file__), True), ("1 2 3", False), ("", False)):
        frame = b"\0".join([stamp.encode(), os.fsencode(busy.root), *[b""] * (FIELDS - 2), b"locks"])
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(busy.state.socket()))
            link.sendall(b"hook =cli - %d\n%b" % (len(frame), frame))
            code, out, _ = _command.answered(link)  # type: ignore[arg-type]
        assert (code == 0 and b"a.py" in out) if served else code == _served.NOT_SERVED


@pytest.mark.parametrize("frame", [b"", b"\0" * (FIELDS - 1), b"\0" * FIELDS, b"\0" * 50, b"\xff\xfe", b"x" * 100_000])
def test_frames_of_nonsense_are_answered(busy: Repo, frame: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(busy.state.socket()))
        link.sendall(b"hook =cli - %d\n%b" % (len(frame), frame))
        assert _command.answered(link)[0] == _served.NOT_SERVED  # type: ignore[arg-type]


def test_a_coordinator_that_is_killed_while_it_waits(busy: Repo) -> None:
    """The same is asked again, under the same key: ann gets it once, when it is free."""
    waiting = subprocess.Popen([*QUICK, "lock", "a.py", "--agent", "bob", "--wait", "60s"], cwd=busy.root, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={k: v for k, v in os.environ.items() if k != "COORD_AGENT"})
    with busy.client() as boss:
        until(lambda: any(one.agent == "bob" and "exclusive" in one.mode for one in boss.call(rq.Locks()).waiters))
    pid = busy.pid()
    os.kill(pid, signal.SIGKILL)
    until(lambda: gone(pid))
    with busy.client() as boss:
        until(lambda: len(boss.call(rq.Locks()).waiters) >= 1)
        boss.call(rq.Release(agent="ann", resources=["a.py"]))
        out, err = waiting.communicate(timeout=60)
        assert waiting.returncode == 0 and out.startswith("a.py  exclusive  bob"), (out, err)
        assert [one.locked_by for one in boss.call(rq.Locks(resource="a.py")).items] == ["bob"]


def test_interrupted_it_takes_nothing(busy: Repo) -> None:
    waiting = subprocess.Popen([*QUICK, "lock", "a.py", "--agent", "cyd", "--wait", "60s", "--no-retry"], cwd=busy.root, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # a job in the background ignores it
    with busy.client() as boss:
        until(lambda: any(one.agent == "cyd" for one in boss.call(rq.Locks()).waiters))
        waiting.send_signal(signal.SIGINT)
        out, err = waiting.communicate(timeout=30)
        assert waiting.returncode == 130 and "interrupted" in err and "Traceback" not in err and not out
        until(lambda: not any(one.agent == "cyd" for one in boss.call(rq.Locks()).waiters))


@pytest.mark.parametrize("program", [QUICK, PROGRAM], ids=["quick", "itself"])
def test_who_stands_in_line_when_interrupted_is_told_how_to_leave_it(busy: Repo, program: list[str]) -> None:
    busy.there(name := f"dan-{program is QUICK}")
    waiting = subprocess.Popen([*program, "lock", "a.py", "--agent", name, "--wait=60s"], cwd=busy.root, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    with busy.client() as boss:
        place = until(lambda: next((one.acquisition_id for one in boss.call(rq.Locks()).waiters if one.agent == name), None))
        waiting.send_signal(signal.SIGINT)
        out, err = waiting.communicate(timeout=30)
        assert waiting.returncode == 130 and not out and err.splitlines()[0] == "coord: interrupted; an agent that is there stands in line still.", err
        assert "`coord locks --waiting`" in err and "`coord request withdraw PLACE --agent NAME`" in err and len(err.splitlines()) == 2, err
        assert place in busy.coord("locks", "--waiting").stdout
        other = busy.coord("request", "withdraw", place, "--agent", "bob")
        assert other.returncode == 6 and f"belongs to {name}" in other.stderr, other
        left = busy.coord("request", "withdraw", place.lower(), "--agent", name)
        assert (left.returncode, left.stdout) == (0, f"{place} withdrawn; {name} stands in line there no more.\n"), left
        assert not any(one.agent == name for one in boss.call(rq.Locks()).waiters)
        again = busy.coord("request", "withdraw", place, "--agent", name)
        assert again.returncode == 7 and f"{place} does not stand in line" in again.stderr, again


def test_a_pipe_that_closes(busy: Repo) -> None:
    done = subprocess.run(["sh", "-c", f"'{sys.executable}' -I -S '{_command.__file__}' events -n 500 | head -1"], cwd=busy.root, text=True, capture_output=True, timeout=60)
    assert done.stdout.count("\n") == 1 and not done.stderr


def test_the_installed_command_loads_no_more(busy: Repo) -> None:
    """What an installer makes of the entry point: the package is found, and none of it loaded."""
    wrapper = "import sys; from coordinator._command import run; sys.argv[1:] = ['locks']; run()"
    done = typed(busy, [sys.executable, "-X", "importtime", "-c", wrapper])
    assert done.returncode == 0 and "a.py" in done.stdout, done
    loaded = {row.rpartition("|")[2].strip() for row in done.stderr.splitlines() if row.startswith("import time:")}
    assert {name for name in loaded if name.startswith("coordinator")} == {"coordinator", "coordinator._command"}
    assert not loaded & {"typing", "msgspec", "re", "typer", "pathlib", "json"}


def test_each_module_has_the_commands_that_are_said_of_it() -> None:
    """A command is found without loading the others."""
    script = ("import sys\nfrom coordinator.cli import modules\nfrom coordinator.commands.signatures import COMMANDS\n"
              "modules.read_command(sys.argv[1].split())\nprint(*COMMANDS, sep='\\n')")
    names = [name for name in COMMANDS if name]
    assert {name.partition(" ")[0] for name in names} == modules.list_first_words(hidden=True)
    for name in names[::6]:
        done = subprocess.run([sys.executable, "-P", "-c", script, name], capture_output=True, text=True, timeout=60, check=True)
        assert name in done.stdout.splitlines(), name
        assert len(done.stdout.splitlines()) < 30, "it has read in much more"


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/St_Johns", "UTC"])
def test_times_of_events_are_local(busy: Repo, zone: str) -> None:
    """By the clock of whoever reads them, whatever zone the coordinator was started in."""
    at = busy.client().call(rq.Events(tail=True, limit=1)).items[-1].at
    expected = datetime.fromisoformat(at).astimezone(ZoneInfo(zone)).strftime("%H:%M:%S")
    for how in (QUICK, PROGRAM):
        assert typed(busy, how, "events", "-n", "1", TZ=zone).stdout.split()[1] == expected
        assert expected in typed(busy, how, "status", TZ=zone).stdout


def test_unlock_all_releases_what_the_agent_holds_and_no_more(busy: Repo) -> None:
    with busy.client() as boss:
        boss.call(rq.Acquire(agent="bob", resources=["d/b.py"]))
        boss.call(rq.Acquire(agent="bob", resources=["key:b", "key:c"]))
    assert typed(busy, QUICK, "unlock", "--all", "key:b", "--agent", "bob").returncode == 2
    done = typed(busy, QUICK, "unlock", "--all", "--agent", "bob")
    assert sorted(line.split()[1] for line in done.stdout.splitlines()) == ["d/b.py", "key:b", "key:c"]
    assert typed(busy, QUICK, "unlock", "--all", "--agent", "bob").stdout == "bob holds nothing.\n"
    assert sorted(typed(busy, QUICK, "locks", "-q").stdout.split("\n")) == ["", "a.py", "ü x.py"]
