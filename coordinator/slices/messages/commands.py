"""`coord tell` and `coord messages`: what agents and people say to each other."""

from __future__ import annotations

from collections.abc import Generator
from typing import Annotated, Any

from coordinator.commands import forms
from coordinator.commands.lists import ago, in_line, wrapped
from coordinator.commands.shell import Asking, Shell, ask, seconds
from coordinator.commands.signatures import (
    AgentName,
    Argument,
    AsJson,
    Option,
    Quiet,
    Short,
    command,
)
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

MessageId = Annotated[str | None, Option("What it answers: M-4.", "-r")]

#: Whom a person speaks as, and is spoken to as.
HUMAN = "human"
#: Messages that one page of a person's unread ones has.
PAGE = 1000
#: How many messages of others, or read ones, are shown.
NEWEST = 50


def news(shell: Shell, *, agent: str) -> Asking:
    """Show only what the agent is told after each of its commands (`shell.carried_out`)."""
    shell.acts_for = agent
    yield from ()


@command("tell")
def tell(
    shell: Shell, *,
    who: Annotated[str, Argument("An agent, `all`, or `human`.")],
    text: Annotated[list[str], Argument("What to say.")],
    agent: AgentName = None,
    task: Annotated[str | None, Option("What it is about: T-3.", "-t")] = None,
    reply: MessageId = None, as_json: AsJson = False,
) -> Asking:
    """Say something to an agent, to all, or to a person. Agents hear it with their next
    call of a tool, or the next `coord` command that they type (but not with --json)."""
    shell.acts_for = agent or (yield from _agent(shell))
    done = yield from ask(rq.MessageSend(
        agent=shell.acts_for or HUMAN,
        to=who,
        text=" ".join(text),
        task=task,
        reply_to=reply,
    ))
    if as_json:
        shell.json(done)
        return
    hears = ", ".join(done.told) or "a person, who is told by `coord status`,"
    shell.say(f"{done.message.message}  {hears} {'hear' if len(done.told) > 1 else 'hears'} of it.")
    if done.left_out:
        shell.say(f"Not told, for they have too many unread: {', '.join(done.left_out)}")


@command("messages")
def messages(
    shell: Shell, *,
    search: Annotated[str | None, Option("Words in them.", "-s")] = None,
    task: Annotated[str | None, Option("Only on this task.", "-t")] = None,
    thread: Annotated[str | None, Option("Only this message and those that answer it.")] = None,
    since: Annotated[str | None, Option("Only of the last 45s, 10m, 2h, 3d.")] = None,
    human: Annotated[bool, Option("Only those to people; they count as read then.")] = False,
    peek: Annotated[bool, Option("With --human: leave them unread.")] = False,
    agent: Annotated[str | None, Option("Only what it said or was told.", "-a")] = None,
    limit: Annotated[
        int | None, Option("At most so many, the newest (50; with --human all that are unread).")
    ] = None,
    quiet: Quiet = False, short: Short = False, as_json: AsJson = False,
) -> Asking:
    """List messages, the newest last."""
    own = agent or (yield from _agent(shell))
    narrowed = any((search, task, thread, since))
    unread = human and not narrowed
    if limit is None:  # of what a person has not read nothing is held back
        limit = PAGE if unread else NEWEST
    reply = yield from _ask_for(agent is not None, rq.Messages(
        reader=HUMAN if human else None if task or thread else own, task=task, thread=thread,
        search=search, since_s=seconds(since, "--since"), limit=limit, unread=unread))
    is_old = unread and not reply.items
    if is_old:  # all is read: then what there was
        reply = yield from ask(rq.Messages(reader=HUMAN, limit=min(limit, NEWEST)))
    ids = [message.message for message in reply.items]
    if not forms.printed(shell, reply, ids, quiet=quiet, short=short, as_json=as_json):
        _show_page(shell, reply, limit, unread, is_old, "No message fits." if narrowed
                   else "Nothing was said.")
    if unread and not any((peek, own, reply.next)):
        yield from _count_as_read(reply)


def _show_page(shell: Shell, reply: rq.MessageList, limit: int, unread: bool, is_old: bool,
               none: str) -> None:
    """Print messages. `is_old`: all of them are read; `none`: the text for an empty list."""
    if is_old and reply.items:
        shell.say("You have read all of these:")
    _show(shell, reply, none)
    if unread and reply.next is not None:
        shell.say(f"… at most {limit} are shown, and they stay unread; `coord messages "
                  "--human` shows all, and they count as read then")


def _ask_for(is_named: bool, request: rq.Messages) -> Generator[rq.Request[Any], Any,
                                                                rq.MessageList]:
    """The messages that are asked for; none where the agent is not named, but COORD_AGENT's, and
    has not begun."""
    try:
        return (yield from ask(request))
    except Refusal as refusal:
        if is_named or refusal.code is not Code.UNKNOWN_AGENT:
            raise
        return rq.MessageList(items=[])


def _count_as_read(reply: rq.MessageList) -> Asking:
    unread = [int(message.message[2:]) for message in reply.items if message.unread]
    if unread:
        yield from ask(rq.MessagesSee(up_to=max(unread)))


def _show(shell: Shell, reply: rq.MessageList, nothing: str) -> None:
    if not reply.items:
        shell.say(nothing)
    for message in reply.items:
        about = f"  {message.task}" if message.task else ""
        answers = f"  answers {message.reply_to}" if message.reply_to else ""
        new = "  new" if message.unread else ""
        shell.say(in_line(
            f"{message.message}  {message.sender} to {message.to}  "
            f"{ago(message.sent_at, shell.now_ms)}{about}{answers}{new}"
        ))
        for line in message.text.splitlines():
            for part in wrapped(in_line(line), shell.width, 5):
                shell.say(part)


def _agent(shell: Shell) -> Generator[rq.Request[Any], Any, str | None]:
    """The agent in whose session this is typed; None if a person types it."""
    return shell.agent or (yield from shell.agent_around())
