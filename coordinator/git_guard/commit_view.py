"""What a commit sees of the working tree while others work in it.

To this commit and its hooks alone, files that others hold look as in the last commit, at their own
paths. Others continue to write the real files. So a hook manager has nothing of theirs to put
aside. Mounts in a namespace of the commit's own and a private index do this. Where the system gives
no namespace, a scratch tree does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from coordinator.files import syscalls
from coordinator.files.ignore import BESIDE, BESIDE_ENDS
from coordinator.git_guard.commit_check import CommitCheck
from coordinator.git_guard.program import Program
from coordinator.namespaces import git_programs, kernel
from coordinator.rules import git_commands
from coordinator.wiring import git_repository
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import kind_of

#: The prefix of its folders' names, in git's own folder of the working tree.
FOLDER = "coord-commit-"
#: How long (seconds) another git may lock the index, and how often to try again.
INDEX_S, TICK_S = 10.0, 0.05
#: Ignored files and folders to which a scratch tree links.
LINKS_MAX = 2_000
#: Makes git read a name literally, whatever characters are in it.
_TOP = ":(top,literal)"


class Hidden(NamedTuple):
    """What a commit must not see.

    Attributes:
        files: others hold them, and they look as in the last commit.
        parts: others hold parts of them, and they look as in the index.
        left_out: those of the files that the commit would have had otherwise.
        free: nobody holds them while others are at work, and they look as in the index.
        shown: changed files that it sees as they are; None if no other agent is at work.
    """

    files: list[str]
    parts: list[str]
    left_out: list[str]
    free: Sequence[str] = ()
    shown: set[str] | None = None

    @property
    def needs_view(self) -> bool:
        """Whether hooks could do harm to what others are at work on, or see it."""
        return bool(self.files or self.parts) or self.shown is not None


def find_hidden(git: Program, check: CommitCheck, top: Path, rest: list[str]) -> Hidden:
    """What others hold of the files that differ from the last commit, or may soon.

    A file that the commit names itself is not hidden: the guard decides whether it may be
    committed. A file that nobody holds may be what a command of another agent writes just now.

    Raises:
        Refusal: it is unknown who holds what.
    """
    staged = {*git.names("diff", "--cached", "--name-only", "-z", "--no-renames", "HEAD")}
    unstaged = {*git.names("diff", "--name-only", "-z", "--no-renames")}
    held = check.find_held()
    words = git_commands.named(rest)
    below = git.line("rev-parse", "--show-prefix")
    named = {os.path.normpath(f"{below}{word}") for word in words}
    differ = (staged | unstaged | _list_tracked(git, top, held.files)) - named
    files, parts = _divide(check, check.held_by_others(sorted(differ)), staged, unstaged)
    taken = staged | unstaged if _takes_all(rest) else staged
    # What a dead agent has left is nobody's to commit before a person has judged it.
    files += sorted((taken & held.reviewed) - named.union(files))
    left_out = [path for path in files if path in taken]
    if not held.by_others:
        return Hidden(files, parts, left_out)
    asked = git.names("diff", "--name-only", "-z", "--no-renames", "--", *words) if words else []
    free = [path for path in sorted(unstaged.difference(taken, files, parts, held.files, asked))
            if not held.has_above(path) and _is_plain(top / path)]
    return Hidden(files, parts, left_out, free, (staged | unstaged).difference(files, free))


def _divide(check: CommitCheck, held: Sequence[rq.GuardHeld], staged: set[str],
            unstaged: set[str]) -> tuple[list[str], list[str]]:
    """The files that are hidden whole, and those of which parts are. A file in which another has
    staged a part that it holds cannot be committed."""
    whole = {item.path for item in held if kind_of(item.resource) != "region"}
    whole.update(item.path for item in check.find_changed(
        [item for item in held if item.path in staged]))
    paths = list(dict.fromkeys(item.path for item in held))
    files = [path for path in paths if path in whole or path not in staged]
    return files, [path for path in paths if path not in files and path in unstaged]


def takes_index(git: Program, hidden: Hidden, rest: list[str]) -> bool:
    """Whether this commit takes the index as it is, in which its committer has something, too."""
    if (_takes_all(rest) or git_commands.asks_the_user(rest) or git_commands.named(rest)
            or git_commands.names_from(rest) is not None):
        return False
    staged = git.names("diff", "--cached", "--name-only", "-z", "--no-renames", "HEAD")
    return any(word.startswith("--am") for word in rest) or bool(
        set(staged).difference(hidden.left_out))


def _list_tracked(git: Program, top: Path, paths: Iterable[str]) -> set[str]:
    """Those of these that are tracked files in the working tree."""
    there = [path for path in paths if (top / path).is_file()]
    return {*git.names("ls-files", "-z", "--full-name", "--", *map(_literal, there))
            } if there else set()


def _takes_all(rest: list[str]) -> bool:
    """Whether this commit takes all changes of tracked files (`-a`)."""
    return any(word in ("-a", "--all") or (word[:1] == "-" and word[:2] != "--"
                                           and "a" in word.split("m")[0])
               for word in rest[1:])


@dataclass
class CommitView:
    """One commit's view, built in a folder of its own.

    Attributes:
        top, own: the working tree, and git's folder for it.
        hidden: what is not to be seen.
        folder: has the private index and the files that are shown instead.
        before: the entries of the private index as the commit found them, by path.
        scratch: the tree in which the commit runs where there is no namespace.
    """

    git: Program
    top: Path
    own: Path
    hidden: Hidden
    folder: Path = field(init=False)
    before: dict[str, str] = field(init=False)
    scratch: Path | None = None

    def __post_init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=FOLDER, dir=self.own))
        self.index, self._shown = self.folder / "index", self.folder / "files"
        self.inside = self.git.with_environment({**os.environ, "GIT_INDEX_FILE": str(self.index)})

    def build(self) -> None:
        """Make the private index, and the replacements of the hidden files.

        Raises:
            Refusal: STORAGE, with what git said.
        """
        # From the index's time git knows which files may have been written since.
        shutil.copy2(self.own / "index", self.index)
        files = self.hidden.files
        if files:
            last = self.inside.must("ls-tree", "-z", "--full-tree", "HEAD", "--", *files)
            there = {line.partition(b"\t")[2] for line in last.split(b"\0")}
            gone = [path for path in files if os.fsencode(path) not in there]
            lines = last + b"".join(b"0 %040d\t%s\0" % (0, os.fsencode(path)) for path in gone)
            self.inside.must("update-index", "-z", "--index-info", data=lines)
            self.hidden = self.hidden._replace(files=[file for file in files if file not in gone])
        shown = [path for path in (*self.hidden.files, *self.hidden.parts, *self.hidden.free)
                 if _is_plain(self.top / path)]
        self.inside.must("checkout-index", "-z", "--stdin", "-q", f"--prefix={self._shown}/",
                         data=_joined(shown))
        absent = [path for path in self.hidden.files if path not in shown]
        if absent:  # git takes a missing file for unchanged
            self.inside.must("update-index", "--skip-worktree", "-z", "--stdin",
                             data=_joined(absent))
        self.before = entries(self.inside)
        if self.hidden.shown is not None and git_programs.is_covered():
            # Others begin to write these while the hooks run. The script before git has a hook's
            # own additions looked at.
            rest = self.before.keys() - {*self.hidden.shown, *self.hidden.files,
                                         *self.hidden.parts, *self.hidden.free}
            self.inside.must("update-index", "--assume-unchanged", "-z", "--stdin",
                             data=_joined(rest))

    def enter(self) -> bool:
        """Show this process, and all that it starts, the view; whether the system allows it."""
        try:
            uid, gid = os.getuid(), os.getgid()
            try:
                kernel.unshare(kernel.CLONE_NEWNS)
            except PermissionError:
                kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWUSER)
                Path("/proc/self/setgroups").write_text("deny")
                Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
                Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
            kernel.make_tree_shared()
            for path in self._files_shown():
                _show(self._shown / path, self.top / path)
        except OSError:
            return False
        return True

    def make_scratch(self) -> Path:
        """Make a tree of what the commit may see, with links to ignored files.

        Raises:
            Refusal: STORAGE, with what git said.
        """
        self.scratch = Path(tempfile.mkdtemp(prefix=FOLDER), self.top.name)
        self.scratch.mkdir()
        self.inside.must("checkout-index", "--all", "-q", f"--prefix={self.scratch}/")
        hidden = {*self.hidden.files, *self.hidden.parts, *self.hidden.free}
        for path in self.inside.names("diff", "--name-only", "-z", "--no-renames"):
            if path not in hidden:
                _copy(self.top / path, self.scratch / path)
        # The environment tells programs whose tree it is, so .coord is no part of it.
        ignored = self.git.names("ls-files", "-z", "--others", "--ignored", "--exclude-standard",
                                 "--directory")
        for path in ignored[:LINKS_MAX]:
            link = self.scratch / path.rstrip("/")
            if path != ".coord/" and link.parent.is_dir() and not os.path.lexists(link):
                link.symlink_to(self.top / path.rstrip("/"))
        shutil.copytree(self.scratch, self.folder / "began", symlinks=True)
        return self.scratch

    def put_back(self) -> None:
        """Take what changed in the private index over into the real one, where its entry is
        unchanged: what was staged since stays."""
        after = entries(self.inside)
        changed = {path: (self.before.get(path, ""), after.get(path, ""))
                   for path in {*self.before, *after}.difference(self.hidden.files)
                   if self.before.get(path) != after.get(path)}
        deadline = time.monotonic() + INDEX_S
        while changed and not self._put_entries(changed):
            if time.monotonic() >= deadline:
                sys.stderr.write("coord: git's index is locked by another program, so `git status` "
                                 "shows these files as staged: git restore --staged .\n")
                return
            time.sleep(TICK_S)

    def _put_entries(self, changed: Mapping[str, tuple[str, str]]) -> bool:
        """Try once; whether git could do it."""
        now = entries(self.git)
        lines = []
        for path, (old, new) in changed.items():
            if now.get(path, "") == old:
                mode, content = new.split()[:2] if new else ("0", "0" * 40)
                lines.append(f"{mode} {content}\t".encode() + os.fsencode(path) + b"\0")
        try:
            if lines:
                self.git.must("update-index", "-z", "--index-info", data=b"".join(lines))
        except Refusal:
            return False
        return True

    def bring_back(self) -> list[str]:
        """Bring what hooks have changed in committed files to the real ones, beside what others
        have changed there since; the files where the two do not fit together."""
        if self.scratch is not None:
            began, now = self.folder / "began", self.scratch
            names = sorted({*entries(self.inside)} - {*self.hidden.files})
        else:
            began, now = self.folder / "began", self._shown
            names = [path for path in (*self.hidden.parts, *self.hidden.free)
                     if (now / path).is_file()]
            for path in names:
                entry = self.before[path].split()
                (began / path).parent.mkdir(parents=True, exist_ok=True)
                (began / path).write_bytes(self.inside.must(
                    "cat-file", "--filters", f"--path={path}", entry[1]))
        return [path for path in names if not _brought(began / path, now / path, self.top / path)]

    def close(self) -> None:
        """Take the view's folders away."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.scratch is not None:
            shutil.rmtree(self.scratch.parent, ignore_errors=True)

    def _files_shown(self) -> Iterable[str]:
        return (path for path in (*self.hidden.files, *self.hidden.parts, *self.hidden.free)
                if (self._shown / path).is_file())


