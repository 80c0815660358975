"""The one list of operations; every door (socket, HTTP, MCP, CLI, Python) is made from it.

An operation is a request shape (which names itself, its HTTP path and its reply) and the use case
that serves it. Writes run in the ledger's transaction; reads see a committed snapshot. Nothing is
decided here but who may ask at all.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import msgspec

from coordinator.looking.facts import AnyNeed
from coordinator.operations import malformed
from coordinator.service import (
    dead_letters,
    landing,
    landing_queue,
    lost_writes,
    messages,
    proposals,
    region_commits,
    signals,
    steps,
)
from coordinator.service.backlog import backlog, claims, editing, limit_reached, task_lists
from coordinator.service.core import Actor, Service
from coordinator.service.course import Course
from coordinator.service.enforcement import commits
from coordinator.service.engine import Engine
from coordinator.service.holders import agents, sessions
from coordinator.service.leasing import (
    lease_lists,
    leases,
    sweep,
    unlock_answers,
    unlock_requests,
    waiting_line,
)
from coordinator.service.review import hunk_lists, reviews, verdicts
from coordinator.service.state import changes, values
from coordinator.service.verifying import verifications
from coordinator.service.views import archive, moment, report, story, timeline, work
from coordinator.store.ledger import Tx, View
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

Handler = Callable[[Service, Any, Actor, Any], Any]
#: What a request needs to have looked at, where that is read from the database.
NeedsOf = Callable[[Service, View, Any], list[AnyNeed]]


@dataclass(frozen=True)
class Operation:
    """One thing that can be asked.

    `needs` tells what to look at on the disk before `handle` runs; what that misses is looked at
    when `handle` asks for it. `course` serves what takes several transactions, `verdict` what also
    writes files of the repository. An operation without any of these is the daemon's own (health,
    compact, shutdown).
    """

    request: type[rq.Request[Any]]
    handle: Handler | None
    needs: Callable[[Any], list[AnyNeed]] | None = None
    #: The same, where it has to be read from the database.
    needs_of: NeedsOf | None = None
    course: Callable[[Engine, Service, Any], Coroutine[Any, Any, Any]] | None = None
    verdict: Callable[[Service, Any], Course] | None = None
    #: Of a reading that can wait (`wait_s`): whether this answer is what it waits for.
    until: Callable[[Any], bool] | None = None
    #: What its request says of itself: looked up once.
    writes: bool = field(init=False, repr=False)
    operator_only: bool = field(init=False, repr=False)
    waits: bool = field(init=False, repr=False)
    names_agent: bool = field(init=False, repr=False)
    #: What reads its request from JSON; made at the first one, for making all takes long.
    _decode: Callable[[bytes | msgspec.Raw], Any] | None = field(
        init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        for name, value in (
            ("writes", self.request.writes), ("operator_only", self.request.operator_only),
            ("waits", "wait_s" in self.request.__struct_fields__),
            ("names_agent", "agent" in self.request.__struct_fields__),
        ):
            object.__setattr__(self, name, value)

    def _make_decode(self) -> Callable[[bytes | msgspec.Raw], Any]:
        made = msgspec.json.Decoder(self.request).decode
        object.__setattr__(self, "_decode", made)
        return made

    @property
    def name(self) -> str:
        """`acquire`, `task_claim`, …"""
        return self.request.op

    @property
    def reply(self) -> type[Any]:
        """The shape of its answer."""
        return self.request.reply_shape()

    @property
    def meaning(self) -> str:
        """What it does, for documentation and models."""
        return (self.request.__doc__ or "").strip()


_ALL = [
    Operation(rq.Register, agents.register),
    Operation(rq.Join, sessions.join),
    Operation(rq.Heartbeat, agents.heartbeat),
    Operation(rq.Leave, agents.leave),
    Operation(rq.LimitReached, limit_reached.reached),
    Operation(rq.Agents, agents.agents),
    Operation(rq.Acquire, leases.acquire, needs=leases.needs),
    Operation(rq.Release, leases.release),
    Operation(rq.Renew, leases.renew),
    Operation(rq.Withdraw, waiting_line.withdraw),
    Operation(rq.Locks, lease_lists.locks),
    Operation(rq.CommitRegion, None, verdict=region_commits.course),
    Operation(rq.Propose, None, verdict=proposals.course),
    Operation(rq.LostWrites, lost_writes.listing),
    Operation(rq.RequestFile, unlock_requests.file, needs=unlock_requests.needs),
    Operation(rq.Requests, unlock_requests.listing),
    Operation(rq.RequestAnswer, unlock_answers.answer),
    Operation(rq.RequestWithdraw, unlock_requests.withdraw),
    Operation(rq.TaskAdd, backlog.add),
    Operation(rq.Tasks, task_lists.listing),
    Operation(rq.TaskShow, task_lists.show),
    Operation(rq.TaskEdit, editing.edit),
    Operation(rq.TaskClaim, claims.claim, needs_of=claims.claim_needs),
    Operation(rq.TaskDone, claims.done),
    Operation(rq.TaskFail, claims.fail),
    Operation(rq.TaskOutcome, claims.outcome),
    Operation(rq.TaskWorktree, landing.work_in),
    Operation(rq.LandCheck, landing.check),
    Operation(rq.Land, None, course=landing.land),
    Operation(rq.LandBack, None, course=landing.land_back),
    Operation(rq.LandQueue, landing_queue.queue),
    Operation(rq.Landings, landing_queue.listing),
    Operation(rq.TaskRetry, claims.retry),
    Operation(rq.TaskCancel, claims.cancel),
    Operation(rq.TaskImport, backlog.import_text),
    Operation(rq.TaskExport, backlog.export_text),
    Operation(rq.SignalAdd, signals.add, needs=signals.needs),
    Operation(rq.Signals, signals.listing),
    Operation(rq.MessageSend, messages.send),
    Operation(rq.Messages, messages.listing),
    Operation(rq.MessagesSee, messages.see),
    Operation(rq.StateGet, values.get),
    Operation(rq.StateKeys, values.keys),
    Operation(rq.StatePut, values.put),
    Operation(rq.StatePatch, values.patch),
    Operation(rq.StateDelete, values.delete),
    Operation(rq.StateHistory, values.history),
    Operation(rq.StateWatch, values.watch, until=lambda told: bool(told.changed)),
    Operation(rq.ChangeAdd, changes.add),
    Operation(rq.ChangeNext, changes.give_next),
    Operation(rq.ChangeDone, changes.done),
    Operation(rq.ChangeFail, changes.fail),
    Operation(rq.ChangeShow, changes.show, until=changes.is_closed),
    Operation(rq.Changes, changes.listing),
    Operation(rq.StepAdd, steps.add),
    Operation(rq.StepNext, steps.give_next),
    Operation(rq.StepDone, steps.done),
    Operation(rq.StepFail, steps.fail),
    Operation(rq.Steps, steps.listing),
    Operation(rq.Dead, dead_letters.listing),
    Operation(rq.DeadShow, dead_letters.show),
    Operation(rq.DeadRetry, dead_letters.retry, needs_of=dead_letters.retry_needs),
    Operation(rq.DeadDrop, dead_letters.drop),
    Operation(rq.GuardCheck, commits.check),
    Operation(rq.GuardOverride, commits.override),
    Operation(rq.GitTurn, None),
    Operation(rq.Sweep, None, course=sweep.sweep),
    Operation(rq.Reviews, reviews.listing),
    Operation(rq.ReviewShow, reviews.show_request),
    Operation(rq.ReviewHunks, hunk_lists.listing),
    Operation(rq.ReviewDecide, None, verdict=verdicts.course),
    Operation(rq.ReviewUndo, None, verdict=verdicts.course),
    Operation(rq.Work, work.work),
    Operation(rq.Verify, verifications.ask),
    Operation(rq.Verifications, verifications.listing),
    Operation(rq.ArchiveSearch, archive.search),
    Operation(rq.ArchiveShow, archive.show),
    Operation(rq.ArchiveIndexNow, archive.index),
    Operation(rq.Status, None),
    Operation(rq.Events, story.events),
    Operation(rq.Explain, story.explain),
    Operation(rq.Report, report.report),
    Operation(rq.Timeline, timeline.timeline),
    Operation(rq.Moment, moment.moment),
    Operation(rq.Replay, story.replay),
    Operation(rq.Health, None),
    Operation(rq.Coordinators, None),
    Operation(rq.Compact, None),
    Operation(rq.OpenSession, None),
    Operation(rq.JoinSession, None),
    Operation(rq.AgentOfProcess, None),
    Operation(rq.TaskLog, None),
    Operation(rq.PageOpen, None),
    Operation(rq.Shutdown, None),
]
_BACKSLASH = ord("\\")
OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in _ALL}


def decode(operation: Operation, params: bytes | msgspec.Raw) -> Any:
    """The request that these bytes of JSON are.

    Raises:
        Refusal: INVALID, naming the field.
    """
    try:
        text = bytes(params)
        request = (operation._decode or operation._make_decode())(text)
        if _BACKSLASH in text and b"\\u0000" in text:
            _check_nul(request, operation.name)
        if operation.names_agent and (name := request.agent) is not None:
            agents.check_name(name)
        return request
    except msgspec.ValidationError as bad:
        raise malformed.refusal(operation.name, operation.request, bad) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
        raise malformed.no_json(operation.name, bad) from None


def _check_nul(value: Any, where: str) -> None:
    """That no text in a request holds a NUL: no path, no name in git and no terminal can.

    Raises:
        Refusal: INVALID, naming the field.
    """
    if isinstance(value, str) and "\0" in value:
        raise Refusal(Code.INVALID, f"{where} has a NUL character in it, which no name and no text "
                      "may have. Nothing was done.", next="Leave it out.")
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            _check_nul(getattr(value, name), f"{where}: `{name}`")
    elif isinstance(value, list):
        for one in value:
            _check_nul(one, where)


def allowed(operation: Operation, actor: Actor) -> None:
    """Whether this actor may ask this at all.

    Raises:
        Refusal: UNAUTHORIZED.
    """
    if operation.operator_only and not actor.operator:
        raise Refusal(
            Code.UNAUTHORIZED, f"`{operation.name}` is for people; {actor.agent} is an agent.",
            next="Ask the person who runs coord.",
        )


def check_person(operation: Operation, agent: str | None) -> None:
    """Whether a person asks what is for people. `agent`: in whose session it is asked.

    Raises:
        Refusal: UNAUTHORIZED.
    """
    if agent is not None:
        raise Refusal(
            Code.UNAUTHORIZED, f"This is the session of the agent {agent}; `{operation.name}` "
            "is for people. Nothing was changed.",
            next="A person types it in a terminal outside of that session.",
        )


def serve_write(
    svc: Service, tx: Tx, actor: Actor, handle: Handler | None, request: Any
) -> Any:
    """Serve a writing request in this transaction: the use case, then note whom to serve if it
    freed something."""
    assert handle is not None, "courses and verdicts are carried out by whoever drives them"
    answer = handle(svc, tx, actor, request)
    if tx.freed:
        waiting_line.wake(svc, tx)
    return answer
