"""A task as it is shown, and what becomes of one: the kernel knows these."""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from coordinator.words.requests.base import Reply
from coordinator.words.texts import Name

#: The states of a task (context_archive/task-states.md).
TaskState = Literal["pending", "ready", "claimed", "review", "failed", "dead", "blocked", "done",
                    "cancelled"]


TASK_STATES: tuple[TaskState, ...] = get_args(TaskState)


class CandidateRegion(Reply):
    resource: str
    base: str | None  # of the text that it was made from
    content_hash: str | None  # of its own text; null: the region is removed
    stale: bool | None  # whether the region has changed since; null: not known
    text: str | None = None


class Candidate(Reply):
    """Something that was tried for a task: new texts, what came of them, and what follows."""

    n: int
    agent: str
    at: str
    outcome: str
    remedy: str
    note: str
    regions: list[CandidateRegion]


class Task(Reply):
    task: str
    title: str
    prompt: str
    state: str
    priority: int
    resources: list[str]
    after: list[str]
    attempts: int
    attempts_max: int
    not_before: str | None
    claimed_by: str | None
    claimed_at: str | None
    claim_until: str | None
    partial: str | None
    result: str | None
    created_at: str
    updated_at: str
    locked_by: str | None = None  # who has claimed it, or holds a lease on `task:T-3`
    locked_by_name: str | None = None  # the name that the agent gave itself; otherwise its name
    locked_at: str | None = None
    held_by: list[str] = []  # who holds what it needs, when shown on its own
    explanation: str = ""
    tried: list[Candidate] = []  # its blackboard, when shown on its own
    needs: list[str] = []  # pools of which its holder is given a value each
    may: list[str] = []  # what a person can do with it as it is: edit, retry, cancel


class Partial(Reply):
    review: str
    summary: str
    files: list[dict[str, Any]]
    diff: str
    note: str = ""  # what the person says who gave it on: the `note` of the verdict


class Unlanded(msgspec.Struct, kw_only=True):
    """Work that did not land: its linked worktree, and the commits around it."""

    worktree: Name
    began: Name
    commit: Name


class Judged(Reply):
    task: str
    round: int  # attempts of this claim in a row of which nothing was written
    remedy: str  # what follows: correct, afresh, …; person: the claim has ended
    state: str
