"""Git's ignore rules, and the list of files that a directory or a glob means.

Rules come from each `.gitignore` below the top of the working tree, the nearest first, and from
`.git/info/exclude`. `.git` and coord's own directory are always ignored. A user's global excludes
do not count, so that a repository means the same to all. Git is not asked, so a tracked file that a
rule matches counts as ignored.

Every question checks the time stamps of the rule files, so a changed `.gitignore` counts at once.
"""

# Paths are plain strings here: the watcher asks for each of thousands of events.
# ruff: noqa: PTH116, PTH118, PTH123

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from coordinator.files.beneath import Root
from coordinator.files.canonical import Tree
from coordinator.files.roots import STATE_DIR, checkout, is_prepared
from coordinator.rules import globs
from coordinator.words import file_names
from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import Resource, normal

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

#: A larger file of rules (bytes) is not read: no sane `.gitignore` is so long.
RULES_BYTES_MAX = 1 << 20

#: The beginning and the end of the names of coord's short-lived files beside others.
BESIDE, BESIDE_ENDS = STATE_DIR + "-", ".tmp"

_Stamp = tuple[int, int, int] | None


class _Rules(NamedTuple):
    stamp: _Stamp
    spec: GitIgnoreSpec | None


_NO_RULES = _Rules(None, None)


