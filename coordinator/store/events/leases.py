"""Leases are granted, kept, moved and ended."""

from __future__ import annotations

from coordinator.store.events.base import Event


class LeaseGranted(Event, tag="lease_granted"):
    fencing_token: int
    resource: str
    agent: str
    expires_at: str
    lease_kind: str
    mode: str
    scope: str
    acquisition_id: str
    ttl_ms: int
    max_until: str
    description: str = ""
    slot: str = ""
    inode: str | None = None
    worktree: str | None = None
    content_hash: str | None = None
    task: str | None = None
    baselines: list[tuple[str, str]] | None = None
    agreed_as: str | None = None  # the unlock request by which others write it, too
    goes_with: str | None = None  # a rename made it: it ends with its holder's lease on this
    lent_by: str | None = None  # a session, or a sub-agent of it, which has it back in the end
    began_at: str | None = None  # when what it began with was looked at, if not now; empty: before
    purpose: str = "asked"  # see `words.purposes`; left out of the log where it is that very text


class LeaseAgreed(Event, tag="lease_agreed"):
    """Its holder shares it from now on with whoever asked: all of them write it."""

    fencing_token: int
    agent: str
    resource: str
    slot: str
    agreed_as: str


class LeaseRenewed(Event, tag="lease_renewed"):
    agent: str
    until: list[tuple[int, str]]  # (fencing token, new expires_at)
    asked: list[int] = []  # of these tokens: its holder asks for what was taken for it until now


class LeaseWarned(Event, tag="lease_warned"):
    """Its holder was told that the lease ends soon."""

    fencing_token: int
    agent: str
    resource: str


class LeaseReleased(Event, tag="lease_released"):
    fencing_token: int
    resource: str
    scope: str
    agent: str
    lease_kind: str
    task: str | None = None
    by: str | None = None  # someone else, by force


class LeaseLapsed(Event, tag="lease_lapsed"):
    """Expired, or its holder fell silent, left or failed: see `reason`."""

    fencing_token: int
    resource: str
    scope: str
    agent: str
    task: str | None
    lease_kind: str
    reason: str
    expired_at: str
    review: str | None = None


class LeasePlaced(Event, tag="lease_placed"):
    """What is there now is what its holder starts from: it works in this linked worktree (None: in
    the main one), or had waited for the lease."""

    fencing_token: int
    agent: str
    resource: str
    lease_kind: str
    worktree: str | None
    content_hash: str | None
    task: str | None = None
    baselines: list[tuple[str, str]] | None = None


class LeaseMoved(Event, tag="lease_moved"):
    """What is leased was renamed, and the lease followed: nothing is to be kept at its old name."""

    fencing_token: int
    agent: str
    resource: str
    old_scope: str
    scope: str
    slot: str
    moved_from: str


class LeasesShifted(Event, tag="leases_shifted"):
    """The machine slept, or the wall clock was set: that time is given back to whoever was live."""

    delta_ms: int
    tokens: list[tuple[int, str, str]]  # (fencing token, expires_at, max_until)
    claims: list[tuple[str, str, str]]  # (task, claim_until, claim_max)
    waiters: list[tuple[str, str]] = []  # (acquisition id, until)
