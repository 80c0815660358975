"""Finding the repository of a directory: its root, its git directory, its linked worktrees.

One working tree has one coordinator. A root is the nearest folder upwards that has a `.coord`,
whatever git repositories lie between. The module reads the files that git leaves (`.git`, `gitdir`,
`commondir`, `.gitmodules`) and never runs git. So it works where git is not installed, and costs
microseconds. It writes nothing. `_hook_seldom.find` follows the same rule with less code, and a
test compares the two.
"""

# Paths are plain strings here: this runs before every write of an agent, and Path is slow.
# ruff: noqa: PTH112, PTH116, PTH118, PTH120, PTH123

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

#: The directory, in the root, in which coord keeps its state.
STATE_DIR = ".coord"


class Checkout(NamedTuple):
    """The places of git's data of one working tree."""

    top: str
    """The directory that holds `.git`."""
    common: str
    """The git directory that all worktrees of the repository share."""
    linked: bool
    """Whether it is a linked worktree: neither the main one nor a submodule."""
    own: str = ""
    """The git directory of this working tree alone."""


def find_root(start: Path) -> Path:
    """The root of the repository around `start` (a directory, or a file in one).

    The nearest directory upwards that is prepared (`is_prepared`). Where none is: the top level of
    the git repository (of a submodule: of the repository that it is a part of), otherwise `start`
    itself. A linked worktree stands for its place in the main worktree, of a submodule too; a
    worktree of a bare repository stands for itself.
    """
    here = os.path.realpath(start)
    if not os.path.isdir(here):
        here = os.path.dirname(here)
    folder, own, mapped = here, "", set[str]()
    while True:
        found_checkout = checkout(folder)
        if (found_checkout is not None and found_checkout.linked
                and found_checkout.top not in mapped):
            main = main_worktree(found_checkout.common)
            if main is not None:
                mapped.add(found_checkout.top)
                folder = os.path.normpath(os.path.join(main,
                                                       os.path.relpath(folder, found_checkout.top)))
                continue
        top = found_checkout.top if found_checkout is not None else "/"
        for directory in _upwards(folder, top):
            if is_prepared(directory):
                return Path(directory)
        if found_checkout is not None and not own and not _is_submodule(found_checkout):
            own = found_checkout.top
        above = os.path.dirname(top)
        if above == top:
            return Path(own or here)
        folder = above


def prepared_above(root: Path) -> Path | None:
    """The prepared folder that `root` would belong to if it were not prepared itself; None if there
    is none."""
    above = root.parent
    path = find_root(above)
    return path if above != root and is_prepared(str(path)) else None


def is_prepared(directory: str) -> bool:
    """Whether a directory is the root of a coordinator: it has a `.coord`.

    One that everybody may write to, as `/tmp`, never is: anybody could catch others' repositories.
    """
    return os.access(f"{directory}/{STATE_DIR}/", os.F_OK) and not is_everybodys(directory)


def is_everybodys(directory: str) -> bool:
    """Whether it is a folder that all users of the machine share."""
    try:
        mode = os.stat(directory).st_mode
    except OSError:
        return False
    return bool(mode & stat.S_IWOTH and mode & stat.S_ISVTX)


def foreign_root(base: str, name: str) -> str | None:
    """The directory at or above the path `name` (relative to `base`, which ends with a slash) that
    has a coordinator of its own, absolute; None if there is none below `base`."""
    position = name.find("/")
    while position > 0:
        if is_prepared(base + name[:position]):
            return base + name[:position]
        position = name.find("/", position + 1)
    return base + name if name and is_prepared(base + name) else None


def checkout(directory: str) -> Checkout | None:
    """The git working tree of a directory; None outside of any."""
    for folder in _upwards(directory, "/"):
        dot_git = os.path.join(folder, ".git")
        if os.path.isdir(dot_git):
            real = os.path.realpath(dot_git)
            return Checkout(folder, real, False, real)
        pointed = _read_line(dot_git)
        if pointed.startswith("gitdir:"):
            git_dir = os.path.realpath(os.path.join(folder, pointed[len("gitdir:") :].strip()))
            shared = _read_line(os.path.join(git_dir, "commondir"))
            if shared:
                common = os.path.realpath(os.path.join(git_dir, shared))
                return Checkout(folder, common, True, git_dir)
            return Checkout(folder, git_dir, False, git_dir)
    return None


