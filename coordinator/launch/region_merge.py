"""Merging the files of a landing that the target changed, too, and naming the regions that a
landing changes.

The module reads git's objects and writes merged contents as new objects, to which nothing refers
yet. `rules.landing` decides whether they may land. A file whose two sides do not clearly fit
together does not land.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from coordinator.files.git import EXECUTABLE, FILES, NO_MODE, Entry, Git
from coordinator.looking.file_regions import FileRegions
from coordinator.merging.act import Manner, merge_texts
from coordinator.merging.git_merge import GitFailed
from coordinator.merging.model import Side
from coordinator.regions.languages import language_of
from coordinator.regions.outline import FILE_BYTES_MAX
from coordinator.words.resource_names import HEADER
from coordinator.words.texts import quoted

#: Files of one landing that are merged, or divided; of more, none is.
FILES_MAX = 200
#: Regions of a conflict that are named.
NAMED_MAX = 5


@dataclass(frozen=True, slots=True)
class Merges:
    """The result for the files that both sides changed.

    Attributes:
        entries: path -> what the landing has in the place of what the target has.
        clashes: path -> what does not fit together, in words.
    """

    entries: Mapping[str, Entry] = field(default_factory=dict)
    clashes: Mapping[str, str] = field(default_factory=dict)


def merges(git: Git, changes: Sequence[Entry], moved: Sequence[Entry], intent: str,
           since: str) -> Merges:
    """Merge the files that both sides changed.

    Args:
        changes, moved: what the branch and the target changed since they parted.
        intent: what the branch is about.
        since: the target's commits since then, as git names them (`BASE..TIP`).

    Raises:
        GitError
    """
    theirs = {entry.path: entry for entry in moved}
    both = [(entry, theirs[entry.path]) for entry in changes if entry.path in theirs
            and _is_plain(entry) and _is_plain(theirs[entry.path])]
    if not both or len(both) > FILES_MAX:
        return Merges()
    entries, clashes = {}, {}
    for mine, other in both:
        merged = _merge_file(git, mine, other, intent, since)
        if isinstance(merged, str):
            clashes[mine.path] = merged
        elif merged is not None:
            entries[mine.path] = merged
    return Merges(entries, clashes)


def _merge_file(git: Git, mine: Entry, other: Entry, intent: str, since: str
                ) -> Entry | str | None:
    """Return the landing's entry for a file, or its conflict in words. None if it cannot be merged.
    """
    base, ours, new = (git.blob(name) for name in (mine.old, other.new, mine.new))
    if language_of(mine.path, ours[:200]) is None or (
            max(map(len, (base, ours, new))) > FILE_BYTES_MAX):
        return None
    last = git.text("log", "-1", "--format=%s", since, "--", f":(top,literal){mine.path}")
    manner = Manner(ours=Side("the target", last), theirs=Side("the branch", intent),
                    style="merge")
    try:
        done = merge_texts(base, ours, new, mine.path, manner)
    except GitFailed:
        return None
    if done.by == "conflict":
        return _describe_conflicts([(clash.name, clash.why) for clash in done.conflicts], last)
    mode = mine.new_mode if mine.new_mode != mine.old_mode else other.new_mode
    return Entry(mine.path, other.new_mode, mode, other.new, _stored(git, done.data))


def regions(git: Git, changes: Sequence[Entry], paths: Collection[str]) -> dict[str, list[str]]:
    """The differing regions of these files, by path; files without a known answer are left out. In
    a new file all regions differ.

    Raises:
        GitError
    """
    asked = [change for change in changes
             if change.path in paths and (_keeps_mode(change) or _is_new(change))]
    result: dict[str, list[str]] = {}
    if not asked or len(asked) > FILES_MAX:
        return result
    with contextlib.closing(FileRegions()) as divided:
        for entry in asked:
            before = b"" if _is_new(entry) else git.blob(entry.old)
            names = _find_changed(divided, entry.path, before, git.blob(entry.new))
            if names:
                result[entry.path] = names
    return result


def _find_changed(divided: FileRegions, path: str, before: bytes, after: bytes) -> list[str]:
    """Return the differing regions; none if they cannot be told."""
    names, broken = divided.changed(path, before, after)
    if names is None and not broken:  # maybe outside of the definitions
        rest, broken = divided.changed(path, before, after, header=False)
        names = None if rest is None else [HEADER, *rest]
    return [] if names is None or broken else names


def _keeps_mode(entry: Entry) -> bool:
    return _is_plain(entry) and entry.old_mode == entry.new_mode


def _is_new(entry: Entry) -> bool:
    """Whether it is a new file that is not executable."""
    return entry.old_mode == NO_MODE and entry.new_mode in FILES - {EXECUTABLE}


def _is_plain(entry: Entry) -> bool:
    return entry.old_mode in FILES and entry.new_mode in FILES


def _stored(git: Git, data: bytes) -> str:
    return git.run("hash-object", "-w", "--stdin", data=data).decode().strip()


def _describe_conflicts(conflicts: Sequence[tuple[str, str]], last: str) -> str:
    shown = ", ".join(f"{name} ({why})" for name, why in conflicts[:NAMED_MAX])
    more = f" and {len(conflicts) - NAMED_MAX} more" if len(conflicts) > NAMED_MAX else ""
    return f"{shown or 'the whole file'}{more}" + (f"; there: {quoted(last)}" if last else "")
