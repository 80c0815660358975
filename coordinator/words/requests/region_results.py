"""What became of regions that were committed."""

from __future__ import annotations

from coordinator.words.requests.base import Reply


class CommittedRegion(Reply):
    resource: str
    content_hash: str | None
    """Of what is there now; None: it was removed."""


class RegionsCommitted(Reply):
    commit: str
    regions: list[CommittedRegion]
    warnings: list[str] = []
