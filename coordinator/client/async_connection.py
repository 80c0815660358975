"""The wire to the daemon: a question out, its answer in, through broken connections and restarts.

It starts a coordinator if none runs. It speaks only to a socket in a folder of this user's own, and
to a daemon that this user runs. The transport sends and receives the bytes.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import AsyncIterator, Callable

from coordinator.client.asking import (
    RECONNECT_S,
    REPLY_TIMEOUT_S,
    STARTS,
    HangUps,
    Question,
    encode,
    ends_before,
    write_line,
)
from coordinator.client.async_transport import AsyncLink, Opening, open_link, sleep, start
from coordinator.client.locating import try_to_reach
from coordinator.files.state import StateDir
from coordinator.words.refusals import Code, Refusal

#: How long a connection may take (seconds) if the daemon is there and accepts none for now.
CONNECT_S = 5.0


class AsyncWire:
    """One connection, made anew when it breaks. For one event loop."""

    def __init__(
        self, state: StateDir, *, token: str | None = None, autostart: bool = True,
        starting: Callable[[], None] | None = None, hang_ups: HangUps | None = None,
    ) -> None:
        self.state = state
        self.hang_ups = hang_ups or HangUps()
        self.token = token
        #: Whether to start a daemon if none runs; may be changed at any time.
        self.autostart = autostart
        self._starting = starting
        #: Whether a daemon was to be started, and none could be.
        self.failed = False
        self._link: AsyncLink | None = None
        self._opening = Opening()
        self._number = 0
        #: How many questions wait for their answers.
        self.asking = 0
        self._closed = False

    def copy(self) -> AsyncWire:
        """Return a further connection, not yet open, for the same agent."""
        return AsyncWire(
            self.state, token=self.token, autostart=self.autostart, starting=self._starting,
            hang_ups=self.hang_ups)

    @property
    def process(self) -> int:
        """The process at the other end; 0 if the system does not tell, or without a connection."""
        return self._link.process() if self._link is not None else 0

    async def open(self, *, prepares: bool = True) -> AsyncLink:
        """Connect, and start the daemon if there is none. `prepares`: also without a `.coord`,
        which is then made.

        Raises:
            Refusal: DAEMON_DOWN, or why it could not start.
            RuntimeError: in another event loop than before.
        """
        async with self._opening:
            self._check_open()
            if self._link is None or not self._link.is_usable():
                await self.take(await self._reach(prepares))
                self._check_open()  # it may have been closed meanwhile
            assert self._link is not None
            return self._link

    async def take(self, sock: socket.socket) -> None:
        """Speak over this connection."""
        # An exception may come between any two lines: a connection is there whole, or not.
        self._link = await open_link(sock)

    def _check_open(self) -> None:
        if self._closed:
            self.hang_up(for_good=True)
            raise Refusal(Code.DAEMON_DOWN, "This client was closed.", next="Make another.")

    async def _reach(self, prepares: bool) -> socket.socket:
        """A connection to the daemon, which is started if need be."""
        sock = await self._connect()
        if sock is not None:
            return sock
        self._check_may_start(prepares)
        self.failed = True
        for _ in range(STARTS):  # a daemon may be killed in the moment after
            await start(self.state)
            sock = await self._connect()
            if sock is not None:
                self.failed = False
                return sock
        raise Refusal(Code.DAEMON_DOWN, "The coordinator went away again.")

    async def _connect(self) -> socket.socket | None:
        """A connection to the running daemon; None if there is none."""
        path, deadline = self.state.socket(), time.monotonic() + CONNECT_S
        while True:
            try:
                return try_to_reach(path)
            except BlockingIOError as bad:  # it accepts none for now
                if time.monotonic() > deadline:
                    raise Refusal(Code.DAEMON_DOWN, f"{path}: {bad.strerror}.") from None
            await sleep(0.01)

    def _check_may_start(self, prepares: bool) -> None:
        """Check that a daemon may be started here, and announce the start."""
        if not self.autostart:
            raise Refusal(Code.DAEMON_DOWN, f"No coordinator is running for {self.state.root}.")
        if not prepares and not self.state.path.is_dir():
            raise Refusal(
                Code.DAEMON_DOWN, f"{self.state.root} is not prepared for coord (it has no "
                f"{self.state.path.name}), so nothing runs there. Nothing was started or made.",
                next="`coord init` prepares it, or go to a repository that is.")
        if self._starting is not None:
            from coordinator.client.starting import check_place  # seldom has to be read in

            check_place(self.state)  # a start that is impossible here is not announced
            self._starting()

    async def close(self, *, for_good: bool = False) -> None:
        """Hang up. A later question connects again; `for_good`: later questions are refused."""
        self._closed |= for_good
        if self._link is not None:
            await self._link.close()

    def hang_up(self, *, for_good: bool = False) -> None:
        """From elsewhere, after it was counted: end what waits here now. `for_good`: later
        questions over this connection are refused."""
        self._closed |= for_good
        link = self._link
        if link is not None and (self.asking or for_good):
            link.hang_up()

    def is_over(self) -> bool:
        """Whether there is no connection, or the daemon has ended the one there is. Only for one
        that nothing was asked on."""
        return self._link is None or self._link.is_over()

    async def ask(
        self, op: str, params: bytes, timeout_s: float = REPLY_TIMEOUT_S, repeatable: bool = False,
        key: str | None = None, mark: int | None = None, prepares: bool = True,
    ) -> bytes:
        """The reply's JSON. When the connection breaks it is made anew, for `RECONNECT_S` at most;
        a request that may have been carried out is sent again only if `repeatable`, or under the
        idempotency `key` that it had: then it takes effect once. `mark`: the count of `hang_ups`
        from which on it is not to be asked.

        Raises:
            Refusal: what the daemon refused; DAEMON_DOWN (with `begun` False: the wire was closed
                before anything was asked); LIMIT: it is too long to be sent.
        """
        question = Question(
            op, params, timeout_s, again=repeatable or key is not None, key=key,
            mark=self.hang_ups.count if mark is None else mark, prepares=prepares)
        self.asking += 1
        try:
            return await self._await_answer(question)
        finally:
            self.asking -= 1

    async def _await_answer(self, question: Question) -> bytes:
        deadline = time.monotonic() + RECONNECT_S
        sent = False
        while True:
            link = await self._open_for(question, sent)
            self._number += 1
            number = self._number
            line = write_line(question, number, self.token)
            try:
                return await link.exchange(number, line, question.timeout_s)
            except Refusal as refusal:
                # A coordinator that ends; the next one will do it, or knows that it was done.
                if not self.autostart or not ends_before(refusal, question.again):
                    raise
                link.leave()
                if time.monotonic() > deadline:
                    raise
                sent, pause = True, 0.05
            except TimeoutError:
                raise Refusal(
                    Code.DAEMON_DOWN,
                    f"The coordinator gave no answer within {question.timeout_s:g} s.",
                    next="`coord doctor`") from None
            except (OSError, EOFError) as bad:
                # "Reset" means that it ended before it had read all of this.
                begun = not isinstance(bad, ConnectionResetError)
                self._check_goes_on(question, begun, deadline)
                sent, pause = sent or begun, 0.02  # a killed daemon takes a moment to be gone
            await sleep(pause)

    async def _open_for(self, question: Question, sent: bool) -> AsyncLink:
        """The connection that this is asked over; not where the client has hung up."""
        self._check_listens(question)
        try:
            link = await self.open(prepares=question.prepares)
        except Refusal as refusal:
            if self._closed and not sent:
                refusal.facts["begun"] = False
            raise
        self._check_listens(question)
        return link

    def _has_hung_up(self, question: Question) -> bool:
        return self.hang_ups.for_good or self.hang_ups.count != question.mark

    def _check_listens(self, question: Question) -> None:
        if self._has_hung_up(question):
            raise Refusal(
                Code.DAEMON_DOWN, f"This client has hung up: `{question.op}` was not asked.",
                next="Ask it again, if it is still wanted.")

    def _check_goes_on(self, question: Question, begun: bool, deadline: float) -> None:
        """See whether a question may be asked again, whose connection broke."""
        hung_up = self._has_hung_up(question)
        over = hung_up or self._closed or time.monotonic() > deadline
        if over or (begun and not question.again):
            who = "This client hung up" if hung_up else "The coordinator went away"
            raise Refusal(
                Code.DAEMON_DOWN,
                f"{who} during `{question.op}`; whether it was done is not known.",
                next="`coord status` shows what is so.") from None

    async def events(self, after: int | None) -> AsyncIterator[bytes]:
        """Events from `after` on (default: now), as they happen.

        Raises:
            Refusal: DAEMON_DOWN when the daemon goes, or the client hangs up.
        """
        question = Question(
            "subscribe", encode({"after": after}), REPLY_TIMEOUT_S, again=False, key=None,
            mark=self.hang_ups.count, prepares=True)
        self.asking += 1
        try:
            link = await self._open_for(question, sent=False)
            self._number += 1
            line = write_line(question, self._number, self.token)
            with contextlib.suppress(OSError, EOFError):
                async for event in link.events(self._number, line):
                    yield event
            await link.close()
        finally:
            self.asking -= 1
        raise Refusal(Code.DAEMON_DOWN, "This client hung up." if self._has_hung_up(question)
                      else "The coordinator stopped.")
