"""The server on the Unix socket: newline-delimited JSON, for the CLI, the client and the hooks.

A request is one line, `{"id", "op", "params", "token"?}`; its reply is one line, `{"id", "ok"}` or
`{"id", "error"}`. A client may send requests before it has the replies, and gets each reply when it
is ready. After the `op` `subscribe` it gets a line `{"event"}` for each event after `after`. A line
that begins with `hook ` comes from an agent's hook, and hook_protocol.py describes the bytes that
follow it. Only the user who owns the socket, and root, may connect.
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
from coordinator.daemon.program_presence import Speakers
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
#: Bytes of unread answers. With more the connection serves no requests and sends no events until
#: its peer reads.
UNREAD_BYTES_MAX = 256 * 1024
#: Bytes of requests that are read meanwhile, so that a peer can send its thousand before it reads.
UNSERVED_BYTES_MAX = 256 * 1024
#: Requests of one connection that may be unanswered.
UNANSWERED_MAX = 1_000
#: How long (seconds) one connection's requests are taken before other connections have their turn.
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
                 conversations: set[Conversation], ground: Ground) -> None:
        self._router = router
        self._guard = guard
        self._commands = commands
        self._conversations = conversations
        self._ground = ground
        self._transport: asyncio.Transport | None = None
        self._rest = b""  # the beginning of a request, or requests that must wait
        self._pieces: list[bytes] = []  # of a long request, behind the rest
        self._held = 0  # bytes in the pieces
        self._hook: hook_protocol.HookLine | None = None
        self._receipts: list[hook_protocol.Receipt] = []
        self._deaf = False  # a hook's line was malformed: where it ends is unknown
        self._between = True  # between two requests: no part of one waits
        self._unsubscribe: Callable[[], None] | None = None
        self._last_sent = 0  # number of the last event that the subscriber got
        self._due = False  # events are about to be sent
        self._full = False  # its peer does not read
        self._turn_over = False  # other connections have their turn first
        self._unanswered = 0
        self._peer = 0  # its process; 0: not known
        self._speakers = Speakers(router.presence)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have asyncio's methods, but are no subclass of them.
        self._transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            self._peer, user = _find_peer(sock)
            if user not in (os.getuid(), 0):  # file modes alone are not honoured everywhere
                transport.close()
                return
        self._conversations.add(self)
        # The declared base class lacks this method, which the transports of sockets have.
        transport.set_write_buffer_limits(high=UNREAD_BYTES_MAX)  # type: ignore[attr-defined]

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        if self._unsubscribe is not None:
            self._send_events_soon()
        self._resume_reading()

    def _pause_reading(self) -> None:
        """Read no more for now."""
        if self._transport is not None:
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        """Read again if nothing speaks against it. What was read already is processed first."""
        if (self._transport is None or self._full or self._unanswered >= UNANSWERED_MAX
                or self._turn_over):
            return
        self._transport.resume_reading()
        if self._rest or self._pieces:
            asyncio.get_running_loop().call_soon(self._process_rest)

    def _process_rest(self) -> None:
        """Process what was read while no requests were taken."""
        self._turn_over = False
        data = b"".join((self._rest, *self._pieces))
        self._rest, self._pieces, self._held = b"", [], 0
        self._process(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._conversations.discard(self)
        self._transport = None
        while self._receipts:
            self._receipts.pop(0).lost()
        self._router.held.hung_up()
        self._speakers.hang_up()
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def data_received(self, data: bytes) -> None:
        if self._between and not self._full and data.find(b"\n") == len(data) - 1 and (
                data.startswith(b"{")):
            self._serve_request(data)  # nearly always: one request, whole
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
        """Serve the complete requests in these bytes, and keep what may not be served yet."""
        if self._transport is None:
            return
        loop = asyncio.get_running_loop()
        ends, position = loop.time() + TURN_S, 0
        while not self._deaf and not self._full and self._unanswered < UNANSWERED_MAX:
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
                    self.close()  # the hook asks the next coordinator; a refusal would stop it
                    break
                self._serve_hook(hook, payload)
                continue
            end = data.find(b"\n", position)
            if end < 0:
                break
            line, position = data[position:end], end + 1
            self._serve_line(line)
        self._rest = b"" if self._deaf else data[position:]
        self._between = not (self._rest or self._deaf or self._hook is not None)
        self._continue_reading(loop)

    def _serve_hook(self, hook: Any, payload: bytes) -> None:
        """Serve a hook's payload: an agent's call, a question of git's, or a typed command."""
        if hook.token is not None:
            self._speakers.note(hook.token, hook.profile, self._peer)
        if hook.profile == hook_protocol.GIT:
            self._guard.git.ask(hook.token, payload, self._answer_hook, self._peer)
        elif hook.profile == hook_protocol.COMMAND:
            self._commands.ask(hook.token, payload, self._answer_hook, self._peer, self._is_gone)
        else:
            self._guard.hook(hook.profile, hook.token, payload, self._answer_hook,
                             confirms=hook.confirms, caller=self._peer or UNSEEN,
                             gone=self._is_gone)

    def _serve_line(self, line: bytes) -> None:
        if line.startswith(hook_protocol.BEGIN):
            self._read_hook_line(line)
        elif line == hook_protocol.TOLD:
            if self._receipts:
                self._receipts.pop(0).told()
        elif line.strip():
            self._serve_request(line)

    def _continue_reading(self, loop: asyncio.AbstractEventLoop) -> None:
        """Continue to read, or pause if others have their turn or too much is unanswered."""
        if self._transport is None or self._transport.is_closing():
            self._rest = b""  # nobody is there to read an answer
            return
        if self._turn_over:
            self._pause_reading()
            loop.call_soon(self._process_rest)
            return
        if self._full or self._unanswered >= UNANSWERED_MAX:
            if len(self._rest) > UNSERVED_BYTES_MAX:
                self._pause_reading()
            else:
                self._transport.resume_reading()
            return
        self._transport.resume_reading()
        if self._hook is None and len(self._rest) > LINE_BYTES_MAX:
            self._unanswered += 1
            self._reply(None, Refusal(Code.LIMIT, f"A request over {LINE_BYTES_MAX} bytes."))
            self.close()

    def _read_hook_line(self, line: bytes) -> None:
        try:
            self._hook = hook_protocol.parse(line)
        except Refusal as refusal:
            # The end of its payload is unknown, so nothing after it can be read.
            self._deaf = True
            self._answer_hook(hook_protocol.refused(refusal))
            self.close()

    def _answer_hook(self, answer: hook_protocol.Answer) -> None:
        if self._transport is not None:
            self._transport.write(hook_protocol.encode(answer))
            if answer.receipt is not None:
                self._receipts.append(answer.receipt)
        elif answer.receipt is not None:
            answer.receipt.lost()

    def _serve_request(self, line: bytes) -> None:
        self._unanswered += 1
        try:
            request = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
            self._reply(_read_id(line), listing.no_request(bad))
            return
        if request.v != PROTOCOL:
            self._reply(request.id, Refusal(
                Code.VERSION_SKEW,
                f"The daemon speaks protocol {PROTOCOL}, the client {request.v}.",
                next="`coord down`; the next command starts the installed version.",
            ))
            return
        if request.token is not None:
            self._speakers.note(request.token, request.op, self._peer)
        if request.op in READS:  # for a write, writer.py checks the ground around its commit
            if request.op == "subscribe":
                self._subscribe(request)
                return
            try:
                self._ground.check_read()
            except Refusal as refusal:
                self._reply(request.id, refusal)
                return
        self._router.ask(request.op, request.params, request.token,
                         partial(self._reply, request.id), self._is_gone, request.key, self._peer)

    def _is_gone(self) -> bool:
        """Whether the client has hung up, so that it reads no answer."""
        return self._transport is None or self._transport.is_closing()

    def _reply(self, number: int | str | None, value: Any) -> None:
        """Send the only reply to a request."""
        self._unanswered -= 1
        if self._unanswered == UNANSWERED_MAX - 1:
            self._resume_reading()
        if self._transport is None:
            return
        if isinstance(value, Refusal):
            line = _encode_lines(({"id": number, "error": value.body()},))
        else:
            line = _encode_lines(({"id": number, "ok": value},))
        self._transport.write(line)

    def _subscribe(self, request: Envelope) -> None:
        try:
            after = msgspec.json.decode(request.params, type=_SubscribeParams).after
        except msgspec.DecodeError as bad:
            self._reply(request.id, Refusal(Code.INVALID, f"subscribe: {in_words(bad)}."))
            return
        if self._unsubscribe is None:
            self._unsubscribe = self._router.subscribe(self._send_events_soon)
        last = self._router.look(lambda view: int(view.value("event_last") or 0))
        self._last_sent = last if after is None else after
        self._reply(request.id, {"after": self._last_sent})
        self._send_events_soon()

    def _send_events_soon(self) -> None:
        """Send new events in a moment, so that those of several commits are sent together."""
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_later(0.02, self._send_events)

    def _send_events(self) -> None:
        self._due = False
        if self._transport is None or self._full:
            return  # the log keeps the events until the peer reads again
        rows = self._router.look(
            lambda view: view.each(
                LogRow, "events_after", self._last_sent, None, None, None, None, 500)
        )
        if isinstance(rows, Refusal) or not rows:
            return
        lines = [b'{"event":' + _encode(make_event_reply(row)) + b"}\n" for row in rows]
        self._transport.write(b"".join(lines))
        self._last_sent = rows[-1].seq
        if len(rows) == 500:
            self._send_events_soon()

    def close(self) -> None:
        """Hang up after what was written is sent."""
        if self._transport is not None:
            self._transport.close()


