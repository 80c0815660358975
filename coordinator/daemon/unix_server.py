"""The server on the Unix socket: newline-delimited JSON, for the CLI, the client and the hooks.

A request is one line, `{"id", "op", "params", "token"?}`; its reply is one line, `{"id", "ok"}` or
`{"id", "error"}`. Requests may be pipelined; replies come as they are ready. `op` `subscribe`
turns on lines `{"event"}` for all that happens from `after` on. A line that begins with `hook ` is
an agent's hook and carries raw bytes (hook_protocol.py). Only the user who owns the socket
(0600) may speak.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec

from coordinator.daemon import hook_protocol
from coordinator.daemon.agent_hooks import AgentHooks
from coordinator.daemon.callers_trees import UNSEEN
from coordinator.daemon.command_lines import CommandLines
from coordinator.daemon.ground import Ground
from coordinator.daemon.request_router import RequestRouter
from coordinator.files import ownership
from coordinator.kernel.event_sentences import make_event_reply
from coordinator.operations import listing
from coordinator.operations.listing import OPERATIONS
from coordinator.store.rows import LogRow
from coordinator.words.refusals import Code, Refusal
from coordinator.words.requests.base import Place
from coordinator.words.texts import REQUEST_BYTES_MAX
from coordinator.words.wrong_values import in_words

#: The wire's version; a client of another one is refused with VERSION_SKEW.
PROTOCOL = 1
#: Longest request line, in bytes.
LINE_BYTES_MAX = REQUEST_BYTES_MAX
#: Bytes of unread answers. Beyond this, no more is asked of the coordinator on this connection, and
#: a subscriber is told no more, until its peer reads.
UNREAD_BYTES_MAX = 256 * 1024
#: Requests of one connection that may wait for their answers.
ASKED_MAX = 1_000
#: How long the requests that one connection has sent at once are taken (seconds) before others have
#: their turn.
TURN_S = 0.002


class Envelope(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One request line."""

    op: str
    id: int | str | None = None
    params: msgspec.Raw = msgspec.Raw(b"{}")
    token: str | None = None
    key: str | None = None  # an idempotency key
    v: int = PROTOCOL


#: Operations that are answered at once, from what is on disk.
READS = frozenset(["subscribe",
                   *(name for name, operation in OPERATIONS.items() if not operation.writes)])
_decode = msgspec.json.Decoder(Envelope).decode
_encoder = msgspec.json.Encoder()
_encode, _encode_lines = _encoder.encode, _encoder.encode_lines


