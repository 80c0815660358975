"""Writing regions of files through the coordinator."""

from __future__ import annotations

from coordinator.words.requests.base import Reply, Request
from coordinator.words.requests.proposals import RegionsCommitted
from coordinator.words.texts import Document, Line, Name


class RegionText(Reply, forbid_unknown_fields=True):
    """One region's new text.

    Attributes:
        resource: `path::Qualified.name`; `path::<header>` is what stands before the definitions.
        text: all of it, with its decorators and comments; empty: it is removed.
        content_hash: of the text that it was made from (`sha256:…`); without it, of what the agent
            was granted, or has committed last.
        lease_token: of the lease that gives the right to it.
        after: it is not there yet, and is put behind this region (its name in the file); empty: at
            the end of what contains it, where one that was leased as new comes anyway.
    """

    resource: Name
    text: Document
    content_hash: Name | None = None
    lease_token: Name | None = None
    after: Line | None = None


class CommitRegion(Request[RegionsCommitted]):
    """Write the new text of regions that the agent has leased, of all of them or of none. Refused
    where one was changed meanwhile, where the file could not be read any more, and where the text
    changes more than its region. Regions are named as they are leased: relative paths begin at
    `cwd`, and are written in that working tree; without one, where they are leased."""

    op = "commit_region"
    http = ("POST", "/v1/regions/commit")
    agent: Name
    regions: list[RegionText]
    cwd: Name | None = None
