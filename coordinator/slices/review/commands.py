"""`coord review list`: flagged work that waits for a verdict."""

from __future__ import annotations

from typing import Annotated

from coordinator.commands import forms, review_page
from coordinator.commands.lists import ago
from coordinator.commands.shell import Asking, Shell, ask, choices, one_of
from coordinator.commands.signatures import (
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

declare_group("review", "Flagged work that waits for a human's verdict; alone: work through it.")
ReviewId = Annotated[str, Argument("R-3, or 3.")]

STATES = choices(rq.Reviews, "state")


@command("review list")
def listing(
    shell: Shell, *,
    state: Annotated[str, Option(", ".join(STATES))] = "open",
    agent: Annotated[str | None, Option("Only work that it left.", "-a")] = None,
    task: Annotated[str | None, Option("Only work on this task.")] = None,
    limit: Limit = 200, quiet: Quiet = False, short: Short = False, as_json: AsJson = False,
) -> Asking:
    """List the reviews that wait for a verdict."""
    which = one_of(state, STATES, f"No review is ever {state!r}")
    reply = yield from ask(rq.Reviews(state=which, agent=agent, task=task, limit=limit))
    ids = [row.review for row in reply.items]
    if forms.printed(shell, reply, ids, quiet=quiet, short=short, as_json=as_json,
                     limit=limit):
        return
    if not reply.items:
        condition = "".join((f" of {agent}" if agent is not None else "",
                      f" of task {task}" if task is not None else ""))
        shell.say(f"Nothing{condition} waits for a verdict." if state == "open"
                  else f"There is no review{condition}." if state == "all"
                  else f"No review{condition} is {state}.")
        return
    now = shell.now_ms
    rows = [
        (
            row.review,
            f"{row.state} ({row.under_way} under way)" if row.under_way else row.state,
            ago(row.decided_at or row.opened_at, now),
            row.agent or "",
            review_page.files_in_line(row),
            review_page.what_happened(row),
        )
        for row in reply.items
    ]
    forms.table(shell, ("review", "state", "age", "agent", "files", "what happened"), "===//~",
                rows, reply.next is not None, f"coord review list --limit {limit * 10}")
    if state == "open":
        shell.say(f"next: coord review show {reply.items[0].review}")


@command("review show")
def show(
    shell: Shell, *, review: ReviewId,
    side_by_side: Annotated[
        bool, Option("Before and after in two columns.", "-y", needs_program=True)
    ] = False,
    short: Short = False, as_json: AsJson = False,
) -> Asking:
    """One review: what happened, the differences, the agent's last words."""
    row = yield from ask(rq.ReviewShow(review=review))
    if forms.printed(shell, row, (), quiet=False, short=short, as_json=as_json):
        return
    for line in review_page.plain(row):
        shell.say(line)
