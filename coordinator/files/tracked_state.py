"""Whether git tracks anything in `.coord`, because then a commit can add or change files there.

The module looks into git's index, and asks git only where that may list such a file. It changes
nothing.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from coordinator.files import ownership
from coordinator.files.git import Git, GitError
from coordinator.files.roots import STATE_DIR, checkout
from coordinator.words.refusals import Refusal

#: The version of git's index in which names are not written out.
_SHORTENED = 4


def check_untracked(root: Path) -> None:
    """Check that git tracks nothing in the state directory of this root.

    Raises:
        Refusal: FOREIGN.
    """
    found_checkout = checkout(str(root))
    listed = _lists(Path(found_checkout.own) / "index") if found_checkout is not None else False
    if listed is False:
        return
    try:
        sentences = Git(root).names("-c", "core.fsmonitor=false", "ls-files", "-z", "--", STATE_DIR)
    except GitError as no:
        sentences = [f"by its index; git said {no.said!r}"] if listed else []
    if sentences:
        raise tracked(root, sentences[0])


def tracked(root: Path, name: str) -> Refusal:
    """The refusal of a state directory that git tracks."""
    return ownership.foreign(
        root / STATE_DIR, f"is tracked by git ({name}), so a checkout may replace what is in it",
        next=f"`git rm -r --cached {STATE_DIR}`, commit, remove what came with the clone, repeat.",
    )


def _lists(index: Path) -> bool | None:
    """Whether the index has such a name somewhere; None if only git can tell."""
    try:
        with index.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            if int.from_bytes(text[4:8], "big") >= _SHORTENED:
                return None
            return text.find(STATE_DIR.encode() + b"/") >= 0
    except (OSError, ValueError):
        return False
