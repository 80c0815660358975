"""Making one delivery of an event to an address: signed, within a time limit over all of it.

The headers name the delivery and the attempt. The signature has the form of GitHub's, which most
receivers can check. A redirect counts as an answer that is not 2xx. The module decides nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import socket
import threading
import urllib.error
import urllib.request
from functools import partial
from typing import Any, NamedTuple

from coordinator.resources import program_version


class Delivery(NamedTuple):
    """One attempt. `number`: the first is 1."""

    url: str
    body: bytes
    name: str
    number: int


def deliver(delivery: Delivery, secret: bytes, timeout_s: float) -> str | None:
    """Make the delivery; why it did not work, or None. Call it in a thread.

    Args:
        timeout_s: for connecting, and for all that follows.
    """
    if not delivery.url.startswith(("http://", "https://")):
        return "the address is neither http nor https"
    signature = hmac.new(secret, delivery.body, hashlib.sha256).hexdigest()
    request = urllib.request.Request(delivery.url, delivery.body, {
        "Content-Type": "application/json", "User-Agent": f"coord/{program_version()}",
        "X-Hub-Signature-256": f"sha256={signature}", "X-Coord-Delivery": delivery.name,
        "X-Coord-Attempt": str(delivery.number)})
    try:
        with _OPENER.open(request, timeout=timeout_s) as answer:  # its body tells nothing
            return None if 200 <= answer.status < 300 else f"it answered {answer.status}"
    except urllib.error.HTTPError as no:
        no.close()
        return f"it answered {no.code}"
    except (OSError, http.client.HTTPException, ValueError) as bad:
        return f"{type(bad).__name__}: {bad}"[:300]


class _Straight(urllib.request.HTTPRedirectHandler):
    """Deliver to this address and no other."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class _Limited(http.client.HTTPConnection):
    """A connection that ends after its timeout, though something comes all the time."""

    def connect(self) -> None:
        super().connect()
        assert self.timeout is not None
        timer = threading.Timer(self.timeout, partial(_end, self.sock))
        timer.daemon = True
        timer.start()


class _LimitedTls(_Limited, http.client.HTTPSConnection):
    """The same with TLS."""


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Limited, req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_LimitedTls, req)


_OPENER = urllib.request.build_opener(_Straight, _Http, _Https)
