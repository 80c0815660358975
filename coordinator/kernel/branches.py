"""Branches of agents, as git has them: what did not land of one, and the moving of the target.

Runs git and reads files, so nothing of it runs in a transaction: `slices.landing` decides, and has
this done before or after.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from coordinator.files.git import Git, GitError
from coordinator.files.roots import own_repository
from coordinator.kernel import repository_files
from coordinator.kernel.core import Service
from coordinator.kernel.repository_files import Bytes, keep
from coordinator.words import file_names
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

__all__ = ["Unlanded", "head", "is_file", "keep", "look_at_unlanded", "move",
           "own_repository", "short"]

#: Paths of one review of what did not land; the branch has them all.
FLAGGED_MAX = 500


class Unlanded(NamedTuple):
    """A path that did not land: its content where the branch began, and now."""

    path: str
    was: Bytes
    now: Bytes


def head(svc: Service) -> str | None:
    """The commit that is checked out; None if there is none, or no git. Runs git, so it is for a
    worker."""
    return Git(svc.tree.root).commit("HEAD")


def is_file(place: str, word: str) -> bool:
    """Whether `git checkout WORD` takes it for a file there. Runs git: for a worker."""
    try:
        return Git(Path(place)).takes_for_file(word)
    except ValueError:  # no text that could be given to a program
        return False


def look_at_unlanded(svc: Service, work: rq.Unlanded) -> list[Unlanded]:
    """What a branch changed and did not land. Runs git and reads files, so it is for a worker.

    Raises:
        Refusal: STORAGE: git cannot read it.
    """
    git = Git(Path(work.worktree))
    try:
        below = git.text("rev-parse", "--show-prefix")
        entries = [e for e in git.changes(work.began, work.commit)
                   if e.path.startswith(below) and not e.submodule][:FLAGGED_MAX]
        before = repository_files.from_git(svc, git, {e.path: (e.old_mode, e.old) for e in entries})
    except GitError as bad:
        raise bad.refusal("What did not land cannot be read") from None
    result = []
    for entry in entries:
        path = file_names.from_bytes(os.fsencode(entry.path[len(below):]))
        was = before.get(entry.path, repository_files.NOTHING)
        now = repository_files.look(svc, work.worktree, path, keep=True)
        if now.hash != was.hash:
            result.append(Unlanded(path, was, now))
    return result


def move(svc: Service, target: str, new: str, old: str, why: str) -> None:
    """Let a branch that is at `old` be at `new`. Runs git: for a worker.

    Raises:
        Refusal: VERSION_CHANGED: it has moved; STORAGE: git cannot move it.
    """
    git = Git(svc.tree.root)
    try:
        # Run again after a batch that failed for another's sake, it finds its work done already.
        moved = git.move(target, new, old, why) or git.commit(target) == new
    except GitError as bad:
        raise bad.refusal(f"{short(target)} could not be moved, and nothing landed") from None
    if not moved:
        raise Refusal(
            Code.VERSION_CHANGED, f"{short(target)} has moved meanwhile; nothing was changed.",
            next="Look at it as it is now, and try again.", target_moved=True,
        )


def short(ref: str) -> str:
    """A branch as a person calls it."""
    return ref.removeprefix("refs/heads/")
