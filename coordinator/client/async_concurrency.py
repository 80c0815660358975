"""Running things side by side in an event loop: connections, renewals, bodies, unfinished work.

`concurrency` has the same names for threads.
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
    """The connections of one client: a common one for immediate answers, others for waiting
    questions."""

    def __init__(self, wire: AsyncWire) -> None:
        self.wire = wire
        self._others: weakref.WeakSet[AsyncWire] = weakref.WeakSet()

    def borrow(self) -> contextlib.AbstractContextManager[AsyncWire]:
        """A connection for one question."""
        return contextlib.nullcontext(self.wire)

    def another(self) -> AsyncWire:
        """A connection for one caller alone; `end` closes it."""
        wire = self.wire.another()
        self._others.add(wire)
        return wire

    async def end(self, wire: AsyncWire) -> None:
        """Close a connection that is not needed any longer."""
        await wire.close(for_good=True)

    async def close(self) -> None:
        """Hang up for good, on the common one."""
        await self.wire.close(for_good=True)

    def hang_up(self, *, for_good: bool) -> None:
        """End what waits for its answer now."""
        self.wire.hang_ups.add(for_good)
        for wire in (self.wire, *self._others):
            wire.hang_up()

    def start_anew(self) -> None:
        """Begin with new connections in a forked process. The parent keeps the old ones."""
        _PARENTS.append(self.wire)
        self.__init__(self.wire.another())  # type: ignore[misc]


class AsyncRenewing:
    """Renews a lease by a task, until the lease says that it is over, or until it is garbage."""

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
    """A body's view of its lease that needs no awaiting."""

    _check_known: Callable[[], None]

    def check(self) -> None:
        """Check by the last renewal; `confirm` asks.

        Raises:
            LeaseLost: the lease is known to have ended, or was not confirmed in time.
        """
        self._check_known()


def run_body(begin: Callable[[Callable[[], bool]], AsyncIterator[T]],
             ) -> contextlib.AbstractAsyncContextManager[T]:
    """A body, as `async with` runs it."""
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
