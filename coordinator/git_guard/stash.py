"""`git stash` of named files in a session, without what others have staged.

git puts the whole index into an entry of its list, whatever files are named. When the entry is
brought back, what others had staged would be merged into their files. So the stash is made with an
index of its own, in which these files are as in the last commit.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from coordinator.git_guard import commit_view
from coordinator.git_guard.commit_view import CommitView, Hidden
from coordinator.git_guard.program import Program
from coordinator.rules import git_commands
from coordinator.wiring import git_repository


def push(git: Program, top: Path, rest: Sequence[str]) -> int | None:
    """Stash the named files, and return git's exit code; None if git can do it with the real index.

    Raises:
        Refusal: STORAGE: git failed at something else.
    """
    named = git_commands.list_stashed(rest[1:])
    tree = git_repository.WorkTree.of(top)
    if not named or tree is None or commit_view.is_elsewhere(os.environ):
        return None
    differs = ("diff", "--cached", "--name-only", "-z", "--no-renames", "HEAD")
    own = {*git.names(*differs, "--", *named)}
    others = [path for path in git.names(*differs) if path not in own]
    if not others:
        return None
    view = CommitView(Program(git.path, [*git.options, "-C", str(tree.top)]), tree.top, tree.own,
                      Hidden(others, [], []))
    try:
        view.build()
        code = subprocess.run(
            [git.path, *git.options, *rest], check=False,
            env={**os.environ, "GIT_INDEX_FILE": str(view.index)}).returncode
        view.put_back()
        return code
    finally:
        view.close()
