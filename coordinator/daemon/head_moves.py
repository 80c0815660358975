"""How a repository's HEAD moved: read from what git itself writes down of it (its reflog).

Reads only. A repository without such a log (bare, `core.logAllRefUpdates` off) tells nothing.
"""

from __future__ import annotations

from pathlib import Path

from coordinator.files.git import Git, GitError
from coordinator.service.enforcement.git_turns import HeadMove

#: Of one command so many moves are told, from so many bytes of the log.
MOVES_MAX, BYTES_MAX = 20, 64 * 1024
_COMMITS = ("commit", "cherry-pick", "revert")


class HeadMoves:
    """Of the main working tree at `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        git = root / ".git"
        # Of a submodule and below another repository it is left out: the log is not this tree's.
        self._log = git / "logs/HEAD" if git.is_dir() else None

    def length(self) -> int:
        """How long the log is now, in bytes."""
        try:
            return self._log.stat().st_size if self._log is not None else 0
        except OSError:
            return 0

    def since(self, length: int) -> list[HeadMove]:
        """The moves after it was so long, with the files that a commit has changed. For a thread:
        it runs git."""
        out = []
        for line in self._added(length).splitlines()[-MOVES_MAX:]:
            about, _, what = line.partition("\t")
            words = about.split(" ")
            if len(words) < 2 or (words[0] == words[1] and not what.startswith("checkout")):
                continue
            commits = what.startswith(_COMMITS)
            files = self._changed(words[0], words[1]) if commits else []
            out.append(HeadMove(what, commits, files))
        return out

    def _added(self, length: int) -> str:
        if self._log is None:
            return ""
        try:
            with self._log.open("rb") as file:
                size = file.seek(0, 2)
                file.seek(max(length if length <= size else 0, size - BYTES_MAX))
                return file.read().decode("utf-8", "replace")
        except OSError:
            return ""

    def _changed(self, old: str, new: str) -> list[str]:
        try:
            if set(old) == {"0"}:
                return Git(self._root).names("ls-tree", "-r", "-z", "--name-only", new)
            return Git(self._root).names("diff", "--name-only", "-z", "--no-renames", old, new)
        except GitError:
            return []