def entries(git: Program) -> dict[str, str]:
    """An index's entry of each file: mode, content, stage."""
    result: dict[str, str] = {}
    for line in git.must("ls-files", "--stage", "-z", "--full-name", ":/").split(b"\0"):
        entry, _, path = line.partition(b"\t")
        if path:
            result[os.fsdecode(path)] = entry.decode()
    return result


def remove_left(own: Path) -> None:
    """Remove what a killed commit left. No other commit may be running."""
    for left in own.glob(f"{FOLDER}*"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)


def _show(source: Path, target: Path) -> None:
    """Show one file at the place of another; if the one is gone, the place is empty."""
    opened: list[int] = []
    try:
        for path in (source, target):
            opened.append(kernel.open_path(os.fsencode(os.path.realpath(path.parent) + os.sep
                                                       + path.name)))
        kernel.mount_apart(opened[0], opened[1])
    except FileNotFoundError:
        pass
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _brought(began: Path, now: Path, real: Path) -> bool:
    """Bring one file's change over; whether that could be done."""
    before, after, there = map(_bytes, (began, now, real))
    if after in (before, there, None):
        return True
    if there is None and before is not None:
        return False
    merged = after
    if there != before:
        if before is None or there is None:
            return False
        with tempfile.TemporaryDirectory() as folder:
            for name, data in (("theirs", there), ("base", before), ("ours", after)):
                Path(folder, name).write_bytes(data)
            done = subprocess.run(["git", "merge-file", "-p", "-q", "theirs", "base", "ours"],
                                  cwd=folder, capture_output=True, check=False)
        if done.returncode:
            return False
        merged = done.stdout
    return _replace(real, there, merged)


