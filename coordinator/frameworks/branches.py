"""A holder for each concurrent call of one program.

A client is one agent, and a holder never conflicts with itself: two coroutines that share a client
would both be granted the same resource. So each call gets a sub-agent of the client's agent, with a
client of its own, for as long as it runs; sub-agents are used again, so a program has as many as it
ever had calls at once. Calls nested in one task (or thread) are one holder; a task that is started
within is another. Takes no lease itself.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

from coordinator.client.client import Client, Held
from coordinator.client.locating import locate_root
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal

#: A sub-agent that was not heard of for so long (seconds) counts as silent: its process is gone.
SILENCE_S = 3600.0


@dataclass(frozen=True, slots=True)
class _Here:
    """What runs around this code, in this task or thread."""

    owner: object
    branches: Branches
    client: Client
    held: Held | None = None


_here: ContextVar[_Here | None] = ContextVar("coord_branch", default=None)


def owner() -> object:
    """Whatever runs one thing after the other here: the task in an event loop, else the thread."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return task if task is not None else threading.current_thread()


def current() -> Held:
    """The innermost lease around this code, in this task or thread: its `fencing_token`, and
    `check()`, which raises if it was lost.

    Raises:
        LookupError: no guarded call is around it.
    """
    here = _here.get()
    if here is None or here.held is None or here.owner is not owner():
        raise LookupError("No lease is held here: call this within a guarded function of this task "
                          "or thread.")
    return here.held


@contextlib.contextmanager
def holding(branches: Branches, client: Client, held: Held | None = None) -> Iterator[None]:
    """Have the body's nested calls, in this task or thread, be those of `client`."""
    mark = _here.set(_Here(owner(), branches, client, held))
    try:
        yield
    finally:
        _here.reset(mark)


class Branches:
    """The sub-agents of one client's agent.

    Args:
        client: whose sub-agents they are. It stays the caller's to close.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._idle: list[Client] = []
        self._spent: set[Client] = set()
        self._process = os.getpid()

    def around(self) -> Client | None:
        """Whose nested call this is; None if nothing of these branches is around it."""
        here = _here.get()
        if here is None or here.branches is not self or here.owner is not owner():
            return None
        return here.client if self._process == os.getpid() else None

    def take(self) -> Client:
        """A holder that nobody else is, until it is given back.

        Raises:
            Refusal: the client's own agent cannot register one.
        """
        with self._lock:
            if self._process != os.getpid():  # a fork: those are the parent's
                self._idle, self._process = [], os.getpid()
            if self._idle:
                return self._idle.pop()
        parent = self._client.name()
        made = self._client.call(rq.Register(
            agent=f"{parent}.1", parent=parent, profile="python", unique=True,
            description=f"a concurrent call of {parent}", silence_s=SILENCE_S))
        return Client(self._client.root, agent=made.agent, token=made.token)

    def give_back(self, client: Client) -> None:
        """It holds nothing any more; another call may have it. (One that was spent leaves.)"""
        with self._lock:
            if self._process != os.getpid():
                return
            if client not in self._spent:
                self._idle.append(client)
                return
            self._spent.discard(client)
        with contextlib.suppress(Refusal):
            self.end(client)

    def spend(self, client: Client) -> None:
        """It may hold more than its call knows of: nobody is to have it after."""
        with self._lock:
            self._spent.add(client)

    def end(self, client: Client) -> None:
        """What it holds, or waits for, ends now; nobody else gets it.

        Raises:
            Refusal: the coordinator cannot be reached: it ends when its leases lapse.
        """
        client.close()
        self._client.call(rq.Leave(agent=str(client.agent), reason="its call has ended"))

    def close(self) -> None:
        """The idle ones leave."""
        with self._lock:
            idle, self._idle = self._idle, []
        for one in idle if self._process == os.getpid() else ():
            with contextlib.suppress(Refusal):
                self.end(one)


_of_clients: WeakKeyDictionary[Client, Branches] = WeakKeyDictionary()
_of_roots: dict[tuple[Path, int], Branches] = {}
_making = threading.Lock()


def branches_of(client: Client | None) -> Branches:
    """Those of this client; without one, this process's own for the repository around the working
    directory, which leave when the process ends.

    Raises:
        Refusal: the coordinator cannot be reached.
    """
    with _making:
        if client is not None:
            if client not in _of_clients:
                _of_clients[client] = Branches(client)
            return _of_clients[client]
        here = locate_root(), os.getpid()
        if here not in _of_roots:
            own = Client(here[0])
            own.name()
            _of_roots[here] = Branches(own)
            atexit.register(_leave, own, os.getpid())
        return _of_roots[here]


def _leave(client: Client, process: int) -> None:
    """The process ends: its agent leaves, with its sub-agents."""
    if process != os.getpid() or client.token is None:
        return
    with contextlib.suppress(Refusal, OSError):  # nobody serves: then nothing is held by now
        last = Client(client.root, agent=client.agent, token=client.token, autostart=False)
        last.call(rq.Leave(agent=str(client.agent), reason="its process has ended"))
        last.close()
