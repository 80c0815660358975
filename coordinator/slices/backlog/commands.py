"""`coord task …`: the backlog by hand."""

from __future__ import annotations

from typing import Annotated, get_args

from coordinator.commands import forms
from coordinator.commands.lists import Names
from coordinator.commands.shell import Asking, Shell, ask, each, one_of, seconds
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
from coordinator.words import texts
from coordinator.words.texts import quoted

declare_group("task", "The backlog.",
              order="add list show claim done fail retry cancel import outcome export template "
              "schema edit")
TaskId = Annotated[str, Argument("T-3, or 3.")]
TaskIds = Annotated[list[str], Argument("T-3, or 3; several.", metavar="TASK…")]

#: The remedies of outcomes, in words.
REMEDIES = {
    "none": "written",
    "widen": "more is leased",
    "escalate": "the whole file is leased",
    "afresh": "made afresh",
    "correct": "to be corrected",
    "person": "a person is next",
}


@command("task add")
def add(
    shell: Shell, *, title: str,
    prompt: Annotated[str, Option("What to do, for the agent.")] = "",
    resource: Annotated[list[str] | None, Option(
        "What it writes: a path, dir/, a glob, key:…; shared:PATH to read (repeatable).",
        "-r")] = None,
    needs: Annotated[list[str] | None, Option(
        "A pool of which its agent is given a value, like port (repeatable).")] = None,
    after: Annotated[list[str] | None, Option("A task it comes after.")] = None,
    priority: int = 0,
    attempts_max: Annotated[int | None, Option("Attempts before it is dead.")] = None,
    file: Annotated[list[str] | None, Option("", "-f", hidden=True)] = None,
    attempts: Annotated[int | None, Option(hidden=True)] = None,
    as_json: AsJson = False,
) -> Asking:
    """Add one task."""
    for given, name, now in (
        (file, "--file", "--resource"),
        (attempts, "--attempts", "--attempts-max"),
    ):
        if given:
            shell.complain(
                f"coord: `{name}` is called `{now}` now. It was taken as that; the version after "
                "this one will refuse the older name."
            )
    made = yield from ask(
        rq.TaskAdd(
            title=title,
            prompt=prompt,
            resources=[*(resource or []), *(file or [])],
            needs=needs or [],
            after=after or [],
            priority=priority,
            attempts_max=attempts if attempts_max is None else attempts_max,
            cwd=shell.cwd,
        )
    )
    if as_json:
        shell.json(made)
    else:
        shell.say(f"{made.task} {made.state}: {made.title}")


@command("task list")
def listing(
    shell: Shell, *,
    state: Annotated[str | None, Option(", ".join(rq.TASK_STATES))] = None,
    agent: Annotated[str | None, Option("Only what it has claimed.", "-a")] = None,
    filtered: Annotated[
        str, Option("Only with this in its id, title, holder or a resource.", "--filter")
    ] = "",
    order: Annotated[str, Option("arrival or priority.")] = "arrival",
    limit: Limit = 200, quiet: Quiet = False, short: Short = False, as_json: AsJson = False,
) -> Asking:
    """The backlog in order of arrival, or the next to be given out first."""
    which = None if state is None else one_of(
        state, rq.TASK_STATES, f"No task is ever {state!r}")
    reply = yield from ask(rq.Tasks(
        state=which, agent=agent, limit=limit, filter=filtered,
        order=one_of(order, get_args(rq.TaskOrder), f"No order is called {order!r}")))
    ids = [row.task for row in reply.items]
    if forms.printed(shell, reply, ids, quiet=quiet, short=short, as_json=as_json,
                     limit=limit):
        return
    if not reply.items:
        nothing = (f"No task says {quoted(filtered)}." if filtered else
                   "The backlog is empty." if state is None else f"No task is {state}.")
        shell.say(nothing if agent is None else f"{agent} has claimed none of these.")
        return
    rows = [
        (row.task, row.state, row.title, row.claimed_by or Names(row.resources, " "))
        for row in reply.items
    ]
    forms.table(shell, ("task", "state", "title", "by / resources"), "==~/", rows,
                reply.next is not None, f"coord task list --limit {limit * 10}")


