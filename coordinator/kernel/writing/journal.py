"""The journal of files that coord writes: it is complete before the first file is touched.

A crash leaves the journal. The coordinator's start, its sweep, or the next request about the same
work continues it (`carrying_out`). A journal is named by the id of its review or of its commit.
"""

from __future__ import annotations

from typing import NamedTuple

from coordinator.store import events as ev
from coordinator.store.ledger import View
from coordinator.store.rows import PartRow, StepRow, VerdictRow

#: Begins the names that are no agents'.
_OWN = "coord/"
#: The leases of a verdict that is carried out last so long (ms), and are renewed at each sweep.
HOLD_MS = 3_600_000


class Journal(NamedTuple):
    """A verdict that has begun."""

    verdict: VerdictRow
    steps: tuple[StepRow, ...]
    parts: tuple[ev.ReviewPart, ...] = ()

    @property
    def review(self) -> str:
        """The review that it is about."""
        return self.verdict.review_id


def holder(review: str) -> str:
    """The holder of a verdict's files meanwhile. No agent can have this name."""
    return f"{_OWN}{review}"


def is_own(agent: str) -> bool:
    """Whether this is no agent, but coord while it writes."""
    return agent.startswith(_OWN)


def journal_of(view: View, review: str) -> Journal | None:
    """The verdict on this review that has begun and not ended."""
    row = view.first(VerdictRow, "verdict_get", review)
    if row is None:
        return None
    parts = view.each(PartRow, "verdict_parts_of", review)
    return Journal(
        row, tuple(view.each(StepRow, "verdict_steps_of", review)),
        tuple(ev.ReviewPart(
            path=part.path, hunks=part.numbers, part_before=part.part_before,
            part_after=part.part_after, rest_before=part.rest_before, rest_after=part.rest_after,
        ) for part in parts),
    )


def unfinished(view: View) -> list[str]:
    """Reviews whose verdict has begun and not ended."""
    return view.values("verdicts_open")


def begun_by(value: object) -> str | None:
    """The name under which files are written from now on, if this is what began it."""
    journal = value if isinstance(value, Journal) else getattr(value, "journal", None)
    return journal.review if isinstance(journal, Journal) else None
