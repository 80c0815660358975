"""Fixtures of the stand: a scripted model server, a repository, and agents that must be there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents import offline
from tests.agents.clis import missing
from tests.agents.model_server import ModelServer
from tests.agents.stand import Stand
from tests.agents.wired import Wired


def need(agent: str) -> None:
    """Skip, in words, where an agent is not installed; fail where it is required to be."""
    if reason := missing(agent):
        if agent in os.environ.get("COORD_AGENTS_REQUIRED", "").replace(",", " ").split():
            pytest.fail(f"COORD_AGENTS_REQUIRED: {reason}")
        pytest.skip(reason)


@pytest.fixture(scope="session")
def loopback() -> bool:
    """Whether the kernel keeps us on loopback (otherwise only proxies do)."""
    return offline.cut_off()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """Without `loopback`: the tests of the server alone share their process with others."""
    with ModelServer() as made:
        yield made


@pytest.fixture
def stand(loopback: bool, tmp_path: Path, server: ModelServer) -> Iterator[Stand]:
    made = Stand(tmp_path / "runs", server)
    yield made
    made.close()


@pytest.fixture
def wired(stand: Stand, workplace: Path) -> Iterator[Wired]:
    made = Wired(workplace, stand)
    yield made
    made.coord("down")


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A small git repository with one commit."""
    root = tmp_path / "repo"
    (root / "lib").mkdir(parents=True)
    (root / "notes.txt").write_text("first line\nsecond line\nthird line\n")
    (root / "lib" / "sum.py").write_text("def add(a, b):\n    return a - b\n")
    git = ["git", "-c", "user.name=Test", "-c", "user.email=test@localhost", "-C", str(root)]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "Start"]):
        subprocess.run([*git, *words], check=True)
    return root
