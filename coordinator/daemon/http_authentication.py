"""Who asks over HTTP. Every request passes here, whatever its route, before anything is read of it:
Host and Origin are checked, then the bearer token is resolved to whom it speaks for. Answered
without one, here: a probe (`/health`), with no more than whether the coordinator serves; the files
of the browser page; and a page that exchanges its one-time code for a token of its own.

Owns no route. What passes carries its token in the request's scope (`token_of`).
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from coordinator.daemon.page_access import PageAccess
from coordinator.daemon.page_files import PageFiles
from coordinator.words.refusals import CATALOGUE, Code, Refusal

_JSON = msgspec.json.Encoder()
_KEY = "coord.token"
#: Answered without a token: a probe; and a page that has a code (at most so many bytes of it).
PROBE, ENTER = "/health", "/v1/page/enter"
ENTER_BYTES_MAX = 1000


class _Entering(msgspec.Struct, forbid_unknown_fields=True):
    """What a page sends that has a code."""

    code: str


class HttpAuthentication:
    """An ASGI application around another one.

    Args:
        bearer: the operator's token.
        port: where the door listens.
        resolve: what a token speaks for; a `Refusal` is a value.
        alive: raises a `Refusal` where the coordinator does not serve; for `/health`, the one path
            that needs no token, and tells no more than that.
        counted: told of each refusal of its own, to be counted.
        where: where the operator's token lies, for the refusal's next step.
        pages: knows the codes and tokens of browser pages; these speak for the operator.
        files: the files of the browser page.
    """

    def __init__(
        self, app: ASGIApp, bearer: str, port: Callable[[], int],
        resolve: Callable[[str | None], Any], where: str, alive: Callable[[], None],
        counted: Callable[[Refusal], None], pages: PageAccess, files: PageFiles,
    ) -> None:
        self._app = app
        self._bearer = bearer.encode()
        self._port = port
        self._resolve = resolve
        self._where = where
        self._alive = alive
        self._counted = counted
        self._pages = pages
        self._files = files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # neither web sockets nor a lifespan are served
        request = Request(scope, receive)
        try:
            self._check_names(request)
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
        await self._app({**scope, _KEY: token}, receive, send)

    async def _without_token(self, request: Request) -> Response | None:
        """The answer to what needs no token; None: this does.

        Raises:
            Refusal: INVALID, LIMIT, UNAUTHORIZED: a page's code is none, or worth nothing.
        """
        path, method = request.url.path, request.method
        if path == ENTER and method == "POST":
            return await self._let_page_in(request)
        if method not in ("GET", "HEAD"):
            return None
        if self._files.covers(path):
            return await self._page_file(path, method)
        return self._probed() if path == PROBE else None

    async def _page_file(self, path: str, method: str) -> Response:
        """A file of the browser page, or that there is none."""
        try:
            return await asyncio.to_thread(self._files.answer, path, method)
        except Refusal as refusal:
            self._counted(refusal)
            answer = refused(refusal)
            answer.status_code = 404
            return answer

    async def _let_page_in(self, request: Request) -> Response:
        """A token for a page's code.

        Raises:
            Refusal: INVALID, LIMIT, STORAGE, UNAUTHORIZED.
        """
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > ENTER_BYTES_MAX:
                raise Refusal(Code.LIMIT, f"A page's code has no {ENTER_BYTES_MAX} bytes. Nothing "
                              "was opened.", next="`coord web` opens the page with a code.")
        try:
            code = msgspec.json.decode(body, type=_Entering).code
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Refusal(Code.INVALID, 'A page enters with `{"code": …}`. Nothing was opened.',
                          next="`coord web` opens the page with a code.") from None
        try:
            token = self._pages.exchange(code)
        except OSError as bad:
            raise Refusal(Code.STORAGE, f"The page's key cannot be kept ({bad.strerror}). Nothing "
                          "was opened.") from None
        return Response(_JSON.encode({"token": token, "person": _person()}),
                        media_type="application/json",
                        headers={"cache-control": "no-store"})

    def _probed(self) -> Response:
        """What a probe is told, who has no token."""
        try:
            self._alive()
        except Refusal as refusal:
            return refused(Refusal(refusal.code, CATALOGUE[refusal.code].meaning))
        return Response(b'{"status":"ok"}', media_type="application/json",
                        headers={"cache-control": "no-store"})

    def _check_names(self, request: Request) -> None:
        """That no web page of another origin asks, nor one that has this machine's address for its
        own name.

        Raises:
            Refusal: UNAUTHORIZED.
        """
        host = request.headers.get("host", "").lower()
        here = f"http://127.0.0.1:{self._port()}"
        if not re.fullmatch(rf"(127\.0\.0\.1|localhost|\[::1\])(:{self._port()})?", host):
            raise Refusal(Code.UNAUTHORIZED, f"Host {host[:80]!r} is not this machine's own name.",
                          next=f"Ask at {here}; a proxy before it must send that as the host.")
        origin = request.headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            raise Refusal(Code.UNAUTHORIZED, "Web pages of other origins are not served.",
                          next=f"Ask by a program, or from a page of {here}.")

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
        token = None if of_operator or self._pages.accepts(given) else given
        actor = self._resolve(token)
        if isinstance(actor, Refusal):
            if actor.code is Code.UNAUTHORIZED:
                actor.next = (f"The operator's token is in {self._where}; POST /v1/agents gives an "
                              "agent its own.")
            raise actor
        return token


def _person() -> str:
    """The user whose coordinator this is, for the record of what a page decides."""
    import getpass  # few coordinators have a page

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "operator"


def token_of(request: Request) -> str | None:
    """The agent's token that a request came in with; None for the operator's."""
    token: str | None = request.scope[_KEY]
    return token


def refused(refusal: Refusal) -> Response:
    """A refusal as an HTTP answer."""
    return Response(
        _JSON.encode({"error": refusal.body()}), status_code=CATALOGUE[refusal.code].http,
        media_type="application/json",
    )
