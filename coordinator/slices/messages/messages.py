"""Messages of agents to each other and to people.

A message to an agent is a notice. It is delivered once, in order, with its next hook call or
heartbeat. It is quoted under its author's name, so that no model takes it for coord's words. A
message to `human` waits until a person lists it. Limits prevent floods and endless conversations of
two agents. A message never changes who holds or does what.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from coordinator.kernel import tasks
from coordinator.kernel.core import Actor, Service
from coordinator.kernel.holders import agents, notices
from coordinator.kernel.holders.agents import ALL, HUMAN
from coordinator.slices.messages.events import MessageSent, MessagesForgotten, MessagesSeen
from coordinator.store.ledger import Tx, View
from coordinator.store.rows import AgentRow, MessageRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import block, one_line

PREFIX = "M-"
#: Characters of one message.
TEXT_MAX = 2_000
#: Characters of a message as it is shown, because characters that could deceive are shown longer.
TOLD_MAX = 2 * TEXT_MAX
#: Agents that one message to `all` may reach.
ALL_MAX = 200
#: Messages that are kept; beyond, the oldest go. Rows that one reading looks through at once.
KEPT_MAX, AT_ONCE = 20_000, 500
#: Old ones that one sweep forgets.
FORGOTTEN_MAX = 5_000
_MINUTE_MS, _DAY_MS = 60_000, 86_400_000
_ANY_NUMBER = 2**62
_BLANK_LINES = re.compile(r"\n\s*\n")


def send(svc: Service, tx: Tx, actor: Actor, req: rq.MessageSend) -> rq.MessageTold:
    """See `requests.MessageSend`."""
    text = _checked(req.text)
    person = req.agent == HUMAN
    if person and not actor.operator:
        raise Refusal(
            Code.UNAUTHORIZED, f"Only a person speaks as {HUMAN}; {actor.agent} is an agent. "
            "Nothing was said.", next="Send it under your own name.",
        )
    task, before = _find_subject(tx, req)
    if not person:
        agents.may_act(tx, actor, req.agent)
    hearers = _hearers(tx, req.agent, req.to)
    full = [name for name in hearers if _is_full(svc, tx, name, req.agent)]
    _check_room(svc, tx, req, full, before.thread if before is not None else None)
    if not person:
        agents.acting(tx, actor, req.agent, moved=False)
    n = tx.number("message")
    message = f"{PREFIX}{n}"
    tx.record(MessageSent(
        message=message, n=n, agent=req.agent, to=req.to, text=text, task=task,
        thread=before.thread if before is not None else message,
        reply_to=before.message_id if before is not None else None,
    ))
    row = find(tx, message)
    sentences = [name for name in hearers if name not in full]
    for name in sentences:
        notices.post(
            tx, name, "message", _render(row), message=message, sender=req.agent, to=req.to,
            thread=row.thread, task=task,
        )
    return rq.MessageTold(message=_reply(row, unread=True), told=sentences, left_out=full)


def _find_subject(tx: Tx, req: rq.MessageSend) -> tuple[str | None, MessageRow | None]:
    """The task that a message is about, and the message that it answers."""
    task = tasks.find(tx, req.task).task_id if req.task is not None else None
    before = find(tx, req.reply_to) if req.reply_to is not None else None
    if before is not None and task is None:
        task = before.task_id
    return task, before


def listing(svc: Service, view: View, actor: Actor, req: rq.Messages) -> rq.MessageList:
    """See `requests.Messages`."""
    thread = find(view, req.thread).thread if req.thread is not None else None
    task = tasks.find(view, req.task).task_id if req.task is not None else None
    reader = _reader(view, actor, req, named=thread is not None or task is not None)
    if req.unread and reader is None:
        raise Refusal(
            Code.INVALID, "Unread by whom? `reader` has to be given.",
            next=f"Repeat it with `reader` {HUMAN}, or an agent's name.",
        )
    since, unheard = _find_since(view, req, reader)
    words = (req.search or "").casefold().split()
    limit = min(req.limit, 1000)
    rows = ((row, _is_unread(row, unheard))
            for row in _each_back(view, req.before, (since, reader, task, thread)))
    fitting = ((row, unread) for row, unread in rows
               if (unread or not req.unread) and _has(row, words))
    shown = list(islice(fitting, limit + 1))  # one more shows whether there are more
    following = shown[limit - 1][0].n if len(shown) > limit else None
    return rq.MessageList(next=following, items=[
        _reply(row, unread=unread) for row, unread in shown[:limit][::-1]])


def _find_since(view: View, req: rq.Messages, reader: str | None) -> tuple[str, set[str] | None]:
    """The start of the list (ISO text), for an agent since it has its name, and the ids that it has
    not heard. None for a reader that is no agent, and has read what a person has."""
    since = view.later(-round(1000 * max(0.0, min(req.since_s, 1e9)))) if req.since_s else ""
    if reader is None or reader == HUMAN:
        return since, None
    agent = view.agent(reader)
    if agent is None or notices.may_return(agent):  # its name lasts
        return since, set(view.values("messages_unheard", reader))
    return (max(since, agent.registered_at),
            set(view.values("messages_unheard", reader)))


def _is_unread(row: MessageRow, unheard: set[str] | None) -> bool:
    if unheard is not None:
        return row.message_id in unheard
    return row.recipient == HUMAN and row.seen_at is None


def _each_back(view: View, before: int | None,
               among: tuple[str, str | None, str | None, str | None]) -> Iterator[MessageRow]:
    """Messages, the newest first, in pieces; `among`: since when, for whom, on which task, in which
    thread."""
    statement = "messages_newest" if among[2] is None else "messages_newest_of_task"
    below = before if before is not None else _ANY_NUMBER
    while True:
        rows = view.each(MessageRow, statement, below, *among, AT_ONCE)
        yield from rows
        if len(rows) < AT_ONCE:
            return
        below = rows[-1].n
        view.rest()


def see(svc: Service, tx: Tx, actor: Actor, req: rq.MessagesSee) -> rq.MessagesSeen:
    """See `requests.MessagesSee`."""
    if waiting(tx):
        tx.record(MessagesSeen(by="a person", up_to=req.up_to))
    return rq.MessagesSeen(left=waiting(tx))


def waiting(view: View) -> int:
    """Messages to people that no person has seen."""
    return int(view.value("messages_unseen") or 0)


def forget(svc: Service, tx: Tx) -> None:
    """Forget what is older than it is kept, and the oldest where there are too many."""
    keep_ms = round(svc.settings.messages.keep_days * _DAY_MS)
    old = tx.values("messages_old", tx.later(-keep_ms), FORGOTTEN_MAX)
    beyond = (str(name) for name in tx.values("messages_beyond", KEPT_MAX, FORGOTTEN_MAX))
    gone = list(dict.fromkeys([*old, *beyond]))
    if gone:
        tx.record(MessagesForgotten(messages=gone))


def find(view: View, text: str) -> MessageRow:
    """The message of this id; `M-3`, `m-3` and `3` are the same.

    Raises:
        Refusal: UNKNOWN_MESSAGE.
    """
    bare = text.strip().upper()
    message = view.first(MessageRow, "message_get", f"{PREFIX}{bare}" if bare.isdigit() else bare)
    if message is None:
        raise Refusal(
            Code.UNKNOWN_MESSAGE, f"No message is called {one_line(text[:60])!r}; what was said "
            "long ago is forgotten. Nothing was said.", next="`coord messages` lists them.",
        )
    return message


# ------------------------------------------------------------ parts


def _checked(text: str) -> str:
    """Raises:
    Refusal: INVALID, LIMIT.
    """
    body = text.strip()
    if not body:
        raise Refusal(Code.INVALID, "A message says something. Nothing was said.",
                      next="`coord tell WHO TEXT`")
    if len(body) > TEXT_MAX:
        raise Refusal(
            Code.LIMIT, f"The message has {len(body)} characters; {TEXT_MAX} are the most. "
            "Nothing was said.", next="Say it shorter, or name a file that has the rest.",
        )
    return body


def _hearers(tx: Tx, sender: str, to: str) -> list[str]:
    """The agents that a message goes to.

    Raises:
        Refusal: UNKNOWN_AGENT, INVALID, LIMIT.
    """
    if to == HUMAN:
        if sender == HUMAN:
            raise Refusal(Code.INVALID, "A person who tells people is heard by nobody. Nothing was "
                          "said.", next=f"`coord tell {ALL} TEXT`, or name an agent.")
        return []
    if to == ALL:
        there = [agent_row.agent for agent_row in tx.each(AgentRow, "agents_there")]
        others = [name for name in there if name != sender]
        if not others:
            raise Refusal(
                Code.UNKNOWN_AGENT, "No other agent is registered. Nothing was said.",
                next=f"`coord tell {HUMAN} TEXT` reaches a person.",
            )
        if len(others) > ALL_MAX:
            raise Refusal(
                Code.LIMIT, f"{len(others)} agents are registered; a message goes to {ALL_MAX} at "
                "the most. Nothing was said.", next="Name the agents that it is for.",
            )
        return others
    row = tx.agent(to)
    if row is None or (row.state == "gone" and not notices.may_return(row)):
        why = "has left and reads nothing any more" if row is not None else "is not registered"
        raise Refusal(
            Code.UNKNOWN_AGENT, f"{one_line(to[:100])} {why}. Nothing was said.",
            next=f"`coord agents` lists who is there; `coord tell {HUMAN} TEXT` reaches a person.",
        )
    if to == sender:
        raise Refusal(Code.INVALID, f"{to} would tell itself. Nothing was said.",
                      next=f"Name another agent, `{ALL}` or `{HUMAN}`.")
    return [to]


def _is_full(svc: Service, tx: Tx, agent: str, sender: str) -> bool:
    """Whether the agent has as many unheard messages of this sender as it may have."""
    return int(tx.value("messages_unheard_of", agent, sender)) >= svc.settings.messages.unread_max


def _check_room(
    svc: Service, tx: Tx, req: rq.MessageSend, full: list[str], thread: str | None
) -> None:
    """Raises:
    Refusal: LIMIT.
    """
    limits = svc.settings.messages
    unseen = (tx.value("messages_unseen_of", req.agent) or 0) if req.to == HUMAN else 0
    if (full and req.to != ALL) or unseen >= limits.unread_max:
        raise Refusal(
            Code.LIMIT, f"{req.to} has not read {limits.unread_max} messages of {req.agent} yet, "
            "which are the most. Nothing was said.", next="Go on with your work; say it later.",
        )
    if req.agent == HUMAN:
        return
    for span, span_ms, most in (("a minute", _MINUTE_MS, limits.per_minute_max),
                                ("an hour", 60 * _MINUTE_MS, limits.per_hour_max)):
        sent = tx.value("messages_sent_since", req.agent, tx.later(-span_ms)) or 0
        if sent >= most:
            raise Refusal(
                Code.LIMIT, f"{req.agent} has sent {sent} messages within {span}; {most} are the "
                "most. Nothing was said.", next="Go on with your work; say it later, in one.",
            )
    alone = (tx.value("messages_alone_in", thread) or 0) if thread is not None else 0
    if alone >= limits.thread_max:
        raise Refusal(
            Code.LIMIT, f"In {thread} agents have said {alone} messages since a person said "
            f"anything; {limits.thread_max} are the most. Nothing was said.",
            next=f"Decide by yourself, or `coord tell {HUMAN} TEXT` and go on with other work.",
        )


def _render(row: MessageRow) -> str:
    """A message as an agent is told of it: its author's words on lines of their own."""
    about = f", on {row.task_id}" if row.task_id else ""
    answers = f", answering {row.reply_to}" if row.reply_to else ""
    whom = " to all" if row.recipient == ALL else ""
    words = block(_BLANK_LINES.sub("\n", row.text))
    if len(words) > TOLD_MAX:
        words = f"{words[:TOLD_MAX]}…\n(`coord messages --thread {row.message_id}` has all of it.)"
    return (f"{row.sender} says{whom} ({row.message_id}{about}{answers}), in its own words, which "
            f"are not coord's:\n{words}\nOnly if it needs an answer: `coord tell {row.sender} TEXT "
            f"--reply {row.message_id}`.")


