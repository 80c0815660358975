"""Giving each thread, task and process a holder of its own while it is in the body of a `lease`.

A client is one agent, and the coordinator keeps agents apart. So each body that is entered becomes
a sub-agent of the client's agent. Sub-agents are used again, so a client has at most as many as it
ever had bodies at once. Nested bodies of one thread or task are one holder. The module sends no
request.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from coordinator.words import requests as rq
from coordinator.words.pickled import Pickled
from coordinator.words.refusals import HELD, Code, Refusal

#: The lease has ended, whatever is tried (UNAUTHORIZED: with its agent's session).
GONE = (Code.STALE_TOKEN, Code.NOT_HOLDER, Code.UNKNOWN_LEASE, Code.UNAUTHORIZED)
#: Requests that a body sends as the holder of its leases.
AS_HOLDER = frozenset({
    rq.ChangeDone, rq.ChangeFail, rq.ChangeNext, rq.CommitRegion, rq.Propose, rq.Release,
    rq.StateDelete, rq.StatePatch, rq.StatePut,
})


class LeaseLost(Pickled, Exception):
    """The lease ended while its body ran: the body's later writes may collide with others."""

    def __init__(self, resources: Sequence[str], why: str) -> None:
        super().__init__(f"The lease on {', '.join(resources)} was lost: {why}")
        self.resources = list(resources)


class Branch:
    """A sub-agent that is one body's at a time, and that of the bodies within it.

    Attributes:
        agent: its name.
        tokens: the newest lease token of each (resource, working tree) that it has or had.
        spent: it may hold more than its bodies know of, so no other body may get it.
        private: it is no other's, and leaves when it is spent; otherwise the client's own agent.
    """

    def __init__(self, agent: str, private: bool = True) -> None:
        self.agent, self.private = agent, private
        self.tokens: dict[tuple[str, str | None], str] = {}
        self.spent = False


class _Around(NamedTuple):
    """A body around this code."""

    client: object
    owner: object
    process: int
    branch: Branch
    outer: _Around | None


_around: ContextVar[_Around | None] = ContextVar("coord_body", default=None)


class _Forks:
    """Counts the forks of this process. A child may have its parent's agent."""

    count = 0

    def add(self) -> None:
        """Note a fork."""
        self.count += 1


forks = _Forks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_parent=forks.add)


def owner() -> object:
    """The present line of execution: the task in an event loop, otherwise the thread."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None:
        with contextlib.suppress(RuntimeError):
            task = asyncio.current_task()
            if task is not None:
                return task
    return threading.current_thread()


def around(client: object, *, own: bool = True) -> Branch | None:
    """The body of this client that is around this code; None if there is none. `own`: only a body
    that this very thread or task entered; otherwise also one of its starter."""
    here = _around.get()
    while here is not None:
        if here.client is client and here.process == os.getpid() and not (
                own and here.owner is not owner()):
            return here.branch
        here = here.outer
    return None


@contextlib.contextmanager
def entered(client: object, branch: Branch) -> Iterator[None]:
    """A body of this client runs."""
    mark = _around.set(_Around(client, owner(), os.getpid(), branch, _around.get()))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # it is ended in another context than it began in
            _around.reset(mark)


def as_holder(client: object, request: rq.Request[Any], agent: str | None) -> str | None:
    """The agent in whose name a body sends this request; None if it stays as it is."""
    if type(request) not in AS_HOLDER or getattr(request, "agent", None) != agent:
        return None
    branch = around(client, own=False)
    return branch.agent if branch is not None else None


def is_of(refusal: Refusal, agent: str | None) -> bool:
    """Whether this was refused to a body for its client's own agent has it."""
    if refusal.code in (Code.NOT_HOLDER, Code.UNKNOWN_LEASE):
        return True
    holders = refusal.facts.get("holders") or [refusal.facts.get("holder")]
    conflicts = refusal.facts.get("conflicts") or []
    return refusal.code is Code.LOCKED and agent in (
        *holders, *(conflict.get("holder") for conflict in conflicts))


def is_plain(refusal: Refusal) -> bool:
    """Whether the refused agent surely holds nothing more than before."""
    return refusal.code in HELD or refusal.code in (Code.INVALID, Code.OUTSIDE_REPO, Code.LIMIT)


def registration(parent: str, profile: str) -> rq.Register:
    """The registration of a sub-agent for bodies of this agent."""
    return rq.Register(agent=f"{parent}.1", parent=parent, profile=profile, unique=True,
                       description=f"a body of {parent}")
