"""Output that cannot be written: told in one sentence with the disk's own exit code, and without a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo

COORD = Path(sys.executable).parent / "coord"
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has /dev/full")


def typed(repo: Repo, words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", f"'{COORD}' {words}"], cwd=repo.root, capture_output=True, text=True, timeout=60, check=False)


@needs_full
@pytest.mark.parametrize("words", ["locks", "status --json", "lock a.py --agent A", "help", "--version", "doctor", "task template", "completion bash"])
def test_a_full_disk_is_told(repo: Repo, words: str) -> None:
    repo.coord("up")
    done = typed(repo, f"{words} > /dev/full")
    assert done.returncode == 9 and done.stderr.startswith("coord: STORAGE: "), done
    assert "No space left" in done.stderr and "Traceback" not in done.stderr
    if "lock a.py" in words:
        assert "carried out" in done.stderr
        assert [row.locked_by for row in repo.client().call(rq.Locks()).items] == ["A"]


@needs_full
def test_where_nothing_can_be_told_the_exit_code_tells_it(repo: Repo) -> None:
    repo.coord("up")
    for words in ("locks", "doctor", "--version"):
        assert typed(repo, f"{words} > /dev/full 2>&1").returncode == 9


@pytest.mark.parametrize("words", ["locks", "lock a.py --agent A", "--version", "doctor"])
def test_closed_output_is_no_output(repo: Repo, words: str) -> None:
    repo.coord("up")
    for closed in ("", " 2>&-", " <&- 2>&-"):
        done = typed(repo, f"{words} >&-{closed}")
        assert done.returncode == 0 and done.stdout == "", done
        assert "Traceback" not in done.stderr
