"""Whether the HTTP door is opened, and where: as was asked for, or as it was before a crash.

Loads the server itself only where there is to be one.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from coordinator.daemon.request_router import RequestRouter
from coordinator.files import ownership
from coordinator.files.state import StateDir
from coordinator.settings import Http
from coordinator.words.refusals import Refusal

if TYPE_CHECKING:
    from coordinator.daemon.http_server import HttpServer

log = logging.getLogger("coord.http")


async def opened(router: RequestRouter, state: StateDir, settings: Http, port: int | None
                 ) -> HttpServer | None:
    """The door, open; None: there is none.

    Args:
        port: what was asked for with the start (0: any); None: nothing.

    Raises:
        Refusal: INVALID: the port that was asked for is taken.
    """
    asked = port is not None or settings.enabled
    before = None if asked else _before(state)
    if not asked and before is None:
        return None
    from coordinator.daemon.http_server import HttpServer

    wanted = before if before is not None else port if port is not None else settings.port
    door = HttpServer(router, state, wanted)
    try:
        await door.open()
    except Refusal as refusal:
        if asked:
            raise
        log.warning("the HTTP door of before is not open any more: %s", refusal.message)
        with contextlib.suppress(OSError):
            state.http.unlink(missing_ok=True)
        return None
    log.info("the HTTP door is %s", door.address)
    return door


def _before(state: StateDir) -> int | None:
    """The port at which a coordinator listened that was killed; it is opened again. (One that ends
    takes the note away: nobody is to send a token to whoever listens there next.)"""
    with contextlib.suppress(OSError, Refusal, ValueError):
        said = (ownership.read(state.http) or b"").decode("ascii", "replace").strip()
        return int(said.rpartition(":")[2]) if said else None
    return None
