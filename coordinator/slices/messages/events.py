"""The events of messages between agents and people."""

from __future__ import annotations

from coordinator.store.events.base import Database, Event
from coordinator.store.statements import STATEMENTS as Q


class MessageSent(Event, tag="message_sent"):
    """Somebody said something. Each agent that it goes to has a notice of it besides."""

    SENTENCE = "{agent} said to {to} ({message}): {text}"

    message: str
    n: int
    agent: str  # who says it: an agent, or `human`
    to: str  # an agent, `all` or `human`
    text: str
    thread: str  # the first message of those that answer each other; itself, if it is that
    task: str | None = None
    reply_to: str | None = None

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            Q["message_put"],
            (
                self.message,
                self.n,
                self.thread,
                self.agent,
                self.to,
                self.task,
                self.reply_to,
                self.text,
                instant,
            ),
        )


class MessagesSeen(Event, tag="messages_seen"):
    """A person has had what was said to people listed, up to this number."""

    SENTENCE = "{by} has read what was said to people"

    by: str
    up_to: int

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["messages_see"], (self.up_to, instant))


class MessagesForgotten(Event, tag="messages_forgotten"):
    """Old messages were removed."""

    SENTENCE = "what was said long ago is forgotten"

    messages: list[str]

    def apply(self, db: Database, instant: str) -> None:
        db.executemany(Q["message_delete"], [(message,) for message in self.messages])
