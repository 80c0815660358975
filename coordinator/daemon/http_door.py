"""The HTTP door: whether it is open, and where. As was asked for, as it was before a crash, or for
a browser page that a person opens (`coord web`). A door that was asked for (`coord up --http`)
stays asked for until `coord down`: a coordinator that follows opens it at the same port.

Loads the server itself only where there is to be one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from coordinator.daemon.page_access import CODE_VALID_S, PageAccess, Rights
from coordinator.files import ownership
from coordinator.files.content import write_atomic
from coordinator.files.state import StateDir
from coordinator.settings import Http
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

if TYPE_CHECKING:
    from coordinator.daemon.http_server import HttpServer
    from coordinator.daemon.request_router import RequestRouter

log = logging.getLogger("coord.http")


class HttpDoor:
    """One per daemon; used from the loop's thread only.

    Args:
        port: what was asked for with the start (0: any); None: nothing.
    """

    def __init__(self, router: RequestRouter, state: StateDir, settings: Http,
                 port: int | None) -> None:
        self._router = router
        self._state = state
        self._settings = settings
        self._asked_port = port
        self._server: HttpServer | None = None
        self._opening = asyncio.Lock()
        self._pages = PageAccess(state.page_key, asyncio.get_running_loop().time)

    @property
    def address(self) -> str | None:
        """Its base address; None if it is shut."""
        return self._server.address if self._server is not None else None

    async def open_as_before(self) -> None:
        """Open it at the start, where that was asked for or a killed coordinator had it open.

        Raises:
            Refusal: INVALID: the port that was asked for is taken.
        """
        wanted = self._asked_port is not None or self._settings.enabled
        before = _port_before(self._state.http)
        if before is None:
            self._pages.end()  # the one before ended in order, and its pages with it
            before = _port_before(self._state.http_asked)
        if not wanted and before is None:
            return
        if wanted and self._wanted_port() == 0 and before is not None:
            with contextlib.suppress(Refusal):  # any port will do, and open pages know this one
                await self._open(before, is_asked=self._asked_port is not None)
                return
            self._pages.end()
        try:
            await self._open(self._wanted_port() if wanted else before or 0,
                             is_asked=self._asked_port is not None)
        except Refusal as refusal:
            if wanted:
                raise
            log.warning("the HTTP door of before is not open any more: %s", refusal.message)
            self._pages.end()  # another program listens there now, and open pages would ask it
            with contextlib.suppress(OSError):
                self._state.http.unlink(missing_ok=True)

    async def open_page(self, request: rq.PageOpen, token: str | None) -> rq.PageOpened:
        """See `requests.PageOpen`. `token`: that of the asking agent; None for a person.

        Raises:
            Refusal: INVALID: the port of the settings is taken; UNAUTHORIZED: an agent asks, and
                the door is shut.
        """
        async with self._opening:
            if self._server is None and token is not None:
                raise Refusal(Code.UNAUTHORIZED, "The HTTP door is shut, and no agent opens it. "
                              "Nothing was opened.", next="A person opens it: `coord web`.")
            if self._server is None:
                port = self._wanted_port() if request.port is None else request.port
                await self._open(port, is_asked=request.port is not None)
        assert self._server is not None
        code = self._pages.make_code(Rights(token, request.reads_only or token is not None))
        return rq.PageOpened(address=self._server.address, code=code, valid_s=CODE_VALID_S)

    def called_since(self) -> bool:
        """Whether anybody is connected, or has asked since this was asked last."""
        return self._server is not None and self._server.called_since()

    async def close(self) -> None:
        """Shut it; open streams and pages end."""
        self._pages.end()
        if self._server is not None:
            await self._server.close()

    def forget(self) -> None:
        """The next coordinator opens it only if it is asked for again."""
        with contextlib.suppress(OSError):
            self._state.http_asked.unlink(missing_ok=True)

    async def _open(self, port: int, *, is_asked: bool = False) -> None:
        from coordinator.daemon.http_server import HttpServer

        server = HttpServer(self._router, self._state, port, self._pages)
        await server.open()
        self._server = server
        if is_asked:
            with contextlib.suppress(OSError):
                write_atomic(self._state.http_asked, server.address.encode(), 0o600)
        log.info("the HTTP door is %s", server.address)

    def _wanted_port(self) -> int:
        return self._settings.port if self._asked_port is None else self._asked_port


def _port_before(note: Path) -> int | None:
    """The port in a note: of the door of a coordinator that was killed, or of a door that was asked
    for. A coordinator that ends in order removes the first, so that nobody sends a token to the
    next listener."""
    with contextlib.suppress(OSError, Refusal, ValueError):
        address = (ownership.read(note) or b"").decode("ascii", "replace").strip()
        return int(address.rpartition(":")[2]) if address else None
    return None
