"""What coord has wired into the settings of agent CLIs, carried into a linked worktree.

Such files (`.claude/settings.local.json`, say) are often in no commit, so a worktree would lack
them, and the agent there its hooks. They are put in before an agent begins and taken out when it
has ended, so that they are no part of its work: a file that git has gets its wired content hidden
from git, another is copied. What an agent changed in a copy itself is left, and is its work.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from coordinator.files.git import Git, GitError
from coordinator.files.state import StateDir


class _Wired(msgspec.Struct):
    path: str


def wired_files(state: StateDir) -> list[str]:
    """Files below the repository's root that coord has wired, relative to it."""
    try:
        found = msgspec.json.decode((state.path / "wired.json").read_bytes(), type=list[_Wired])
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return []
    paths = [state.root / wired.path for wired in found]
    return [str(path.relative_to(state.root)) for path in paths if path.is_relative_to(state.root)]


def put_in(root: Path, place: Path, names: Sequence[str]) -> None:
    """Give the worktree at `place` what is wired at `root`.

    Raises:
        GitError: git refused.
        OSError: the disk did.
    """
    git = Git(place)
    for name in names:
        source, goal = root / name, place / name
        if not source.is_file() or _same(source, goal):
            continue
        if _tag(git, name):
            git.run("update-index", "--skip-worktree", "--", name)
        elif goal.exists():
            continue
        goal.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, goal)


def take_out(root: Path, place: Path, names: Sequence[str], began: str) -> None:
    """Take out what `put_in` put in, also where the agent has committed it meanwhile.

    `began`: the commit that the agent began at, or empty.

    Raises:
        GitError: git refused.
        OSError: the disk did.
    """
    git = Git(place)
    for name in names:
        tag = _tag(git, name)
        goal = place / name
        if tag == "S":
            git.run("update-index", "--no-skip-worktree", "--", name)
            git.run("--literal-pathspecs", "checkout", "--quiet", "--", name)
        elif _same(root / name, goal) and (not tag or (began and not _has(git, began, name))):
            goal.unlink()
            for folder in goal.parents:
                if folder == place:
                    break
                with contextlib.suppress(OSError):  # something else is in it
                    folder.rmdir()


def _tag(git: Git, name: str) -> str:
    """How the index has it: empty (not at all), `S` (hidden from git), or else."""
    return git.text("--literal-pathspecs", "ls-files", "-v", "--", name)[:1]


def _has(git: Git, commit: str, name: str) -> bool:
    try:
        return bool(git.text("--literal-pathspecs", "ls-tree", "--name-only", commit, "--", name))
    except GitError:
        return False


def _same(path: Path, other: Path) -> bool:
    try:
        return path.read_bytes() == other.read_bytes()
    except OSError:
        return False
