"""A coordinator that runs and does not answer: each command says so within seconds, and how it is ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from coordinator import _command
from tests.conftest import Repo


@pytest.fixture
def hung(repo: Repo) -> Iterator[int]:
    repo.coord("up")
    pid = repo.pid()
    os.kill(pid, signal.SIGSTOP)
    yield pid
    os.kill(pid, signal.SIGCONT)


@pytest.mark.slow
def test_each_command_names_its_process(repo: Repo, hung: int) -> None:
    with ThreadPoolExecutor(4) as pool:  # each waits for seconds, and `Repo.coord` for a minute at most
        listed, as_json, doctor, down = pool.map(lambda words: repo.coord(*words), (
            ["ps"], ["ps", "--json"], ["doctor"], ["down"]))
    assert listed.returncode == 0 and f"{hung}" in listed.stdout and "does not answer" in listed.stdout
    told = {one["pid"]: one for one in json.loads(as_json.stdout)["items"]}[hung]
    assert told["answers"] is False and told["leases"] is None
    assert doctor.returncode == 1 and down.returncode == 5
    for said in (listed.stdout, doctor.stdout, down.stderr):
        assert f"`kill -9 {hung}`" in said, said


def test_a_quick_command_says_that_it_waits(repo: Repo, hung: int) -> None:
    with subprocess.Popen([sys.executable, "-I", "-S", _command.__file__, "lock", "a", "--agent", "ann"], cwd=repo.root,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as done:
        assert done.stderr is not None and "has not answered for 10 s" in done.stderr.readline()
        os.kill(hung, signal.SIGCONT)
        out, err = done.communicate(timeout=30)
        assert done.returncode == 0 and out.startswith("a  exclusive") and err == "", "it was waited for, and asked once"


def test_nobody_is_told_to_end_every_process() -> None:
    """`kill -9 0` ends all of a terminal's."""
    from coordinator.cli import coordinators

    assert "kill" not in coordinators._kill(0) and "kill" not in coordinators._kill(None)
