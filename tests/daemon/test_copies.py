"""A copy of a repository is another one: no command in it acts on the original's coordinator."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator import _command
from coordinator.words import requests as rq
from tests.conftest import Repo

#: As it is typed (tests/cli/test_quick_commands.py).
QUICK = [sys.executable, "-I", "-S", _command.__file__]
#: The socket of a root with a longer path lies elsewhere.
LONG = "a-long-name-of-a-folder/" * 6


@pytest.mark.parametrize("where", ["", LONG], ids=["short", "long"])
@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
def test_a_copy_is_on_its_own(make_repo: Callable[..., Repo], tmp_path: Path, where: str, stopped: bool) -> None:
    first = make_repo(f"{where}one")
    first.write("f", "x\n")
    assert first.coord("lock", "f", "--agent", "ann").returncode == 0
    copy = first.root.with_name("two")
    shutil.copytree(first.root, copy, symlinks=True, ignore=lambda folder, names: {"socket"} & set(names))
    if stopped:
        first.down()
    second = Repo(copy)
    try:
        for line in ("locks", "lock g --agent eve", "task add here"):
            done = subprocess.run([*QUICK, *line.split()], cwd=copy, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, (line, done)
        with second.client() as there:
            assert {one.resource for one in there.call(rq.Locks()).items} == {"f", "g"}
        with first.client() as here:
            assert {one.resource for one in here.call(rq.Locks()).items} == {"f"}
            assert here.call(rq.Tasks()).items == []
    finally:
        second.down()
