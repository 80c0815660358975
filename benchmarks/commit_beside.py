"""A commit beside others, by the pre-commit framework, against one where nobody holds anything.

Prints the median of `git commit` alone and of `coord commit` beside others, and their ratio.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

CONFIG = """repos:
  - repo: local
    hooks:
      - {id: check, name: check, language: system, entry: python3 -c pass, types: [file]}
"""
WHO = {f"GIT_{role}_{part}": "a@localhost" for role in ("AUTHOR", "COMMITTER")
       for part in ("NAME", "EMAIL")}
ENV = {**os.environ, **WHO, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def measure_commits(
    commits: Annotated[int, typer.Option(min=1, help="Commits, each way.")] = 11,
) -> None:
    """A commit beside others' unfinished work, over one where nobody holds anything."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)

        def run(*words: str) -> None:
            subprocess.run(words, cwd=root, env=ENV, check=True, capture_output=True)

        def time_commits(*words: str) -> float:
            took = []
            for n in range(commits):
                (root / "mine.py").write_text(f"{n} {words}\n")
                began = time.perf_counter()
                run(*words, "-m", "x", "--", "mine.py")
                took.append(time.perf_counter() - began)
            return statistics.median(took)

        run("git", "init", "-q")
        for name in ("mine.py", "theirs.py"):
            (root / name).write_text("one\n")
        (root / ".pre-commit-config.yaml").write_text(CONFIG)
        run("git", "add", "-A")
        run("git", "commit", "-qm", "one")
        run(sys.executable, "-P", "-m", "pre_commit", "install")
        run("coord", "up")
        try:
            alone = time_commits("git", "commit")
            run("coord", "lock", "theirs.py", "--agent", "bob")
            (root / "theirs.py").write_text("half\n")
            beside = time_commits("coord", "commit")
        finally:
            run("coord", "down")
        print(f"git commit {alone:.3f} s, coord commit beside others {beside:.3f} s, "
              f"ratio {beside / alone:.2f}")
