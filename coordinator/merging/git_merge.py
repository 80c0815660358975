"""git's merge by lines, run by git itself: the edge that `merge` gets as an argument.

Runs `git merge-file` on files of its own in a temporary folder. Decides nothing, touches no other.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

from coordinator.files.git import TIMEOUT_S
from coordinator.merging.model import Lines

MARKER_SIZE = 7
#: The most conflicts that git can report by its exit code. A greater code is a failure.
CONFLICTS_MAX = 127
STYLES = ("merge", "diff3", "zdiff3")


class GitFailed(Exception):
    """git did not merge. The message is git's."""


class GitMerge:
    """`git merge-file`, with its settings. It has a folder until `close` or the end of `with`.

    Args:
        marker_size: how many signs a marker has.
        style: `merge`, `diff3` or `zdiff3`; None: as git is set up where it runs.
        place: the directory that git runs in.
    """

    def __init__(
        self, marker_size: int = MARKER_SIZE, style: str | None = None, place: Path | None = None,
    ) -> None:
        self.marker_size = marker_size
        self._style = style
        self._place = place
        self._folder = tempfile.TemporaryDirectory(prefix="coord-merge-")
        self._default = ("ours", "base", "theirs")

    @property
    def shows_base(self) -> bool:
        """Whether the markers also show the base."""
        if self._style is None:
            text = subprocess.run(
                ["git", "config", "merge.conflictStyle"], cwd=self._place, capture_output=True,
                text=True, check=False, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S,
                process_group=0,
            ).stdout.strip()
            self._style = text if text in STYLES else "merge"
        return self._style != "merge"

    def __enter__(self) -> GitMerge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()

    def set_labels(self, ours: str, base: str, theirs: str) -> None:
        """Set the labels of markers for calls without labels."""
        self._default = (ours, base, theirs)

    def __call__(
        self, base: bytes, ours: bytes, theirs: bytes, labels: tuple[str, str, str] | None = None,
    ) -> Lines:
        """Let git merge three texts.

        Raises:
            GitFailed: it would not: not text, or git could not be run.
        """
        folder = Path(self._folder.name)
        for name, data in (("ours", ours), ("base", base), ("theirs", theirs)):
            (folder / name).write_bytes(data)
        words = ["git", "merge-file", "-p", "-q", f"--marker-size={self.marker_size}"]
        if self._style in ("diff3", "zdiff3"):
            words.append(f"--{self._style}")
        for label in labels or self._default:
            words += ["-L", " ".join(label.split()) or "-"]
        words += [str(folder / name) for name in ("ours", "base", "theirs")]
        try:
            done = subprocess.run(words, cwd=self._place, capture_output=True, check=False,
                                  stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, process_group=0)
        except (OSError, subprocess.TimeoutExpired) as bad:
            raise GitFailed(str(bad)) from None
        if not 0 <= done.returncode <= CONFLICTS_MAX:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise GitFailed(lines[-1] if lines else f"exit code {done.returncode}")
        return Lines(done.stdout, done.returncode)
