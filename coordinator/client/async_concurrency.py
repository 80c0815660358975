"""Work that runs at the same time in an event loop: connections, renewals, bodies.

A body is the code inside `async with`, which runs while its lease is held. `concurrency` is this
module's twin for threads, with the same names. Both are written by hand, while most of the blocking
client is made from the asynchronous one (scripts/blocking_client.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from asyncio import Lock
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from coordinator.client.async_connection import AsyncWire

__all__ = ["AsyncChecked", "AsyncConnections", "AsyncRenewing", "Lock", "run_body", "to_the_end"]

P = ParamSpec("P")
T = TypeVar("T")
Renew = Callable[[], Coroutine[Any, Any, bool]]
#: Connections that came with a fork: they are the parent's, and are not closed here.
_PARENTS: list[AsyncWire] = []


class AsyncConnections:
    """The connections of one client: one for immediate answers, one for each waiting question."""

    def __init__(self, wire: AsyncWire) -> None:
        self.wire = wire
        self._others: weakref.WeakSet[AsyncWire] = weakref.WeakSet()

    def borrow(self) -> contextlib.AbstractContextManager[AsyncWire]:
        """Lend the common connection for one question."""
        return contextlib.nullcontext(self.wire)

    def open_another(self) -> AsyncWire:
        """Open a connection for one caller alone. `end` closes it."""
        wire = self.wire.copy()
        self._others.add(wire)
        return wire

    async def end(self, wire: AsyncWire) -> None:
        """Close a connection of `open_another`."""
        await wire.close(for_good=True)

    async def close(self) -> None:
        """Close the common connection for good."""
        await self.wire.close(for_good=True)

    def hang_up(self, *, for_good: bool) -> None:
        """End all questions that wait for an answer."""
        self.wire.hang_ups.add(for_good)
        for wire in (self.wire, *self._others):
            wire.hang_up()

    def start_anew(self) -> None:
        """Begin with new connections in a forked process. The parent keeps the old ones."""
        _PARENTS.append(self.wire)
        self.__init__(self.wire.copy())  # type: ignore[misc]


class AsyncRenewing:
    """Renews a lease by a task, until `renew` returns False, or until its lease is garbage."""

    def __init__(self, renew: Renew, every_s: float) -> None:
        self._task = asyncio.create_task(
            self._renew(weakref.WeakMethod(renew), every_s), name="coord-renew")

    async def stop(self) -> None:
        """Stop renewing; a running question is cancelled."""
        self._task.cancel()
        await asyncio.wait([self._task])

    @staticmethod
    async def _renew(renewing: weakref.WeakMethod[Renew], every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            renew = renewing()
            if renew is None or not await renew():
                return
            del renew


class AsyncChecked:
    """The part of a lease that its body may call without `await`."""

    _check_known: Callable[[], None]

    def check(self) -> None:
        """Check by the last renewal. `confirm` asks the coordinator.

        Raises:
            LeaseLost: the lease is known to have ended, or was not confirmed in time.
        """
        self._check_known()


def run_body(begin: Callable[[Callable[[], bool]], AsyncIterator[T]],
             ) -> contextlib.AbstractAsyncContextManager[T]:
    """Make the context manager of a body. `begin` gets a function that returns whether the body
    still runs. Here it always does: an event loop closes an abandoned generator itself."""
    return contextlib.asynccontextmanager(begin)(lambda: True)


async def to_the_end(work: Callable[P, Coroutine[Any, Any, T]], *args: P.args,
                     **kwargs: P.kwargs) -> T:
    """Finish `work` even if the caller is cancelled meanwhile, and return its result. The
    cancellation follows then."""
    task = asyncio.ensure_future(work(*args, **kwargs))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as now:
            cancelled = now
    if cancelled is not None:
        task.exception()
        raise cancelled
    return task.result()
