"""MCP over streamable HTTP at `/mcp` of the HTTP server: the same tools under the same tokens.

Each request gets one answer as JSON, and there is no session. The token of a request tells who
asks. An agent's token speaks for that agent. The operator's token needs the header `Coord-Agent`
for operations of an agent. The SDK is loaded with the first request, outside of the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from coordinator.daemon.request_router import RequestRouter
from coordinator.kernel.operations import who
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from coordinator.mcp.server import Caller
    from coordinator.mcp.tools import Tool

#: Largest request body, in bytes.
BODY_BYTES_MAX = 4 * 1024 * 1024
#: The place in a request that tells the SDK's handler who asks.
_KEY = "coord.asker"


@dataclass(slots=True)
class _Asker:
    """The sender of a request. `gone`: the client has hung up."""

    token: str | None
    agent: str | None
    gone: bool = False


class McpEndpoint:
    """An ASGI application. `check` gives a request's token or refuses it; `refuse` says so."""

    def __init__(
        self, router: RequestRouter, check: Callable[[Request], str | None],
        refuse: Callable[[Refusal], Response],
    ) -> None:
        self._router, self._check, self._refuse = router, check, refuse
        self._manager: StreamableHTTPSessionManager | None = None
        self._loading = asyncio.Lock()
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            asker = self._asker(request)
            if request.method != "POST":
                await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
                return
            body = await _body(request)
        except Refusal as refusal:
            answer = self._refuse(refusal)
            if refusal.code is Code.UNAUTHORIZED:
                answer.headers["WWW-Authenticate"] = "Bearer"
            await answer(scope, receive, send)
            return
        manager = await self._ready()
        watch = asyncio.create_task(_watch(receive, asker))
        try:
            await manager.handle_request({**scope, _KEY: asker}, _again(body, watch), send)
        finally:
            asker.gone = True
            watch.cancel()

    async def close(self) -> None:
        """Answer no more."""
        self._stop.set()
        if self._running is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._running

    def _asker(self, request: Request) -> _Asker:
        token = self._check(request)
        actor = self._router.look(lambda view: who(view, token))
        if isinstance(actor, Refusal):
            raise actor
        return _Asker(token, actor.agent or request.headers.get("coord-agent"))

    async def _ready(self) -> StreamableHTTPSessionManager:
        async with self._loading:
            if self._manager is None:
                server = await asyncio.to_thread(importlib.import_module, "coordinator.mcp.server")
                http = await asyncio.to_thread(
                    importlib.import_module, "mcp.server.streamable_http_manager"
                )
                manager = http.StreamableHTTPSessionManager(
                    server.make_server(self._serve), json_response=True, stateless=True,
                    max_request_body_size=BODY_BYTES_MAX,
                )
                begun = asyncio.Event()
                self._running = asyncio.create_task(self._run(manager, begun))
                await begun.wait()
                self._manager = manager
            return self._manager

    async def _run(self, manager: StreamableHTTPSessionManager, begun: asyncio.Event) -> None:
        async with manager.run():
            begun.set()
            await self._stop.wait()

    async def _serve(self, tool: Tool, arguments: dict[str, Any], caller: Caller) -> Any:
        from coordinator.mcp.server import carry_out

        asker: _Asker = caller.request.scope[_KEY]
        if tool.acts and not asker.agent:
            raise Refusal(
                Code.UNAUTHORIZED, f"{tool.name} is done by an agent; this token is a person's.",
                next="Send the agent's own token, or name the agent in the header `Coord-Agent`.",
            )

        async def ask(request: rq.Request[Any]) -> Any:
            future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

            def answer(value: Any) -> None:
                if not future.done():
                    future.set_result(value)

            self._router.ask(request.op, msgspec.json.encode(request), asker.token, answer,
                           lambda: asker.gone)
            value = await future
            if isinstance(value, Refusal):
                raise value
            return value

        return await carry_out(tool, arguments, asker.agent, None, ask)


async def _body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            raise Refusal(Code.LIMIT, f"The body is over {BODY_BYTES_MAX} bytes.")
    return body


async def _watch(receive: Receive, asker: _Asker) -> None:
    """Note when the client hangs up, so that nothing is given to an absent client."""
    while (await receive())["type"] != "http.disconnect":
        pass
    asker.gone = True


def _again(body: bytes, hung_up: asyncio.Task[None]) -> Receive:
    """The body that was read, for the SDK to read."""
    left = [body]

    async def receive() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        await asyncio.shield(hung_up)
        return {"type": "http.disconnect"}

    return receive
