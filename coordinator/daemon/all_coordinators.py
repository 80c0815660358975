"""The coordinators of this user as one of them tells them (`coordinators`)."""

from __future__ import annotations

import asyncio
import time

from coordinator.client import running_coordinators
from coordinator.files import coordinators
from coordinator.words import requests as rq


async def list_coordinators() -> rq.CoordinatorList:
    """Ask each of them, in a worker: also this one, which goes on meanwhile."""
    def ask_all() -> rq.CoordinatorList:
        notes = coordinators.tidy(time.time())
        return rq.CoordinatorList(items=running_coordinators.ask_all(notes))

    return await asyncio.to_thread(ask_all)
