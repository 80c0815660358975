"""The HTTP server: the same operations under `/v1`, for people, remote tools and HTTP hooks.

Loopback only, with a bearer token (the operator's, in a file that only the user can read, a
page's, or an agent's own): every route lies behind one check (`http_authentication`). There is no
CORS. Made from the list of operations by a loop; it owns no rule and no shape.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
import secrets
import socket
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import unquote

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from coordinator.daemon import metrics
from coordinator.daemon.http_authentication import (
    Bearer,
    HttpAuthentication,
    check_still_admitted,
    refused,
    token_of,
)
from coordinator.daemon.mcp_server import McpEndpoint
from coordinator.daemon.openapi import openapi
from coordinator.daemon.page_access import PageAccess
from coordinator.daemon.page_door import PageDoor
from coordinator.daemon.request_router import RequestRouter
from coordinator.files import ownership
from coordinator.files.state import StateDir
from coordinator.kernel.event_sentences import make_event_reply
from coordinator.kernel.operations import Operation, who
from coordinator.operations import listing
from coordinator.operations.listing import HTTP_PATHS, OPERATIONS, HttpPath
from coordinator.store.rows import LogRow
from coordinator.words.refusals import Code, Refusal
from coordinator.words.requests.base import Place
from coordinator.words.texts import REQUEST_BYTES_MAX

#: Largest request body, in bytes.
BODY_BYTES_MAX = REQUEST_BYTES_MAX
#: How many ports are tried where any will do; connections that wait to be taken.
PORTS_TRIED, BACKLOG = 5, 2048
_JSON = msgspec.json.Encoder()


class HttpServer:
    """The HTTP server inside the daemon's loop."""

    def __init__(self, router: RequestRouter, state: StateDir, port: int,
                 pages: PageAccess) -> None:
        self._router = router
        self._state = state
        self._port = port
        self._server: uvicorn.Server | None = None
        self._task: asyncio.Task[None] | None = None
        self._bearer = _bearer(state)
        self._called = 0
        self._pages = pages
        self.address = ""
        self._mcp = McpEndpoint(router, token_of, refused)

    async def open(self) -> str:
        """Listen; the base address.

        Raises:
            Refusal: INVALID when the port is taken; or it cannot serve there.
        """
        sock = _listening(self._port)
        self._port = sock.getsockname()[1]
        config = uvicorn.Config(
            self._entry(), log_level="warning", access_log=False, lifespan="off", loop="none",
            server_header=False, date_header=False, timeout_graceful_shutdown=2, ws="none",
        )
        self._server = _Quiet(config)
        self._task = asyncio.get_running_loop().create_task(self._server.serve(sockets=[sock]))
        while not self._server.started and not self._task.done():
            await asyncio.sleep(0.005)
        if not self._server.started:  # a reported door is open
            why = None if self._task.cancelled() else self._task.exception()
            sock.close()
            raise Refusal(Code.INVALID, f"The HTTP door cannot be opened: {why!r}.",
                          next="Choose another port with --http PORT (0: any).")
        self.address = f"http://127.0.0.1:{self._port}"
        ownership.write(self._state.http, self.address.encode() + b"\n")
        return self.address

    def called_since(self) -> bool:
        """Whether anybody is connected, or has asked since this was asked last."""
        assert self._server is not None
        seen = self._server.server_state
        before, self._called = self._called, seen.total_requests
        return bool(seen.connections) or seen.total_requests != before

    async def close(self) -> None:
        """Stop listening; open streams end."""
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            self._server.force_exit = True
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._mcp.close()
        with contextlib.suppress(OSError, Refusal):  # another daemon may be here now
            if ownership.read(self._state.http) == b"http://127.0.0.1:%d\n" % self._port:
                self._state.http.unlink(missing_ok=True)

    def _entry(self) -> HttpAuthentication:
        """The application, behind the entry that every request passes."""
        def resolve(token: str | None) -> Any:
            return self._router.look(lambda view: who(view, token))

        app, counted = _with_slashes(self._app()), self._router.counts.refusal

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            with self._router.presence.acting(token_of(Request(scope))):
                await app(scope, receive, send)

        return HttpAuthentication(serve,
                                  Bearer(self._bearer, str(self._state.bearer)), lambda: self._port,
                                  resolve, self._router.check_alive, counted,
                                  PageDoor(self._pages, lambda: self._port, counted))

    def _answering(self, serve: Any) -> Any:
        """An endpoint whose own refusals are answers, and are counted as the router's are."""

        async def endpoint(request: Request) -> Response:
            try:
                answer: Response = await serve(request)
                return answer
            except Refusal as refusal:
                self._router.counts.refusal(refusal)
                return refused(refusal)

        return endpoint

    async def _no_route(self, request: Request, bad: Exception) -> Response:
        """Nothing is served there, or not by this method: in the form of every refusal."""
        status = getattr(bad, "status_code", 404)
        refusal = Refusal(
            Code.INVALID, f"{request.method} {request.url.path[:200]!r} is not served here.",
            next="GET /openapi.json lists what is.",
        )
        self._router.counts.refusal(refusal)
        answer = refused(refusal)
        answer.status_code = status
        if status == 405:
            answer.headers["allow"] = ", ".join(_methods(request))
        return answer

    def _app(self) -> Starlette:
        routes = [
            Route("/openapi.json", self._answering(self._openapi)),
            Route("/v1/events/stream", self._answering(self._stream)),
            Route("/metrics", self._answering(self._metrics)),
            Route("/mcp", self._mcp),
        ]
        # a fixed path goes before one with a placeholder that would swallow it
        for operation in sorted(OPERATIONS.values(), key=lambda o: "{" in o.request.http[1]):
            method, path = operation.request.http
            routes.append(Route(path, self._answering(self._endpoint(operation)), methods=[method]))
        for http_path in sorted(HTTP_PATHS, key=lambda o: -len(o.path)):
            serve = self._endpoint(OPERATIONS[http_path.op], http_path)
            routes.append(Route(http_path.path, self._answering(serve), methods=[http_path.method]))
        app = Starlette(
            routes=routes, exception_handlers=dict.fromkeys((404, 405), self._no_route))
        app.router.redirect_slashes = False  # every answer is one that is described, or a refusal
        return app

    def _endpoint(self, operation: Operation, further: HttpPath | None = None) -> Any:
        async def serve(request: Request) -> Response:
            params = await _params(request, operation, further)
            future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            gone = asyncio.Event()

            def answer(value: Any) -> None:
                if not future.done():
                    future.set_result(value)

            watch = asyncio.create_task(self._hung_up(request, gone))
            try:
                self._router.ask(operation.name, params, token_of(request), answer, gone.is_set,
                                 request.headers.get("idempotency-key"))
                value = await future
            finally:
                watch.cancel()
            if isinstance(value, Refusal):
                return refused(value)
            return Response(_JSON.encode(value), media_type="application/json")

        return serve

    async def _hung_up(self, request: Request, gone: asyncio.Event) -> None:
        """Note when the client goes, so that nothing is granted to an absent client."""
        while (await request.receive())["type"] != "http.disconnect":
            pass
        gone.set()
        self._router.held.hung_up()

    async def _stream(self, request: Request) -> Response:
        twice = _twice(request)
        if twice:
            raise Refusal(Code.INVALID, f"The stream's `{twice}` is given twice.",
                          next="Give it once.")
        last = request.headers.get("last-event-id")
        after = last or request.query_params.get("after")
        try:
            begin = msgspec.convert(after, Place | None, strict=False)
        except msgspec.ValidationError:
            named = "Last-Event-ID" if last else "after"
            raise Refusal(Code.INVALID, f"`{named}` must be the number of an event.",
                          next="Give such a number, like 0, or leave it out.") from None
        unknown = [query_parameter for query_parameter in request.query_params
                   if query_parameter != "after"]
        if unknown:  # an unknown filter must not return everything
            raise Refusal(Code.INVALID, f"The stream has no field `{unknown[0][:60]}`.",
                          next="It takes `after`; GET /v1/events can be narrowed.")
        kind, headers = "text/event-stream", {"cache-control": "no-store"}
        if request.method == "HEAD":
            return Response(media_type=kind, headers=headers)
        return StreamingResponse(self._events(begin, request), media_type=kind, headers=headers)

    async def _events(self, after: int | None, request: Request) -> AsyncIterator[bytes]:
        """Server-sent events from `after` on; a comment each 15 s keeps the connection. It ends
        with the token that it was asked with."""
        wake = asyncio.Event()
        stop = self._router.subscribe(wake.set)
        look = self._router.look
        seq = after if after is not None else look(lambda v: int(v.value("event_last") or 0))
        try:
            yield b": coord events\n\n"
            while True:
                wake.clear()
                try:
                    check_still_admitted(request)
                except Refusal:
                    return
                rows = self._news(seq)
                for event in [] if isinstance(rows, Refusal) else rows:
                    seq = event.seq
                    body = _JSON.encode(make_event_reply(event))
                    yield b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, event.kind.encode(), body)
                if isinstance(rows, Refusal) or not rows:
                    try:
                        await asyncio.wait_for(wake.wait(), 15)
                    except TimeoutError:
                        yield b": still here\n\n"
        finally:
            stop()

    def _news(self, told: int) -> Any:
        return self._router.look(
            lambda view: view.each(LogRow, "events_after", told, None, None, None, None, 500)
        )

    async def _metrics(self, request: Request) -> Response:
        return Response(self._router.metrics(), headers={"content-type": metrics.TYPE})

    async def _openapi(self, request: Request) -> Response:
        return Response(_described(), media_type="application/json")