def _replace(real: Path, expected: bytes | None, data: bytes) -> bool:
    """Write a file if it still has the expected content: somebody may save it at any moment."""
    real.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=BESIDE, suffix=BESIDE_ENDS, dir=real.parent)
    beside = Path(name)
    place = os.open(real.parent, syscalls.PLACE)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if expected is None:
            beside.chmod(0o644)
            syscalls.rename_new(place, os.fsencode(beside.name), os.fsencode(real.name))
            return True
        shutil.copymode(real, beside)
        syscalls.exchange(place, os.fsencode(beside.name), os.fsencode(real.name))
        if beside.read_bytes() == expected:
            return True
        syscalls.exchange(place, os.fsencode(beside.name), os.fsencode(real.name))
        return False
    except OSError as bad:
        sys.stderr.write(f"coord: {real}: {bad.strerror}\n")
        return False
    finally:
        os.close(place)
        beside.unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    """Copy a file as the working tree has it; a missing file becomes missing."""
    target.unlink(missing_ok=True)
    if os.path.lexists(source) and not source.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if _is_plain(path) else None


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _joined(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _literal(path: str) -> str:
    return f"{_TOP}{path}"


def is_elsewhere(environment: Mapping[str, str]) -> bool:
    """Whether the environment names another repository, tree or index than those that git would
    find by itself."""
    return any(environment.get(name) for name in (
        "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"))


def has_hooks(git: Program) -> bool:
    """Whether git would run a hook of the repository's own for a commit."""
    from coordinator.wiring import git_hooks

    folder = git.line("rev-parse", "--git-path", "hooks")
    return bool(folder) and any(
        git_hooks.is_of_the_repository(Path(folder, name)) for name in (
            "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"))


def in_repository(git: Program) -> git_repository.WorkTree | None:
    """The working tree that git works in."""
    top = git.line("rev-parse", "--show-toplevel")
    return git_repository.WorkTree.of(Path(top)) if top else None
