"""The sentences about a verdict, or a commit of regions, that did not go as it was asked.

The module looks at nothing and decides nothing.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from coordinator.kernel.core import Service, listed
from coordinator.words import file_names
from coordinator.words.refusals import Code, Refusal

if TYPE_CHECKING:
    from coordinator.kernel.writing.journal import Journal
    from coordinator.kernel.writing.performing import Performed


def warnings(svc: Service, done: Performed) -> list[str]:
    """What the asker should know of what was done."""
    return [_linked(path, inode) for path, inode in done.linked] + _kept_aside(svc, done)


_DONE = {"revert": "reverted", "keep": "written", "undo": "undone", "commit": "written"}


def _linked(path: str, inode: int) -> str:
    return (
        f"{file_names.shown(path)} also had another name (a hard link), which keeps the content "
        f"that was there: `find . -inum {inode}` shows it."
    )


def _kept_aside(svc: Service, done: Performed) -> list[str]:
    return [
        f"What somebody saved at {file_names.shown(saved.path)} in that moment is kept as "
        f"{svc.blobs.place(saved.name)}." for saved in done.saved
    ]


def taken_back(svc: Service, journal: Journal, done: Performed) -> Refusal:
    """Why all is as it was before."""
    assert done.first is not None
    path, outcome = done.first
    what = _DONE[journal.verdict.what]
    changed = outcome.state != "failed"
    sentences = [f"{file_names.shown(path)} was not written: {outcome.why}." if changed
            else f"{file_names.shown(path)} could not be written: {outcome.why}."]
    if done.left:
        names = listed([file_names.shown(name) for name, _ in done.left])
        sentences.append(f"All other files are as they were before, except {names}: somebody "
                         "changed "
                         "that in between, and it stays as they left it.")
    else:
        sentences.append(f"Nothing was {what}: all files are as they were before.")
    sentences += _kept_aside(svc, done)
    return Refusal(
        Code.VERSION_CHANGED if changed else Code.STORAGE, " ".join(sentences),
        next=f"{where_to_look(journal)}, then repeat." if changed else
        f"Make room or restore access, then repeat; {where_to_look(journal)}.",
        path=path, left=[name for name, _ in done.left],
    )


def stuck(journal: Journal, done: Performed) -> Refusal:
    """Why it is neither done nor taken back."""
    assert done.first is not None
    what = journal.verdict.what
    left = "; ".join(f"{file_names.shown(path)}: {why}" for path, why in done.left[:10])
    path, outcome = done.first
    return Refusal(
        Code.STORAGE if outcome.state == "failed" else Code.VERSION_CHANGED,
        f"The {what} of {journal.review} is half done: {file_names.shown(path)} could not be "
        f"written ({outcome.why}), and these could not be put back ({left}). All contents are "
        "kept, nobody is given these files, and coord tries again at each sweep.",
        next=f"Put right what it names (the disk, or a link in the place of a directory); then "
        f"repeat the {what}.",
        path=path, left=[name for name, _ in done.left],
    )


def where_to_look(journal: Journal) -> str:
    """The command that shows more."""
    if journal.verdict.what == "commit":
        return f"`coord explain {shlex.quote(journal.steps[0].path)}`"
    return f"`coord review show {journal.review}`"
