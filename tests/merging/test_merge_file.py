"""`coord merge-file`: git's own conventions, in words where nothing was merged."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from coordinator.cli.main import main

BASE = "import os\n\n\ndef a():\n    return 1\n"
OURS, THEIRS = BASE + "\n\ndef b():\n    return 2\n", BASE + "\n\ndef c():\n    return 3\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with three versions, with a space in its name; no repository, no coordinator."""
    folder = tmp_path / "a place"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name, text in (("base.py", BASE), ("ours.py", OURS), ("theirs.py", THEIRS)):
        (folder / name).write_text(text)
    return folder


def run(capfdbinary: pytest.CaptureFixture[bytes], *words: str) -> tuple[int, bytes, str]:
    code = main(["merge-file", *words])
    said = capfdbinary.readouterr()
    return code, said.out, said.err.decode()


def test_it_writes_into_ours(place: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    (place / "ours.py").chmod(0o755)
    (place / "link.py").symlink_to("ours.py")
    code, out, err = run(capfdbinary, "link.py", "base.py", "theirs.py")
    assert (code, out, err) == (0, b"", "")
    assert (place / "ours.py").read_text() == OURS + "\n\ndef c():\n    return 3\n"
    assert (place / "ours.py").stat().st_mode & 0o777 == 0o755 and (place / "link.py").is_symlink()
    assert sorted(os.listdir(place)) == ["base.py", "link.py", "ours.py", "theirs.py"]


def test_its_words_are_those_of_gits_own(place: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    words = ("-p", "ours.py", "base.py", "theirs.py")
    text = "def a():\n    return 1\n\n\ndef b():\n    return 2\n"
    for name, version in (("base", text), ("ours", text.replace("1", "10")), ("theirs", text.replace("2", "20"))):
        (place / f"{name}.py").write_text(version)
    git = subprocess.run(["git", "merge-file", *words], capture_output=True, check=False)
    assert run(capfdbinary, *words)[:2] == (git.returncode, git.stdout)


def test_it_prints(place: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    (place / "theirs.py").write_text(BASE.replace("\n", "\r\n"))
    code, out, _ = run(capfdbinary, "-p", "ours.py", "base.py", "theirs.py")
    assert code == 0 and out.decode() == OURS.replace("\n", "\r\n")
    assert (place / "ours.py").read_text() == OURS


def test_conflicts_are_counted_and_marked(place: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    base = "".join(f"def f{n}():\n    return {n}\n\n\n" for n in range(4))
    (place / "base.py").write_text(base)
    (place / "ours.py").write_text(base.replace("return 1", "return 11").replace("return 3", "return 13"))
    (place / "theirs.py").write_text(base.replace("return 1", "return 21").replace("return 3", "return 23"))
    code, out, err = run(capfdbinary, "ours.py", "base.py", "theirs.py", "-p", "-L", "mine", "-L", "was", "-L", "yours",
                         "--style", "diff3", "--marker-size", "9")
    text = out.decode()
    assert code == 2 and text.count("<<<<<<<<< mine: f") == 2 and text.count("||||||||| base: f") == 2
    assert ">>>>>>>>> yours: f3: both changed its body\n" in text and "conflict in f1: both changed its body" in err
    code, out, _ = run(capfdbinary, "ours.py", "base.py", "theirs.py", "--json")
    told = json.loads(out)
    assert code == 2 == told["markers"] and told["by"] == "conflict"
    assert [one["region"] for one in told["conflicts"]] == ["f1", "f3"]
    assert (place / "ours.py").read_text() == told["merged"]


def test_the_name_tells_the_language(place: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for name in ("ours", "base", "theirs"):
        (place / f"{name}.py").rename(place / name)
    assert run(capfdbinary, "-p", "ours", "base", "theirs")[0] == 1
    assert run(capfdbinary, "-p", "ours", "base", "theirs", "--path", "src/a.py")[0] == 0


def test_what_is_not_merged_is_said_in_words(place: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    (place / "b.bin").write_bytes(b"a\0b")
    os.mkfifo(place / "pipe")
    for words in (["none.py", "base.py", "theirs.py"], ["base.py", "b.bin", "theirs.py"], ["pipe", "ours.py", "theirs.py"],
                  [".", "ours.py", "theirs.py"], ["ours.py", "base.py", "theirs.py", "--style", "odd"],
                  ["ours.py", "base.py", "theirs.py", *["-L", "x"] * 4]):
        code, out, err = run(capfdbinary, *words)
        assert code == 255 and not out, words
        assert err.startswith("coord: ") and "  next: " in err, words
    code, out, _ = run(capfdbinary, "none.py", "base.py", "theirs.py", "--json")
    assert code == 255 and json.loads(out)["error"]["code"] == "INVALID"
    assert (place / "ours.py").read_text() == OURS and (place / "b.bin").read_bytes() == b"a\0b"


def test_hostile_labels_and_names(place: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    (place / "ours.py").write_text(BASE.replace("1", "2"))
    (place / "theirs.py").write_text(BASE.replace("1", "3"))
    code, out, _ = run(capfdbinary, "-p", "ours.py", "base.py", "theirs.py", "-L", "a\n=======\nb", "-L", "", "-L", "--style")
    assert code == 1
    assert [one for one in out.decode().split("\n") if one.startswith("<")] == ["<<<<<<< a ======= b: a"]


def test_as_git_has_it(place: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Where coord divides nothing, every byte is git's, and the code is git's, too."""
    for name, text in (("base", "a\nb\n"), ("ours", "a\nc\n"), ("theirs", "a\nd\n")):
        (place / f"{name}.txt").write_text(text)
    words = ["git", "merge-file", "-p", "-q", "ours.txt", "base.txt", "theirs.txt"]
    git = subprocess.run(words, capture_output=True, check=False)
    code, out, _ = run(capfdbinary, "-p", "ours.txt", "base.txt", "theirs.txt")
    assert (code, out) == (git.returncode, git.stdout)
