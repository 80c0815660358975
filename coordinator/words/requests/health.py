"""Requests about the coordinator itself: its health, its list, compacting its data, stopping it.

`Request` explains `writes`, `operator_only` and `for_people`.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from coordinator.words.requests.base import Reply, Request


class Aside(Reply):
    """Work that could not be done and is tried again at `retry_at`."""

    what: str
    subject: str
    reason: str
    since: str
    tries: int
    retry_at: str


class HealthReply(Reply):
    version: str
    root: str
    pid: int
    started_at: str
    schema_version: int
    db_bytes: int
    wal_bytes: int
    resident_bytes: int
    events: int
    watcher: dict[str, Any]
    http: str | None
    warnings: list[str]
    config: dict[str, Any]
    heard: dict[str, str]
    """Profile -> when one of its hooks last called (UTC), since the daemon started."""
    integrity: str | None = None
    sqlite: str = ""  # an older daemon leaves it out
    aside: list[Aside] = []
    """Work that could not be done and is tried again."""


class Health(Request[HealthReply]):
    """How the daemon is; `integrity` also checks the database page by page."""

    op = "health"
    http = ("GET", "/v1/health")
    writes = False
    integrity: bool = False


class Coordinator(Reply):
    """A running coordinator. If it does not answer, only its process is known."""

    root: str
    pid: int
    since: str | None = None
    resident_bytes: int | None = None
    leases: int | None = None
    agents: int | None = None
    reviews: int | None = None  # waiting for a person
    requests: int | None = None  # unlock requests without an answer
    messages: int | None = None  # messages to people, not yet seen
    http: str | None = None
    answers: bool = True  # false: it hangs, and only its process is known


class CoordinatorList(Reply):
    items: list[Coordinator]
    next: int | None = None


class Coordinators(Request[CoordinatorList]):
    """The coordinators that this user runs, of all repositories, and how each of them is."""

    op = "coordinators"
    http = ("GET", "/v1/coordinators")
    writes = False
    operator_only = True

    def for_people(self) -> bool:
        return True


class Stopping(Reply):
    pid: int


class Shutdown(Request[Stopping]):
    """Drain and exit."""

    op = "shutdown"
    http = ("POST", "/v1/shutdown")
    writes = False  # it changes the process, not the database
    operator_only = True

    def for_people(self) -> bool:
        return True


class Compacted(Reply):
    events_removed: int
    blobs_removed: int
    bytes_freed: int = 0
    """How many bytes the database's file has lost."""


class Compact(Request[Compacted]):
    """Apply the retention rule to the log and the blobs now."""

    op = "compact"
    http = ("POST", "/v1/compact")
    operator_only = True
    keep_days: Annotated[float, Meta(gt=0, le=1e6)] | None = None
