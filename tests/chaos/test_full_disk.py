"""A launch whose disk fills up under it: its agents stay supervised, its task ends."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("from_nothing")


@pytest.mark.chaos  # a minute
def test_a_disk_that_fills_up_leaves_no_task_behind(tmp_path: Path) -> None:
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs user namespaces (unshare)")
    here = Path(__file__)
    mount = tmp_path / "small"
    mount.mkdir()
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c",
         f'mount -t tmpfs -o size=64m none "{mount}" && cd "{here.parents[2]}" && '
         f'exec "{sys.executable}" -m tests.chaos.full_disk "{mount}"'],
        capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["code"] == 0 and told["state"] == "done" and "INTERNAL" not in told["said"], told
