"""What a daemon records of itself. Each is a job of the one writer."""

from __future__ import annotations

from typing import Any

from coordinator.resources import program_version
from coordinator.store import events as ev


def started(tx: Any) -> None:
    """It has begun."""
    tx.record(ev.Noted(what="the coordinator started", facts={"version": program_version()}))


def stopped(tx: Any) -> None:
    """It ends in order."""
    tx.record(ev.Noted(what="the coordinator stopped", facts={}))


def raised(tx: Any, fencing: int) -> None:
    """No fencing token up to this is given again."""
    tx.raise_counters({"fencing": fencing})
    tx.record(ev.CountersRaised(above={"fencing": fencing}))
