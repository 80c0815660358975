"""What agents and people say to each other."""

from __future__ import annotations

from coordinator.store.events.base import Event


class MessageSent(Event, tag="message_sent"):
    """Somebody said something. Each agent that it goes to has a notice of it besides."""

    message: str
    n: int
    agent: str  # who says it: an agent, or `human`
    to: str  # an agent, `all` or `human`
    text: str
    thread: str  # the first message of those that answer each other; itself, if it is that
    task: str | None = None
    reply_to: str | None = None


class MessagesSeen(Event, tag="messages_seen"):
    """A person has had what was said to people listed, up to this number."""

    by: str
    up_to: int


class MessagesForgotten(Event, tag="messages_forgotten"):
    """What was said long ago."""

    messages: list[str]
