"""The single owner of a key: applies the changes that others ask for, one by one.

    def add(value, wanted, change):
        return {"owes": (value or {"owes": 0})["owes"] + wanted["add"]}

    with Client(agent="billing") as client:
        Owner(client, "key:account", add).run()

The module owns the loop; never the order or the effect. The coordinator gives each change in its
turn, and writes the value and the change's end in one transaction. So a change may be given twice
(after a crash), and takes effect once.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import msgspec

from coordinator.client.asking import RECONNECT_S, json
from coordinator.client.bodies import around
from coordinator.client.client import Client, LeaseLost
from coordinator.words import requests as rq
from coordinator.words.refusals import HELD, Code, Refusal

T = TypeVar("T")
#: How long one question for the next piece of work waits (seconds) before it checks for a stop.
ASK_S = 20.0
#: How many characters of a failure are reported.
WHY_CHARS_MAX = 500


class ChangeFailed(Exception):
    """Raise it for a failed attempt whose words say enough; it is tried again later."""


class ChangeRefused(Exception):
    """Raised by an owner's function: this change is not to be made, whatever is tried."""


#: (present value, None: nothing is stored; the wanted change's content; the change) -> the new
#: value.
Apply = Callable[[Any, Any, rq.Change], Any]


def through_restarts(ask: Callable[[], T]) -> T:
    """The answer to a question that may be repeated. If the coordinator ends meanwhile, the next
    one answers.

    Raises:
        Refusal: SHUTTING_DOWN: there was no other within `RECONNECT_S`; and what `ask` raises.
    """
    deadline = time.monotonic() + RECONNECT_S
    while True:
        began = time.monotonic()
        try:
            return ask()
        except Refusal as refusal:
            if refusal.code is not Code.SHUTTING_DOWN:
                raise
            now = time.monotonic()
            if now - began > 1.0:  # it has waited with a coordinator that ran
                deadline = now + RECONNECT_S
            if now > deadline:
                raise
            time.sleep(0.1)


class WorkLoop:
    """The loop of a worker that does one piece of work after another. It asks for the next, and
    waits for it, until it is stopped. Owns when to ask and when to end; never what the work is."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stop = threading.Event()

    def stop(self) -> None:
        """From another thread, or a signal handler: end after this piece. A wait for one ends
        within `ASK_S`, or at once with the client's `hang_up` after it."""
        self._stop.set()

    @property
    def stopping(self) -> bool:
        """Whether it was asked to end."""
        return self._stop.is_set()

    def pieces(self, ask: Callable[[int], T], *, while_any: bool = False) -> Iterator[T]:
        """Each piece as `ask` gives it, until `stop`. `ask` gets the mark for its call, so that a
        `hang_up` ends it. When a coordinator ends, it continues with the next one.

        Args:
            while_any: end when there is none.

        Raises:
            Refusal: SHUTTING_DOWN, DAEMON_DOWN: the coordinator ended, and no other could be
                reached; and what `ask` raises.
        """
        while True:
            mark = self._client.hang_ups  # before the look: who stops and hangs up is heard
            if self._stop.is_set():
                return
            try:
                given = through_restarts(partial(ask, mark))
            except Refusal as refusal:
                ends = self._stop.is_set() and refusal.code is Code.DAEMON_DOWN  # it was hung up on
                if refusal.code is not Code.NOTHING_TO_DO and not ends:
                    raise
                if while_any:
                    return
                continue
            yield given


