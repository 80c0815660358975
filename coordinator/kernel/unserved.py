"""Setting aside what cannot be served, with its reason, so that it blocks nobody else.

Examples are a waiter whose directory is too large, a task whose file now lies outside, and leases
that cannot be closed. They are tried again later, listed in `status` and `doctor`, and told to
their owner once.
"""

from __future__ import annotations

from coordinator.kernel.holders import notices
from coordinator.store import events as ev
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import AsideRow
from coordinator.words import requests as rq

#: When it is tried again (ms), doubled each time up to the longest.
FIRST_MS, LONGEST_MS = 30_000, 1_800_000
#: How many are listed.
LISTED_MAX = 200


def put(
    tx: Tx, what: str, subject: str, reason: str, *, agent: str | None = None,
    task: str | None = None,
) -> None:
    """Set it aside, unless it rests already; its owner hears of it the first time."""
    aside = get(tx, what, subject)
    if aside is not None and aside.retry_at > tx.now:
        return  # two ways led to it at one moment: that is no reason to let it rest longer
    tries = aside.tries + 1 if aside is not None else 1
    rest = min(LONGEST_MS, FIRST_MS << (tries - 1))
    tx.record(
        ev.SetAside(what=what, subject=subject, reason=reason[:500], tries=tries,
                    retry_at=tx.later(rest), agent=agent, task=task)
    )
    if agent is not None and aside is None:
        notices.post(
            tx, agent, "aside", f"{_named(what, subject, task)} cannot be served now and is set "
            f"aside: {reason} It is tried again by itself.", what=what, subject=subject,
        )


def _named(what: str, subject: str, task: str | None) -> str:
    """The name that its owner uses."""
    if what == "lapse":
        return "The end of your leases" + (f" of {task}" if task else "")
    return f"Your place in line ({subject})" if what == "waiter" else subject


def get(view: View, what: str, subject: str) -> AsideRow | None:
    """The row, if it is set aside."""
    return view.first(AsideRow, "aside_get", what, subject)


def rests(view: View, what: str, subject: str) -> bool:
    """Whether it is set aside and not yet to be tried again."""
    row = get(view, what, subject)
    return row is not None and row.retry_at > view.now


def due(view: View, most: int = 100) -> list[AsideRow]:
    """What is to be tried again now."""
    return view.each(AsideRow, "aside_due", view.now, most)


def take_up(tx: Tx, what: str, subject: str) -> None:
    """It is tried again, or over."""
    if tx.has("aside_get", what, subject):
        tx.record(ev.TakenUp(what=what, subject=subject))
        tx.effects.offers = tx.effects.offers or what == "task"


def listing(view: View) -> list[rq.Aside]:
    """Everything that is set aside, as replies."""
    rows = view.each(AsideRow, "aside_all", LISTED_MAX)
    return [
        rq.Aside(what=row.what, subject=row.subject, reason=row.reason, since=row.since,
                 tries=row.tries, retry_at=row.retry_at)
        for row in rows
    ]