@command("task show")
def show(shell: Shell, *, task: TaskId, short: Short = False, as_json: AsJson = False) -> Asking:
    """One task, and who holds what it needs."""
    row = yield from ask(rq.TaskShow(task=task))
    if forms.printed(shell, row, (), quiet=False, short=short, as_json=as_json):
        return
    shell.say(
        f"{row.task}  {row.state}  priority {row.priority}  "
        f"attempt {row.attempts} of {row.attempts_max}"
    )
    shell.say(row.title)
    if row.explanation:
        shell.say(f"  {row.explanation}")
    for name, value in (
        ("resources", ", ".join(row.resources)),
        ("needs", ", ".join(row.needs)),
        ("after", ", ".join(row.after)),
        ("claimed by", row.claimed_by),
        ("until", row.claim_until),
        ("partial work", row.partial),
        ("result", row.result),
    ):
        if value:
            shell.say(f"  {name}: {value}")
    for attempt in row.tried:
        stale = sum(region.stale is True for region in attempt.regions)
        names = ", ".join(region.resource for region in attempt.regions)
        since = f" ({stale} changed since)" if stale else ""
        shell.say(
            f"  tried {attempt.n}: {attempt.outcome}, {REMEDIES[attempt.remedy]}  "
            f"{attempt.at[11:16]}Z {attempt.agent}" + (f": {names}{since}" if names else "")
        )
    if row.prompt:
        shell.say("")
        shell.say(row.prompt)


@command("task claim")
def claim(
    shell: Shell, *,
    task: Annotated[str | None, Argument("T-3; default: the best one.")] = None,
    agent: AgentName = None,
    ttl: Annotated[str | None, Option("30m, 2h.")] = None,
    wait: Annotated[str | None, Option("Wait this long for one.")] = None,
    as_json: AsJson = False,
) -> Asking:
    """Take a task and all its leases at once."""
    got = yield from ask(
        rq.TaskClaim(
            agent=(yield from shell.acting(agent)),
            task=task,
            ttl_s=seconds(ttl, "--ttl"),
            wait_s=seconds(wait, "--wait") or 0.0,
            cwd=shell.cwd,
            reentrant=True,
        )
    )
    if as_json:
        shell.json(got)
        return
    until = (got.task.claim_until or "")[11:16]
    shell.say(f"{got.task.task} is yours until {until}Z: {got.task.title}")
    _print_given(shell, got)
    if got.task.prompt:
        shell.say("")
        shell.say(got.task.prompt)
    for quote in got.excerpts:
        shell.say("")
        shell.say(f"context archive {quote['section']} {quote['title']} ({quote['source']})")
        shell.say(f"  {quote['text']}")
    if got.partial:
        shell.say("")
        shell.say(f"Another agent began it ({got.partial.review}): {got.partial.summary}")
        if got.partial.note:
            shell.say(f"A person says of it:\n{texts.block(got.partial.note)}")
        shell.say(got.partial.diff)
    for warning in got.warnings:
        shell.say(f"warning: {warning}")
    mine = f" --agent {agent}" if agent else ""
    shell.say("")
    shell.say(f"next: coord task done {got.task.task}{mine} --result 'what came of it'")
    shell.say(f"      coord task fail {got.task.task}{mine} --reason 'why', if you cannot")


def _print_given(shell: Shell, got: rq.Claimed) -> None:
    for lease in got.leases:
        shell.say(f"  leased {lease.resource} ({lease.mode})")
    for variable, text in got.environment.items():
        shell.say(f"  {variable}={text}")


@command("task done")
def done(
    shell: Shell, *, task: TaskId, agent: AgentName = None,
    result: Annotated[str, Option("What came of it.")] = "",
    force: Annotated[bool, Option("Though another claims it.")] = False,
    as_json: AsJson = False,
) -> Asking:
    """Finish a task; its leases are released."""
    row = yield from ask(
        rq.TaskDone(agent=(yield from shell.acting(agent)), task=task, result=result, force=force)
    )
    _print_task(shell, row, as_json)


