"""Closing what has ended, now."""

from __future__ import annotations

from coordinator.words.requests.base import Reply, Request
from coordinator.words.requests.leases import Lease


class Swept(Reply):
    lapsed: list[Lease]
    stale: list[str]
    reviews: list[str]
    tasks: list[str]
    granted: list[str]


class Sweep(Request[Swept]):
    """Tidy now: close what has lapsed, flag partial work, serve the line."""

    op = "sweep"
    http = ("POST", "/v1/sweep")
