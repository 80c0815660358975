"""Listing the files that a git command would change, take into the index, or commit.

The module runs the real git to learn it, and changes nothing.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from coordinator.git_guard.program import Program
from coordinator.rules import git_commands, git_listings, git_objects
from coordinator.wiring import git_repository

#: The options that make a commit list its content.
_LISTED = ("--dry-run", "--porcelain", "-z")
#: The arguments for everything that these might take, if that is not known beforehand.
_ALL = {"add": ("-A",), "rm": ("-r", "-f", "--cached", ":/"), "commit": ("-a",)}


def list_patched(git: Program, rest: list[str]) -> list[str] | None:
    """The files that a patch, or an entry of git's list of stashes, changes; None where it is
    neither, or git cannot tell."""
    if (stash := git_objects.used_stash(rest)) is not None:
        return _list_stashed(git, stash, only_lost="drop" in rest)
    telling = git_objects.applied_patch(rest)
    if telling is None:
        return None
    patch = _read_patch() if git_objects.reads_patch(rest) else b""
    summary = git.says(*telling[:1], "--summary", *telling[1:], data=patch)
    if summary is None and git.says(*telling[:1], "--summary", *telling[1:], data=patch,
                                    ended=(1, 128, 129)) is not None:
        return []  # git cannot read the patch, and says so
    if summary is None or any(line.startswith((b" rename", b" copy"))
                              for line in summary.splitlines()):
        return None
    listed = git.says(*telling[:1], "--numstat", "-z", *telling[1:], data=patch) or b""
    return [os.fsdecode(line.split(b"\t", 2)[-1])
            for line in listed.split(b"\0") if line] or None


def _list_stashed(git: Program, stash: str, *, only_lost: bool) -> list[str] | None:
    """The files of an entry of git's list of stashes. `only_lost`: without those that the working
    tree has with the same content."""
    if not git.line("rev-parse", "-q", "--verify", f"{stash}^{{commit}}"):
        return []  # git says that there is none
    listed = git.names("stash", "show", "--name-only", "--no-renames", "-z", "--include-untracked",
                       stash)
    if listed and only_lost:
        lost = git.names("diff", "--name-only", "--no-renames", "-z", stash)
        return [name for name in listed if name in lost]
    return listed or None


def _read_patch() -> bytes:
    """The patch in the file that `apply` has put in the place of a pipe."""
    size = os.fstat(sys.stdin.fileno()).st_size
    return os.pread(sys.stdin.fileno(), size, 0)


def list_indexed(git: Program, top: Path, rest: list[str]) -> list[str]:
    """The files whose index entries it would change, from the top."""
    name, args = rest[0], rest[1:]
    if name in ("add", "stage", "rm"):
        name = "rm" if name == "rm" else "add"
        if _reads_names(rest):
            rest = [name, *_ALL[name], *(("-f",) if any(map(_forces, args)) else ())]
        else:
            rest = [name, *_loud(args, name)]
        shown = git.says(*git_commands.with_options(rest, ["--dry-run"]), ended=(0, 1))
        return git_listings.added(shown or b"")
    below = git.line("rev-parse", "--show-prefix")

    def from_top(word: str) -> str:
        return os.path.normpath(f"{below}{word}")

    if name == "update-index":
        return [from_top(word) for word in git_commands.indexed(rest)]
    plain = [word for word in args if not word.startswith("-")]
    if len(plain) < 2:
        return []
    to = from_top(plain[-1])
    come = [f"{to}/{Path(from_top(word)).name}" for word in plain[:-1]] if (
        top / to).is_dir() else [to]
    return [*git.names("ls-files", "-z", "--full-name", "--", *plain[:-1]), *come]


def _forces(word: str) -> bool:
    return word.startswith("--fo") or (word[:1] == "-" and word[:2] != "--" and "f" in word)


def _loud(args: Sequence[str], name: str) -> list[str]:
    """Without what keeps `rm` quiet."""
    if name != "rm":
        return list(args)
    result = []
    for word in args:
        if word[:1] == "-" and word[:2] != "--":
            word = word.replace("q", "")
        if word not in ("-", "--quiet"):
            result.append(word)
    return result


def list_committed(git: Program, top: Path, rest: list[str]) -> tuple[list[str], set[str]]:
    """The files that this commit would have; of a merge, those that differ from every parent. Also
    those that it would take from the working tree, not only from the index. If that cannot be told
    beforehand: all that differ."""
    everything = ["commit", *_ALL["commit"]]
    is_plain = not git_commands.asks_the_user(rest) and not _reads_names(rest)
    listed: list[str] = []
    saved: set[str] = set()
    for words in ([rest] if is_plain else []) + [everything]:
        shown = git.says(*git_commands.with_options(words, _LISTED), ended=(0, 1))
        with contextlib.suppress(ValueError):
            if shown is not None:
                listed, saved = git_listings.committed(shown)
                break
    amends = any(word.startswith("--am") for word in rest)
    if not amends and not git.line("rev-parse", "-q", "--verify", "MERGE_HEAD"):
        return listed, saved
    staged = git_repository.staged(top)
    unstaged = git.names("diff", "--name-only", "-z", "--no-renames")
    if amends:  # git lists what differs from the commit before; it is what differs from this one
        new = {*staged, *saved.intersection(unstaged)}
        return [name for name in listed if name in new], saved
    return [*staged, *set(listed).intersection(unstaged).difference(staged)], set(unstaged)


def _reads_names(rest: Sequence[str]) -> bool:
    """Whether it reads its file names from an input that can be read only once."""
    source = git_commands.names_from(rest)
    return source is not None and not Path(source).is_file()
