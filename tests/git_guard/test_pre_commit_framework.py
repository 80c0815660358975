"""The guard by real pre-commit, in a real repository: what another holds is not committed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Repo
from tests.git_guard.test_git_guard import IDENTITY, Guarded

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]


class Managed(Guarded):
    """Its hooks are pre-commit's, as `pre-commit install` writes them; coord's are not in git's."""

    def __init__(self, repo: Repo, folder: Path) -> None:
        super().__init__(repo)
        self.coord("guard", "remove")
        ours = folder / "coord-hooks"  # what a tag of coord has, as far as pre-commit reads it
        (ours / "scripts").mkdir(parents=True)
        shutil.copy(ROOT / ".pre-commit-hooks.yaml", ours)
        shutil.copy(ROOT / "scripts/pre_commit_guard.sh", ours / "scripts")
        self.git("init", "-q", cwd=ours)
        self.git("add", "-A", cwd=ours)
        self.git("commit", "-qm", "Hooks", cwd=ours)
        commit = self.git("rev-parse", "HEAD", cwd=ours).strip()
        repo.write(".pre-commit-config.yaml", f"""\
repos:
  - repo: {ours}
    rev: {commit}
    hooks: [{{id: coord-guard}}]
""")
        self.commands = folder / "commands"
        self.commands.mkdir()
        self.env = {"PRE_COMMIT_HOME": str(folder / "cache"), "HOME": str(folder),
                    "PATH": f"{self.commands}:/usr/local/bin:/usr/bin:/bin"}
        done = subprocess.run([sys.executable, "-m", "pre_commit", "install"], cwd=self.root, capture_output=True,
                              text=True, check=False, env={**os.environ, **IDENTITY, **self.env})
        assert done.returncode == 0, done.stdout + done.stderr

    def with_coord(self) -> None:
        (self.commands / "coord-plugin").symlink_to(Path(sys.executable).parent / "coord-plugin")


@pytest.fixture
def managed(repo: Repo, tmp_path: Path) -> Managed:
    return Managed(repo, tmp_path)


def test_what_another_holds_is_not_committed(managed: Managed) -> None:
    managed.with_coord()
    managed.hold("ann", "a.txt", description="reordering it")
    managed.repo.write("a.txt", "half\n")
    managed.git("add", "a.txt")
    done = managed.run("commit", "-qm", "Half", COORD_AGENT="bob")
    said = done.stdout + done.stderr
    assert done.returncode == 1 and "a.txt: held by ann" in said and "reordering it" in said, said
    managed.git("restore", "--staged", "a.txt")
    managed.repo.write("b.txt", "second\n")
    managed.git("commit", "-qm", "Mine", "b.txt", COORD_AGENT="bob")
    assert managed.git("log", "-1", "--format=%s").strip() == "Mine"


def test_a_machine_without_coord_commits_as_ever(managed: Managed) -> None:
    managed.hold("ann", "a.txt")
    managed.repo.write("a.txt", "half\n")
    managed.git("commit", "-qm", "Half", "a.txt")
    assert managed.git("log", "-1", "--format=%s").strip() == "Half"
