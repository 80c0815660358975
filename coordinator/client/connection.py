"""The wire to the daemon: one line out, one line in; it is started if need be.

Blocking and small: standard library and msgspec only, for the CLI's start-up time counts. It speaks
only to a socket in a folder of this user's own, and to a daemon that this user runs.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from coordinator.client.locating import connect, peer
from coordinator.files.state import StateDir
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import REQUEST_BYTES_MAX, harmless

T = TypeVar("T")
PROTOCOL = 1
#: A coordinator that is killed as it starts is started so often; and so often one that was killed
#: just after, before anybody spoke to it.
STARTS = 3
#: A reply that takes longer than this (beyond a request's own wait) means that the daemon hangs.
REPLY_TIMEOUT_S = 120.0
#: How long a broken connection is made anew before the daemon is said to be down.
RECONNECT_S = 10.0


class Answered(msgspec.Struct):
    """One line of the daemon's."""

    id: int | str | None = None
    ok: msgspec.Raw = msgspec.Raw()
    error: dict[str, Any] | None = None
    event: msgspec.Raw = msgspec.Raw()


decode = msgspec.json.Decoder(Answered).decode
_encode = msgspec.json.Encoder().encode


def ends_before(refusal: Refusal, once: bool) -> bool:
    """Whether a coordinator that ends has refused this, and the next one can be asked the same.
    `once`: it takes effect once, however often it is asked."""
    begun = refusal.facts.get("begun")
    return refusal.code is Code.SHUTTING_DOWN and (begun is False or (begun is True and once))


