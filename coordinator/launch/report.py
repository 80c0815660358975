"""The result of a launch: its tasks, its attempts, and the coordination meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from coordinator.client.client import Client
from coordinator.rules.backlog import told_state
from coordinator.words import requests as rq

_PAGE = 1000
N = TypeVar("N", int, float)
#: How many ready tasks are explained.
EXPLAINED_MAX = 20


class Attempt(msgspec.Struct, kw_only=True):
    """One attempt at a task, as the launcher saw it; seconds from claim to answer."""

    task: str
    attempt: int
    agent: str
    seconds: float
    outcome: str
    """done, failed, unguarded (no hook saw what it did), gave up, model error, not landed, given
    back, lapsed or stopped."""
    why: str = ""
    changed: bool | None = None  # any of its task's files; None: unknown, or it names none
    turns: int | None = None
    cost_usd: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None


class LandedWork(msgspec.Struct, kw_only=True):
    """A task whose work has landed: the target's commit then, and its paths."""

    task: str
    commit: str
    paths: list[str]


class KeptWork(msgspec.Struct, kw_only=True):
    """Work that did not land, its place, and the reason."""

    task: str
    branch: str
    worktree: str
    why: str
    review: str | None = None  # of it, that waits for a verdict


class Report(msgspec.Struct, kw_only=True):
    """The end of a launch. `serial_s`: the time of the successful attempts, one after the other."""

    run: str
    wall_s: float
    serial_s: float
    speedup: float
    agents: int
    attempts: list[Attempt]
    conflicts: int
    redirects: int
    reviews: int
    orphans_stopped: int
    tasks: dict[str, int]
    by_others: list[str]  # tasks that are done, and by no agent of this launch
    open: list[str]
    barred: bool  # a review keeps one of these from beginning
    complete: bool
    problems: list[str]
    cost_usd: float | None = None  # as far as the agents tell; the same of tokens
    tokens_in: int | None = None
    tokens_out: int | None = None
    target: str | None = None  # with --isolation worktree: the branch that work lands on
    landed: list[LandedWork] = []
    not_landed: list[KeptWork] = []
    given_up: list[str] = []  # tasks that were dead already when the launch began
    unverified: list[str] = []  # tasks that are done, and that the verifying command has not seen
    unleased: list[str] = []  # files that were changed meanwhile without a lease


class Before(NamedTuple):
    """The state when a launch began: the log's end, and the tasks that were closed and done."""

    since: int
    closed: set[str]
    done: set[str]


class Course(NamedTuple):
    """The course of a launch."""

    run: str
    wall_s: float
    agents: int
    attempts: list[Attempt]
    orphans: int
    problems: list[str]


def make(client: Client, before: Before, course: Course) -> Report:
    """Gather the report.

    Raises:
        Refusal: the coordinator cannot be asked.
    """
    run, wall_s, agents, attempts, orphans, problems = course
    refused = _events(client, before.since, "acquisition_refused")
    reviews = _events(client, before.since, "review_opened")
    done = [attempt for attempt in attempts if attempt.outcome == "done"]
    mine = {attempt.task for attempt in done}
    serial = sum(attempt.seconds for attempt in done)
    closed, tasks = _split_closed(all_tasks(client), before)
    left, barred = _describe_left(client, tasks)
    return Report(
        run=run, wall_s=round(wall_s, 3), serial_s=round(serial, 3),
        speedup=round(serial / wall_s, 2) if wall_s > 0 else 0.0, agents=agents,
        attempts=attempts, conflicts=len(refused),
        redirects=sum(1 for event in refused if event.data.get("redirect")),
        reviews=len(reviews), orphans_stopped=orphans,
        tasks=dict(Counter(task.state for task in tasks)),
        by_others=_list_done(tasks, mine | before.done),
        given_up=[task.task for task in closed if task.state == "dead"], open=left, barred=barred,
        complete=not left and not problems, problems=problems,
        cost_usd=_sum([attempt.cost_usd for attempt in attempts]),
        tokens_in=_sum([attempt.tokens_in for attempt in attempts]),
        tokens_out=_sum([attempt.tokens_out for attempt in attempts]),
        unverified=_unverified(client, mine),
        unleased=_list_unleased(client, before.since),
    )


def _list_unleased(client: Client, since: int) -> list[str]:
    return sorted({str(event.data["resource"])
                   for event in _events(client, since, "unleased_write")})


def _split_closed(tasks: Sequence[rq.Task], before: Before
                  ) -> tuple[list[rq.Task], list[rq.Task]]:
    """Return the tasks that were over before the launch, and all others."""
    return ([task for task in tasks if task.task in before.closed],
            [task for task in tasks if task.task not in before.closed])


def _list_done(tasks: Sequence[rq.Task], without: Collection[str]) -> list[str]:
    return [task.task for task in tasks if task.state == "done" and task.task not in without]


def _describe_left(client: Client, tasks: Sequence[rq.Task]) -> tuple[list[str], bool]:
    """Return a line for each task that is left, and whether a ready one is kept from starting."""
    left: list[str] = []
    barred = False
    for task in tasks:
        if task.state in ("done", "cancelled"):
            continue
        why = ""
        if task.state == "ready" and len(left) < EXPLAINED_MAX:
            shown = client.call(rq.TaskShow(task=task.task))
            why = shown.explanation
            barred = barred or bool(why and shown.state == "ready" and not shown.held_by)
        left.append(f"{task.task} is {told_state(task.state)}: {task.title}"
                    + (f" ({why.removeprefix('ready, ')})" if why else ""))
    return left, barred


def _unverified(client: Client, done: Collection[str]) -> list[str]:
    """Return those of these tasks that wait for a verification, if a command is in force."""
    verification_list = client.call(rq.Verifications(limit=1))
    return [finished_work.task for finished_work in verification_list.left if finished_work.task
            in done] if verification_list.command else []


def reviewed(client: Client, kept: Sequence[KeptWork]) -> list[KeptWork]:
    """Return work that did not land, each with its waiting review.

    Raises:
        Refusal: the coordinator cannot be asked.
    """
    matches = {review.task: review.review for review in client.call(rq.Reviews(limit=1000)).items}
    return [msgspec.structs.replace(kept_work, review=matches.get(kept_work.task)) for kept_work
            in kept]


def _sum(counts: Sequence[N | None]) -> N | None:
    numbers = [count for count in counts if count is not None]
    return sum(numbers[1:], numbers[0]) if numbers else None


def all_tasks(client: Client) -> list[rq.Task]:
    """Return the whole backlog."""
    tasks: list[rq.Task] = []
    after = 0
    while True:
        page = client.call(rq.Tasks(limit=_PAGE, after=after))
        tasks += page.items
        if page.next is None:
            return tasks
        after = page.next


def last_event(ask: Callable[[rq.Request[Any]], Any]) -> int:
    """Return the number of the log's last event."""
    items = ask(rq.Events(tail=True, limit=1)).items
    return int(items[-1].seq) if items else 0


def _events(client: Client, since: int, kind: str) -> list[Any]:
    events: list[rq.EventRow] = []
    after = since
    while True:
        page = client.call(rq.Events(after=after, limit=_PAGE, kind=kind))
        events += page.items
        if page.next is None or not page.items:
            return events
        after = page.items[-1].seq
