"""A holder for each concurrent call of one program.

A client is one agent, and a holder never conflicts with itself: two coroutines that share a client
would both be granted the same resource. So each call gets a sub-agent of the client's agent, with a
client of its own, while it runs. Sub-agents are used again, so a program has at most as many as it
ever had calls at once. Calls nested in one task (or thread) are one holder; a task started within
is another. The module takes no lease itself.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
import weakref
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from coordinator.client.client import Client, Held
from coordinator.client.locating import locate_root
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal


@dataclass(frozen=True, slots=True)
class _Here:
    """The call around this code, in this task or thread."""

    owner: object
    branches: Branches | None
    client: Client | None
    held: Held


_here: ContextVar[_Here | None] = ContextVar("coord_branch", default=None)


def owner() -> object:
    """The present line of execution: the task in an event loop, otherwise the thread."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return task if task is not None else threading.current_thread()


def current() -> Held:
    """The innermost lease around this code, also in a task or thread that was started within it:
    its `fencing_token`, and `check()`, which raises if it was lost.

    Raises:
        LookupError: no guarded call is around it.
    """
    here = _here.get()
    if here is None:
        raise LookupError("No lease is held here: call this within a guarded function.")
    return here.held


@contextlib.contextmanager
def holding(held: Held, branches: Branches | None = None,
            client: Client | None = None) -> Iterator[None]:
    """Have `held` be the body's `current` lease, in this task or thread, and its nested calls of
    these branches be those of `client`."""
    mark = _here.set(_Here(owner(), branches, client, held))
    try:
        yield
    finally:
        _here.reset(mark)


class Branches:
    """The sub-agents of one client's agent.

    Args:
        client: whose sub-agents they are. It stays the caller's to keep and to close.

    Attributes:
        process: the one whose they are: a fork's are others.
    """

    def __init__(self, client: Client) -> None:
        self._parent = weakref.ref(client)
        #: Each step on these is one by itself: no exception at any instant leaves a lock taken.
        self._idle: list[Client] = []
        self._spent: set[Client] = set()
        self.process = os.getpid()

    @property
    def _client(self) -> Client:
        client = self._parent()
        assert client is not None, "whoever calls has it"
        return client

    def around(self) -> Client | None:
        """The client of the call around this nested one; None if no call of these branches is
        around it."""
        here = _here.get()
        if here is None or here.branches is not self or here.owner is not owner():
            return None
        return here.client if self.process == os.getpid() else None

    def take(self) -> Client:
        """A holder for one call alone, until it is given back.

        Raises:
            Refusal: the client's own agent cannot register one.
        """
        if self.process != os.getpid():  # a fork: those are the parent's
            self._idle, self.process = [], os.getpid()
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        parent = self._client.name()
        made = self._client.call(rq.Register(
            agent=f"{parent}.1", parent=parent, profile="python", unique=True,
            description=f"a concurrent call of {parent}"))
        return Client(self._client.root, agent=made.agent, token=made.token)

    def give_back(self, client: Client) -> None:
        """Give back a holder without leases, for another call. A spent one leaves."""
        if self.process != os.getpid():
            return
        if client not in self._spent:
            self._idle.append(client)
            return
        self._spent.discard(client)
        with contextlib.suppress(Refusal):
            self.end(client)

    def spend(self, client: Client) -> None:
        """Mark a holder that may hold more than its call knows of: no other call may get it."""
        self._spent.add(client)

    def end(self, client: Client) -> None:
        """End what it holds, or waits for; no other call gets it.

        Raises:
            Refusal: the coordinator cannot be reached: it ends when its leases expire.
        """
        client.close()
        self._client.call(rq.Leave(agent=str(client.agent), reason="its call has ended"))

    def close(self) -> None:
        """The idle ones leave."""
        idle, self._idle = self._idle, []
        for client in idle if self.process == os.getpid() else ():
            with contextlib.suppress(Refusal):
                self.end(client)


_of_clients: weakref.WeakKeyDictionary[Client, Branches] = weakref.WeakKeyDictionary()
_of_roots: dict[tuple[Path, int], tuple[Client, Branches]] = {}
_making = threading.RLock()


def branches_of(client: Client | None) -> Branches:
    """The branches of this client; without one, this process's own for the repository around the
    working directory, which leave when the process ends.

    Raises:
        Refusal: the coordinator cannot be reached.
    """
    if client is not None:
        return _of_clients.setdefault(client, Branches(client))
    here = locate_root(), os.getpid()
    if here in _of_roots:
        return _of_roots[here][1]
    with _making:
        if here not in _of_roots:
            own = Client(here[0])
            given = own.token is not None  # the agent in whose session this process runs
            if not given:
                own.register()
            _of_roots[here] = own, Branches(own)
            atexit.register(_leave, own, _of_roots[here][1], given)
        return _of_roots[here][1]


def _leave(client: Client, branches: Branches, given: bool) -> None:
    """The process ends: its agent leaves, with its sub-agents; they alone, where the agent is not
    this process's own."""
    if branches.process != os.getpid() or client.token is None:
        return
    client.starts_nothing()  # without a coordinator the leases expire
    if given:
        branches.close()
        return
    with contextlib.suppress(Refusal, OSError):
        client.call(rq.Leave(agent=client.name(), reason="its process has ended"))
