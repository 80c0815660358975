"""What an operation is, who may ask for it, and the kernel's own operations.

An operation is a request shape, which names itself, its HTTP path and its reply, and the use case
that serves it (`kernel.use_cases`). This module decides only who may ask at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from coordinator.kernel.core import OPERATOR, Actor, token_hash
from coordinator.kernel.holders import agents, programs, sessions
from coordinator.kernel.leasing import (
    lease_lists,
    leases,
    sweep,
    unlock_answers,
    unlock_requests,
    waiting_line,
)
from coordinator.kernel.use_cases import UseCase, read, write
from coordinator.store.ledger import View
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal


@dataclass(frozen=True)
class Operation:
    """One operation.

    `use_case` serves it; None if the daemon itself does (health, compact, shutdown). `several`: it
    takes several transactions, so a repetition under the same idempotency key waits.
    """

    request: type[rq.Request[Any]]
    use_case: UseCase | None
    several: bool = False
    #: What its request declares, looked up once.
    writes: bool = field(init=False, repr=False)
    operator_only: bool = field(init=False, repr=False)
    names_agent: bool = field(init=False, repr=False)
    #: The decoder of its request from JSON. It is made at the first request, because making all
    #: takes long.
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


def who(view: View, token: str | None) -> Actor:
    """The actor of a token. No token means the operator, on a local connection of the same user.

    Raises:
        Refusal: UNAUTHORIZED.
    """
    if token is None:
        return OPERATOR
    row = view.agent_of(token_hash(token))
    if row is None:
        raise Refusal(
            Code.UNAUTHORIZED, "This agent token is unknown, or its agent has left.",
            next="Register again; or act as a person, without a token (unset COORD_AGENT_TOKEN).",
        )
    return Actor(row)


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


KERNEL_OPERATIONS = (
    Operation(rq.Register, programs.register),
    Operation(rq.Join, write(sessions.join)),
    Operation(rq.Heartbeat, write(agents.heartbeat)),
    Operation(rq.Leave, write(agents.leave)),
    Operation(rq.Agents, read(agents.agents)),
    Operation(rq.Acquire, leases.acquire_and_wait),
    Operation(rq.Release, write(leases.release)),
    Operation(rq.Renew, write(leases.renew)),
    Operation(rq.Withdraw, write(waiting_line.withdraw)),
    Operation(rq.Locks, read(lease_lists.locks)),
    Operation(rq.RequestFile, write(unlock_requests.file, unlock_requests.needs)),
    Operation(rq.Requests, read(unlock_requests.listing)),
    Operation(rq.RequestAnswer, write(unlock_answers.answer)),
    Operation(rq.RequestWithdraw, write(unlock_requests.withdraw)),
    Operation(rq.Sweep, sweep.sweep, several=True),
)
