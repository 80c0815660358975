"""`coord tell` and `coord messages`: what agents and people say to each other."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from rich.padding import Padding
from rich.text import Text

from coordinator.cli.app import (
    AgentName,
    AsJson,
    agent_around,
    app,
    ask,
    out,
    print_json,
    say,
    seconds,
)
from coordinator.cli.render import ago, in_line
from coordinator.words import requests as rq
from coordinator.words.clock import SystemClock
from coordinator.words.texts import harmless

#: Whom a person speaks as, and is spoken to as.
HUMAN = "human"
#: Messages that one page of a person's unread ones has.
PAGE = 1000
MessageId = Annotated[str | None, typer.Option("--reply", "-r", help="What it answers: M-4.")]


@app.command("tell")
def tell(
    who: Annotated[str, typer.Argument(help="An agent, `all`, or `human`.")],
    text: Annotated[list[str], typer.Argument(help="What to say.")],
    agent: AgentName = None,
    task: Annotated[str | None, typer.Option("--task", "-t", help="What it is about: T-3.")] = None,
    reply: MessageId = None,
    as_json: AsJson = False,
) -> None:
    """Say something to an agent, to all, or to a person. Agents hear it with their next call."""
    done = ask(
        rq.MessageSend(agent=agent or _agent() or HUMAN, to=who, text=" ".join(text), task=task,
                       reply_to=reply)
    )
    if as_json:
        print_json(done)
        return
    hears = ", ".join(done.told) or "a person, who is told by `coord status`,"
    say(f"{done.message.message}  {hears} {'hear' if len(done.told) > 1 else 'hears'} of it.")
    if done.left_out:
        say(f"Not told, for they have too many unread: {', '.join(done.left_out)}")


@app.command("messages")
def messages(
    search: Annotated[str | None, typer.Option("--search", "-s", help="Words in them.")] = None,
    task: Annotated[str | None, typer.Option("--task", "-t", help="Only on this task.")] = None,
    thread: Annotated[
        str | None, typer.Option(help="Only this message and those that answer it.")
    ] = None,
    since: Annotated[str | None, typer.Option(help="Only of the last 45s, 10m, 2h, 3d.")] = None,
    human: Annotated[
        bool, typer.Option("--human", help="Only those to people; they count as read then.")
    ] = False,
    peek: Annotated[bool, typer.Option("--peek", help="With --human: leave them unread.")] = False,
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", help="Only what it said or was told.")
    ] = None,
    limit: Annotated[int, typer.Option(help="At most so many, the newest.")] = 50,
    as_json: AsJson = False,
) -> None:
    """What was said, the newest last."""
    own = agent or _agent()
    narrowed = bool(search or task or thread or since)
    reader = HUMAN if human else own if not (task or thread) else None
    request = rq.Messages(
        reader=reader, task=task, thread=thread, search=search, since_s=seconds(since),
        limit=PAGE if human and not narrowed else limit, unread=human and not narrowed,
    )
    found = ask(request)
    if human and not narrowed and not found.items:  # all is read: then what there was
        found = ask(rq.Messages(reader=HUMAN, limit=limit))
    if as_json:
        print_json(found)
    else:
        _show(found)
    unread = [int(one.message[2:]) for one in found.items if one.unread]
    if human and not narrowed and unread and not (peek or own or found.next):
        ask(rq.MessagesSee(up_to=max(unread)))


def _show(found: rq.MessageList) -> None:
    if not found.items:
        say("Nothing was said.")
        return
    now = SystemClock().now_ms()
    for one in found.items:
        about = f"  {one.task}" if one.task else ""
        answers = f"  answers {one.reply_to}" if one.reply_to else ""
        new = "  new" if one.unread else ""
        say(in_line(f"{one.message}  {one.sender} to {one.to}  {ago(one.sent_at, now)}"
                    f"{about}{answers}{new}"))
        out().print(Padding(Text(harmless(one.text)), (0, 0, 0, 5)))


def _agent() -> str | None:
    """The agent in whose session this is typed; None: a person types it."""
    return os.environ.get("COORD_AGENT") or agent_around()