def own_repository(root: str, directory: str, made: str = "") -> str | None:
    """The top of the repository around a directory below `root`, if that is another one than the
    root's (a submodule, a clone, a fixture). None if it is the root's own, linked worktrees
    included, or if it is uncertain what git there would change.

    Args:
        made: a folder that will be a repository by then, unless it is one already.
    """
    real = os.path.realpath(directory)
    if made and not os.path.lexists(os.path.join(made, ".git")):
        return os.path.realpath(made)
    if real != os.path.realpath(os.path.normpath(directory)):
        return None  # a shell that enters `link/..` is elsewhere than git in `link/..`
    found_checkout, around = checkout(real), checkout(os.path.realpath(root))
    if found_checkout is None or (around is not None and around.common == found_checkout.common):
        return None
    if not all(map(os.path.exists, (
            f"{found_checkout.own}/HEAD", f"{found_checkout.common}/objects",
            f"{found_checkout.common}/refs"))):
        return None  # git ignores such a `.git`, and looks further upwards
    for config in (f"{found_checkout.common}/config", f"{found_checkout.common}/config.worktree"):
        text, work_tree = _read(config).lower(), _core_worktree(config)
        if "[include" in text or (not work_tree and re.search(r"\bworktree\s*=", text)):
            return None
        if work_tree and os.path.realpath(os.path.join(found_checkout.common,
                                                  work_tree)) != found_checkout.top:
            return None
    return found_checkout.top


def root_in_worktree(root: Path, directory: str) -> str:
    """The place of a repository's root in the working tree around a directory: in its linked
    worktree, or the root itself."""
    found_checkout = checkout(os.path.realpath(directory))
    main = (main_worktree(found_checkout.common)
            if found_checkout is not None and found_checkout.linked else None)
    if found_checkout is None or main is None or not root.is_relative_to(main):
        return str(root)
    return os.path.normpath(os.path.join(found_checkout.top, os.path.relpath(root, main)))


def main_worktree(common: str) -> str | None:
    """The main worktree of a shared git directory; None if there is none (a bare repository)."""
    above, name = os.path.split(common)
    if name == ".git":
        return above
    # A submodule's git directory is inside that of the repository around it, and says where its
    # files are.
    text = _core_worktree(os.path.join(common, "config"))
    if not text:
        return None
    main = os.path.realpath(os.path.join(common, text))
    back = _read_line(os.path.join(main, ".git"))
    if not back.startswith("gitdir:"):
        return None
    there = os.path.realpath(os.path.join(main, back[len("gitdir:") :].strip()))
    return main if there == common else None


def linked_worktrees(common: str) -> tuple[list[str], bool]:
    """The roots of the linked worktrees, and whether the list is complete.

    It is not complete while `git worktree add` is at work: an entry exists, its path is not yet
    written. Worktrees whose directory was deleted are listed until git prunes them.
    """
    roots, complete = [], True
    base = os.path.join(common, "worktrees")
    try:
        names = sorted(os.listdir(base))
    except OSError:
        return [], True
    for name in names:
        pointed = _read_line(os.path.join(base, name, "gitdir"))
        if pointed:
            roots.append(os.path.realpath(os.path.dirname(os.path.join(base, name, pointed))))
        else:
            complete = False
    return roots, complete


def folds_case(directory: str) -> bool:
    """Whether the disk takes `A` and `a` for one name, judged by an existing entry."""
    try:
        names = set(os.listdir(directory))
    except OSError:
        return False
    for name in names:
        if (other := name.swapcase()) != name:
            return other not in names and _same_inode(
                os.path.join(directory, name), os.path.join(directory, other)
            )
    above, name = os.path.split(directory)
    other = name.swapcase()
    return other != name and _same_inode(directory, os.path.join(above, other))


def _same_inode(name: str, two: str) -> bool:
    try:
        return os.path.samestat(os.lstat(name), os.lstat(two))
    except OSError:
        return False


def _upwards(directory: str, last: str) -> Iterator[str]:
    """A directory and those above it, up to `last` or the root of the file system."""
    folder = directory
    while True:
        yield folder
        above = os.path.dirname(folder)
        if folder == last or above == folder:
            return
        folder = above


def _is_submodule(found_checkout: Checkout) -> bool:
    """Whether a working tree is a part of the one around it, as git sees it."""
    around = checkout(os.path.dirname(found_checkout.top))
    if around is None or around.top == found_checkout.top:
        return False
    if found_checkout.own.startswith(around.own + "/modules/"):
        return True
    # One that keeps its git directory to itself is known by its name alone.
    return os.path.relpath(found_checkout.top, around.top) in _submodules(around.top)


def _submodules(top: str) -> set[str]:
    """The paths in `.gitmodules`."""
    text = _read(os.path.join(top, ".gitmodules"))
    return {path.strip().strip('"') for path in re.findall(r"(?m)^[ \t]*path[ \t]*=(.*)$", text)}


def _core_worktree(config: str) -> str:
    """`core.worktree` of a git configuration as git itself writes it."""
    section = ""
    for line in _read(config).splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line.strip("[]").strip().lower()
        elif section == "core" and line.lower().replace(" ", "").startswith("worktree="):
            return line.partition("=")[2].strip().strip('"')
    return ""


def _read(path: str) -> str:
    """A small text file; empty if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read(1 << 20))
    except OSError:
        return ""


def _read_line(path: str) -> str:
    """The first line of a small file; empty if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.readline(8192)).strip("\r\n")
    except OSError:
        return ""