def through_restarts(ask: Callable[[], T]) -> T:
    """The answer to what may be asked again: where the coordinator ends meanwhile, the next one's.

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


def start(state: StateDir) -> None:
    """As `coordinator.client.starting.start`, which seldom has to be read in."""
    from coordinator.client import starting

    starting.start(state)


def check_place(state: StateDir) -> None:
    """As `coordinator.client.starting.check_place`."""
    from coordinator.client import starting

    starting.check_place(state)


def head(fields: dict[str, Any]) -> bytes:
    """What goes before a request, as it goes over the wire, without its end.

    Raises:
        Refusal: INVALID: a text in it is no Unicode.
    """
    try:
        return _encode(fields)[:-1]
    except UnicodeEncodeError as bad:
        raise no_unicode(fields, bad) from None


def no_unicode(fields: dict[str, Any], bad: UnicodeEncodeError) -> Refusal:
    """INVALID, for the first of the fields that cannot be written as UTF-8."""
    field = next((name for name, value in fields.items() if not _is_unicode(value)), "")
    shown = harmless(bad.object[max(0, bad.start - 100) : bad.start + 100])
    return Refusal(
        Code.INVALID, f"`{field}`: {shown!r} is not valid UTF-8. Nothing was done.",
        next="Repeat it in UTF-8.", field=field)


def _is_unicode(value: Any) -> bool:
    try:
        _encode(value)
    except UnicodeEncodeError:
        return False
    return True


#: Connections that came with a fork: they are the parent's, and nothing of them is closed here
#: that the parent may be using.
_PARENTS: list[Any] = []


class HangUps:
    """How often a client has hung up on what it had asked, on all its connections."""

    def __init__(self) -> None:
        self.count = 0
        #: Nothing is asked any more.
        self.for_good = False


class Wire:
    """One connection. Not for several threads at once."""

    def __init__(self, state: StateDir, *, token: str | None = None, autostart: bool = True,
                 starting: Any = None, hang_ups: HangUps | None = None) -> None:
        self.state = state
        self.hang_ups = hang_ups or HangUps()
        self.token = token
        #: Whether a daemon is started where none runs; may be changed at any time.
        self.autostart = autostart
        #: Whether it is started also where there is no `.coord` yet, which is then made.
        self.prepares = True
        self._starting = starting
        #: Whether a daemon was to be started, and none could be.
        self.failed = False
        self._sock: socket.socket | None = None
        self._file: Any = None
        self._number = 0
        self._asking = False
        self._process = os.getpid()

    def another(self) -> Wire:
        """A connection of its own, for the same agent."""
        return Wire(self.state, token=self.token, autostart=self.autostart,
                    starting=self._starting, hang_ups=self.hang_ups)

    @property
    def process(self) -> int:
        """The process at the other end; 0 where the system does not tell, or nobody is there."""
        found = peer(self._sock) if self._sock is not None else None
        return found[0] if found is not None else 0

    def open(self) -> None:
        """Connect, starting the daemon when there is none.

        Raises:
            Refusal: DAEMON_DOWN, or why it could not start.
        """
        if self._sock is not None and self._process != os.getpid():
            self._leave_to_parent()
        if self._sock is not None:
            return
        sock = connect(self.state)
        if sock is None:
            if not self.autostart:
                raise Refusal(
                    Code.DAEMON_DOWN, f"No coordinator is running for {self.state.root}."
                )
            if not self.prepares and not self.state.path.is_dir():
                raise Refusal(
                    Code.DAEMON_DOWN, f"{self.state.root} is not prepared for coord (it has no "
                    f"{self.state.path.name}), so nothing runs there. Nothing was started or made.",
                    next="`coord init` prepares it, or go to a repository that is.",
                )
            if self._starting is not None:
                check_place(self.state)  # (it is not told that one is started where none can be)
                self._starting()
            self.failed = True
            for _ in range(STARTS):  # (one may be killed in the moment after)
                start(self.state)
                sock = connect(self.state)
                if sock is not None:
                    break
            else:
                raise Refusal(Code.DAEMON_DOWN, "The coordinator went away again.")
            self.failed = False
        self.take(sock)

    def take(self, sock: socket.socket) -> None:
        """Speak over this connection."""
        # (An exception may come between any two lines: a connection is there whole, or not.)
        self._file = sock.makefile("rb", buffering=1 << 16)
        self._process = os.getpid()
        self._sock = sock

    def _leave_to_parent(self) -> None:
        """This process was forked from the one that connected: its answers are not for us."""
        assert self._sock is not None
        _PARENTS.append(self._file)  # a thread that is not here may have been reading it
        os.close(self._sock.detach())
        self._sock = None

    def close(self) -> None:
        """Hang up."""
        if self._sock is not None and self._process != os.getpid():
            self._leave_to_parent()
        if self._sock is not None:
            with contextlib.suppress(OSError):
                self._file.close()
                self._sock.close()
        self._sock = None

    def is_over(self) -> bool:
        """Whether there is no connection, or the daemon has ended the one there is. Only for one
        that nothing was asked on: what it says would be taken for its end."""
        if self._sock is not None and select.select([self._sock], [], [], 0)[0]:
            self.close()
        return self._sock is None

    def hang_up(self) -> None:
        """From another thread, after it was counted: end what waits here now."""
        sock = self._sock
        if self._asking and sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def ask(self, op: str, params: bytes, timeout_s: float = REPLY_TIMEOUT_S,
            repeatable: bool = False, key: str | None = None, mark: int | None = None) -> bytes:
        """The reply's JSON. When the connection breaks it is made anew, for `RECONNECT_S` at most;
        a request that may have been carried out is sent again only if `repeatable`, or under the
        idempotency `key` that it had: then it takes effect once.

        Whoever is interrupted (Ctrl-C, a signal handler of the program's own) has hung up: it
        counts as gone, and is granted nothing as if it listened. `mark`: the count of `hang_ups`
        from which on it is not to be asked.

        Raises:
            Refusal: what the daemon refused; DAEMON_DOWN; LIMIT: it is too long to be sent.
        """
        self._asking = True
        try:
            return self._asked(op, params, timeout_s, repeatable, key,
                               self.hang_ups.count if mark is None else mark)
        finally:
            self._asking = False

    def _hung_up(self, mark: int) -> bool:
        """Whether the client has hung up since that many times."""
        return self.hang_ups.for_good or self.hang_ups.count != mark

    def _asked(self, op: str, params: bytes, timeout_s: float, repeatable: bool, key: str | None,
               mark: int) -> bytes:
        deadline = time.monotonic() + RECONNECT_S
        while True:
            if self._hung_up(mark):
                raise Refusal(Code.DAEMON_DOWN, f"This client has hung up: `{op}` was not asked.",
                              next="Ask it again, if it is still wanted.")
            self.open()
            sent = False
            try:
                if self._hung_up(mark):
                    raise EOFError
                assert self._sock is not None
                self._sock.settimeout(timeout_s)
                self._number += 1
                fields: dict[str, Any] = {"id": self._number, "op": op, "v": PROTOCOL}
                if self.token is not None:
                    fields["token"] = self.token
                if key is not None:
                    fields["key"] = key
                line = head(fields) + b',"params":' + params + b"}\n"
                if len(line) > REQUEST_BYTES_MAX:
                    raise Refusal(Code.LIMIT, f"A request over {REQUEST_BYTES_MAX:,} bytes. "
                                  "Nothing was done.")
                self._sock.sendall(line)
                sent = True
                return self._receive(self._number)
            except Refusal as refusal:
                # A coordinator that ends; the next one will do it, or knows that it was done.
                again = ends_before(refusal, repeatable or key is not None)
                if not again or not self.autostart:
                    raise
                self.close()
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            except TimeoutError:
                self.close()
                raise Refusal(
                    Code.DAEMON_DOWN, f"The coordinator gave no answer within {timeout_s:g} s.",
                    next="`coord doctor`",
                ) from None
            except (OSError, EOFError) as bad:
                self.close()
                # "Reset" means that it ended before it had read all of this.
                begun = sent and not isinstance(bad, ConnectionResetError)
                again = not begun or repeatable or key is not None
                over = self._hung_up(mark)
                if over or not again or time.monotonic() > deadline:
                    who = "This client hung up" if over else "The coordinator went away"
                    raise Refusal(
                        Code.DAEMON_DOWN, f"{who} during `{op}`; whether it was done is not "
                        "known.", next="`coord status` shows what is so.",
                    ) from None
                time.sleep(0.02)  # a daemon that was killed takes a moment to be gone
            except BaseException:
                self.close()
                raise

    def _receive(self, number: int) -> bytes:
        while True:
            raw = self._file.readline()
            if not raw.endswith(b"\n"):
                raise EOFError
            line = decode(raw)
            if line.error is not None and line.id in (number, None):
                raise Refusal.from_body(line.error)
            if line.id == number and bytes(line.ok):
                return bytes(line.ok)

    def events(self, after: int | None) -> Any:
        """Iterate over events from `after` on (default: now), for ever.

        Raises:
            Refusal: DAEMON_DOWN when the daemon goes.
        """
        self._asking, mark = True, self.hang_ups.count
        self.open()
        assert self._sock is not None
        self._sock.settimeout(None)
        params = _encode({"after": after})
        asked = b'{"id":0,"op":"subscribe","params":' + params + b"}\n"
        while True:
            try:
                self._sock.sendall(asked)
                raw = b"" if self._hung_up(mark) else self._file.readline()
            except OSError:  # one that is killed before it has read all of that resets it
                raw = b""
            asked = b""
            if not raw:
                self.close()
                raise Refusal(Code.DAEMON_DOWN, "This client hung up." if self._hung_up(mark)
                              else "The coordinator stopped.")
            line = decode(raw)
            if line.error is not None:
                raise Refusal.from_body(line.error)
            if event := bytes(line.event):
                yield event