class Ignore:
    """The ignore rules of one tree. Safe to use from several threads."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        root = str(tree.root)
        found_checkout = checkout(root)
        top = found_checkout.top if found_checkout else root
        self._top = top.rstrip("/") + "/"
        below = os.path.relpath(root, top)
        self._below = "" if below == "." else below + "/"
        self._exclude = os.path.join(found_checkout.common, "info",
                                     "exclude") if found_checkout else None
        self._rules: dict[str, _Rules] = {}
        self._shared = _NO_RULES
        self._directories: dict[str, bool] = {}
        self._lock = threading.Lock()

    def ignored(self, relpath: str, is_dir: bool = False) -> bool:
        """Whether a path (relative to the tree's root) is ignored, or is in an ignored directory.

        The root itself never is. Costs a look at one time stamp for each directory above.
        """
        relpath = relpath.strip("/")
        if not relpath or relpath == ".":
            return False
        if is_private(relpath):
            return True
        with self._lock:
            path = self._below + relpath
            self._reload(path)
            cut = path.find("/", len(self._below))
            while cut > 0:
                if self._directory(path[:cut]):
                    return True
                cut = path.find("/", cut + 1)
            return self._verdict(path, is_dir)

    def _directory(self, path: str) -> bool:
        directory = self._directories.get(path)
        if directory is None:
            directory = self._directories[path] = self._verdict(path, True)
        return directory

    def _verdict(self, path: str, is_dir: bool) -> bool:
        """The rules' verdict on this path alone: the nearest rule file with a verdict decides."""
        asked = path + "/" if is_dir else path
        position = path.rfind("/") + 1
        while True:
            spec = self._rules.get(path[:position], _NO_RULES).spec
            if spec is not None:
                include = spec.check_file(asked[position:]).include
                if include is not None:
                    return include
            if position == 0:
                break
            position = path.rfind("/", 0, position - 1) + 1
        spec = self._shared.spec
        return bool(spec.check_file(asked).include) if spec is not None else False

    def _reload(self, path: str) -> None:
        """Read what changed among the rule files that bear on `path`."""
        changed = False
        if self._exclude is not None:
            self._shared, read = _read_rules(self._exclude, self._shared)
            changed |= read
        position = 0
        while True:
            directory = path[:position]
            before = self._rules.get(directory, _NO_RULES)
            now, read = _read_rules(f"{self._top}{directory}.gitignore", before)
            if read:
                self._rules[directory] = now
                changed = True
            position = path.find("/", position) + 1
            if position == 0:
                break
        if changed:
            self._directories.clear()


def is_private(relpath: str) -> bool:
    """Whether a path is git's or coord's own data: never leased, never watched. That includes a
    file that coord writes beside another, to replace it."""
    if STATE_DIR in relpath:
        if relpath.partition("/")[0] == STATE_DIR:
            return True
        if relpath.rpartition("/")[2].startswith(BESIDE) and relpath.endswith(BESIDE_ENDS):
            return True
    return ".git" in relpath and ".git" in relpath.split("/")


def manifest(root: Path | str, resource: Resource, ignore: Ignore, files_max: int) -> list[str]:
    """The present files of a directory or a glob, sorted, relative to `root`.

    Symlinks are listed and not followed, also if one has taken a directory's place. Ignored files
    are left out, unless the resource is itself an ignored directory: then it was asked for by name.
    Linked worktrees inside are left out, because their files are the root's own. So are folders
    with a coordinator of their own, directories that may not be read, pipes and the like. Names are
    as `words.file_names` writes them; names that no lease can have are listed, too.

    Raises:
        Refusal: LIMIT if there are more than `files_max`; nothing is listed then.
    """
    try:
        with Root(root) as opened:
            result = _listed(opened, resource, ignore, files_max)
    except OSError:
        return []  # the working tree is gone
    result.sort()
    return result


def _find_start(root: Root, resource: Resource) -> str:
    """The directory that contains a resource, as far as its name tells."""
    if resource.kind != "glob":
        start = resource.name.strip("/")
        return "" if start == "." else start
    start = globs.literal_prefix(resource.name)
    # The disk may spell it in another normal form.
    return "" if start and root.stat(start) is None else start


def _may_match(pattern: str | None, name: str, kind: str, fold: bool) -> bool:
    if pattern is None:
        return True
    fits = globs.reaches if kind == "directory" else globs.matches
    return fits(pattern, normal(name, fold))


def _listed(root: Root, resource: Resource, ignore: Ignore, files_max: int) -> list[str]:
    base = root.path.rstrip("/") + "/"
    fold = ignore.tree.fold_case
    pattern = resource.name if resource.kind == "glob" else None
    start = _find_start(root, resource)
    by_name = pattern is None and ignore.ignored(start, True)
    foreign = set(ignore.tree.worktrees())
    result: list[str] = []
    todo = [start]
    while todo:
        directory = todo.pop()
        prefix = directory + "/" if directory else ""
        for part, kind in _entries(root, directory):
            name = prefix + part
            if kind == "directory" and (base + name in foreign or is_prepared(base + name)):
                continue
            if not _may_match(pattern, name, kind, fold):
                continue
            if is_private(name) or (not by_name and ignore.ignored(name, kind == "directory")):
                continue
            (todo if kind == "directory" else result).append(name)
            if len(result) > files_max:
                raise Refusal(
                    Code.LIMIT,
                    f"{resource.name} stands for more than {files_max:,} files; nothing was done. "
                    "Lease a smaller part of it.",
                    resource=resource.name,
                    limit=files_max,
                )
    return result


def _entries(root: Root, directory: str) -> list[tuple[str, str]]:
    """The entries of a directory that can be listed: (name, `directory` or `file`)."""
    result = []
    try:
        with root.scan(directory) as entries:
            for entry in entries:
                name = entry.name
                if not name.isascii():
                    name = file_names.from_bytes(os.fsencode(name))
                if entry.is_dir(follow_symlinks=False):
                    result.append((name, "directory"))
                elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                    result.append((name, "file"))
    except OSError:
        pass  # it may be unreadable, or something else now
    return result


def _read_rules(path: str, before: _Rules) -> tuple[_Rules, bool]:
    """The rules in a file, and whether they had to be read."""
    try:
        status = os.stat(path)
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        if stamp == before.stamp:
            return before, False
        with open(path, "rb") as file:
            data = file.read(RULES_BYTES_MAX)
    except OSError:
        return _NO_RULES, before.stamp is not None
    lines = data.decode("utf-8", "replace").split("\n")
    if all(not line.strip() or line.startswith("#") for line in lines):
        return _Rules(stamp, None), True  # as git makes `info/exclude`
    from pathspec import GitIgnoreSpec  # only rules need it, and it loads slowly

    try:
        spec = GitIgnoreSpec.from_lines(lines)
    except ValueError:
        spec = _line_by_line(lines)
    return _Rules(stamp, spec if len(spec) else None), True


def _line_by_line(lines: list[str]) -> GitIgnoreSpec:
    """The rules without the lines that make no sense; git passes over those, too."""
    from pathspec import GitIgnoreSpec

    good = []
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            continue
        good.append(line)
    return GitIgnoreSpec.from_lines(good)
