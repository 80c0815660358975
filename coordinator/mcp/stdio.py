"""`coord mcp`: the server on standard input and output, for the agent CLI that started it.

It speaks to the daemon as the CLI's own session does: as the launched agent whose token is in the
environment, as the holder of the session's hooks, or, if neither is known, as an agent of its own
that leaves with the connection. The module decides which one it is, by the environment first; no
argument of a tool can change it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import anyio
import anyio.to_thread
import mcp_types as wire
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from coordinator.client.client import Client
from coordinator.client.connection import Wire
from coordinator.client.locating import locate_root
from coordinator.files.roots import STATE_DIR, root_in_worktree
from coordinator.files.state import StateDir
from coordinator.mcp.server import Caller, carry_out, give_back, make_server
from coordinator.mcp.tools import Tool
from coordinator.profiles import McpTable, Profile, profiles
from coordinator.words import requests as rq
from coordinator.words.clock import now_iso
from coordinator.words.refusals import Code, Refusal

R = TypeVar("R")
#: Calls that are served at once; more wait their turn.
CALLS_MAX = 16
#: How long (seconds) an answer may be on its way.
ON_ITS_WAY_S = 0.05
#: How long (seconds) to wait for a call that is taken back: it may have got something.
HANG_UP_S = 2.0
#: How long (seconds) a server ended by a signal may take to report that its agent leaves.
LEAVE_S = 5.0


@dataclass(frozen=True, slots=True)
class Speaker:
    """For whom a call is made; with a token the daemon itself holds it to that agent."""

    agent: str
    token: str | None = None


class StdioServer:
    """One client program.

    Args:
        profile: the profile's name that its wiring gave, for a client whose own name says nothing.
        cwd: where relative paths begin: the root, in the working tree that the agent works in.
    """

    def __init__(self, root: Path, environment: Mapping[str, str], profile: str | None = None,
                 cwd: str | None = None) -> None:
        self._root, self._env, self._given, self._cwd = root, environment, profile, cwd
        #: The speakers here, by the client's name for the session.
        self._known: dict[str, Speaker] = {}
        self._own: Speaker | None = None
        self._own_lock = anyio.Lock()
        self._slots = anyio.CapacityLimiter(CALLS_MAX)
        self._profiles: dict[str, Profile] | None = None
        #: A connection that says nothing: a coordinator does not end while an agent has its tools.
        self._presence = Wire(StateDir(root), autostart=False)

    def server(self) -> Server[Any]:
        """The server that answers this client."""
        return make_server(self.serve, self.used, self.marks)

    def used(self) -> bool:
        """Whether this repository uses coord."""
        return (self._root / STATE_DIR).is_dir()

    async def serve(self, tool: Tool, arguments: dict[str, Any], caller: Caller) -> Any:
        """Answer one call.

        Raises:
            Refusal: what the coordinator refused, or that the speaker is unknown.
        """
        profile = self._profile(caller)
        session, call, arguments = self._session(profile, arguments, caller)
        tool.asked(arguments, "", None)  # refused before anybody is registered
        speaker = (await self._speaker(profile, session, call) if tool.acts
                   else self._known.get(session))
        agent, token = (speaker.agent, speaker.token) if speaker is not None else (None, None)

        async def ask(request: rq.Request[Any]) -> Any:
            return await self._ask(request, token)

        return await carry_out(tool, arguments, agent, self._cwd, ask)

    def marks(self, caller: Caller) -> tuple[str, ...]:
        """Arguments that this client's hooks add to each call."""
        profile = self._profile(caller)
        mcp_table = profile.mcp if profile is not None else None
        names = (mcp_table.session_argument,
                 mcp_table.call_argument) if mcp_table is not None else ()
        return tuple(name for name in names if name)

    async def leave(self) -> None:
        """The client is gone: an agent of this connection's own goes with it."""
        if self._own is not None:
            with suppress(Refusal):
                await self._ask(
                    rq.Leave(agent=self._own.agent, clean=False, reason="its connection ended"),
                    self._own.token, autostart=False,
                )
        self._presence.close()

    # ------------------------------------------------------------ who

    def _profile(self, caller: Caller) -> Profile | None:
        if self._profiles is None:
            self._profiles = {profile.name: profile for profile in profiles(self._root)}
        for profile in self._profiles.values():
            if profile.mcp is not None and caller.client.startswith(profile.mcp.clients or ("\0",)):
                return profile  # even if it has read another agent's settings
        return self._profiles.get(self._given) if self._given is not None else None

    def _session(
        self, profile: Profile | None, arguments: dict[str, Any], caller: Caller
    ) -> tuple[str, str, dict[str, Any]]:
        """The session and the call's id as the client tells them, and the arguments without."""
        if profile is None:
            return "", "", arguments
        mcp_table = profile.mcp or McpTable()
        arguments, meta = dict(arguments), caller.meta or {}
        session = arguments.pop(mcp_table.session_argument, None)
        call = arguments.pop(mcp_table.call_argument, None)
        session = session or meta.get(mcp_table.session_meta) or self._env.get(profile.session_env)
        call = call or meta.get(mcp_table.call_meta)
        return (session if isinstance(session, str) else "",
                call if isinstance(call, str) else "", arguments)

    async def _speaker(self, profile: Profile | None, session: str, call: str) -> Speaker:
        """The speaker of this call; a new one is registered.

        Raises:
            Refusal: UNAUTHORIZED, and what the coordinator refused.
        """
        speaker = self._known[session] = await self._speaks(profile, session, call)
        return speaker

    async def _speaks(self, profile: Profile | None, session: str, call: str) -> Speaker:
        agent, token = self._env.get("COORD_AGENT"), self._env.get("COORD_AGENT_TOKEN")
        if token and not token.startswith("$"):  # what some CLIs leave of an unset variable
            if not agent:
                raise Refusal(
                    Code.UNAUTHORIZED, "COORD_AGENT_TOKEN is set, but not COORD_AGENT.",
                    next="Set both, or neither.",
                )
            return Speaker(agent, token)
        if profile is not None and (session or call):
            joined = await self._ask(rq.Join(profile=profile.name, session=session, call=call))
            return Speaker(joined.agent)
        if agent:
            return Speaker(agent)
        async with self._own_lock:
            if self._own is None:
                name = f"{profile.name if profile is not None else self._given or 'agent'}-mcp"
                made = await self._ask(rq.Register(
                    agent=name, profile=profile.name if profile is not None else "", unique=True,
                    description="known by its MCP connection only",
                ))
                self._own = Speaker(made.agent, made.token)
            return self._own

    async def _ask(self, request: rq.Request[R], token: str | None = None, *,
                   autostart: bool = True) -> R:
        """One question on a connection of its own: calls may wait beside each other, and a call
        that its client takes back hangs up."""
        # no agent, unless there is a token
        client = Client(self._root, agent="", token=token, autostart=autostart)
        since = now_iso()
        came: list[R] = []
        ended = threading.Event()

        def call() -> R:
            try:
                came.append(client.call(request))
            finally:
                ended.set()
            return came[0]

        try:
            reply = await anyio.to_thread.run_sync(
                call, abandon_on_cancel=True, limiter=self._slots
            )
            if self._presence.is_over():
                with suppress(Refusal):
                    self._presence.open()
            return reply
        except anyio.get_cancelled_exc_class():
            if not isinstance(request, (rq.Acquire, rq.TaskClaim)):
                client.hang_up(for_good=True)
                raise
            with anyio.CancelScope(shield=True):
                # It may have been granted at this very moment, and the answer be on its way.
                await anyio.to_thread.run_sync(ended.wait, ON_ITS_WAY_S)
                client.hang_up(for_good=True)
                await anyio.to_thread.run_sync(ended.wait, HANG_UP_S)
                for reply in came:
                    await give_back(request.agent, reply, partial(self._ask, token=token), since)
            raise
        finally:
            client.close()


