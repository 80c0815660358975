"""Meaning is worked out in a process of its own: what ends it, or hangs it, is an answer."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from coordinator.source.meaning import PIECE_FILES, Meaning
from coordinator.source.reader_process import NoAnswerError
from tests.waiting import gone, patience, until

FILES = {"a.py": "def f(x): ...\n", "pkg/__init__.py": "", "pkg/b.py": "from a import f\ndef g():\n    f(1)\n"}
NEW = b"def f(x, y): ...\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def meaning(tree: Path) -> Iterator[Meaning]:
    with Meaning(str(tree), ":memory:") as one:
        yield one


def required(meaning: Meaning, tree: Path, new: bytes = NEW) -> list[str]:
    return meaning.judge("a.py", (tree / "a.py").read_bytes(), new).required


def test_it_follows_the_files(meaning: Meaning, tree: Path) -> None:
    assert meaning.progress().state == "not begun"
    done = meaning.read_all()
    assert (done.state, done.done, done.files, done.read) == ("done", 3, 3, 3)
    assert required(meaning, tree) == ["pkg/b.py::g"]
    assert meaning.judge("a.py", b"def f(x): ...\n", NEW, ["pkg/b.py::g"]).outcome == "ALLOW"
    assert meaning.read_all().read == 0
    (tree / "pkg/b.py").write_text("from a import f\ndef g():\n    f(1, 2)\n")
    (tree / "c.py").write_text("import a\ndef h():\n    a.f(1)\n")
    assert meaning.update(["pkg/b.py", "c.py", "never.py", "../out.py"][:3]) == 2
    assert required(meaning, tree) == ["c.py::h"]
    (tree / "c.py").unlink()
    meaning.update(["c.py"])
    assert required(meaning, tree) == []


def test_ignored_files_links_and_what_is_outside_are_not_read(meaning: Meaning, tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    away = tmp_path_factory.mktemp("away") / "d.py"
    away.write_text("from a import f\nf(1)\n")
    (tree / ".gitignore").write_text("gen/\n")
    for name in ("gen", ".coord"):
        (tree / name).mkdir()
        (tree / name / "e.py").write_text("from a import f\nf(1)\n")
    (tree / "link.py").symlink_to(away)
    (tree / "folder").symlink_to(away.parent)
    (tree / "broken.py").write_bytes(b"def f(:\n\xff")
    with open(os.fsencode(tree) + b"/\xff\xfe.py", "wb") as odd:
        odd.write(b"from a import f\nf(1)\n")
    (tree / "large.py").write_bytes(b"f(1)\n" * 500_000)
    meaning.read_all()
    assert meaning.update(["folder/d.py"]) == 0
    found = required(meaning, tree)
    assert "pkg/b.py::g" in found and len(found) == 2 and found[0 if found[1] == "pkg/b.py::g" else 1].endswith(".py::<header>")


def test_the_index_outlives_the_worker(tree: Path) -> None:
    index = str(tree / ".index")
    with Meaning(str(tree), index) as first:
        first.read_all()
    with Meaning(str(tree), index) as second:
        assert required(second, tree) == ["pkg/b.py::g"]
        assert second.read_all().read == 0
        worker = second.worker_id()
        assert worker is not None
        os.kill(worker, signal.SIGKILL)
        until(lambda: gone(worker))
        assert second.judge("a.py", b"", b"").outcome in ("ALLOW", "ESCALATION_REQUIRED")
        assert required(second, tree) == ["pkg/b.py::g"]


def test_reading_in_the_background_lets_judgements_pass(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged, update = threading.Event(), Meaning.update

    def waits_after_a_piece(meaning: Meaning, paths: Sequence[str]) -> int:
        read = update(meaning, paths)
        judged.wait(patience(60))
        return read

    monkeypatch.setattr(Meaning, "update", waits_after_a_piece)
    for number in range(PIECE_FILES * 4):
        (tree / f"m{number}.py").write_text("def k():\n    pass\n" * 200)
    with Meaning(str(tree), ":memory:") as meaning:
        meaning.start()
        meaning.start()
        assert threading.active_count() >= 2
        until(lambda: meaning.progress().state not in ("not begun", "listing"))
        meaning.judge("a.py", b"", b"")
        assert meaning.progress().state == "reading" and not judged.is_set()
        judged.set()
        until(lambda: meaning.progress().state == "done", 60)
        assert meaning.progress().read == PIECE_FILES * 4 + 3
        assert required(meaning, tree) == ["pkg/b.py::g"]


@pytest.mark.parametrize(("does", "note"), [
    ("import os; os.abort()", "failed on it"),
    ("import sys; sys.stdin.buffer.read(9); sys.exit()", "failed on it"),
    ("import os; os.write(1, bytes(4) + b'x' * 9)", "failed on it"),
    ("import os, signal; os.write(1, b'\\0\\1\\0\\0abc'); signal.pause()", "took over 0.3 s"),
])
def test_a_worker_that_fails_is_ended_and_somebody_has_to_look(tree: Path, does: str, note: str) -> None:
    with Meaning(str(tree), ":memory:", 0.3, [sys.executable, "-P", "-c", does]) as failing:
        found = failing.judge("a.py", b"x=1\n" * 50_000, b"")
        assert found.outcome == "ESCALATION_REQUIRED" and note in found.note
        with pytest.raises(NoAnswerError):
            failing.update(["a.py"])
        failing.start()
        until(lambda: failing.progress().state == "failed", 70)


def test_a_file_that_ends_the_worker_is_passed_over(tree: Path) -> None:
    """The worker ends on each question that names `pkg/b.py`, but where it is told that it failed."""
    kills = (
        "import os, sys\n"
        "from coordinator.source import worker\n"
        "from coordinator.source.repository_index import RepositoryIndex\n"
        "real = RepositoryIndex._update_file\n"
        "def one(self, path):\n"
        "    if path == 'pkg/b.py': os._exit(9)\n"
        "    return real(self, path)\n"
        "RepositoryIndex._update_file = one\n"
        f"sys.argv[1:] = [{str(tree)!r}, {str(tree / '.index')!r}]\n"
        "worker.main()\n"
    )
    (tree / "c.py").write_text("import a\na.f(1)\n")
    with Meaning(str(tree), "", 20.0, [sys.executable, "-P", "-c", kills]) as meaning:
        assert meaning.read_all().state == "done"
        assert required(meaning, tree) == ["c.py::<header>"]


def test_no_disk_is_said_in_words(tree: Path) -> None:
    with Meaning(str(tree / "none"), ":memory:") as meaning:
        with pytest.raises(NoAnswerError):
            meaning.read_all()
        assert meaning.progress().state == "failed" and meaning.progress().why
