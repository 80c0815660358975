"""What agents and people say to each other."""

from __future__ import annotations

from coordinator.store import events as ev
from coordinator.store.projections.base import Apply, Database
from coordinator.store.statements import STATEMENTS as Q


def _message_sent(db: Database, at: str, e: ev.MessageSent) -> None:
    db.execute(
        Q["message_put"], (e.message, e.n, e.thread, e.agent, e.to, e.task, e.reply_to, e.text, at)
    )


def _messages_seen(db: Database, at: str, e: ev.MessagesSeen) -> None:
    db.execute(Q["messages_see"], (e.up_to, at))


def _messages_forgotten(db: Database, at: str, e: ev.MessagesForgotten) -> None:
    db.executemany(Q["message_delete"], [(one,) for one in e.messages])


APPLY: dict[type[ev.Event], Apply] = {
    ev.MessageSent: _message_sent,
    ev.MessagesSeen: _messages_seen,
    ev.MessagesForgotten: _messages_forgotten,
}