def run(profile: str | None) -> None:
    """Serve standard input and output until the client hangs up."""
    root = locate_root()
    here = root_in_worktree(root, os.getcwd())  # noqa: PTH109
    try:
        anyio.run(_serve, StdioServer(root, os.environ, profile, here))
    except BaseExceptionGroup as several:
        if several.split(BrokenPipeError)[1] is not None:
            raise
        raise BrokenPipeError from None  # the client no longer listens


async def _serve(door: StdioServer) -> None:
    server = door.server()
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_end_by_signal, door)
            async with stdio_server() as (read, write):
                await server.run(_Heard(read, write), write, server.create_initialization_options())
            group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await door.leave()


async def _end_by_signal(door: StdioServer) -> None:
    """Treat Ctrl-C, a closing terminal, and a client that ends its servers like the end of the
    input. Ignored signals (`nohup`) stay ignored."""
    heard = [item for item in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
             if signal.getsignal(item) is not signal.SIG_IGN]
    with anyio.open_signal_receiver(*heard) as signals:
        async for number in signals:
            with anyio.move_on_after(LEAVE_S, shield=True):
                await door.leave()
            # Do not wait for the thread that reads the input: it has no end.
            os._exit(128 + number)


def _not_understood(bad: Exception) -> tuple[str | int | None, wire.ErrorData]:
    """The id of the wrong request, if it can be read, and the error (JSON-RPC 2.0, 5.1)."""
    wrong = bad.errors() if isinstance(bad, ValidationError) else []
    if not wrong or any(item["type"] == "json_invalid" for item in wrong):
        return None, wire.ErrorData(code=wire.PARSE_ERROR, message="Not a JSON-RPC message.")
    rows = [item["input"] for item in wrong if isinstance(item["input"], dict)]
    ids = [fields["id"] for fields in rows if isinstance(fields.get("id"), str | int)]
    return next(iter(ids), None), wire.ErrorData(
        code=wire.INVALID_REQUEST, message="JSON, and no JSON-RPC request.")


class _Heard:
    """The client's messages, line by line. A line that is no message is answered, not dropped."""

    def __init__(self, read: ReadStream[SessionMessage | Exception],
                 write: WriteStream[SessionMessage]) -> None:
        self._read, self._write = read, write

    async def receive(self) -> SessionMessage | Exception:
        while True:
            item = await self._read.receive()
            if not isinstance(item, Exception):
                return item
            about, error = _not_understood(item)
            await self._write.send(SessionMessage(wire.JSONRPCError(
                jsonrpc="2.0", id=about, error=error)))

    async def aclose(self) -> None:
        await self._read.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
