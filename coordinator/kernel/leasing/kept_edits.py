"""Keeping the last content that a holder's own edits left, until it is committed or decided on.

A hook manager, a stash in a script, or a program that rewrites a whole tree may take it out of the
file. If no edit of the holder did that, a review gets the lost text, and the holder is told at its
next call (invariant 15).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from coordinator.kernel.core import Service, listed
from coordinator.kernel.holders import notices
from coordinator.kernel.leasing import partial_work
from coordinator.looking.facts import Committed, Content
from coordinator.rules.versions import lost
from coordinator.store import events as ev
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow, Row
from coordinator.words.refusals import Refusal
from coordinator.words.resource_names import copy_name, path_scope, write_window

#: Edits of one file by one agent that are kept apart. Consecutive edits count as one.
EDITS_MAX = 8
#: Files that every call looks at. A look takes so many in passing.
FEW = 8


class KeptEdit(NamedTuple):
    """What an agent's edits made of a file: the names of its content before and after. None: there
    was no file."""

    before: str | None
    after: str | None


class KeptFile(NamedTuple):
    """A file with edits of one agent: where it is, and in which working tree (None: the main one).
    """

    path: str
    worktree: str | None
    edits: list[KeptEdit]


class KeptEditRow(Row, frozen=True):
    """A row of `kept_edits`, without its agent."""

    copy: str
    path: str
    worktree: str | None
    before: str | None
    after: str | None


def note_edit(tx: Tx, agent: str, name: str, worktree: str | None, edit: KeptEdit) -> None:
    """The agent has edited a file of its own: this is kept, with what was taken out before."""
    copy = copy_name(name, worktree)
    kept = _edits(tx, agent, copy)
    if edit.before == edit.after:
        return
    edits = []
    for kept_edit in kept:
        if kept_edit.after == edit.before:
            edit = KeptEdit(kept_edit.before, edit.after)
        elif _is_lost(tx, kept_edit, edit.before) or not _is_lost(tx, kept_edit, edit.after):
            edits.append(kept_edit)
    edits.append(edit)
    if edits != kept:
        _record(tx, agent, name, worktree, edits)


def note_command(svc: Service, tx: Tx, agent: str, words: Collection[str]) -> None:
    """A command of the agent has ended. Its changes to the agent's files are the agent's own. The
    exception is a file that went back to an earlier content although no word of the command names
    it.

    Raises:
        Unready: the files have to be looked at.
    """
    for file in _suspects(svc, tx, agent):
        now = _content(svc, tx, file)
        if now is None or (now or None) == file.edits[-1].after:
            continue
        went_back = not _has_new_lines(tx, file, now)
        named = any(f"/{file.path}".endswith("/" + word.removeprefix("./").rstrip("/"))
                    for word in words if word.strip("./"))
        left = [edit for edit in file.edits
                if (went_back and not named) or not _is_lost(tx, edit, now)]
        if left != file.edits:
            _record(tx, agent, file.path, file.worktree, left)


def hand_back(tx: Tx, agent: str, parent: str) -> None:
    """A sub-agent ends: what it has edited is its parent's from now on."""
    for file in _files(tx, agent, seen=False):
        for edit in file.edits:
            note_edit(tx, parent, file.path, file.worktree, edit)


def look_at(svc: Service, tx: Tx, agent: str, *, few: bool = False) -> None:
    """Require all that a check has to know, before anything is recorded. `few`: as in `check`.

    Raises:
        Unready: it was not.
    """
    files = _suspects(svc, tx, agent, few=few)
    tx.looked.require(Content(svc.where(file.worktree, file.path)) for file in files)
    tx.looked.require(
        Committed(svc.where(file.worktree, file.path)) for file in files
        if any(_is_lost(tx, edit, now) for edit in file.edits
               if (now := _content(svc, tx, file)) is not None))


def check(svc: Service, tx: Tx, agent: str, *, but: Collection[str] = (), few: bool = False,
          is_busy: Callable[[str], bool] = lambda agent: False) -> None:
    """Open a review of what was taken out of files that this agent has edited, and tell it.

    Args:
        but: files whose edit is in the middle, by name.
        few: only if few have to be looked at: the agent waits, and is asked about again soon.
        is_busy: whether commands of others than this agent run: what is gone may come back.

    Raises:
        Unready: the files have to be looked at.
    """
    for file in _suspects(svc, tx, agent, few=few):
        now = _content(svc, tx, file)
        if now is None or (now or None) == file.edits[-1].after or file.path in but:
            continue
        gone = [edit for edit in file.edits if _is_lost(tx, edit, now)]
        if not gone or is_busy(agent):
            continue
        left = [edit for edit in file.edits if edit not in gone]
        _record(tx, agent, file.path, file.worktree, left)
        gone = [edit for edit in gone if not _is_elsewhere(svc, tx, file, edit)]
        if gone:
            _flag(svc, tx, agent, file, gone[-1], now)


# ---------------------------------------------------------------- inside


def _edits(tx: Tx, agent: str, copy: str) -> list[KeptEdit]:
    return [KeptEdit(row.before, row.after)
            for row in tx.each(KeptEditRow, "kept_edits_of_file", agent, copy)]


