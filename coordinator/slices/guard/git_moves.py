"""Telling others that a command moved what all share in git without asking for git's turn.

A move of HEAD or its branch concerns everybody who works in the tree. A commit or an entry of the
index concerns the holders of its files. They are told the former state, so that it can be put back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from coordinator.kernel.core import family, listed, owner
from coordinator.kernel.holders import notices
from coordinator.kernel.leasing.git_turn import HELD_MAX, is_turn
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import LeaseRow
from coordinator.words.resource_names import path_scope
from coordinator.words.texts import quoted

#: How many entries of the index one holder is told by name.
NAMED_MAX = 10


class HeadMove(NamedTuple):
    """HEAD is elsewhere than it was: `what` git says of it; of a commit the files it changed."""

    what: str
    is_commit: bool
    files: list[str]


class IndexChange(NamedTuple):
    """An entry of the index as git names it (mode and id), before and after; None if there is no
    entry."""

    path: str
    was: str | None
    now: str | None


class Moved(NamedTuple):
    """What a command moved. `was`: where HEAD was before, in words."""

    was: str
    heads: list[HeadMove]
    staged: list[IndexChange]


def has_turn(view: View, agent: str) -> bool:
    """Whether git of this agent changes the main working tree just now, by right."""
    mine = family(view, agent)
    return any(row.locked_by in mine and row.worktree is None and row.expires_at > view.now
               for row in view.each(LeaseRow, "leases_of_git"))


def tell(tx: Tx, *, agent: str, moved: Moved, since: str, busy: Collection[str]) -> list[str]:
    """Tell the others that a command of this agent moved what all share in git. Returns what the
    agent is told.

    Args:
        since: when its command began (UTC).
        busy: agents of whom a call ran meanwhile: a commit of their own files may be theirs.
    """
    others = _list_others(tx, agent)
    at_it = {owner(tx, text) for text in busy} - {owner(tx, agent)}
    theirs = [row for row in others if row.mode == "exclusive" and row.locked_at <= since
              and owner(tx, row.locked_by) not in at_it]
    who = f"A command of {agent}" + (
        f" (or of {listed(sorted(at_it))}, at the same time)" if at_it else "")
    words: dict[str, list[str]] = {}
    for holder, sentence in chain.from_iterable(
            _describe_head(agent, who, move, others, theirs) for move in moved.heads):
        words.setdefault(holder, []).append(sentence)
    for sentences in words.values():
        sentences.append(f"Before it, {moved.was}.")
    for holder, sentence in _describe_index(agent, moved.staged, theirs):
        words.setdefault(holder, []).append(sentence)
    for holder, sentences in words.items():
        text = " ".join(dict.fromkeys(sentences))
        notices.post(tx, holder, "head", f"{text} Look where you are before you go on.")
    if not words:
        return []
    tx.record(ev.Noted(what="git was changed while others were at work", facts={
        "agent": agent, "before": moved.was, "moves": [move.what for move in moved.heads],
        "told": sorted(words)}))
    what = "moved HEAD" if moved.heads else "changed git's index of files that others hold"
    return [f"[coord] Your command {what} while {listed(sorted(words))} were at work here; they "
            "were told. Commit your own files only, and leave branches to a quiet moment."]


def _list_others(tx: Tx, agent: str) -> list[LeaseRow]:
    """The leases of others in the main working tree."""
    mine = family(tx, agent)
    return [row for row in tx.each(LeaseRow, "leases_live", tx.now, 0, None, HELD_MAX)
            if row.locked_by not in mine and row.kind != "key" and row.worktree is None]


def _describe_head(agent: str, who: str, move: HeadMove, others: Sequence[LeaseRow],
                   theirs: Sequence[LeaseRow]) -> Iterator[tuple[str, str]]:
    """The agents that are told of a move of HEAD, with the text for each."""
    if not move.is_commit:
        for holder in dict.fromkeys(row.locked_by for row in others):
            yield holder, f"{who} moved the branch that all work on ({quoted(move.what)})."
        return
    for row in theirs:
        files = [path for path in move.files if _is_of(row, path)]
        if files:
            yield row.locked_by, (f"A command of {agent} committed {listed(files)}, which you hold "
                                  f"({quoted(move.what)}).")


def _describe_index(agent: str, staged: Sequence[IndexChange], theirs: Sequence[LeaseRow]
                    ) -> Iterator[tuple[str, str]]:
    """The agents that are told of changes of git's index, with the text for each."""
    for row in theirs:
        for change in [change for change in staged if _is_of(row, change.path)][:NAMED_MAX]:
            yield row.locked_by, (
                f"A command of {agent} changed what git's index has of {listed([change.path])}, "
                f"which you hold: it was {change.was or 'nothing'}, and is "
                f"{change.now or 'nothing'}.")


def _is_of(row: LeaseRow, path: str) -> bool:
    if is_turn(row.scope):
        return False
    name = as_resource(path, "file", path_scope(path))
    return overlaps(name, as_resource(row.file_path, row.kind, row.scope))