class Owner:
    """One owner of a key and of all keys that continue it.

    Args:
        client: the agent that it is.
        key: what it owns; held by an exclusive lease, renewed while it runs.
        apply: makes the new value. It may be called again for the same change, and its result
            counts once; what it does beside that, it should be able to do twice. Raises
            `ChangeRefused` for a final no; any other exception is a failed attempt, tried again
            later; and so is a value that JSON does not have.
        ttl: of the lease (seconds): how long after a crash another owner waits.
        give: how long one change may take (seconds); then the attempt has failed.
    """

    def __init__(self, client: Client, key: str, apply: Apply, *, ttl: float = 30.0,
                 give: float = 60.0) -> None:
        self._client, self._key, self._apply = client, key, apply
        self._ttl, self._give = ttl, give
        self._loop = WorkLoop(client)
        #: The change that it is at.
        self.at: str | None = None
        #: Changes that it has applied, and refused for good.
        self.applied = self.refused = 0
        #: The failure of the last attempt, for changes neither applied nor refused since.
        self.failing: dict[str, str] = {}

    def stop(self) -> None:
        """From another thread, or a signal handler: end after the present change. A wait for one
        ends within 20 s, or at once with the client's `hang_up` after it. The key is given back."""
        self._loop.stop()

    @property
    def stopping(self) -> bool:
        """Whether it was asked to end."""
        return self._loop.stopping

    def run(self, *, until_idle: bool = False, wait: float = 0.0,
            begun: Callable[[], None] = lambda: None) -> int:
        """Apply changes until `stop()`; with `until_idle` until none can be applied now. A failed
        one is tried again later, and blocks those after it. Returns how many were applied.

        Args:
            wait: how long to queue (seconds) for the key, while another owns it.
            begun: called when it owns the key.

        Raises:
            Refusal: LOCKED: another owns it; SHUTTING_DOWN, DAEMON_DOWN: the coordinator ended, and
                no other could be reached.
            LeaseLost: the lease ended meanwhile; another may own it now.
        """
        with self._client.lease(self._key, ttl=self._ttl, wait=wait, description="owner") as held:
            begun()

            def ask(mark: int) -> rq.ChangeGiven:
                held.check()
                return self._next(0.0 if until_idle else ASK_S, mark)

            for given in self._loop.pieces(ask, while_any=until_idle):
                self.at = given.change.change
                self._serve(given)
                self.at = None
        return self.applied

    def _next(self, wait: float, mark: int) -> rq.ChangeGiven:
        try:
            return self._client.call(rq.ChangeNext(
                agent=self._client.name(), key=self._key, wait_s=wait, give_s=self._give),
                mark=mark)
        except Refusal as refusal:
            if refusal.code is Code.NOT_HOLDER:
                raise LeaseLost([self._key], refusal.message) from None
            raise

    def _serve(self, given: rq.ChangeGiven) -> None:
        change = given.change
        value = _plain(given.state.value)
        try:
            made = json(self._apply(value, _plain(change.wanted), change), "value")
        except ChangeRefused as no:
            if self._answer(rq.ChangeFail(
                    agent=self._client.name(), change=change.change, attempt=change.attempts,
                    why=_why(no), refuse=True)):
                self.refused += 1
                self.failing.pop(change.change, None)
            return
        except Exception as failed:
            self._answer(rq.ChangeFail(agent=self._client.name(), change=change.change,
                                       attempt=change.attempts, why=_why(failed)))
            self.failing[change.change] = _why(failed)
            return
        if self._answer(rq.ChangeDone(
                agent=self._client.name(), change=change.change, attempt=change.attempts,
                value=made)):
            self.applied += 1
            self.failing.pop(change.change, None)

    def _answer(self, answer: rq.ChangeDone | rq.ChangeFail) -> bool:
        """Whether it counted: an answer that comes too late changes nothing, and the change is
        given again."""
        try:
            self._client.call(answer)
        except Refusal as refusal:
            if refusal.code in (Code.STALE_TOKEN, Code.BAD_TRANSITION, Code.NOT_HOLDER):
                return False
            if refusal.code in (Code.INVALID, Code.LIMIT) and isinstance(answer, rq.ChangeDone):
                with contextlib.suppress(Refusal):
                    self._client.call(rq.ChangeFail(
                        agent=answer.agent, change=answer.change, attempt=answer.attempt,
                        why=refusal.message[:WHY_CHARS_MAX]))
                return False
            raise
        return True


def update(client: Client, key: str, make: Callable[[Any], Any], *, tries: int = 3,
           wait: float = 60.0) -> rq.StateValue:
    """Change a value by a function of it. First without a lease: read, make, write if it is
    unchanged. After `tries` losses under a lease, so that no writer loses for ever.

    Args:
        make: (value as it is, None: nothing is stored) -> the value from then on; called again for
            each try.
        wait: how long to queue for the lease, at most (seconds).

    Raises:
        Refusal: LOCKED: it could not be leased in time; VERSION_CHANGED: this agent itself writes
            it again and again, under the same lease; and others.
    """
    token: int | None = None
    for _ in range(tries):
        state_value = _read(client, key)
        try:
            return _put(client, key, make(_plain(state_value.value)), state_value.version, token)
        except Refusal as refusal:
            if refusal.code is Code.INVALID and "fencing_token" in refusal.facts:
                token = refusal.facts["fencing_token"]  # this agent has the key already
            elif refusal.code is not Code.VERSION_CHANGED and refusal.code not in HELD:
                raise
            elif refusal.code in HELD:
                break
    with client.lease(key, wait=wait, description="update",
                      reentrant=around(client) is not None) as held:
        for again in reversed(range(max(1, tries))):
            state_value = _read(client, key)
            made = make(_plain(state_value.value))
            held.check()
            try:
                return _put(client, key, made, state_value.version, held.fencing_token)
            except Refusal as refusal:  # by `make` itself
                if refusal.code is not Code.VERSION_CHANGED or not again:
                    raise
    raise AssertionError("the last try returns, or raises")


def _read(client: Client, key: str) -> rq.StateValue:
    return client.call(rq.StateWatch(key=key, after=0, wait_s=0)).state


def _put(client: Client, key: str, value: Any, version: int, token: int | None) -> rq.StateValue:
    return client.call(rq.StatePut(
        agent=client.name(), key=key, value=json(value, "value"),
        version=version, fencing_token=token))


def _plain(raw: msgspec.Raw) -> Any:
    return msgspec.json.decode(raw)


def _why(bad: Exception) -> str:
    text = str(bad) or type(bad).__name__
    is_said = isinstance(bad, ChangeRefused | ChangeFailed)
    return (text if is_said else f"{type(bad).__name__}: {text}")[:WHY_CHARS_MAX]
