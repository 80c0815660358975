"""One working tree for a person's command to run in: whatever the command leaves there, the next
run starts from the right content again.

Files that the command builds and git ignores stay from run to run, because building takes long. The
module does not decide what runs there.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from coordinator.files.git import CHECKOUT_TIMEOUT_S, Git, GitError


class ScratchTree:
    """A linked worktree without anybody's work.

    Args:
        top: of the working tree whose repository it belongs to.
        place: where it is, or will be.
    """

    def __init__(self, top: Path, place: Path) -> None:
        self._top, self.place = top, place

    def check_out(self, commit: str) -> None:
        """Have there what this commit has, and nothing else but what git ignores.

        Raises:
            GitError: git cannot.
        """
        if not (self.place / ".git").exists():
            self._make(commit)
            return
        git = Git(self.place)
        git.run("checkout", "--quiet", "--force", "--detach", commit, timeout_s=CHECKOUT_TIMEOUT_S)
        git.run("clean", "-ffdq", timeout_s=CHECKOUT_TIMEOUT_S)  # except what git ignores

    def check_out_whatever_is_there(self, commit: str) -> None:
        """Check out the commit. If git fails because of what a command has left, everything is
        thrown away first.

        Raises:
            GitError: git cannot.
        """
        try:
            if self._is_whole():
                self.check_out(commit)
                return
        except GitError:
            pass
        self.remove()
        self._make(commit)

    def _is_whole(self) -> bool:
        """Whether it is a worktree of this repository still: else git would work on the one around
        it."""
        if not self.place.is_dir():
            return False
        text = Git(self.place).maybe("rev-parse", "--show-toplevel")
        return text is not None and Path(text).resolve() == self.place.resolve()

    def _make(self, commit: str) -> None:
        self.place.parent.mkdir(parents=True, exist_ok=True)
        Git(self._top).run("worktree", "add", "--quiet", "--force", "--force", "--detach",
                           str(self.place), commit, timeout_s=CHECKOUT_TIMEOUT_S)

    def remove(self) -> None:
        """Take it away, whatever is in it."""
        if not self.place.exists():
            return
        with contextlib.suppress(GitError):
            Git(self._top).run("worktree", "remove", "--force", "--force", str(self.place))
        if self.place.exists():
            _open_up(self.place)
            shutil.rmtree(self.place, ignore_errors=True)


def _open_up(place: Path) -> None:
    """A command may have taken away the right to list or to change a directory."""
    with contextlib.suppress(OSError):
        place.chmod(0o700)
        for entry in place.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                _open_up(entry)
