# Made by scripts/blocking_client.py from coordinator/client/asynchronous/__init__.py; do not edit.
"""Every operation as a method of `Client`."""

from __future__ import annotations

from coordinator.client.blocking.deciding import Deciding
from coordinator.client.blocking.holding import Holding
from coordinator.client.blocking.sharing import Sharing
from coordinator.client.blocking.telling import Telling
from coordinator.client.blocking.watching import Watching
from coordinator.client.blocking.working import Working

__all__ = ["Operations"]


class Operations(Holding, Working, Deciding, Sharing, Telling, Watching):
    """All that the coordinator can be asked, typed."""
