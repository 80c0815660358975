"""Work that runs at the same time in threads: connections, renewals, bodies.

A body is the code inside `with`, which runs while its lease is held. `async_concurrency` is this
module's twin for an event loop, with the same names. Both are written by hand.
"""

from __future__ import annotations

import _thread
import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator
from threading import RLock as Lock
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from coordinator.client.connection import Wire
from coordinator.words import requests as rq

if TYPE_CHECKING:
    from coordinator.client.client import Client

__all__ = ["Checked", "Connections", "Grants", "Lock", "Renewing", "run_body", "to_the_end"]

P = ParamSpec("P")
T = TypeVar("T")
#: How many connections beside the first are kept for the next question.
IDLE_MAX = 4


class Connections:
    """The connections of one client. While one thread waits for its answer, another asks on a
    connection of its own."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self._first = threading.Lock()
        self._idle: list[Wire] = []
        self._busy: set[Wire] = set()
        self._closed = 0

    @contextlib.contextmanager
    def borrow(self) -> Iterator[Wire]:
        """Lend a connection that no other thread uses meanwhile: the first one, if it is free."""
        closed = self._closed
        if self._first.acquire(blocking=False):
            try:
                yield self.wire
            finally:
                if closed != self._closed:
                    self.wire.close()
                self._first.release()
            return
        try:
            wire = self._idle.pop()
            wire.token, wire.autostart = self.wire.token, self.wire.autostart
        except IndexError:
            wire = self.wire.copy()
        self._busy.add(wire)
        try:
            yield wire
        finally:
            self._busy.discard(wire)
            if closed == self._closed and len(self._idle) < IDLE_MAX:
                self._idle.append(wire)
            else:
                wire.close()

    def open_another(self) -> Wire:
        """Open a connection for one caller alone. `end` closes it."""
        wire = self.wire.copy()
        self._busy.add(wire)
        return wire

    def end(self, wire: Wire) -> None:
        """Close a connection of `open_another`."""
        self._busy.discard(wire)
        wire.close()

    def close(self) -> None:
        """Close the unused connections. The others close after their answer."""
        self._closed += 1
        while self._idle:
            self._idle.pop().close()
        if self._first.acquire(blocking=False):
            self.wire.close()
            self._first.release()

    def hang_up(self, *, for_good: bool) -> None:
        """End all questions that wait for an answer. For another thread, or a signal handler."""
        self.wire.hang_ups.add(for_good)
        for wire in (self.wire, *tuple(self._busy)):
            wire.hang_up()

    def start_anew(self) -> None:
        """Begin with new connections in a forked process. The parent keeps the old ones."""
        for wire in (self.wire, *self._idle, *self._busy):
            wire.close()
        self.__init__(self.wire.copy())  # type: ignore[misc]


class Grants:
    """Asking for a grant needs nothing special here: an interrupted caller has hung up, so it gets
    no grant as if it listened."""

    def ask(self, client: Client, request: rq.Request[T], key: str | None = None,
            mark: int | None = None) -> T:
        """Ask, and return the answer."""
        return client._ask(request, key, mark)


class Renewing:
    """Renews a lease by a thread, until `renew` returns False, or until its lease is garbage. An
    exception at any instant may make it garbage."""

    def __init__(self, renew: Callable[[], bool], every_s: float) -> None:
        self._done, self._ended = threading.Event(), threading.Event()
        # One step, because `Thread.start` is several, and an exception among them leaves half a
        # thread.
        _thread.start_new_thread(
            _renew, (weakref.WeakMethod(renew), self._done, self._ended, every_s))

    def stop(self) -> None:
        """Stop renewing; a running question is waited for."""
        self._done.set()
        self._ended.wait()


def _renew(renewing: weakref.WeakMethod[Callable[[], bool]], done: threading.Event,
           ended: threading.Event, every_s: float) -> None:
    try:
        while not done.wait(every_s):
            renew = renewing()
            if renew is None or not renew():
                return
            del renew
    finally:
        ended.set()


class Checked:
    """Nothing more, because a thread may ask the coordinator at any time."""


def run_body(
    begin: Callable[[Callable[[], bool]], Iterator[T]],
) -> contextlib.AbstractContextManager[T]:
    """Make the context manager of a body. `begin` gets a function that tells if it runs."""
    return _Body(begin)


class _Body(contextlib.AbstractContextManager[T]):
    """A body that ends at once if an exception comes while it is entered or left, because a kept
    exception keeps the frames it came through."""

    def __init__(self, begin: Callable[[Callable[[], bool]], Iterator[T]]) -> None:
        runs = _Running()
        self._body = contextlib.contextmanager(begin)(runs)
        runs.follow(self._body.gen)

    def __enter__(self) -> T:
        try:
            return self._body.__enter__()
        except BaseException:
            self._body.gen.close()
            raise

    def __exit__(self, *raised: Any) -> bool | None:
        try:
            return self._body.__exit__(*raised)
        except BaseException:
            self._body.gen.close()  # has no effect after its end
            raise


class _Running:
    """Whether a body still runs. The renewal of its lease asks this: an exception may prevent its
    end."""

    def __init__(self) -> None:
        self._body: Callable[[], Any] = lambda: self

    def follow(self, body: Any) -> None:
        """Watch this generator from now on."""
        self._body = weakref.ref(body)

    def __call__(self) -> bool:
        body = self._body()
        return body is self or (body is not None and body.gi_frame is not None)


def to_the_end(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of `work`. Nothing can cut off a thread here."""
    return work(*args, **kwargs)