class _Id(msgspec.Struct, gc=False):
    id: int | str | None = None


def _read_id(line: bytes) -> int | str | None:
    """The id in a line that is no request, if it can be read. The client waits for a reply to it.
    """
    try:
        return msgspec.json.decode(line, type=_Id).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class _SubscribeParams(msgspec.Struct, forbid_unknown_fields=True):
    after: Place | None = None


def _find_peer(sock: Any) -> tuple[int, int]:
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
        self._connections = 0
        self._server: asyncio.AbstractServer | None = None

    async def open(self) -> None:
        """Listen. The socket of a killed daemon is replaced: the caller holds the lock, so no other
        daemon lives.

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
                self._start_conversation, str(self.path), backlog=512,
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

    def called_since(self) -> bool:
        """Whether a client is connected, or has been since the last call of this."""
        connections, self._connections = self._connections, 0
        return bool(connections or self._open)

    async def close(self) -> None:
        """Stop listening, then hang up. The socket is removed if it is still this daemon's."""
        owned = self._ground.owns(self.path)
        if self._server is not None:
            self._server.close()
        for conversation in list(self._open):
            conversation.close()
        if owned:
            self._ground.forget(self.path)
            self.path.unlink(missing_ok=True)

    def _start_conversation(self) -> Conversation:
        self._connections += 1
        return Conversation(self._router, self._guard, self._commands, self._open, self._ground)
