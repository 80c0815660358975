"""Saying something to other agents and to people, and reading what was said."""

from __future__ import annotations

from coordinator.words.requests.base import Count, Number, Place, Reply, Request, Whole
from coordinator.words.texts import Name, Words


class Message(Reply):
    message: str  # the message's id, like M-3
    thread: str  # the first message of those that answer each other
    sender: str  # an agent, or `human`
    to: str  # an agent, `all`, or `human`
    task: str | None
    reply_to: str | None
    text: str
    sent_at: str
    unread: bool  # by the reader that was asked for; of one to `human`: by any person


class MessageList(Reply):
    items: list[Message]
    next: int | None = None  # `before`, for older ones


class MessageTold(Reply):
    message: Message
    told: list[str]  # agents that hear of it with their next hook call
    left_out: list[str]  # of `all`: agents that have too many of the sender's unread


class MessagesSeen(Reply):
    left: int  # messages to people that nobody has seen


class MessageSend(Request[MessageTold]):
    """Say something to an agent, to all live agents (`all`), or to a person (`human`). An agent
    hears it once, with its next hook call; a person when he lists messages."""

    op = "message_send"
    http = ("POST", "/v1/messages")
    agent: Name  # who says it; `human`: a person
    to: Name
    text: Words
    task: Name | None = None  # what it is about
    reply_to: Name | None = None  # the message that it answers


class Messages(Request[MessageList]):
    """The newest `limit` messages in order. An agent that asks gets its own messages, those to it,
    and all of a task or thread that it names."""

    op = "messages"
    http = ("GET", "/v1/messages")
    writes = False
    reader: Name | None = None  # only of and to this agent, or `human`
    task: Name | None = None
    thread: Name | None = None  # only the thread of this message
    search: Name | None = None  # all of these words are in it, or in a sender's name
    since_s: Number | None = None  # sent within these seconds
    unread: bool = False  # only what the reader has not been told
    limit: Count = 100
    before: Place | None = None  # only older ones than this number


class MessagesSee(Request[MessagesSeen]):
    """A person has read what was said to people, up to a number."""

    op = "messages_see"
    http = ("POST", "/v1/messages/seen")
    operator_only = True
    up_to: Whole
