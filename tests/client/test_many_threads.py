"""Several threads of one program, each with a client of its own, that ask for the first time at the same moment."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import coordinator
from tests.conftest import Repo

#: Each thread is stopped as often as can be: what is half done is met by the next.
READING = """
import sys, threading
import msgspec
from coordinator.words import shapes
sys.setswitchinterval(1e-6)
for _ in range(150):
    class Inner(msgspec.Struct):
        a: int
        b: list[str]
    class Outer(msgspec.Struct):
        x: Inner
        y: list[Inner]
        z: dict[str, Inner] | None = None
    start = threading.Barrier(8)
    def work(kind, raw):
        start.wait()
        shapes.read(raw, kind) if raw else shapes.convert({"x": {"a": 1, "b": []}, "y": []}, kind)
    raw = b'{"x":{"a":1,"b":[]},"y":[{"a":1,"b":["c"]}]}'
    threads = [threading.Thread(target=work, args=(Outer, raw if n % 4 else b"") if n % 2 else (Inner, b'{"a":1,"b":[]}')) for n in range(8)]
    for one in threads: one.start()
    for one in threads: one.join()
print("all were read")
"""
ASKING = """
import sys, threading
from coordinator import Client
sys.setswitchinterval(1e-6)
clients = [Client(sys.argv[1], agent=f"m{n}") for n in range(8)]
start = threading.Barrier(len(clients))
def work(client):
    start.wait()
    client.status()
threads = [threading.Thread(target=work, args=(client,)) for client in clients]
for one in threads: one.start()
for one in threads: one.join()
print("all were answered")
"""


def test_a_type_is_worked_out_by_one_thread_at_a_time() -> None:
    done = subprocess.run([sys.executable, "-c", READING], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and done.stdout == "all were read\n", (done.returncode, done.stderr[-2000:])


def test_clients_of_several_threads_are_answered_at_once(repo: Repo) -> None:
    repo.coord("up")
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", ASKING, str(repo.root)], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0 and done.stdout == "all were answered\n", (done.returncode, done.stderr[-2000:])


def test_what_runs_in_threads_of_others_works_out_no_type_by_itself() -> None:
    """A segmentation fault would be met once in many runs: so it is looked for in the text, too."""
    package = Path(coordinator.__file__).parent
    for folder in ("client", "frameworks", "launch", "profiles"):
        for file in (package / folder).rglob("*.py"):
            found = re.findall(r"json\.decode\([^)]*type=|msgspec\.convert\(", file.read_text())
            assert not found, (file, found)