def _files(tx: Tx, agent: str, *, seen: bool) -> list[KeptFile]:
    """The files that an agent has edited; with `seen` those of the main tree that have changed."""
    files: dict[str, KeptFile] = {}
    for row in tx.each(KeptEditRow, "kept_edits_of", agent, seen):
        file = files.setdefault(row.copy, KeptFile(row.path, row.worktree, []))
        file.edits.append(KeptEdit(row.before, row.after))
    return list(files.values())


def _suspects(svc: Service, tx: Tx, agent: str, *, few: bool = False) -> list[KeptFile]:
    """The files that may have lost an edit of this agent. Work in a launch's own worktree is
    checked when it lands.

    Raises:
        Unready: an edit of one has ended since it was looked at.
    """
    is_watched = svc.wait_for_watcher is not None
    files = [file for file in _files(tx, agent, seen=is_watched)
             if not svc.is_launched_worktree(file.worktree)
             and not _is_being_written(svc, tx, file)]
    return [] if few and len(files) > FEW else files


def _record(tx: Tx, agent: str, name: str, worktree: str | None,
            edits: Sequence[KeptEdit]) -> None:
    tx.record(ev.EditsKept(agent=agent, path=name, worktree=worktree,
                           edits=[(edit.before, edit.after) for edit in edits[-EDITS_MAX:]]))


def _content(svc: Service, tx: Tx, file: KeptFile) -> str | None:
    """The name of the present content; empty if there is no file; None if nobody can tell.

    Raises:
        Unready: it has to be looked at.
    """
    path = svc.where(file.worktree, file.path)
    tx.looked.require([Content(path)])
    try:
        now = tx.looked.content(path)
    except Refusal:
        return None
    if now.hash is not None and not tx.keep_found(now):
        return None
    return now.hash or ""


def _is_being_written(svc: Service, tx: Tx, file: KeptFile) -> bool:
    """Whether an edit of this file by anybody is in the middle: it may be half there.

    Raises:
        Unready: one has ended since the file was looked at.
    """
    if file.worktree is not None:
        return False
    scope = write_window(file.path, svc.fold_case).scope
    if any(lease.expires_at > tx.now for lease in tx.each(LeaseRow, "leases_at_scope", scope)):
        return True
    ended = tx.ended_since("key", scope)
    if ended:
        tx.looked.fresh(ended)
    return False


def _text(tx: Tx, digest: str | None) -> str:
    data = tx.blob(digest or None)
    return data.decode(errors="replace") if data is not None else ""


def _is_lost(tx: Tx, edit: KeptEdit, now: str | None) -> bool:
    """Whether a content lacks what an edit made."""
    if (now or None) in (edit.after, None):
        return edit.after is not None and not now
    return lost(_text(tx, edit.before), _text(tx, edit.after), _text(tx, now))


def _has_new_lines(tx: Tx, file: KeptFile, now: str) -> bool:
    """Whether a content has a line that these edits neither found nor made."""
    edits = {line for edit in file.edits for digest in edit
             for line in _text(tx, digest).splitlines()}
    return not edits.issuperset(_text(tx, now).splitlines())


def _is_elsewhere(svc: Service, tx: Tx, file: KeptFile, edit: KeptEdit) -> bool:
    """Whether what an edit made is in the last commit of its working tree or of the main one, or in
    a file that was renamed.

    Raises:
        Unready: it has to be looked at.
    """
    if edit.after is not None and tx.has("version_elsewhere", edit.after, file.path):
        return True
    # A linked tree is removed once its work was merged.
    return any(_is_committed(tx, edit, svc.where(tree, file.path))
               for tree in dict.fromkeys((file.worktree, None)))


def _is_committed(tx: Tx, edit: KeptEdit, path: str) -> bool:
    """Whether the last commit has what an edit made in the file at this absolute path.

    Raises:
        Unready: it has to be looked at.
    """
    tx.looked.require([Committed(path)])
    try:
        committed = tx.looked.committed(path)
    except Refusal:
        return False
    tx.keep_found(committed)
    return not _is_lost(tx, edit, committed.hash) if committed.hash is not None else (
        edit.after is None)


def _flag(svc: Service, tx: Tx, agent: str, file: KeptFile, edit: KeptEdit, now: str) -> None:
    what = "deleted" if not now else "created" if edit.after is None else "modified"
    flagged = partial_work.flag(
        tx, [ev.FlaggedFile(
            path=file.path, scope=path_scope(file.path, svc.fold_case), change=what,
            kept=edit.after is None or tx.has("blob_has", edit.after),
            baseline_hash=edit.after, flagged_hash=now or None, worktree=file.worktree)],
        partial_work.Occasion(
            reason="unleased",
            why=f"What {agent} had written in {file.path} was taken out, and no edit of "
            f"{agent} did that. A revert brings it back."))
    notices.post(
        tx, agent, "violated",
        f"What you wrote in {file.path} is not there any more, and no edit of yours took it out: "
        f"it is kept for a person in {listed([flagged.review])}. Read the file afresh before you "
        "write it.", resource=file.path)
