"""What a command reads in that the coordinator does not answer: what it uses, and not what it names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.conftest import Repo

#: Each takes ms to read, or (Typer, Rich, dataclasses' `inspect`) a third of all that a command may take.
SLOW = {"typer", "rich", "pydantic", "asyncio", "inspect", "typing_extensions", "tomlkit.items", "dataclasses", "importlib.resources", "concurrent.futures",
        "logging", "difflib", "subprocess", "tempfile", "json.decoder", "uuid", "decimal", "urllib.parse", "platform", "tomllib._parser", "apsw",
        "tree_sitter", "coordinator.words.requests.backlog"}


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("word", ["--version", "-V", "--help"])
def test_what_is_the_same_everywhere_needs_no_program(word: str) -> None:
    done = subprocess.run([sys.executable, "-X", "importtime", "-c", "from coordinator._command import run; run()", word], text=True,
                          capture_output=True, timeout=60, env={**os.environ, "COLUMNS": "80"})
    assert "coordinator.cli" not in done.stderr and done.stdout.strip(), done


@pytest.mark.parametrize(("line", "uses"), [
    # A name that is not ASCII has to be measured; several coordinators (of other tests) are asked at once.
    ("ps", {"rich", "coordinator.words.requests.backlog", "concurrent.futures", "logging"}),
    ("task template", {"json.decoder"}), ("task schema", {"json.decoder", "decimal", "uuid", "platform"}), ("completion bash", set()), ("report", set()), ("logs T-1", set()),
    ("trust", set()), ("up", set()), ("init", {"subprocess"}),
    ("doctor", {"subprocess"}), ("agents profiles", {"rich"}), ("regions a.py", set()), ("guard check", {"subprocess"}),
    ("impact a.py", {"subprocess"}), ("nonsense", {"difflib"}),
])
def test_what_it_reads_in(repo: Repo, line: str, uses: set[str]) -> None:
    repo.coord("init", "--yes")
    repo.write("a.py", "def f():\n    return 1\n")
    subprocess.run(["git", "add", "a.py"], cwd=repo.root, check=True)
    subprocess.run(["git", "-c", "user.name=Pat", "-c", "user.email=pat@localhost", "commit", "-qm", "x"], cwd=repo.root, check=True)
    repo.coord("up")
    done = subprocess.run([sys.executable, "-X", "importtime", "-c", "from coordinator._command import run; run()", *line.split()], cwd=repo.root, text=True,
                          capture_output=True, timeout=60)
    read = {row.rpartition("|")[2].strip() for row in done.stderr.splitlines() if row.startswith("import time:")}
    assert "coordinator.cli.main" in read, (line, done)
    # A module that is named and not used has been looked for only; what it would read in itself has not.
    left = {"difflib": "heapq", "subprocess": "_posixsubprocess", "tempfile": "random", "logging": "string", "inspect": "dis"}
    there = {one for one in SLOW & read if left.get(one, one) in read or one not in left} - {"typing_extensions"}
    assert there <= uses, (line, there)


def test_it_is_read_when_something_of_it_is_asked_for() -> None:
    assert run('''
from coordinator.cli import lazy_imports as lazy
lazy.begin()
import sys, json, json, subprocess, tempfile
unread = [one for one in ("json", "subprocess", "tempfile") if type(sys.modules[one]) is lazy.Unread]
from subprocess import PIPE
print(unread, json.loads("[1]"), PIPE, [type(one).__name__ for one in (json, subprocess, tempfile)])
''').strip() == "['json', 'subprocess', 'tempfile'] [1] -1 ['module', 'module', 'Unread']"


def test_what_no_message_has_is_as_ever_for_whoever_asks_for_it() -> None:
    """msgspec was read in with stand-ins of them; nothing else meets these."""
    assert run('''
from coordinator.cli import lazy_imports as lazy
lazy.begin(short=True)
import sys
left = {"uuid", "decimal", "urllib.parse", "typing_extensions"} & set(sys.modules)
import uuid, decimal, msgspec, urllib.parse
from pathlib import Path
from coordinator.words import requests as rq
print(left, uuid.UUID(int=1).hex[-1], decimal.Decimal("1.5") * 2, Path("/a b").as_uri(), urllib.parse.quote("a b"),
      msgspec.json.decode(msgspec.json.encode(rq.TaskAdd(title="x")), type=rq.TaskAdd).title)
''').strip() == "set() 1 3.0 file:///a%20b a%20b x"


def test_an_msgspec_that_wants_more_of_them_has_them_all() -> None:
    assert run('''
from coordinator.cli import lazy_imports as lazy
lazy.STRANGERS = {"uuid": {"UUID": {}}, "decimal": {"Decimal": {}}}
lazy.begin(short=True)
import msgspec, uuid
print(msgspec.json.encode(uuid.UUID(int=1)))
''').strip() == "b'\"00000000-0000-0000-0000-000000000001\"'"


def test_no_message_has_a_type_that_msgspec_does_not_know_in_a_command() -> None:
    from coordinator.operations.listing import OPERATIONS

    hints = "\n".join(repr(field.type) for one in OPERATIONS.values() for field in msgspec.structs.fields(one.request))
    assert not {"UUID", "Decimal"} & set(re.findall(r"\w+", hints))


@pytest.mark.parametrize("thread", [False, True])
def test_the_end_of_a_command_is_an_interpreters_end(tmp_path: Path, thread: bool) -> None:
    """What was to be done at its end is done, what was printed is there, and a thread is waited for."""
    code = f'''
import atexit, threading
from coordinator.cli import main
main.main = lambda arguments: (print("printed", end=""), 7)[1]
atexit.register(lambda: open({str(tmp_path / "at_exit")!r}, "w").close())
go = threading.Event()
def work():
    go.wait(20); open({str(tmp_path / "thread")!r}, "w").close()
if {thread}: threading.Thread(target=work).start(); threading.Timer(0.3, go.set).start()
main.run(short=True)
'''
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (7, "printed", "")
    assert (tmp_path / "at_exit").exists() and (tmp_path / "thread").exists() == thread


def test_threads_that_come_at_once_meet_it_whole() -> None:
    assert run('''
from coordinator.cli import lazy_imports as lazy
lazy.begin()
import threading, tomllib, json, difflib, tempfile, ctypes
gate, bad = threading.Barrier(16), []
def use(one, name):
    gate.wait()
    try: getattr(one, name)
    except BaseException as no: bad.append(repr(no))
all_of = [(json, "dumps"), (difflib, "unified_diff"), (tempfile, "mkdtemp"), (ctypes, "CDLL")] * 4
threads = [threading.Thread(target=use, args=two) for two in all_of]
[one.start() for one in threads]; [one.join() for one in threads]
print(bad)
''').strip() == "[]"


def test_one_that_cannot_be_read_says_so_each_time(tmp_path: Path) -> None:
    (tmp_path / "broken_in_the_middle.py").write_text("first = 1\nraise ImportError('no such library')\n")
    assert run(f'''
import sys
sys.path.insert(0, {str(tmp_path)!r})
from coordinator.cli import lazy_imports as lazy
lazy.SELDOM |= {{"broken_in_the_middle"}}
lazy.begin()
import broken_in_the_middle as broken
for _ in range(2):
    try: broken.first
    except ImportError as no: print(no)
''').splitlines() == ["no such library"] * 2


def test_one_that_cannot_be_had_says_so_as_ever() -> None:
    assert run('''
from coordinator.cli import lazy_imports as lazy
lazy.SELDOM |= {"no_such_module_at_all"}
lazy.begin()
try: import no_such_module_at_all
except ModuleNotFoundError as no: print(no)
''').strip() == "No module named 'no_such_module_at_all'"


def test_typer_takes_the_commands_of_each_module_that_is_read_alone() -> None:
    """A mistyped command is parsed with the commands of one module, whichever those are."""
    script = (
        "import importlib, os, sys, traceback\n"
        "from coordinator.cli import app, modules\n"
        "from coordinator.cli.typer_program import build_program\n"
        "bad = []\n"
        "for name in modules.MODULES:\n"
        "    if (child := os.fork()) == 0:\n"
        "        try:\n"
        "            importlib.import_module(f'coordinator.{name}'); build_program(); os._exit(0)\n"
        "        except BaseException:\n"
        "            traceback.print_exc(); os._exit(1)\n"
        "    if os.waitpid(child, 0)[1]: bad.append(name)\n"
        "sys.exit(', '.join(bad) or 0)\n")
    done = subprocess.run([sys.executable, "-P", "-c", script], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
