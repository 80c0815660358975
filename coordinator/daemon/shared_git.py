"""What all who work in one tree share in git, before and after a command: HEAD, its branch, the
index.

The module reads only. It compares the values themselves, so it also finds a change by hand or by a
program that is not git. Git's log of HEAD tells the reason. For a tree whose `.git` is no
directory, such as a linked worktree or a submodule, and for refs in tables, it reports nothing.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from coordinator.files.git import Git, GitError
from coordinator.slices.guard.git_moves import HeadMove, IndexChange, Moved

#: How many moves of one command are told, from how many bytes of the log.
MOVES_MAX, BYTES_MAX = 20, 64 * 1024
#: A larger index (bytes) is not kept: how its entries were is not known then.
INDEX_BYTES_MAX = 4 << 20
#: Bytes of HEAD and of a branch: a name, or an id.
REF_BYTES_MAX = 4096
_COMMITS = ("commit", "cherry-pick", "revert")
_REF = "ref: "
#: The reason of a move that git itself has not written down.
UNLOGGED = "git's log says nothing of it"

_Stamp = tuple[int, int, int]


class Index(NamedTuple):
    """The index. `stamp`: None if there is none; `data`: None if it is too large to be kept."""

    stamp: _Stamp | None
    data: bytes | None


class State(NamedTuple):
    """`head`: the branch that HEAD is on (`refs/heads/…`), empty where it is on none; `commit`: the
    commit that it is at, empty before the first; `log`: how long its log is (bytes)."""

    head: str
    commit: str
    log: int
    staged: Index


class SharedGit:
    """The shared state of the main working tree at `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        git = root / ".git"
        self._git = git if git.is_dir() else None
        self._index = Index(None, None)
        self._packed: tuple[_Stamp | None, bytes] = None, b""

    def now(self) -> State | None:
        """The present state; None if nothing can be told. It takes a few looks at small files."""
        if self._git is None:
            return None
        text = _text(self._git / "HEAD")
        head = text.removeprefix(_REF).strip() if text.startswith(_REF) else ""
        inside = head.startswith("refs/") and ".." not in head
        commit = (_text(self._git / head).strip() or self._in_packed(head)) if inside else (
            "" if head else text)
        return State(head, commit, self._log_length(), self._index_now())

    def moved(self, before: State, now: State) -> Moved:
        """The difference, with the files that a commit has changed. For a thread, because it runs
        git."""
        heads: list[HeadMove] = []
        old_commit = before.commit
        for old, new, what in self._logged(before.log):
            old_commit = new
            if old != new or what.startswith("checkout"):
                heads.append(self._move(old, new, what))
        if old_commit != now.commit:
            heads.append(self._move(old_commit, now.commit, ""))
        elif before.head != now.head and not heads:
            heads.append(HeadMove(f"HEAD was put on {now.head or now.commit}", False, []))
        return Moved(_named(before), heads[-MOVES_MAX:], self._index_changes(before, now))

    # ------------------------------------------------------------ looks

    def _log_length(self) -> int:
        assert self._git is not None
        stamp = _stamp(self._git / "logs/HEAD")
        return stamp[1] if stamp is not None else 0

    def _in_packed(self, ref: str) -> str:
        assert self._git is not None
        path = self._git / "packed-refs"
        stamp = _stamp(path)
        if stamp != self._packed[0]:
            self._packed = stamp, _bytes(path)
        data = self._packed[1]
        position = data.find(b" " + os.fsencode(ref) + b"\n")
        return data[data.rfind(b"\n", 0, position)
                    + 1 : position].decode("ascii", "replace") if position > 0 else ""

    def _index_now(self) -> Index:
        assert self._git is not None
        path = self._git / "index"
        stamp = _stamp(path)
        if stamp != self._index.stamp:
            small = stamp is not None and stamp[1] <= INDEX_BYTES_MAX
            self._index = Index(stamp, _bytes(path) if small else None)
        return self._index

    # ------------------------------------------------------------ what git says

    def _move(self, old: str, new: str, what: str) -> HeadMove:
        """One move of HEAD. If git gives no reason, one commit on top of the former one is
        somebody's commit. Everything else moves the branch."""
        commits = what.startswith(_COMMITS)
        if not what:
            parent = Git(self._root).maybe("rev-parse", "-q", "--verify", f"{new}^1")
            commits = bool(old) and parent == old
        return HeadMove(what or UNLOGGED, commits, self._changed(old, new) if commits else [])

    def _logged(self, length: int) -> Iterable[tuple[str, str, str]]:
        """Old id, new id and reason of the moves after the log was so long."""
        assert self._git is not None
        try:
            with (self._git / "logs/HEAD").open("rb") as file:
                size = file.seek(0, 2)
                file.seek(max(length if length <= size else 0, size - BYTES_MAX))
                added = file.read().decode("utf-8", "replace")
        except OSError:
            return
        for line in added.splitlines():
            about, _, what = line.partition("\t")
            words = about.split(" ")
            if len(words) >= 2:
                yield words[0], words[1], what

    def _changed(self, old: str, new: str) -> list[str]:
        try:
            if set(old) <= {"0"}:
                return Git(self._root).names("ls-tree", "-r", "-z", "--name-only", new)
            return Git(self._root).names("diff", "--name-only", "-z", "--no-renames", old, new)
        except GitError:
            return []

    def _index_changes(self, before: State, now: State) -> list[IndexChange]:
        if before.staged.data == now.staged.data:
            return []
        try:
            was, has = self._entries(before.staged), self._entries(now.staged)
        except (GitError, OSError):
            return []
        paths = {path for path, _ in was.items() ^ has.items()}
        return [IndexChange(path, was.get(path), has.get(path)) for path in sorted(paths)]

    def _entries(self, index: Index) -> dict[str, str]:
        """Path -> mode and id, as git names them; of a conflict all of them."""
        if index.data is None:
            return {}
        result: dict[str, str] = {}
        with tempfile.NamedTemporaryFile(prefix="coord-index-") as file:
            file.write(index.data)
            file.flush()
            listed = Git(self._root, Path(file.name)).names("ls-files", "-s", "-z")
        for entry in listed:
            about, _, path = entry.partition("\t")
            mode, name, stage = about.split(" ")
            other_name = f"{mode} {name}" + (f" ({stage})" if stage != "0" else "")
            result[path] = f"{result[path]}, {other_name}" if path in result else other_name
        return result


def _named(state: State) -> str:
    where = f"at {state.commit}" if state.commit else "without a commit"
    return f"HEAD was on {state.head}, {where}" if state.head else f"HEAD was {where}, on no branch"


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _text(path: Path) -> str:
    return _bytes(path, REF_BYTES_MAX).decode("utf-8", "replace").rstrip("\n")


def _bytes(path: Path, most: int = -1) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError:
        return b""
