"""Grammars run in a process of their own: its end, its silence and its nonsense are answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.regions.grammar import AT_ROOT, load
from coordinator.regions.languages import languages, read_queries
from coordinator.regions.reader import outline
from coordinator.source import protocol
from coordinator.source.outlines import Outlines
from coordinator.source.reader_process import NoAnswerError
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo
from tests.regions.held import held
from tests.regions.samples import SAMPLES
from tests.waiting import gone, until


@pytest.fixture(scope="module")
def outlines() -> Iterator[Outlines]:
    with Outlines() as one:
        yield one


def test_it_answers_as_the_function_does(outlines: Outlines) -> None:
    for language, (_, text, _) in SAMPLES.items():
        data = text.encode()
        assert outlines.of(data, language, nested=True) == outline(data, language, nested=True)
    assert outlines.of(b"a", None).note and outlines.of(b"x" * 5_000_001, "python").note


def test_a_worker_that_was_ended_is_started_again(outlines: Outlines) -> None:
    outlines.of(b"", "python")
    worker = outlines.worker_id()
    assert worker is not None
    os.kill(worker, signal.SIGKILL)
    until(lambda: gone(worker))
    assert not outlines.of(b"def f(): pass\n", "python").note


def test_a_closed_one_answers_at_once_and_starts_nothing() -> None:
    """Whoever ends a coordinator does not wait for a file that takes long."""
    outlines, found = Outlines(600, [sys.executable, "-P", "-c", "import signal; signal.pause()"]), []
    asks = threading.Thread(target=lambda: found.append(outlines.of(b"def f(): pass\n", "python")))
    asks.start()
    until(outlines.worker_id)
    outlines.close()
    asks.join(10)
    assert [one.note for one in found] == ["the grammar for python failed on it"]
    assert outlines.of(b"", "python").note and outlines.worker_id() is None


@pytest.mark.parametrize(("does", "note"), [
    ("import os; os.abort()", "failed on it"),
    ("import sys; sys.stdin.buffer.read(9); sys.exit()", "failed on it"),
    ("import os; os.write(1, bytes(4) + b'x' * 9)", "failed on it"),
    ("import os, signal; os.write(1, b'\\0\\1\\0\\0abc'); signal.pause()", "took over 0.5 s"),
])
def test_a_worker_that_fails_makes_one_region(does: str, note: str) -> None:
    with Outlines(0.5, [sys.executable, "-P", "-c", does]) as failing:
        data = b"def f(): pass\n" * 20_000  # more than a pipe holds
        found = failing.of(data, "python")
        held(data, found)
        assert [one.kind for one in found.regions] == ["file"] and note in found.note


def test_a_worker_that_fails_once_is_asked_again(tmp_path: Path) -> None:
    does = (f"import pathlib, sys\nseen = pathlib.Path({str(tmp_path / 'seen')!r})\n"
            "if not seen.exists():\n    seen.touch()\n    sys.exit(9)\n"
            "sys.argv[1:] = []\nfrom coordinator.source import worker\nworker.main()\n")
    with Outlines(60, [sys.executable, "-P", "-c", does]) as failing:
        assert failing.of(b"def f(): pass\n", "python").names() == ["<header>", "f"]
        with pytest.raises(NoAnswerError, match="keeps no index"):
            failing.ask(protocol.ListFiles(), protocol.Listed)


def test_what_a_query_says_of_the_root_begins_there() -> None:
    """It is tried nowhere else."""
    for name, row in languages().items():
        _, parser, _, top = load(name)
        assert (top.pattern_count > 0) == ("; At the root:" in read_queries((row.query,)))
        text, root = read_queries((row.query,)).partition(AT_ROOT)[2], parser.parse(b"").root_node.type
        for pattern in range(top.pattern_count):
            assert text[top.start_byte_for_pattern(pattern):].startswith(f"({root} "), name


def test_a_grammar_that_takes_too_long_is_ended() -> None:
    """Error recovery on nothing but opening brackets takes time by the square of their number."""
    data = b"(" * 100_000
    with Outlines(1.0) as short:
        found = short.of(data, "bash")
        held(data, found)
        until(lambda: not short.of(b"a=1\n", "bash").note)  # its start alone may take a second here


@pytest.fixture
def loose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is no repository and has no coordinator."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(SAMPLES["python"][1])
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    from coordinator.cli.main import main

    code = main(list(arguments))
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize("columns", ["60", "80", "120", ""])
def test_the_table_fits(loose: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
                        columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    (loose / "long.json").write_text(json.dumps({"k" * 110: {"l" * 110: 1}}))
    for file in ("a.py", "long.json"):
        code, out, err = run(capsys, "regions", file)
        assert code == 0 and not err and "\x1b" not in out
        assert not columns or max(map(len, out.splitlines())) <= int(columns)
    assert not (loose / ".coord").exists()


def test_json_tells_all(loose: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "regions", "a.py", "--json")
    told = json.loads(out)
    assert code == 0 and told["language"] == "python" and told["next"] is None
    assert [row["resource"] for row in told["items"]][:2] == ["a.py::<header>", "a.py::LIMIT"]
    _, out, _ = run(capsys, "regions", "a.py", "--json", "--nested")
    assert "nested" in {row["kind"] for row in json.loads(out)["items"]}


def test_what_has_no_regions_is_said_in_words(loose: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (loose / "sub").mkdir()
    (loose / "b.bin").write_bytes(b"a\0b")
    (loose / "notes.txt").write_text("a\n")
    os.mkfifo(loose / "pipe")
    for file, code in (("none.py", Code.INVALID), ("sub", Code.INVALID), (".", Code.INVALID), ("b.bin", Code.INVALID),
                       ("pipe", Code.INVALID), ("/etc/passwd", Code.OUTSIDE_REPO), ("a.py/x", Code.INVALID), ("", Code.INVALID)):
        exit_code, out, err = run(capsys, "regions", file)
        assert exit_code == code.row.exit and not out, file
        assert err.startswith(f"coord: {code.value}: ") and "  next: " in err, file
    code, out, _ = run(capsys, "regions", "notes.txt")
    assert code == 0 and "One region, the file itself" in out


def test_a_lease_on_a_region_that_is_not_there(repo: Repo) -> None:
    (repo.root / "f.py").write_text("def charge():\n    def inner(): pass\n\nclass A:\n    def refund(self): pass\n")
    refused = repo.coord("lock", "f.py::chrge", "--agent", "ann", "--json")
    assert refused.returncode == 7
    told = json.loads(refused.stdout)["error"]
    assert told["code"] == "REGION_UNKNOWN" and told["nearest"][0] == "f.py::charge"
    known = [f"f.py::{name}" for name in ("charge", "charge.inner", "A", "A.refund", "<header>")]
    done = repo.coord("lock", *known, "new.py::not.yet", "--agent", "ann")
    assert done.returncode == 0, done.stderr


def test_a_file_is_named_from_the_root_wherever_it_is_typed(repo: Repo) -> None:
    repo.write("src/f.py", "def f():\n    return 1\n")
    repo.write("docs/x.md", "x\n")
    below = repo.root / "docs"
    assert repo.coord("lock", ":/src/f.py::f", "--agent", "ann", cwd=below).returncode == 0
    assert "src/f.py: python" in repo.coord("regions", ":/src/f.py", cwd=below).stdout
    done = repo.coord("commit-region", ":/src/f.py::f", "--agent", "ann", cwd=below, text="def f():\n    return 2\n")
    assert done.returncode == 0 and repo.read("src/f.py").endswith("return 2\n"), done
    other = repo.coord("commit-region", ":/src/f.py::f", "--agent", "bob", cwd=below, text="x")
    assert "coord request file :/src/f.py::f" in other.stderr, other
    for words in (("git", "init", "-q"), ("git", "add", "-A"), ("git", "-c", "user.name=P", "-c", "user.email=p@x", "commit", "-qm", "x")):
        subprocess.run(words, cwd=repo.root, check=True)
    assert repo.coord("impact", ":/src/f.py", cwd=below).returncode == 0


def test_regions_are_committed_from_the_command_line(repo: Repo) -> None:
    (repo.root / "sub").mkdir()
    text = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
    (repo.root / "sub/f.py").write_text(text)
    assert repo.coord("lock", "sub/f.py::f", "sub/f.py::g", "--agent", "ann").returncode == 0
    told = json.loads(repo.coord("regions", "sub/f.py", "--json").stdout)["items"]
    hashes = {row["name"]: row["content_hash"] for row in told}
    done = repo.coord("commit-region", "f.py::f", "--agent", "ann", "--hash", hashes["f"], cwd=repo.root / "sub",
                      text="def f():\n    return 10\n")
    assert done.returncode == 0 and done.stdout.startswith("sub/f.py::f  sha256:"), done.stderr
    again = repo.coord("commit-region", "sub/f.py::f", "--agent", "ann", "--hash", hashes["f"], "--json", text="x")
    assert json.loads(again.stdout)["error"]["text"] == "def f():\n    return 10\n\n\n"
    (repo.root / "new f").write_text("def f():\n    return 100\n")
    (repo.root / "new g").write_text("def g():\n    return 200\n")
    both = ("commit-region", "sub/f.py::f", "sub/f.py::g", "--agent", "ann")
    assert repo.coord(*both, "--from", "new f").returncode == 2
    assert repo.coord(*both, "--from", "new f", "--from", "none").returncode == 2
    assert repo.coord(*both, "--from", "new f", "--from", "new g").returncode == 0
    assert (repo.root / "sub/f.py").read_text() == text.replace("1", "100").replace("2", "200")
    with repo.client("bob") as client:
        with pytest.raises(Refusal) as refused:
            client.commit_region("sub/f.py::f", "def f(): pass\n")
        assert refused.value.code is Code.NOT_HOLDER
