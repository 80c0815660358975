"""Withdrawing notices that are no longer true, because following them would be refused or do harm.

`notices` keeps the messages, and `notice_delivery` and heartbeats deliver them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from coordinator.kernel.leasing import deadlocks
from coordinator.rules.globs import overlaps
from coordinator.rules.leases import as_resource
from coordinator.store.ledger import View
from coordinator.store.rows import LeaseRow, Row, UnlockRow
from coordinator.words.resource_names import TASK

Facts = dict[str, Any]
#: Notices of leases that ended by others' doing.
LOSSES = ("lapsed", "overridden")


class NoticeRow(Row, frozen=True):
    """A row of `notices`. `data`: JSON of its facts."""

    notice: int
    at: str
    kind: str
    text: str
    data: str


class Waiting(NamedTuple):
    """Notices that an agent has not heard yet, at most 100.

    Attributes:
        standing: those that are still so, and their facts. What others did
            meanwhile is told in order, with what it answers.
        settled: all up to this number need not be told any more.
        last: the number of the last one; 0: there is none.
    """

    standing: list[tuple[NoticeRow, Facts]]
    settled: int
    last: int


class _Since(NamedTuple):
    """What decides whether notices still hold: the requests whose end others tell, what the agent
    holds now, and whether others have taken something from it."""

    answered: set[str | None]
    held: list[LeaseRow]
    lost: bool


def waiting(view: View, agent: str, after: int = 0) -> Waiting:
    """The messages that an agent has not heard yet, after this number."""
    rows = [(row, msgspec.json.decode(row.data, type=Facts))
            for row in view.each(NoticeRow, "notices_of", agent, after)]
    since = _Since(
        {facts.get("request") for row, facts in rows if row.kind != "asked"},
        view.each(LeaseRow, "leases_of_holder", agent) if rows else [],
        any(row.kind in LOSSES for row, _ in rows))
    standing = [(row, facts) for row, facts in rows
                if not _is_settled(view, agent, row.kind, facts, since)]
    numbers = [row.notice for row, _ in rows]
    last = numbers[-1] if numbers else 0
    kept = ({row.notice for row, _ in standing}
            | {row.notice for row, _ in rows if row.kind == "gives_way"})
    first = min(kept, default=last + 1)  # agents may come to wait for each other again
    return Waiting(standing, max((n for n in numbers if n < first), default=0), last)


def _is_settled(view: View, agent: str, kind: str, facts: Facts, since: _Since) -> bool:
    """Whether a notice is no longer true."""
    if kind == "gives_way":
        return deadlocks.is_over(view, agent, facts)
    if kind == "asked":
        return _is_question_over(view, facts, since)
    return kind == "granted" and not since.lost and not any(
        row.acquisition_id == facts["acquisition_id"] or row.file_path in facts["resources"]
        for row in since.held)


def _is_question_over(view: View, facts: Facts, since: _Since) -> bool:
    asked = view.first(UnlockRow, "unlock_get", facts["request"])
    if asked is None or facts["request"] in since.answered:
        return False
    if asked.status != "pending" or asked.resource.startswith(TASK):
        return asked.status != "pending"
    wanted = as_resource(asked.resource, asked.kind, asked.scope)
    return not any(  # the asker has it in a moment
        overlaps(as_resource(row.file_path, row.kind, row.scope), wanted) for row in since.held)
