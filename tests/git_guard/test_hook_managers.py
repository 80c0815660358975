"""Commits beside others by the real hook managers, each as its own documents have it installed."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from coordinator.namespaces import kernel
from tests.conftest import Repo
from tests.git_guard.test_commit_beside_others import Beside
from tests.git_guard.test_git_guard import IDENTITY

pytestmark = pytest.mark.slow

#: Says no to `bad`, sees what the others' file has, and formats what it is given.
CHECKS = '''import pathlib, sys
print("theirs:", pathlib.Path("theirs.py").read_text().split())
bad = False
for name in sys.argv[1:]:
    file = pathlib.Path(name)
    text = file.read_text()
    bad |= "bad" in text
    if "  " in text:
        file.write_text(" ".join(text.split()) + "\\n")
        bad |= bool({fails})
sys.exit(bad)
'''


@functools.cache
def npm_packages() -> Path:
    """A folder with the managers that npm has."""
    folder = Path(tempfile.gettempdir(), f"coord-hook-managers-{os.getuid()}")
    folder.mkdir(exist_ok=True)
    if not (folder / "node_modules/.bin/lefthook").exists():
        subprocess.run(["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--loglevel=error",
                        "--ignore-scripts",  # lefthook puts itself into the repository that one stands in
                        "husky@9", "lint-staged@15", "lefthook@1"], cwd=folder, check=True, capture_output=True, timeout=300)
    return folder / "node_modules"


class Managed(Beside):
    """A repository whose hooks a manager runs: CHECKS on what is staged."""

    def __init__(self, repo: Repo, manager: str, home: Path) -> None:
        super().__init__(repo)
        self.manager = manager
        self.fails = manager in ("pre-commit", "prek")  # whoever is formatted commits again
        script = f"{sys.executable} check.py"
        repo.write("check.py", CHECKS.replace("{fails}", str(self.fails)))
        self.env |= {"HOME": str(home), "PRE_COMMIT_HOME": str(home / "cache"), "PREK_HOME": str(home / "cache"),
                     "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        if manager in ("pre-commit", "prek"):
            repo.write(".pre-commit-config.yaml", "repos:\n  - repo: local\n    hooks:\n      - {id: check, name: check, language: system, "
                       f"entry: {script}, files: 'mine', verbose: true}}\n")
            words = [sys.executable, "-m", "pre_commit"] if manager == "pre-commit" else ["prek"]
            self.runs(*words, "install")
        else:
            (self.root / "node_modules").symlink_to(npm_packages())
            repo.write(".gitignore", "node_modules\n")
            repo.write("package.json", json.dumps({"name": "x", "lint-staged": {"mine*": script}}))
            if manager == "lefthook":
                repo.write("lefthook.yml", f"pre-commit:\n  commands:\n    check:\n      glob: 'mine*'\n      run: {script} {{staged_files}}\n"
                           "      stage_fixed: true\n")
                self.runs("node_modules/.bin/lefthook", "install")
            elif manager == "husky":
                self.runs("node_modules/.bin/husky")
                repo.write(".husky/pre-commit", "npx --no-install lint-staged --verbose\n")
            else:
                self.script("#!/bin/sh\nexec node_modules/.bin/lint-staged --verbose\n")
        self.git("add", "-A", ":!theirs.py", ":!mine.py")
        self.git("commit", "-qm", "Manager", "--no-verify")

    def runs(self, *words: str) -> None:
        subprocess.run(words, cwd=self.root, check=True, capture_output=True, env={**os.environ, **IDENTITY, **self.env})


@pytest.mark.parametrize("manager", ["pre-commit", "prek", "lint-staged", "husky", "lefthook"])
def test_a_manager_puts_nothing_of_others_aside(repo: Repo, tmp_path: Path, manager: str) -> None:
    if manager == "prek" and shutil.which("prek", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("prek is not installed here")
    if manager not in ("pre-commit", "prek") and shutil.which("npm") is None:
        pytest.skip("npm is not installed here")
    if kernel.refused():
        pytest.skip("no namespaces on this machine")
    managed = Managed(repo, manager, tmp_path)
    managed.hold("bob", "staged.py")
    managed.repo.write("staged.py", "new\n")
    managed.git("add", "staged.py")
    before = (managed.root / "theirs.py").stat()

    def unharmed() -> bool:
        now = (managed.root / "theirs.py").stat()
        return (now.st_ino, now.st_mtime_ns) == (before.st_ino, before.st_mtime_ns) and managed.git("stash", "list") == ""

    said = managed.commits("-am", "Mine", code=1 if managed.fails else 0)
    if managed.fails:
        assert managed.read("mine.py") == "x = 2\n", "what it formats comes back"
        said += managed.commits("-am", "Mine")
    assert managed.git("show", "HEAD:mine.py") == "x = 2\n" == managed.read("mine.py") and managed.committed() == ["mine.py"]
    assert "theirs: ['x', '=', '1']" in said and unharmed(), said
    assert managed.status() == ["A  staged.py", " M theirs.py"]
    managed.repo.write("mine.py", "bad\n")
    head = managed.git("rev-parse", "HEAD")
    managed.commits("-m", "Bad", "mine.py", code=1)
    assert managed.git("rev-parse", "HEAD") == head and managed.read("mine.py") == "bad\n" and unharmed()
    managed.repo.write("mine.py", "x = 3\n")
    managed.git("add", "mine.py")
    managed.repo.write("mine.py", "x = 3\ny = 4\n")  # half of it is staged
    managed.commits("-m", "Half")
    assert managed.git("show", "HEAD:mine.py") == "x = 3\n" and managed.read("mine.py") == "x = 3\ny = 4\n" and unharmed()
    managed.commits("--amend", "-m", "Amended", "mine.py")
    assert managed.git("show", "HEAD:mine.py") == "x = 3\ny = 4\n" and unharmed()
