# Made by `make docs` from the list of operations; do not edit.
"""Every operation as a method of `AsyncClient`."""

from __future__ import annotations

from coordinator.client.asynchronous.deciding import Deciding
from coordinator.client.asynchronous.holding import Holding
from coordinator.client.asynchronous.sharing import Sharing
from coordinator.client.asynchronous.telling import Telling
from coordinator.client.asynchronous.watching import Watching
from coordinator.client.asynchronous.working import Working

__all__ = ["Operations"]


class Operations(Holding, Working, Deciding, Sharing, Telling, Watching):
    """All that the coordinator can be asked, typed."""
