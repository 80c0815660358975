"""Asking whether an agent's branch may land, and landing it; where a task is worked on."""

from __future__ import annotations

from typing import Literal

import msgspec

from coordinator.words.requests.base import Count, Place, Reply, Request, Whole
from coordinator.words.requests.leases import Lease
from coordinator.words.requests.tasks import Task
from coordinator.words.texts import Name, Words


class LandChange(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A path, relative to the repository's root, that the branch changed."""

    path: Name
    submodule: bool = False
    regions: list[Name] = []  # the regions that it changes; none: not known, so the whole file
    merged: bool = False  # what lands has the target's changes of it, too
    clash: Words = ""  # why it could not be merged with them


class LandRight(msgspec.Struct, kw_only=True):
    """A lease that the attempt began with."""

    fencing_token: Whole
    resource: Name
    kind: Name


class Lawful(Reply):
    fencing_tokens: list[int]  # the live leases under which it may land


class LandCheck(Request[Lawful]):
    """May these changes of a task land? Refused: NOT_HOLDER, STALE_TOKEN, VERSION_CHANGED, …

    `moved` are paths that the target has changed since the branch began; `dirty` paths that hold
    uncommitted changes where the target is checked out. Changes nothing.
    """

    op = "land_check"
    http = ("POST", "/v1/tasks/{task}/land/check")
    writes = False
    agent: Name
    task: Name
    changes: list[LandChange]
    began_with: list[LandRight] = []
    moved: list[Name] = []
    misfits: list[Words] = []  # what does not fit together with what landed meanwhile
    dirty: list[Name] = []
    target: Name = ""  # the branch that it is to land on, for the sentence


class Landed(Reply):
    task: str
    target: str
    before: str
    after: str
    fencing_tokens: list[int]


class Land(Request[Landed]):
    """Move `target` (a branch, in full) from commit `before` to commit `after`, if that may land.

    The leases are judged and the branch is moved in one transaction, and only if it still is at
    `before`: refused VERSION_CHANGED with `target_moved` when it is not. For the launch, which
    acts for the agent; the files of a worktree are its business.
    """

    op = "land"
    http = ("POST", "/v1/tasks/{task}/land")
    operator_only = True
    agent: Name
    task: Name
    changes: list[LandChange]
    target: Name
    before: Name
    after: Name
    began_with: list[LandRight] = []
    moved: list[Name] = []
    misfits: list[Words] = []  # what does not fit together with what landed meanwhile
    dirty: list[Name] = []


class LandBack(Request[Landed]):
    """The worktree could not follow: move `target` back from `after` to `before`, if nobody has
    built on it. Refused: VERSION_CHANGED."""

    op = "land_back"
    http = ("POST", "/v1/tasks/{task}/land/back")
    operator_only = True
    agent: Name
    task: Name
    target: Name
    before: Name
    after: Name
    why: Words = ""


class Landing(Reply):
    """An agent's work that is about to land."""

    task: str
    title: str
    agent: str
    target: str
    state: Literal["waiting", "landing"]
    queued_at: str  # since when it waits (UTC)
    began_at: str | None  # since when it lands (UTC); null: it waits


class LandQueue(Request[Landing]):
    """Note that the work of a task waits to land, or (`turn`) that its turn has come. For the
    launch, which orders its own queue; a task leaves it when its claim ends."""

    op = "land_queue"
    http = ("POST", "/v1/tasks/{task}/land/queue")
    operator_only = True
    agent: Name
    task: Name
    target: Name
    turn: bool = False  # it lands now


class LandingList(Reply):
    items: list[Landing]
    next: int | None = None  # give this as `skip` for the next page; null: there is no more


class Landings(Request[LandingList]):
    """What lands now and what waits to land, in order."""

    op = "landings"
    http = ("GET", "/v1/landings")
    writes = False
    skip: Place = 0  # leave out so many of them at the beginning
    limit: Count = 200


class WorkedIn(Reply):
    task: Task
    worktree: str
    leases: list[Lease]


class TaskWorktree(Request[WorkedIn]):
    """The agent works on its task in this linked worktree: what is there now is what its leases
    start from, and what is compared when they end."""

    op = "task_worktree"
    http = ("POST", "/v1/tasks/{task}/worktree")
    agent: Name
    task: Name
    worktree: Name
