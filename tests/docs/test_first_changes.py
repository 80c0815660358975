"""The first changes that CONTRIBUTING.md tells of are carried out in a copy of the sources, and used through the real thing."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs.first_changes import ROOT, carry_out, read_change

REFUSAL, AGENT, OPERATION = "A refusal", "An agent CLI", "An operation with state and a command"
TITLES = (REFUSAL, AGENT, OPERATION)
COPIED = ("coordinator", "generators", "scripts", "agents", "docs", "context_archive", "tests", "benchmarks", "schema.sql", "Makefile",
          "pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
ASKING = """
import json, sys, urllib.request
from pathlib import Path
from coordinator.client.client import Client
from coordinator.files.state import StateDir
from coordinator.store.database import open_reader
from coordinator.store.rebuild import differences

root = Path(sys.argv[1])
with Client(root, agent="bob") as client:
    client.bookmark_set(name="login", place="src/login.py")
    by_python = [(mark.name, mark.place, mark.agent) for mark in client.bookmark_list().items]
state = StateDir(root)
asked = urllib.request.Request(state.http.read_text().strip() + "/v1/bookmarks")
asked.add_header("Authorization", f"Bearer {state.bearer.read_text().strip()}")
with urllib.request.urlopen(asked, timeout=30) as reply:
    by_http = [(mark["name"], mark["place"], mark["agent"]) for mark in json.loads(reply.read())["items"]]
print(json.dumps([by_python, by_http, differences(open_reader(state.database))[1]]))
"""


@dataclass(frozen=True)
class Copy:
    """The sources with all three changes, and a repository that the changed program serves."""

    sources: Path
    repository: Path

    def run(self, words: list[str], place: Path, text: str = "") -> subprocess.CompletedProcess[str]:
        """A program of the copy."""
        environment = {**os.environ, "PYTHONPATH": str(self.sources)}
        return subprocess.run(words, cwd=place, env=environment, input=text, capture_output=True, text=True, check=False)

    def type(self, command: str) -> tuple[int, str]:
        """What `coord …` ends with and says in the repository."""
        done = self.run([sys.executable, "-P", "-m", "coordinator.cli.main", *shlex.split(command)[1:]], self.repository)
        return done.returncode, done.stdout + done.stderr

    def make(self, line: str) -> None:
        """What is typed in the sources."""
        done = self.run(["sh", "-c", line.replace("make ", "make -o .venv/.ready ")], self.sources)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    """Begins with a repository that the program as it is has served: what is new in the schema comes to it."""
    place = tmp_path_factory.mktemp("changed")
    made = Copy(place / "sources", place / "repository")
    made.repository.mkdir()
    before = Copy(ROOT, made.repository)
    assert before.type("coord up")[0] == 0 and before.type("coord down")[0] == 0
    made.sources.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, made.sources / name, symlinks=True)
        else:
            shutil.copy2(ROOT / name, made.sources / name)
    (made.sources / ".venv").symlink_to(sys.prefix)
    for title in TITLES:
        carry_out(read_change(title), made.sources)
    assert {read_change(title).run[0] for title in TITLES} == {"make docs"}
    made.make("make docs")
    code, said = made.type("coord up --http 0")
    assert code == 0, said
    yield made
    made.type("coord down")


def test_how_many_files_a_change_touches() -> None:
    """Those that `make docs` makes are not counted."""
    files = {title: read_change(title).files for title in TITLES}
    assert files[AGENT] == ["agents/quill.toml"]
    assert len([file for file in files[REFUSAL] if not file.startswith("tests/")]) == 2, "the code, and where it is raised"
    folders = {file.rpartition("/")[0] for file in files[OPERATION] if file.startswith("coordinator/")}
    outside = [file for file in files[OPERATION] if not file.startswith("coordinator/")]
    assert folders == {"coordinator/slices/bookmarks"} and len(outside) <= 2, outside


def try_the_new_agent(copy: Copy) -> None:
    """It asks before it writes."""
    (copy.repository / "held.py").write_text("")
    assert copy.type("coord init --agent quill --yes")[0] == 0 and copy.type("coord lock held.py --agent ann")[0] == 0
    (entry,) = json.loads((copy.repository / ".quill/settings.json").read_text("utf-8"))["hooks"]["PreToolUse"]
    answers = []
    for name in ("held.py", "free.py"):
        call = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "write", "tool_use_id": name,
                "tool_input": {"path": str(copy.repository / name)}, "cwd": str(copy.repository)}
        answers.append(copy.run(["sh", "-c", entry["hooks"][0]["command"]], copy.repository, text=json.dumps(call)).stdout)
    assert '"deny"' in answers[0] and "ann" in answers[0] and "deny" not in answers[1], answers


def try_the_new_operation(copy: Copy) -> None:
    """It is asked at every door, and its log replays."""
    done = copy.run([sys.executable, "-P", "-c", ASKING, str(copy.repository)], copy.repository)
    assert done.returncode == 0, done.stderr
    by_python, by_http, not_replayed = json.loads(done.stdout)
    assert by_python == by_http and ["login", "src/login.py", "bob"] in by_http and not_replayed == []
    assert "bob marked src/login.py as login" in copy.type("coord events -n 9")[1]


def test_each_change_works_as_it_is_told(copy: Copy) -> None:
    for title in TITLES:
        for command, shown in read_change(title).typed:
            code, said = copy.type(command)
            assert said == shown if shown else code == 0, (command, said)
    try_the_new_agent(copy)
    try_the_new_operation(copy)


@pytest.mark.slow
def test_what_is_run_passes_and_the_house_stays_in_order(copy: Copy) -> None:
    for title in TITLES:
        for line in read_change(title).run[1:]:
            copy.make(line)
    for line in ("ruff check .", "lint-imports --no-cache", "mypy", "python -m generators"):
        copy.make(f".venv/bin/{line}")
