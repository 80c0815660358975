"""What a command reads in that the coordinator does not answer: what it uses, and not what it names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Repo

#: Each takes ms to read, or (Typer, Rich, dataclasses' `inspect`) a third of all that a command may take.
SLOW = {"typer", "rich", "pydantic", "asyncio", "inspect", "typing_extensions", "tomlkit.items", "dataclasses", "importlib.resources", "concurrent.futures",
        "logging", "difflib", "subprocess", "tempfile", "json.decoder"}


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("line", "uses"), [
    ("ps", {"rich"}),  # a name that is not ASCII has to be measured
    ("task template", {"json.decoder"}), ("task schema", {"json.decoder"}), ("completion bash", set()), ("report", set()), ("logs T-1", set()),
    ("--version", {"importlib.resources", "tempfile"}), ("trust", {"json.decoder"}), ("up", set()), ("init", {"subprocess"}),
    ("doctor", {"json.decoder", "subprocess"}), ("agents profiles", {"rich", "json.decoder"}),
])
def test_what_it_reads_in(repo: Repo, line: str, uses: set[str]) -> None:
    repo.coord("init", "--yes")
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
