"""`coord impact FILE`: what a change breaks, for people and programs; nothing is written beside it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from coordinator.words.refusals import Code

A = "def pay(value):\n    return value\n"
USE = "from shop.a import pay\n\n\ndef order():\n    return pay(1)\n"


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True,
                   capture_output=True)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit, and `shop/a.py` changed since."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/a.py").write_text(A)
    (tmp_path / "use it.py").write_text(USE)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    (tmp_path / "shop/a.py").write_text(A.replace("value)", "value, rate)"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    from coordinator.cli.main import main

    code = main(list(arguments))
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture(autouse=True)
def in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the tests are run in: what is said is not folded."""
    monkeypatch.delenv("COLUMNS", raising=False)


def test_for_people(shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = run(capsys, "impact", "shop/a.py")
    assert code == 0
    assert "use it.py:5: order() in use it.py calls pay() with one argument; it needs 'rate' now" in out
    assert out.rstrip().endswith("REQUIRE_ADDITIONAL_LOCKS")
    assert err.strip() == "next: coord lock 'use it.py::order' --agent NAME"
    assert not (shop / ".coord").exists()
    monkeypatch.chdir(shop / "shop")
    assert "use it.py:5" in run(capsys, "impact", "a.py")[1]
    git(shop, "commit", "-qam", "two")
    code, out, _ = run(capsys, "impact", "a.py")
    assert code == 0 and out.rstrip().endswith("ALLOW")
    assert "use it.py:5" in run(capsys, "impact", "a.py", "--git", "HEAD~1")[1]


def test_for_programs(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "impact", "shop/a.py", "--json")
    told = json.loads(out)
    assert code == 0 and not err
    assert told["outcome"] == "REQUIRE_ADDITIONAL_LOCKS" and told["required"] == ["use it.py::order"]
    assert told["against"] == "HEAD" and told["breaks"][0]["line"] == 5


def test_a_file_that_went_and_one_that_came(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shop / "old.py").write_text(A.replace("pay(", "sell("))
    code, out, _ = run(capsys, "impact", "shop/a.py", "--against", "old.py")
    assert code == 0 and "nothing that others use takes less" not in out and out.rstrip().endswith("ALLOW")
    code, out, _ = run(capsys, "impact", "old.py")
    assert code == 0 and out.rstrip().endswith("ALLOW")
    (shop / "shop/a.py").unlink()
    code, out, _ = run(capsys, "impact", "shop/a.py")
    assert code == 0 and "use it.py:1:" in out and "it is gone" in out


def test_an_index_is_kept_only_beside_ones_own_coordinator(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shop / ".coord").mkdir(mode=0o700)
    (shop / ".coord/secret").write_bytes(b"not mine")
    assert "use it.py:5" in run(capsys, "impact", "shop/a.py")[1]
    assert {one.name for one in (shop / ".coord").iterdir()} == {"secret"}
    from coordinator.files.state import StateDir

    (shop / ".coord/secret").unlink()
    StateDir(shop).create()
    for _ in range(2):
        _, out, err = run(capsys, "impact", "shop/a.py")
        assert "use it.py:5" in out, err
    assert (shop / ".coord/meaning.sqlite3").exists()


def test_what_cannot_be_asked_is_refused_in_words(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shop / "notes.txt").write_text("a\n")
    (shop / "b.py").write_bytes(b"a\0b")
    for arguments, code in (
        (("none.py",), Code.INVALID), (("shop",), Code.INVALID), (("notes.txt",), Code.INVALID),
        (("b.py",), Code.INVALID), (("shop/a.py", "--git", "no-such"), Code.INVALID),
        (("shop/a.py", "--git", "--help"), Code.INVALID), (("shop/a.py", "--against", "none.py"), Code.INVALID),
        (("shop/a.py", "--against", "b.py", "--git", "HEAD"), Code.INVALID), (("/etc/x.py",), Code.OUTSIDE_REPO),
    ):
        exit_code, out, err = run(capsys, "impact", *arguments)
        assert exit_code == code.row.exit and not out, arguments
        assert err.startswith(f"coord: {code.value}: ") and "  next: " in err, arguments


def test_of_what_cannot_be_read_nothing_is_said_but_that(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shop / "shop/a.py").write_text("def pay(:\n")
    code, out, _ = run(capsys, "impact", "shop/a.py")
    assert code == 0 and out.splitlines() == [
        "shop/a.py against HEAD: it could not be read: no Python that can be read (line 1); nothing more can be said.", "ESCALATION_REQUIRED"]
