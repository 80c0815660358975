"""Optimistic writes: proposed on the version that was read, applied if that still stands.

What became of regions that were committed.
"""

from __future__ import annotations

from coordinator.words.requests.base import Reply, Request
from coordinator.words.texts import Document, Line, Name


class ProposedChange(Reply, forbid_unknown_fields=True):
    """One resource's change.

    Attributes:
        resource: a file, a region (`path::Qualified.name`), or a key.
        version: what it is made from: of a file or region its `content_hash` (`sha256:…`; left out:
            it is not there yet), of a key its version number as text ("0": nothing is stored).
        content: the new content: of a key, JSON text.
        patch: in its place: of a file a unified diff, of a key a JSON merge patch.
        delete: in their place: it is removed.
    """

    resource: Name
    version: Name | None = None
    content: Document | None = None
    patch: Document | None = None
    delete: bool = False


class Proposed(Reply):
    resource: str
    version: str | None
    """The version of the present content, in the form that the next proposal names; None: it was
    removed."""


class ProposalApplied(Reply):
    proposal: str
    changes: list[Proposed]
    warnings: list[str] = []


class Propose(Request[ProposalApplied]):
    """Change files, regions or keys without a lease. All of it is written if each is still what you
    read and nobody else holds it; otherwise VERSION_CHANGED, with the difference. An agent that
    loses again and again is queued for a lease, so that it wins in the end."""

    op = "propose"
    http = ("POST", "/v1/proposals")
    agent: Name
    changes: list[ProposedChange]
    note: Line = ""
    retry: bool = False  # where others hold it: keep it, and try again when that may be over
    cwd: Name | None = None


class LostWrite(Reply):
    agent: str
    resource: str
    in_a_row: int
    total: int
    wasted_s: float  # seconds between what it had read and its refusals, if known
    last_at: str


class LostWriteList(Reply):
    items: list[LostWrite]
    next: str | None = None


class LostWrites(Request[LostWriteList]):
    """Work that was thrown away because somebody else had written first: by agent and resource, the
    most first."""

    op = "lost_writes"
    http = ("GET", "/v1/lost-writes")
    writes = False
    agent: Name | None = None


class CommittedRegion(Reply):
    resource: str
    content_hash: str | None
    """The hash of the present content; None: it was removed."""


class RegionsCommitted(Reply):
    commit: str
    regions: list[CommittedRegion]
    warnings: list[str] = []
