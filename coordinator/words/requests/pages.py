"""Opening the browser page of the coordinator."""

from __future__ import annotations

from coordinator.words.requests.base import Port, Reply, Request


class PageOpened(Reply):
    address: str  # of the HTTP door, like `http://127.0.0.1:43210`
    code: str  # stands for the asker, once, at `POST /v1/page/enter`
    valid_s: float  # seconds until the code is worth nothing


class PageOpen(Request[PageOpened]):
    """Open the HTTP door where it is shut, and make a code that one browser page exchanges for a
    token of its own (`coord web`).

    With `reads_only` the page sees all and changes nothing. Asked with an agent's token, it only
    reads, too, sees what that agent may, and opens no door that is shut.
    """

    op = "page_open"
    http = ("POST", "/v1/page/open")
    writes = False
    reads_only: bool = False  # the page changes nothing
    port: Port | None = None  # where to open a door that is shut (0: any); it stays asked for

    def for_people(self) -> bool:
        return True
