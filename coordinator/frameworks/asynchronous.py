"""Leases for asyncio: a decorator, and `async with`.

    @guarded(lambda account, amount: f"key:account:{account}")
    async def book(account: str, amount: int) -> None: ...

Each call is a holder of its own, so two coroutines never have one resource at once, even with one
client. Calls within a call, in the same task, are one holder (`branches`). The event loop never
waits. Each question to the coordinator has a thread of its own, because in a pool whose threads all
wait nobody could give back what they wait for. A cancelled call gives back what it held and leaves
the queue before its cancellation continues.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from coordinator.client import async_concurrency
from coordinator.client.client import Client, Held
from coordinator.frameworks.branches import Branches, branches_of, current, holding
from coordinator.frameworks.postponing import Postpones, postponed
from coordinator.words.refusals import HELD, Code, Refusal

__all__ = ["current", "guarded", "in_thread", "lease", "to_the_end"]

P = ParamSpec("P")
T = TypeVar("T")
#: The needs of a call: a resource, several, or a function that gives them from its arguments.
Resources = str | Sequence[str]


def guarded(
    resources: Resources | Callable[..., Resources], *, client: Client | None = None,
    ttl: float = 60.0, wait: float = 0.0, description: str = "",
    on_blocked: Postpones | None = None,
) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Awaitable[T]]]:
    """Have each call of an `async def` hold `resources` while it runs.

    Args:
        resources: fixed, or a function that is called as the decorated one is and gives them.
        client: whose sub-agents the calls are; default: this process's own.
        ttl: seconds after which they are free again should this process die; renewed meanwhile.
        wait: seconds to queue for what is held.
        description: what others read about it; default: the function's name.
        on_blocked: gets the postponed step (named `module:function`, with its arguments) first. It
            is called in a thread.

    The call raises:
        StepPostponed: another agent holds one of them; the function was not begun.
        LeaseLost: a lease ended while it ran.
        Refusal: INVALID and the like.
    """

    def decorate(function: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"{function!r} is not `async def`. For plain functions: "
                            "coordinator.frameworks.mutex, or `Client.lease`.")
        name = f"{function.__module__}:{function.__qualname__}"

        @functools.wraps(function)
        async def call(*args: P.args, **kwargs: P.kwargs) -> T:
            wanted = resources(*args, **kwargs) if callable(resources) else resources
            given = {"args": list(args), "kwargs": dict(kwargs)}
            async with lease(*_listed(wanted), client=client, ttl=ttl, wait=wait, step=name,
                             description=description or function.__qualname__, arguments=given,
                             on_blocked=on_blocked):
                return await function(*args, **kwargs)

        return call

    return decorate


@contextlib.asynccontextmanager
async def lease(
    *resources: str, client: Client | None = None, ttl: float = 60.0, wait: float = 0.0,
    description: str = "", step: str = "", arguments: Mapping[str, Any] | None = None,
    on_blocked: Postpones | None = None,
) -> AsyncIterator[Held]:
    """Hold `resources` while the body runs, as `guarded` does.

    Raises:
        StepPostponed: another agent holds one of them; the body was not entered.
        LeaseLost: a lease ended while the body ran.
        Refusal: INVALID and the like.
    """
    branches = await in_thread(lambda: branches_of(client))
    asking = _Asking(branches, branches.around(), resources, ttl, wait, description)
    begun = asyncio.ensure_future(in_thread(asking.begin))
    begun.add_done_callback(lambda one: one.cancelled() or one.exception())  # look at the exception
    try:
        held = await asyncio.shield(begun)
    except asyncio.CancelledError:
        asking.call_off()
        await to_the_end(asking.undo)
        raise
    except Refusal as refusal:
        no = refusal  # its name ends with this block
        raise await in_thread(lambda: postponed(
            no, resources=resources, step=step, arguments=arguments,
            on_blocked=on_blocked)) from refusal
    try:
        assert asking.branch is not None
        with holding(held, branches, asking.branch):
            yield held
    finally:
        await to_the_end(asking.end)
    held.check()


class _Asking:
    """One call's way into its leases and out again. Each step runs in a thread; `call_off` is for
    the loop."""

    def __init__(self, branches: Branches, around: Client | None, resources: Sequence[str],
                 ttl_s: float, wait_s: float, description: str) -> None:
        self.branch = around
        self._branches = branches
        self._nested = around is not None
        self._resources = resources
        self._ttl_s, self._wait_s, self._description = ttl_s, wait_s, description
        self._asker: Client | None = None
        self._held: Held | None = None
        self._over = False
        self._ended = threading.Event()

    def begin(self) -> Held:
        """Acquire, and renew from then on.

        Raises:
            Refusal: LOCKED and others; then nothing is left of it.
        """
        try:
            if self.branch is None:
                self.branch = self._branches.take()
            # A connection for this question only: it may have to be hung up.
            self._asker = Client(self.branch.root, agent=self.branch.agent,
                                 token=self.branch.token)
            if self._over:
                raise Refusal(Code.SHUTTING_DOWN, "The call was cancelled before it began.")
            got = self._asker.acquire(*self._resources, ttl=self._ttl_s, wait=self._wait_s,
                                      description=self._description, retry=False,
                                      reentrant=self._nested)
            self._held = self.branch.hold(got, ttl=self._ttl_s)
            return self._held
        except Refusal as refusal:
            if not self._over and self.branch is not None and not self._nested:
                self._part(refusal.code in HELD)
            raise
        finally:
            if self._asker is not None:
                self._asker.close()
            self._ended.set()

    def call_off(self) -> None:
        """The asker has gone: end its wait in the queue now."""
        self._over = True
        if self._asker is not None:
            self._asker.hang_up(for_good=True)

    def undo(self) -> None:
        """After `call_off`: release everything, whatever the answer was."""
        self._ended.wait()
        if self._held is not None:
            self.end()
        elif self.branch is not None and self._nested:
            self._branches.spend(self.branch)  # a grant may have come unnoticed
        elif self.branch is not None:
            self._part(False)

    def end(self) -> None:
        """Give back."""
        assert self._held is not None
        try:
            self._held.end()
        finally:
            if not self._nested:
                self._part(not self._held.lost and not self._over)

    def _part(self, sound: bool) -> None:
        branch, self.branch = self.branch, None
        if branch is None:
            return  # it has parted already
        if sound:
            self._branches.give_back(branch)
            return
        with contextlib.suppress(Refusal):
            self._branches.end(branch)


async def in_thread(call: Callable[[], T]) -> T:
    """The result of `call`, returned or raised, from a thread of its own. Cancelling does not end
    it."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, bad: BaseException | None) -> None:
        if answer.done():
            return  # the asker has gone
        if bad is not None:
            answer.set_exception(bad)
        else:
            answer.set_result(value)  # type: ignore[arg-type]  # the future of this call

    def run() -> None:
        value, bad = None, None
        try:
            value = call()
        except BaseException as raised:
            bad = raised
        with contextlib.suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(settle, value, bad)

    threading.Thread(target=run, name="coord-asks", daemon=True).start()
    return await answer


async def to_the_end(call: Callable[[], T]) -> T:
    """Run it in a thread, and wait for its end even if the asker is cancelled."""
    return await async_concurrency.to_the_end(in_thread, call)


def _listed(resources: Resources) -> Sequence[str]:
    return [resources] if isinstance(resources, str) else list(resources)
