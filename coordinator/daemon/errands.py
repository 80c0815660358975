"""What the daemon does for steps of its own: deliveries to webhooks, proposals that were kept,
what the person on this machine is told.

Owns that they run; when each is due, and what becomes of it, stands in the database.
"""

from __future__ import annotations

from coordinator.daemon.kept_proposals import KeptProposals
from coordinator.daemon.notifications import Notifications
from coordinator.daemon.request_router import RequestRouter
from coordinator.daemon.webhooks import Webhooks
from coordinator.kernel.core import Service


class Errands:
    """One per daemon; used from the loop's thread only."""

    def __init__(self, router: RequestRouter, service: Service) -> None:
        self._webhooks = Webhooks(router.engine, service, router.look)
        self._notifications = Notifications(service, router.look)
        self._proposals = KeptProposals(router.engine, service, router.look)
        if self._webhooks.wanted:
            self._webhooks.begin()
            router.subscribe(self._webhooks.events_came)
        if self._notifications.wanted:
            self._notifications.begin()
            router.subscribe(self._notifications.events_came)

    def tend(self) -> None:
        """Once a second: do what is due."""
        self._webhooks.tend()
        self._notifications.tend()
        self._proposals.tend()

    def close(self) -> None:
        """End what would outlive the daemon with nobody to end it."""
        self._notifications.close()
