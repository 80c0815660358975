"""Asking for leases and tasks in such a way that a cancelled caller keeps nothing.

A grant may arrive after its caller was cancelled. Then the next caller of the same client that
asked for the same gets it, or it is given back. Nothing is guessed about what was granted, because
the coordinator keeps each answer under the idempotency key of its question.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from coordinator.client.asking import how_asked
from coordinator.client.async_concurrency import to_the_end
from coordinator.client.async_held import AsyncHeld
from coordinator.client.bodies import Branch
from coordinator.words import requests as rq
from coordinator.words.clock import now_iso
from coordinator.words.refusals import Code, Refusal

if TYPE_CHECKING:
    from coordinator.client.async_client import AsyncClient
    from coordinator.client.async_connection import AsyncWire

R = TypeVar("R")
#: How often to ask for the result of a question while a coordinator dies, and the next one starts.
TRIES_MAX = 3
#: The lifetime of a lease while it is handed on (seconds), if the question named no time.
TTL_S = 60.0
#: Claims, and leases, that are remembered.
CLAIMS_MAX = 1_000
#: Agent, mode and resources.
_Place = tuple[str, str, tuple[str, ...]]


class AsyncGrants:
    """The grants that one client asks for. For one event loop."""

    def __init__(self) -> None:
        self._lines: dict[_Place, _Line] = {}
        #: The last claims that were answered here: a cancelled claim compares with them.
        self._claims: deque[str] = deque(maxlen=CLAIMS_MAX)
        #: Leases (fencing tokens) that were granted here, the last ones: the same.
        self._tokens: deque[int] = deque(maxlen=CLAIMS_MAX)

    async def ask(self, client: AsyncClient, request: rq.Request[R], key: str | None = None,
                  mark: int | None = None) -> R:
        """Ask anything. A caller that is cancelled while it waits, or is granted something, leaves
        the queue, and has given the grant back before the cancellation continues.

        Raises:
            Refusal: it was refused.
        """
        answer: Any
        if isinstance(request, rq.Acquire):
            answer = await self._acquire(_Question(client, request, key, mark))
        elif isinstance(request, rq.TaskClaim):
            answer = await self._claim(_Question(client, request, key, mark))
        elif getattr(request, "wait_s", 0.0) > 0:
            answer = await self._wait(_Question(client, request, key, mark))
        else:
            answer = await client._ask(request, key, mark)
        return cast(R, answer)

    async def _acquire(self, question: _Question) -> rq.Acquired:
        """Ask for leases."""
        request = question.request
        name = request.agent, request.mode, tuple(sorted(set(request.resources)))
        line = self._lines.setdefault(name, _Line())
        line.waiting += 1
        try:
            got: rq.Acquired = await question.answered()
        except BaseException as ended:
            line.waiting -= 1
            line.ending += 1
            try:
                if isinstance(ended, asyncio.CancelledError):
                    await to_the_end(self._call_off, question, line)
                if not line.waiting and line.late:
                    await to_the_end(self._give_back, question, line)
            except asyncio.CancelledError:
                if isinstance(ended, Refusal):  # cancelled after all: its place is unused, too
                    await to_the_end(self._call_off, question, line)
                raise
            finally:
                line.ending -= 1
                self._forget(name, line)
            raise
        line.waiting -= 1
        self._forget(name, line)
        tokens = [lease.fencing_token for lease in got.leases]
        line.heard.update(tokens)
        self._tokens += tokens
        line.late.clear()  # on these resources: all others have ended
        return got

    def _forget(self, name: _Place, line: _Line) -> None:
        if not (line.waiting or line.ending):
            self._lines.pop(name, None)

    async def _call_off(self, question: _Question, line: _Line) -> None:
        """Leave the queue for a cancelled question, and give back its grant, except what another
        caller was told of."""
        got = await self._find_grant(question, line)
        for lease in got.leases if got is not None else ():
            # If it was granted as it hung up, another question for the same finds it held already.
            anew = not lease.reentrant or (
                lease.locked_at >= question.at and lease.fencing_token not in self._tokens)
            if anew and lease.fencing_token not in line.heard:
                line.late[lease.fencing_token] = msgspec.structs.replace(lease, reentrant=False)

    async def _give_back(self, question: _Question, line: _Line) -> None:
        """Give back what no caller of this queue has, like the end of a body that held it."""
        late, line.late = list(line.late.values()), {}
        if late:
            got = rq.Acquired(acquisition_id=late[0].acquisition_id, leases=late, warnings=[])
            held = AsyncHeld(question.client, got, question.request.ttl_s or TTL_S, None,
                             Branch(question.request.agent, private=False))
            await to_the_end(held.end)

    async def _find_grant(self, question: _Question, line: _Line) -> rq.Acquired | None:
        """The late grant of a cancelled question. None if there is none; then it has left the
        queue, unless other questions of this client wait there."""
        for turn in range(TRIES_MAX):
            try:
                got: rq.Acquired = await (question.again() if turn else question.hung_up())
                return got
            except Refusal as refusal:
                if refusal.facts.get("begun") is False:
                    return None
                if refusal.code is Code.DAEMON_DOWN:
                    continue
                place = refusal.facts.get("acquisition_id")
                if place is None or line.waiting or not (turn or question.request.retry):
                    return None
                with contextlib.suppress(Refusal):  # it was granted, or has left, a moment ago
                    await question.client.call(rq.Withdraw(
                        agent=question.request.agent, acquisition_id=place))
                    return None
        return None

    async def _wait(self, question: _Question) -> Any:
        """The answer to a question that waits for an event or a gift of work."""
        try:
            return await question.answered()
        except asyncio.CancelledError:
            await to_the_end(self._fail_given, question)
            raise

    async def _fail_given(self, question: _Question) -> None:
        """Give back, as failed before its start, what a cancelled question was given in that
        moment."""
        with contextlib.suppress(Refusal):
            got = await question.hung_up()
            why = "whoever asked for it was cancelled in that moment"
            if isinstance(got, rq.Step):
                await question.client.call(rq.StepFail(
                    agent=question.request.agent, step=got.step, attempt=got.attempts, why=why))
            elif isinstance(got, rq.ChangeGiven):
                await question.client.call(rq.ChangeFail(
                    agent=question.request.agent, change=got.change.change,
                    attempt=got.change.attempts, why=why))

    async def _claim(self, question: _Question) -> rq.Claimed:
        """Ask for a task."""
        try:
            got: rq.Claimed = await question.answered()
        except asyncio.CancelledError:
            await to_the_end(self._give_up, question)
            raise
        self._claims.append(_name_claim(got))
        return got

    async def _give_up(self, question: _Question) -> None:
        """Give back the task of a cancelled claim, without blame."""
        for turn in range(TRIES_MAX):
            try:
                got: rq.Claimed = await (question.again() if turn else question.hung_up())
            except Refusal as refusal:
                if refusal.code is Code.DAEMON_DOWN and refusal.facts.get("begun") is not False:
                    continue
                return
            if _name_claim(got) not in self._claims and (
                    got.task.claimed_at or "") >= question.at:
                with contextlib.suppress(Refusal):
                    await question.client.call(rq.TaskFail(
                        agent=question.request.agent, task=got.task.task, model_error=True,
                        reason="whoever asked for it was cancelled in that moment"))
            return


class _Line:
    """The questions of one client for the same resources, without a body.

    Attributes:
        waiting: how many wait for their answer.
        ending: how many were cancelled, and find out what became of their question.
        heard: the leases (fencing tokens) that they have heard of.
        late: leases that were granted to a caller that has gone: the next one gets them.
    """

    def __init__(self) -> None:
        self.waiting = self.ending = 0
        self.heard: set[int] = set()
        self.late: dict[int, rq.Lease] = {}


class _Question:
    """One question, and what happens after its caller was cancelled."""

    def __init__(self, client: AsyncClient, request: Any, key: str | None,
                 mark: int | None) -> None:
        self.client, self.request = client, request
        self.at = now_iso()
        self._key = how_asked(request, key)[2]
        #: A question that waits has a connection of its own, so that hanging up leaves the queue.
        self._wire: AsyncWire | None = (
            client._connections.open_another() if request.wait_s > 0 else None)
        asked: rq.Request[Any] = request
        self._asking: asyncio.Future[Any] = asyncio.ensure_future(
            client._ask(asked, self._key, mark) if self._wire is None
            else client._ask_over(self._wire, asked, self._key, mark))

    async def answered(self) -> Any:
        """Its answer.

        Raises:
            Refusal: it was refused.
        """
        try:
            return await asyncio.shield(self._asking)
        finally:
            if self._wire is not None and self._asking.done():
                # Nothing is awaited here: a cancellation now would lose a grant.
                self._wire.hang_up(for_good=True)

    async def hung_up(self) -> Any:
        """The answer that had been on its way.

        Raises:
            Refusal: it was refused; DAEMON_DOWN: nothing came.
        """
        if self._wire is not None:
            await self._wire.close(for_good=True)
        return await self._asking

    async def again(self) -> Any:
        """The answer that is kept of it, or one of now.

        Raises:
            Refusal: it was refused; DAEMON_DOWN.
        """
        now: Any = msgspec.structs.replace(self.request, wait_s=0.0)
        if isinstance(now, rq.Acquire | rq.TaskClaim):
            now.reentrant = True  # include what it was granted meanwhile
        return await self.client._ask(now, self._key)


def _name_claim(got: rq.Claimed) -> str:
    """The name of a claim, different from a later one on the same task."""
    return f"{got.task.task} {got.task.claimed_at}"
