"""All coordinators of a user, told by one of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.waiting import until


def roots(repo: Repo) -> list[str]:
    with repo.client() as client:
        return [row.root for row in client.call(rq.Coordinators()).items]


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the coordinators of this test are known."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.usefixtures("alone")
def test_each_repository_is_told_with_what_waits_there(repo: Repo, tmp_path: Path) -> None:
    repo.coord("up")
    assert roots(repo) == [str(repo.root)]
    other = tmp_path / "other repo"
    other.mkdir()
    repo.coord("init", cwd=other)
    repo.coord("lock", "a.py", "--agent", "ann", cwd=other)
    with repo.client() as client:
        rows = {row.root: row for row in client.call(rq.Coordinators()).items}
    assert set(rows) == {str(repo.root), str(other)}
    assert (rows[str(other)].leases, rows[str(other)].agents, rows[str(repo.root)].leases) == (1, 1, 0)
    os.kill(rows[str(other)].pid, signal.SIGKILL)
    until(lambda: roots(repo) == [str(repo.root)])
