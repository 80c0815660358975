"""The one list of operations; every door (socket, HTTP, MCP, CLI, Python) is made from it.

An operation is a request shape (which names itself, its HTTP path and its reply) and the use case
that serves it (`kernel.use_cases`). Nothing is decided here but who may ask at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from coordinator.kernel.core import Actor
from coordinator.kernel.holders import agents, sessions
from coordinator.kernel.leasing import (
    lapse,
    lease_lists,
    leases,
    sweep,
    unlock_answers,
    unlock_requests,
    waiting_line,
)
from coordinator.kernel.use_cases import (
    UseCase,
    read,
    read_apart,
    read_settled,
    read_until,
    take_work,
    write,
    write_by,
)
from coordinator.operations import malformed
from coordinator.slices.backlog import backlog, claims, editing, limit_reached, task_lists
from coordinator.slices.guard import commits
from coordinator.slices.landing import landing
from coordinator.slices.messages import messages
from coordinator.slices.proposals import lost_writes, proposals
from coordinator.slices.regions import region_commits
from coordinator.slices.review import reviews, verdicts
from coordinator.slices.signals import signals
from coordinator.slices.state import changes, values
from coordinator.slices.steps import dead_letters, steps
from coordinator.slices.story import archive, moment, report, status, story, timeline, work
from coordinator.slices.verify import verifications
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal


@dataclass(frozen=True)
class Operation:
    """One thing that can be asked.

    `use_case` serves it; None: the daemon itself does (health, compact, shutdown). `several`: it
    takes several transactions, so whoever repeats it meanwhile under its idempotency key waits.
    """

    request: type[rq.Request[Any]]
    use_case: UseCase | None
    several: bool = False
    #: What its request says of itself: looked up once.
    writes: bool = field(init=False, repr=False)
    operator_only: bool = field(init=False, repr=False)
    names_agent: bool = field(init=False, repr=False)
    #: What reads its request from JSON; made at the first one, for making all takes long.
    _decode: Callable[[bytes | msgspec.Raw], Any] | None = field(
        init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        for name, value in (
            ("writes", self.request.writes), ("operator_only", self.request.operator_only),
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
    Operation(rq.Register, write(agents.register)),
    Operation(rq.Join, write(sessions.join)),
    Operation(rq.Heartbeat, write(agents.heartbeat)),
    Operation(rq.Leave, write(agents.leave)),
    Operation(rq.LimitReached, write(limit_reached.reached)),
    Operation(rq.Agents, read(agents.agents)),
    Operation(rq.Acquire, leases.acquire_and_wait),
    Operation(rq.Release, write(leases.release)),
    Operation(rq.Renew, write(leases.renew)),
    Operation(rq.Withdraw, write(waiting_line.withdraw)),
    Operation(rq.Locks, read(lease_lists.locks)),
    Operation(rq.CommitRegion, region_commits.commit, several=True),
    Operation(rq.Propose, proposals.propose, several=True),
    Operation(rq.LostWrites, read(lost_writes.listing)),
    Operation(rq.RequestFile, write(unlock_requests.file, unlock_requests.needs)),
    Operation(rq.Requests, read(unlock_requests.listing)),
    Operation(rq.RequestAnswer, write(unlock_answers.answer)),
    Operation(rq.RequestWithdraw, write(unlock_requests.withdraw)),
    Operation(rq.TaskAdd, write(backlog.add)),
    Operation(rq.Tasks, read(task_lists.listing, apart=task_lists.looks_at_all)),
    Operation(rq.TaskShow, read(task_lists.show)),
    Operation(rq.TaskEdit, write(editing.edit)),
    Operation(rq.TaskClaim, take_work(claims.claim, claims.claim_needs)),
    Operation(rq.TaskDone, write(claims.done)),
    Operation(rq.TaskFail, write(claims.fail)),
    Operation(rq.TaskOutcome, write(claims.outcome)),
    Operation(rq.TaskWorktree, write(landing.work_in)),
    Operation(rq.LandCheck, read(landing.check)),
    Operation(rq.Land, landing.land, several=True),
    Operation(rq.LandBack, landing.land_back, several=True),
    Operation(rq.TaskRetry, write(claims.retry)),
    Operation(rq.TaskCancel, write(claims.cancel)),
    Operation(rq.TaskImport, write(backlog.import_text)),
    Operation(rq.TaskExport, read_apart(backlog.export_text)),
    Operation(rq.SignalAdd, write(signals.add, signals.needs)),
    Operation(rq.Signals, read(signals.listing)),
    Operation(rq.MessageSend, write(messages.send)),
    Operation(rq.Messages, read(messages.listing)),
    Operation(rq.MessagesSee, write(messages.see)),
    Operation(rq.StateGet, read(values.get)),
    Operation(rq.StateKeys, read(values.keys)),
    Operation(rq.StatePut, write(values.put)),
    Operation(rq.StatePatch, write(values.patch)),
    Operation(rq.StateDelete, write(values.delete)),
    Operation(rq.StateHistory, read(values.history)),
    Operation(rq.StateWatch, read_until(values.watch, lambda told: bool(told.changed))),
    Operation(rq.ChangeAdd, write(changes.add)),
    Operation(rq.ChangeNext, take_work(changes.give_next)),
    Operation(rq.ChangeDone, write(changes.done)),
    Operation(rq.ChangeFail, write(changes.fail)),
    Operation(rq.ChangeShow, read_until(changes.show, changes.is_closed)),
    Operation(rq.Changes, read(changes.listing)),
    Operation(rq.StepAdd, write(steps.add)),
    Operation(rq.StepNext, take_work(steps.give_next)),
    Operation(rq.StepDone, write(steps.done)),
    Operation(rq.StepFail, write(steps.fail)),
    Operation(rq.Steps, read(steps.listing)),
    Operation(rq.Dead, read(dead_letters.listing)),
    Operation(rq.DeadShow, read(dead_letters.show)),
    Operation(rq.DeadRetry, write_by(dead_letters.retry, dead_letters.retry_needs)),
    Operation(rq.DeadDrop, write(dead_letters.drop)),
    Operation(rq.GuardCheck, read(commits.check)),
    Operation(rq.GuardOverride, write(commits.override)),
    Operation(rq.GitTurn, None),
    Operation(rq.Sweep, sweep.sweep, several=True),
    Operation(rq.Reviews, read_settled(reviews.listing, lapse.due)),
    Operation(rq.ReviewShow, read(reviews.show_request)),
    Operation(rq.ReviewDecide, verdicts.carry_out, several=True),
    Operation(rq.ReviewUndo, verdicts.carry_out, several=True),
    Operation(rq.Work, read_apart(work.work)),
    Operation(rq.Verify, write(verifications.ask)),
    Operation(rq.Verifications, read(verifications.listing)),
    Operation(rq.ArchiveSearch, read(archive.search)),
    Operation(rq.ArchiveShow, read(archive.show)),
    Operation(rq.ArchiveIndexNow, read(archive.index)),
    Operation(rq.Status, read(status.status)),
    Operation(rq.Events, read(story.events)),
    Operation(rq.Explain, read(story.explain)),
    Operation(rq.Report, read_apart(report.report)),
    Operation(rq.Timeline, read_apart(timeline.timeline)),
    Operation(rq.Moment, read_apart(moment.moment)),
    Operation(rq.Replay, read_apart(story.replay)),
    Operation(rq.Health, read(status.health)),
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