class Conversation(asyncio.Protocol):
    """One connection."""

    def __init__(self, router: RequestRouter, guard: AgentHooks, commands: CommandLines,
                 all_of_them: set[Conversation], ground: Ground) -> None:
        self._router = router
        self._guard = guard
        self._commands = commands
        self._all = all_of_them
        self._ground = ground
        self._transport: asyncio.Transport | None = None
        self._rest = b""
        self._pieces: list[bytes] = []
        self._held = 0  # bytes in the pieces
        self._hook: hook_protocol.HookLine | None = None
        self._receipts: list[hook_protocol.Receipt] = []
        self._deaf = False
        self._between = True  # nothing of a request has come that was not taken
        self._stop: Callable[[], None] | None = None
        self._told = 0
        self._due = False
        self._full = False  # its peer does not read
        self._turn_over = False  # it has asked for much at once: others come first
        self._asked = 0  # requests that were not answered yet
        self._peer = 0  # its process; 0: not known

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do all that asyncio's do, and are no subclass of them.
        self._transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            self._peer, user = _peer(sock)
            if user not in (os.getuid(), 0):  # file modes alone are not honoured everywhere
                transport.close()
                return
        self._all.add(self)
        # A base class without it is declared; transports of sockets have it.
        # A stream's, as asyncio gives it:
        transport.set_write_buffer_limits(high=UNREAD_BYTES_MAX)  # type: ignore[attr-defined]

    def pause_writing(self) -> None:
        self._full = True
        self._hold()

    def resume_writing(self) -> None:
        self._full = False
        if self._stop is not None:
            self._soon()
        self._go_on()

    def _hold(self) -> None:
        """Read no more for now."""
        if self._transport is not None:
            self._transport.pause_reading()

    def _go_on(self) -> None:
        """Read again, and what was read already first."""
        if self._transport is None or self._full or self._asked >= ASKED_MAX or self._turn_over:
            return
        self._transport.resume_reading()
        if self._rest or self._pieces:
            asyncio.get_running_loop().call_soon(self._take_the_rest)

    def _take_the_rest(self) -> None:
        """Take what was read while nothing more could be asked."""
        self._turn_over = False
        data = b"".join((self._rest, *self._pieces))
        self._rest, self._pieces, self._held = b"", [], 0
        self._process(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.discard(self)
        self._transport = None
        while self._receipts:
            self._receipts.pop(0).lost()
        self._router.held.hung_up()
        if self._stop is not None:
            self._stop()
            self._stop = None

    def data_received(self, data: bytes) -> None:
        if self._between and data.find(b"\n") == len(data) - 1 and data.startswith(b"{"):
            self._take(data)  # nearly always: one request, whole
            return
        if self._transport is None:
            return
        if self._rest:
            # A long request comes in many pieces: they are joined once, when its end is there.
            wanted = self._hook.length if self._hook is not None else LINE_BYTES_MAX + 1
            self._pieces.append(data)
            self._held += len(data)
            ended = self._hook is None and b"\n" in data
            if not ended and len(self._rest) + self._held < wanted:
                return
            data = b"".join((self._rest, *self._pieces))
            self._pieces, self._held = [], 0
        self._process(data)

    def _process(self, data: bytes) -> None:
        """Take the whole requests in these bytes, as far as they may be asked now."""
        if self._transport is None:
            return
        loop = asyncio.get_running_loop()
        ends, position = loop.time() + TURN_S, 0
        while not self._deaf and not self._full and self._asked < ASKED_MAX:
            if position and loop.time() > ends:
                self._turn_over = True
                break
            if self._hook is not None:
                if len(data) - position < self._hook.length:
                    break
                hook, self._hook = self._hook, None
                payload = data[position : position + hook.length]
                position += hook.length
                if self._router.closing:
                    self.close()  # a refusal would stop an agent's edit; so it asks the next one
                    break
                self._serve_hook(hook, payload)
                continue
            end = data.find(b"\n", position)
            if end < 0:
                break
            line, position = data[position:end], end + 1
            self._take_line(line)
        self._rest = b"" if self._deaf else data[position:]
        self._between = not (self._rest or self._deaf or self._hook is not None)
        self._go_on_reading(loop)

    def _serve_hook(self, hook: Any, payload: bytes) -> None:
        """Serve what came with a hook's line: a call, a question of git's, a typed command."""
        if hook.profile == hook_protocol.GIT:
            self._guard.git.ask(hook.token, payload, self._print, self._peer)
        elif hook.profile == hook_protocol.COMMAND:
            self._commands.ask(hook.token, payload, self._print, self._peer, self._gone)
        else:
            self._guard.hook(hook.profile, hook.token, payload, self._print,
                             confirms=hook.confirms, caller=self._peer or UNSEEN,
                             gone=self._gone)

    def _take_line(self, line: bytes) -> None:
        if line.startswith(hook_protocol.BEGIN):
            self._begin_hook(line)
        elif line == hook_protocol.TOLD:
            if self._receipts:
                self._receipts.pop(0).told()
        elif line.strip():
            self._take(line)

    def _go_on_reading(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read on, unless so much waits that it is for others now."""
        if self._transport is None or self._transport.is_closing():
            self._rest = b""  # nobody is there to read an answer
            return
        if self._turn_over:
            self._hold()
            loop.call_soon(self._take_the_rest)
            return
        if self._full or self._asked >= ASKED_MAX:
            self._hold()
            return
        self._transport.resume_reading()
        if self._hook is None and len(self._rest) > LINE_BYTES_MAX:
            self._asked += 1
            self._reply(None, Refusal(Code.LIMIT, f"A request over {LINE_BYTES_MAX} bytes."))
            self.close()

    def _begin_hook(self, line: bytes) -> None:
        try:
            self._hook = hook_protocol.parse(line)
        except Refusal as refusal:
            # The end of its payload is unknown, so nothing after it can be read.
            self._deaf = True
            self._print(hook_protocol.refused(refusal))
            self.close()

    def _print(self, answer: hook_protocol.Answer) -> None:
        if self._transport is not None:
            self._transport.write(hook_protocol.encode(answer))
            if answer.receipt is not None:
                self._receipts.append(answer.receipt)
        elif answer.receipt is not None:
            answer.receipt.lost()

    def _take(self, line: bytes) -> None:
        self._asked += 1
        try:
            asked = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
            self._reply(_id_of(line), listing.no_request(bad))
            return
        if asked.v != PROTOCOL:
            self._reply(asked.id, Refusal(
                Code.VERSION_SKEW,
                f"The daemon speaks protocol {PROTOCOL}, the client {asked.v}.",
                next="`coord down`; the next command starts the installed version.",
            ))
            return
        if asked.op in READS:  # what changes anything is looked at around its commit (writer.py)
            if asked.op == "subscribe":
                self._subscribe(asked)
                return
            try:
                self._ground.check_read()
            except Refusal as gone:
                self._reply(asked.id, gone)
                return
        self._router.ask(asked.op, asked.params, asked.token, partial(self._reply, asked.id),
                         self._gone, asked.key, self._peer)

    def _gone(self) -> bool:
        """It has hung up: what is answered now it does not read."""
        return self._transport is None or self._transport.is_closing()

    def _reply(self, number: int | str | None, value: Any) -> None:
        """The one answer to something that was asked."""
        waiting = self._asked
        self._asked = waiting - 1
        if waiting == ASKED_MAX:
            self._go_on()
        if self._transport is None:
            return
        if isinstance(value, Refusal):
            line = _encode_lines(({"id": number, "error": value.body()},))
        else:
            line = _encode_lines(({"id": number, "ok": value},))
        self._transport.write(line)

    def _subscribe(self, asked: Envelope) -> None:
        try:
            after = msgspec.json.decode(asked.params, type=_From).after
        except msgspec.DecodeError as bad:
            self._reply(asked.id, Refusal(Code.INVALID, f"subscribe: {in_words(bad)}."))
            return
        if self._stop is None:
            self._stop = self._router.subscribe(self._soon)
        last = self._router.look(lambda view: int(view.value("event_last") or 0))
        self._told = last if after is None else after
        self._reply(asked.id, {"after": self._told})
        self._soon()

    def _soon(self) -> None:
        """Several commits within a moment are told together."""
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_later(0.02, self._tell)

    def _tell(self) -> None:
        self._due = False
        if self._transport is None or self._full:
            return  # what it did not read yet stays in the log
        rows = self._router.look(
            lambda view: view.each(
                LogRow, "events_after", self._told, None, None, None, None, 500)
        )
        if isinstance(rows, Refusal) or not rows:
            return
        lines = [b'{"event":' + _encode(make_event_reply(row)) + b"}\n" for row in rows]
        self._transport.write(b"".join(lines))
        self._told = rows[-1].seq
        if len(rows) == 500:
            self._soon()

    def close(self) -> None:
        """Say no more; what was written is still sent."""
        if self._transport is not None:
            self._transport.close()


class _Id(msgspec.Struct, gc=False):
    id: int | str | None = None


def _id_of(line: bytes) -> int | str | None:
    """The id of a line that is no request, as far as it can be read, because the asker waits for
    it."""
    try:
        return msgspec.json.decode(line, type=_Id).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class _From(msgspec.Struct, forbid_unknown_fields=True):
    after: Place | None = None


def _peer(sock: Any) -> tuple[int, int]:
    """The process at the other end (0: not known) and its user."""
    if not hasattr(socket, "SO_PEERCRED"):
        return 0, os.getuid()
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", raw)
    return pid, uid


class UnixServer:
    """The listening socket and its conversations."""

    def __init__(
        self, router: RequestRouter, guard: AgentHooks, path: Path, ground: Ground
    ) -> None:
        self._router = router
        self._guard = guard
        self._commands = CommandLines(router, ground)
        self._ground = ground
        self.path = path
        self._open: set[Conversation] = set()
        self._came = 0
        self._server: asyncio.AbstractServer | None = None

    async def open(self) -> None:
        """Listen. A dead socket of a daemon that was killed is replaced: the caller holds the lock
        that proves there is no other.

        Raises:
            Refusal: FOREIGN: something else is in the socket's place; STORAGE.
        """
        try:
            ownership.check_entry(self.path, ownership.SOCKET)
            self.path.unlink()
        except FileNotFoundError:
            pass
        before = os.umask(0o177)
        try:
            self._server = await asyncio.get_running_loop().create_unix_server(
                self._converse, str(self.path), backlog=512,
            )
        except OSError as bad:
            raise Refusal(
                Code.STORAGE, f"{self.path}: no socket can be made there: {bad.strerror or bad}.",
                next="Make room (bytes and inodes), or give write access to its folder."
                if bad.errno is not None else "Set XDG_RUNTIME_DIR to a folder with a short name.",
            ) from None
        finally:
            os.umask(before)
        self._ground.watch_socket(self.path)

    def came_since(self) -> bool:
        """Whether anybody is connected, or has been since this was asked last."""
        came, self._came = self._came, 0
        return bool(came or self._open)

    async def close(self) -> None:
        """Stop listening, then hang up. The socket is removed if it is still this daemon's."""
        mine = self._ground.owns(self.path)
        if self._server is not None:
            self._server.close()
        for conversation in list(self._open):
            conversation.close()
        if mine:
            self._ground.forget(self.path)
            self.path.unlink(missing_ok=True)

    def _converse(self) -> Conversation:
        self._came += 1
        return Conversation(self._router, self._guard, self._commands, self._open, self._ground)
