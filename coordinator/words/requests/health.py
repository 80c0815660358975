"""How the coordinator is; compacting what it keeps, and stopping it."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from coordinator.words.requests.base import Reply, Request


class Aside(Reply):
    """Something that could not be served and is tried again at `retry_at`."""

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
    """Profile -> when a hook of its was last heard (UTC), since the daemon started."""
    integrity: str | None = None
    sqlite: str = ""  # an older one does not say
    aside: list[Aside] = []
    """What could not be served and is tried again."""


class Health(Request[HealthReply]):
    """How the daemon is; `integrity` also checks the database page by page."""

    op = "health"
    http = ("GET", "/v1/health")
    writes = False
    integrity: bool = False


class Coordinator(Reply):
    """A coordinator that runs. One that does not answer tells nothing but its process."""

    root: str
    pid: int
    since: str | None = None
    resident_bytes: int | None = None
    leases: int | None = None
    agents: int | None = None
    reviews: int | None = None  # that wait for a person
    requests: int | None = None  # unlock requests that wait for an answer
    messages: int | None = None  # messages to people that no person has seen
    http: str | None = None
    answers: bool = True  # false: it hangs, and nothing but its process is known


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
    writes = False
    operator_only = True

    def for_people(self) -> bool:
        return True


class Compacted(Reply):
    events_removed: int
    blobs_removed: int
    bytes_freed: int = 0
    """By how much the database's file is shorter."""


class Compact(Request[Compacted]):
    """Apply the retention rule to the log and the blobs now."""

    op = "compact"
    http = ("POST", "/v1/compact")
    operator_only = True
    keep_days: Annotated[float, Meta(gt=0, le=1e6)] | None = None
