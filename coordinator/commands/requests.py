"""`coord request …`: ask a holder to let go; answer the asker."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from coordinator.commands import forms
from coordinator.commands.lists import ago, in_line
from coordinator.commands.shell import Asking, Shell, ask, choices, one_of
from coordinator.commands.signatures import (
    AgentName,
    Argument,
    AsJson,
    Limit,
    Option,
    Quiet,
    Short,
    command,
    declare_group,
)
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import quoted

declare_group("request", "Ask a holder to let go; answer who asks you.")
RequestId = Annotated[str, Argument("U-3, or 3.", metavar="REQUEST")]
PlaceId = Annotated[str, Argument("U-3, or 3; or a place in line, W-3.", metavar="REQUEST")]
Answer = Annotated[str, Option("What the asker is told.", "-m")]
Force = Annotated[bool, Option("As a person, in the holder's place.")]

STATES = choices(rq.Requests, "state")
#: A place in the queue that has no request.
_PLACE = re.compile(r"[Ww]-[0-9]+")


@command("request file")
def file(
    shell: Shell, *,
    resource: Annotated[str, Argument("A path, `dir/`, glob, key or region.")],
    reason: Annotated[str, Option("Why you need it now.", "-m")],
    agent: AgentName = None,
    holder: Annotated[str | None, Option("Whom to ask, where several hold parts of it.")] = None,
    mode: Annotated[str, Option("exclusive or shared.")] = "exclusive",
    as_json: AsJson = False,
) -> Asking:
    """Ask the holder of a resource to release it, and queue for it."""
    if mode not in ("exclusive", "shared"):
        raise Refusal(Code.INVALID, f"--mode is exclusive or shared, not {mode!r}.")
    made = yield from ask(
        rq.RequestFile(
            agent=(yield from shell.acting(agent)),
            resource=resource,
            reason=reason,
            holder=holder,
            mode="shared" if mode == "shared" else "exclusive",
            cwd=shell.cwd,
        )
    )
    if as_json:
        shell.json(made)
        return
    shell.say(f"{made.request}  {made.holder} is asked to release {made.resource}")
    if made.reason != " ".join(reason.split()):
        shell.say(f"You asked before, and that stays the question: {quoted(made.reason)}. To ask "
                  f"anew: coord request withdraw {made.request} --agent {made.requested_by}")
    shell.say("You stand in line for it, and are told the answer. Do other work meanwhile.")


@command("request list")
def listing(
    shell: Shell, *,
    state: Annotated[str, Option(", ".join(STATES))] = "pending",
    agent: Annotated[str | None, Option("Only what it asks or is asked.", "-a")] = None,
    limit: Limit = 200, quiet: Quiet = False, short: Short = False, as_json: AsJson = False,
) -> Asking:
    """List the requests that wait for a holder's answer."""
    which = one_of(state, STATES, f"No request is ever {state!r}")
    reply = yield from ask(rq.Requests(state=which, agent=agent, limit=limit))
    ids = [row.request for row in reply.items]
    if forms.printed(shell, reply, ids, quiet=quiet, short=short, as_json=as_json,
                     limit=limit):
        return
    if not reply.items:
        if agent is not None:
            shell.say(f"{agent} neither waits for an answer nor is asked for one."
                      if state == "pending" else f"There is none by {agent}, or to it.")
        else:
            shell.say("Nobody waits for an answer." if state == "pending" else "There is none.")
        return
    now = shell.now_ms
    rows = [
        (
            row.request,
            row.status,
            ago(row.responded_at or row.requested_at, now),
            row.holder,
            row.requested_by,
            row.resource,
            _explain(row),
        )
        for row in reply.items
    ]
    heads = ("request", "state", "age", "asked", "by", "for", "why")
    forms.table(shell, heads, "===///~", rows, reply.next is not None,
                f"coord request list --limit {limit * 10}")


def _explain(row: rq.Unlock) -> str:
    """The reason of a request, and its answer or the consequence."""
    parts = [in_line(row.reason)]
    if row.responded_by:
        by = f"{row.responded_by} (override)" if row.override else row.responded_by
        parts.append(f"{row.status} by {by}" + (f": {in_line(row.answer)}" if row.answer else ""))
    elif row.releases not in ([], [row.resource]):
        parts.append(f"approving releases {', '.join(row.releases)}")
    return "; ".join(part for part in parts if part)


@command("request approve")
def approve(
    shell: Shell, *, request: RequestId, agent: AgentName = None, force: Force = False,
    answer: Answer = "", as_json: AsJson = False,
) -> Asking:
    """Release it, and grant it to the asker, in one step."""
    yield from _answer(shell, agent, rq.RequestAnswer(
        agent="", request=request, verdict="approve", answer=answer, force=force), as_json)


@command("request narrow")
def narrow(
    shell: Shell, *, request: RequestId,
    keep: Annotated[list[str], Option(
        "A part to keep: a file of a directory, `file::region` of a file. Repeat it for more.",
        "-k")],
    agent: AgentName = None, force: Force = False, answer: Answer = "", as_json: AsJson = False,
) -> Asking:
    """Keep parts of what you hold, and grant what was asked to the asker, in one step."""
    yield from _answer(shell, agent, rq.RequestAnswer(
        agent="", request=request, verdict="narrow", answer=answer, force=force, keep=keep,
        cwd=shell.cwd if keep else None), as_json)


@command("request coexist")
def coexist(
    shell: Shell, *, request: RequestId, agent: AgentName = None, force: Force = False,
    answer: Answer = "", as_json: AsJson = False,
) -> Asking:
    """Share it with the asker: both write it, one edit at a time, and are told of each."""
    yield from _answer(shell, agent, rq.RequestAnswer(
        agent="", request=request, verdict="coexist", answer=answer, force=force), as_json)


@command("request reject")
def reject(
    shell: Shell, *, request: RequestId, agent: AgentName = None, force: Force = False,
    answer: Answer = "", as_json: AsJson = False,
) -> Asking:
    """Keep it, and say why."""
    yield from _answer(shell, agent, rq.RequestAnswer(
        agent="", request=request, verdict="reject", answer=answer, force=force), as_json)


def _answer(shell: Shell, agent: str | None, asked: rq.RequestAnswer, as_json: bool) -> Asking:
    """Answer a request as this agent, or as the one that acts here."""
    who = agent or shell.user if asked.force else (yield from shell.acting(
        agent, "Add `--force` to answer as a person; or `--agent NAME`, the holder's."))
    done = yield from ask(msgspec.structs.replace(asked, agent=who))
    if as_json:
        shell.json(done)
    else:
        shell.say(f"{done.unlock.request} {done.unlock.status}. {done.message}")


@command("request withdraw")
def withdraw(
    shell: Shell, *, request: PlaceId, agent: AgentName = None, as_json: AsJson = False,
) -> Asking:
    """Take your request back, and leave the queue."""
    if _PLACE.fullmatch(request):
        who = yield from shell.acting(agent)
        left = yield from ask(rq.Withdraw(agent=who, acquisition_id=request.upper()))
        if as_json:
            shell.json(left)
        else:
            shell.say(f"{left.acquisition_id} withdrawn; {who} stands in line there no more.")
        return
    done = yield from ask(
        rq.RequestWithdraw(agent=(yield from shell.acting(agent)), request=request)
    )
    if as_json:
        shell.json(done)
    else:
        how = "withdrawn" if done.status == "withdrawn" else f"stays {done.status}"
        shell.say(
            f"{done.request} {how}; {done.requested_by} stands in line for {done.resource} no more."
        )