def _listening(port: int) -> socket.socket:
    """A listening socket. Two sockets that are bound to one port at the same moment collide only
    when they listen. If any port will do, the later one takes another.

    Raises:
        Refusal: INVALID: the port is taken.
    """
    for left in range(PORTS_TRIED if port == 0 else 1, 0, -1):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
            sock.listen(BACKLOG)
            return sock
        except OSError as bad:
            sock.close()
            if left == 1:
                raise Refusal(
                    Code.INVALID, f"Port {port} cannot be used: {bad.strerror}.",
                    next="Choose another with --http PORT (0: any).",
                ) from None
    raise AssertionError("at least one is tried")


class _Quiet(uvicorn.Server):
    """The daemon has its own signal handlers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


def _with_slashes(app: Any) -> Any:
    """An application whose placeholders may be given names with slashes in them (`%2F`), or line
    ends: what belongs to a name does not divide the path."""

    async def called(scope: Any, receive: Any, send: Any) -> None:
        raw = scope.get("raw_path")
        if raw and b"%" in raw:
            kept = re.sub(rb"%(?=25|2[Ff]|0[Aa])", b"%25", raw)
            scope = {**scope, "path": unquote(kept.decode("ascii", "replace"))}
        await app(scope, receive, send)

    return called


def _name(text: str) -> str:
    """The value of a placeholder, see `_with_slashes`."""
    return re.sub("%(2[Ff]|0[Aa]|25)", lambda match: unquote(match[0]), text)


async def _params(request: Request, operation: Operation, further: HttpPath | None) -> bytes:
    """The request's JSON: its body, completed from the path and the query."""
    extra: dict[str, Any] = {k: _name(v) for k, v in request.path_params.items()}
    method, _ = operation.request.http
    name = operation.name
    if further is not None:
        method, extra = further.method, further.fields(extra)
    if method in ("GET", "DELETE"):
        if twice := _twice(request):
            raise Refusal(Code.INVALID, f"{name}: `{twice}` is given twice. Nothing was done.",
                          next=f"Give `{twice}` once.", field=twice)
        _check_path(name, extra, request.query_params)
        extra = {**request.query_params, **extra}
        try:
            typed = msgspec.convert(extra, operation.request, strict=False)
        except msgspec.ValidationError as bad:
            refusal = listing.refusal(name, operation.request, bad)
            if request.headers.get("content-length", "0") != "0":
                refusal.next = (f"{method} takes its fields in the address (`?agent=…`), not in a "
                                f"body. {refusal.next}")
            raise refusal from None
        return _JSON.encode(typed)
    if stray := next(iter(request.query_params), ""):
        raise Refusal(Code.INVALID, f"{name}: `{stray[:60]}` stands in the address, where {method} "
                      "takes no field. Nothing was done.",
                      next="Send it in the body, a JSON object.", field=stray[:60])
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            raise Refusal(Code.LIMIT, f"The body is over {BODY_BYTES_MAX} bytes.")
    if not extra and body:
        return body
    try:
        given = msgspec.json.decode(body or b"{}", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
        raise listing.no_json(name, bad) from None
    _check_path(name, extra, given)
    return _JSON.encode({**given, **extra})


def _check_path(name: str, path: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse values beside the path that contradict it, because one of the two would be overlooked.

    Raises:
        Refusal: INVALID.
    """
    for field, value in path.items():
        if field in given and given[field] != value:
            raise Refusal(Code.INVALID, f"{name}: the path names `{field}`, and another one is "
                          "given beside it. Nothing was done.", next=f"Leave out `{field}`, or "
                          "change the path.", field=field)


def _twice(request: Request) -> str:
    """A field that a query has more than once: of two values one would be overlooked."""
    names = [name for name, _ in request.query_params.multi_items()]
    return next((name[:60] for name in names if names.count(name) > 1), "")


def _methods(request: Request) -> list[str]:
    """The methods by which this path is served."""
    matches: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            matches |= route.methods or {"GET", "POST"}
    return sorted(matches)


def _bearer(state: StateDir) -> str:
    ownership.make_once(state.bearer, secrets.token_hex(24).encode())
    return (ownership.read(state.bearer) or b"").decode("ascii").strip()


@functools.cache
def _described() -> bytes:
    """Made once: it takes some thirty milliseconds, which everybody would feel."""
    return _JSON.encode(openapi())