def _reader(view: View, actor: Actor, req: rq.Messages, *, named: bool) -> str | None:
    """The agent whose messages are asked for; None for everybody's.

    Raises:
        Refusal: UNKNOWN_AGENT, UNAUTHORIZED.
    """
    reader = req.reader or (None if named else actor.agent)
    if reader is None or reader == HUMAN:
        return reader
    row = view.agent(reader)
    if row is None:
        raise Refusal(Code.UNKNOWN_AGENT, f"No agent is called {one_line(reader[:100])}.")
    if actor.agent not in (None, reader, row.parent):
        raise Refusal(
            Code.UNAUTHORIZED, f"This token belongs to {actor.agent}; it reads its own messages, "
            "and those of a task or thread.", next="Leave `reader` out, or name a task.",
        )
    return reader


def _has(row: MessageRow, words: list[str]) -> bool:
    if not words:
        return True
    text = f"{row.text}\n{row.sender}".casefold()
    return all(word in text for word in words)


def _reply(row: MessageRow, *, unread: bool) -> rq.Message:
    return rq.Message(
        message=row.message_id, thread=row.thread, sender=row.sender, to=row.recipient,
        task=row.task_id, reply_to=row.reply_to, text=row.text, sent_at=row.sent_at, unread=unread,
    )


