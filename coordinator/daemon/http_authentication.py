"""Authenticating HTTP requests. Every request passes here before any other part of it is read.

The module checks Host and Origin and resolves the bearer token to an agent or the operator. Two
kinds of request need no token. A probe of `/health` learns only that the coordinator serves, and a
page that has no token yet asks `page_door`.

The module owns no route. A request that passes carries its token in its scope (`token_of`). A long
answer checks the token again before each part (`check_still_admitted`).
"""

from __future__ import annotations

import hmac
import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from coordinator.daemon.page_door import PageDoor
from coordinator.words.refusals import Code, Refusal

_JSON = msgspec.json.Encoder()
_KEY, _AGAIN = "coord.token", "coord.admit"
#: Answered without a token.
PROBE = "/health"
#: Methods that change nothing.
READING = ("GET", "HEAD")


class Bearer(NamedTuple):
    """The operator's token, and its place."""

    token: str
    where: str


class HttpAuthentication:
    """An ASGI application around another one.

    Args:
        bearer: the operator's token, and where it lies, for the refusal's next step.
        port: where the door listens.
        resolve: what a token speaks for; a `Refusal` is a value.
        alive: raises a `Refusal` where the coordinator does not serve; for `/health`, the one path
            that needs no token, and tells no more than that.
        counted: told of each refusal of its own, to be counted.
        pages: answers browser pages, and knows their tokens and what each may do.
    """

    def __init__(
        self, app: ASGIApp, bearer: Bearer, port: Callable[[], int],
        resolve: Callable[[str | None], Any], alive: Callable[[], None],
        counted: Callable[[Refusal], None], pages: PageDoor,
    ) -> None:
        self._app = app
        self._bearer = bearer.token.encode()
        self._port = port
        self._resolve = resolve
        self._where = bearer.where
        self._alive = alive
        self._counted = counted
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # neither web sockets nor a lifespan are served
        request = Request(scope, receive)
        try:
            self._check_host(request)
            if (foreign := self._find_foreign_page(request)) is not None:
                self._counted(foreign)
                answer = refused(foreign)
                answer.status_code = 403  # no token would help (MCP wants it so)
                await answer(scope, receive, send)
                return
            open_to_all = await self._without_token(request)
            if open_to_all is not None:
                await open_to_all(scope, receive, send)
                return
            token = self._admit(request)
        except Refusal as refusal:
            self._counted(refusal)
            answer = refused(refusal)
            answer.headers["WWW-Authenticate"] = "Bearer"
            await answer(scope, receive, send)
            return
        admitted = {_KEY: token, _AGAIN: partial(self._admit, request)}
        await self._app({**scope, **admitted}, receive, send)

    async def _without_token(self, request: Request) -> Response | None:
        """The answer to a request that needs no token; None if this one does.

        Raises:
            Refusal: INVALID, LIMIT, STORAGE, UNAUTHORIZED: of a page.
        """
        if request.url.path == PROBE and request.method in READING:
            return self._probed()
        return await self._pages.answer(request)

    def _probed(self) -> Response:
        """The answer to a probe, which has no token."""
        try:
            self._alive()
        except Refusal as refusal:
            return refused(Refusal(refusal.code, refusal.code.row.meaning))
        return Response(b'{"status":"ok"}', media_type="application/json",
                        headers={"cache-control": "no-store"})

    def _check_host(self, request: Request) -> None:
        """Refuse names of others that resolve to this machine.

        Raises:
            Refusal: UNAUTHORIZED.
        """
        host = request.headers.get("host", "").lower()
        here = f"http://127.0.0.1:{self._port()}"
        if not re.fullmatch(rf"(127\.0\.0\.1|localhost|\[::1\])(:{self._port()})?", host):
            raise Refusal(Code.UNAUTHORIZED, f"Host {host[:80]!r} is not this machine's own name.",
                          next=f"Ask at {here}; a proxy before it must send that as the host.")

    def _find_foreign_page(self, request: Request) -> Refusal | None:
        """The refusal of a web page of another origin."""
        origin, host = request.headers.get("origin"), request.headers.get("host", "").lower()
        if origin in (None, f"http://{host}"):
            return None
        return Refusal(Code.UNAUTHORIZED, "Web pages of other origins are not served.",
                       next="Ask by a program, or from a page of "
                       f"http://127.0.0.1:{self._port()}.")

    def _admit(self, request: Request) -> str | None:
        """The agent's token, or None for the operator.

        Raises:
            Refusal: UNAUTHORIZED.
        """
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        given = given.strip()
        if scheme.lower() != "bearer" or not given:
            raise Refusal(
                Code.UNAUTHORIZED, "Send `Authorization: Bearer TOKEN`.",
                next=f"The operator's token is in {self._where}.",
            )
        of_operator = hmac.compare_digest(given.encode(), self._bearer)
        rights = None if of_operator else self._pages.access.find_rights(given)
        if rights is not None and rights.reads_only and request.method not in READING:
            raise Refusal(Code.UNAUTHORIZED, "This page only reads. Nothing was changed.",
                          next="`coord web` opens one that may change things.")
        token = None if of_operator else given if rights is None else rights.agent_token
        actor = self._resolve(token)
        if isinstance(actor, Refusal):
            if actor.code is Code.UNAUTHORIZED:
                actor.next = (f"The operator's token is in {self._where}; POST /v1/agents gives an "
                              "agent its own.")
            raise actor
        return token


def token_of(request: Request) -> str | None:
    """The agent's token of a request; None for the operator's."""
    token: str | None = request.scope[_KEY]
    return token


def check_still_admitted(request: Request) -> None:
    """Check that the token of a request whose answer continues is still valid.

    Raises:
        Refusal: UNAUTHORIZED.
    """
    request.scope[_AGAIN]()


def refused(refusal: Refusal) -> Response:
    """A refusal as an HTTP answer."""
    status = refusal.code.row.http
    wait_s = refusal.facts.get("retry_after_s", 1.0 if status == 503 else None)
    return Response(
        _JSON.encode({"error": refusal.body()}), status_code=status,
        media_type="application/json",
        headers={} if wait_s is None else {"retry-after": str(math.ceil(wait_s))},
    )