@command("task fail")
def fail(
    shell: Shell, *, task: TaskId, agent: AgentName = None,
    reason: Annotated[str, Option("Why.")] = "",
    blocked: Annotated[list[str] | None, Option("A resource it needs that another holds.")] = None,
    force: Annotated[bool, Option("Though another claims it.")] = False,
    as_json: AsJson = False,
) -> Asking:
    """Give a task back. It is tried again later, or with `--blocked` when that resource is free. A
    person looks at its changes first."""
    row = yield from ask(
        rq.TaskFail(
            agent=(yield from shell.acting(agent)),
            task=task,
            reason=reason,
            blocked=blocked or [],
            force=force,
            cwd=shell.cwd,
        )
    )
    _print_task(shell, row, as_json)


@command("task retry")
def retry(shell: Shell, *, tasks: TaskIds, as_json: AsJson = False) -> Asking:
    """Put dead, failed or cancelled tasks back."""
    yield from each(shell, [rq.TaskRetry(task=name) for name in dict.fromkeys(tasks)],
                    lambda row: _print_task(shell, row, False), as_json)


@command("task cancel")
def cancel(
    shell: Shell, *, tasks: TaskIds,
    reason: Annotated[str, Option("Why.")] = "",
    force: Annotated[bool, Option("Though it is claimed.")] = False,
    as_json: AsJson = False,
) -> Asking:
    """Take tasks out of the backlog."""
    yield from each(shell, [rq.TaskCancel(task=name, reason=reason, force=force)
                            for name in dict.fromkeys(tasks)],
                    lambda row: _print_task(shell, row, False), as_json)


@command("task outcome")
def outcome(
    shell: Shell, *, task: TaskId,
    outcome: Annotated[str, Argument("VERIFY_FAILED, …", metavar="OUTCOME")],
    note: Annotated[str, Option("Why, in words.")] = "",
    agent: AgentName = None, as_json: AsJson = False,
) -> Asking:
    """Note the outcome of an attempt at a claimed task, for the agent that tries it next."""
    got = yield from ask(
        rq.TaskOutcome(agent=(yield from shell.acting(agent)), task=task, outcome=outcome,
                       note=note)
    )
    if as_json:
        shell.json(got)
    else:
        shell.say(f"{got.task} {got.state}: round {got.round}, {REMEDIES[got.remedy]}")


def _print_task(shell: Shell, row: rq.Task, as_json: bool) -> None:
    if as_json:
        shell.json(row)
        return
    when = f", tried again from {row.not_before[11:19]}Z" if row.not_before else ""
    shell.say(f"{row.task} {row.state}{when}: {row.title}")
    if row.partial and row.state == "review":
        shell.say(f"  its changes are kept for a human: `coord review show {row.partial}`")


@command("limit")
def limit(
    shell: Shell, *, agent: AgentName = None,
    for_: Annotated[str | None, Option("45m, 5h; at most 7d. 0: it goes on now.")] = None,
    until: Annotated[str | None, Option("Or the instant: 2026-11-21T14:32:00Z.")] = None,
    note: Annotated[str, Option("What the provider said.", "-m")] = "",
    as_json: AsJson = False,
) -> Asking:
    """Rest until the provider's limit is over; tasks go back, to agents of other profiles first."""
    done = yield from ask(
        rq.LimitReached(
            agent=(yield from shell.acting(agent)), until=until,
            for_s=seconds(for_, "--for"), note=note,
        )
    )
    if as_json:
        shell.json(done)
    elif done.rests_until is None:
        shell.say(f"{done.agent} goes on.")
    else:
        back = f" Given back: {', '.join(done.given_back)}." if done.given_back else ""
        kept = f" What it had begun is kept: {', '.join(done.reviews)}." if done.reviews else ""
        shell.say(f"{done.agent} rests until {done.rests_until[:16]}Z.{back}{kept}")
