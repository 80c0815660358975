"""Asking for what can be granted, in a thread: as for anything else.

Whoever is interrupted has hung up, so it is granted nothing as if it listened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from coordinator.words import requests as rq

if TYPE_CHECKING:
    from coordinator.client.client import Client

R = TypeVar("R")


class Grants:
    """Those that one client asks for."""

    def ask(self, client: Client, request: rq.Request[R], key: str | None = None,
            mark: int | None = None) -> R:
        """Ask anything.

        Raises:
            Refusal: it was refused.
        """
        return client._ask(request, key, mark)
