"""Leases are granted, kept, moved and ended.

Writes without a lease: those that came too late, and the one after that which stood.
"""

from __future__ import annotations

from coordinator.store.events.base import Database, Event
from coordinator.store.statements import STATEMENTS as Q
from coordinator.words.resource_names import path_of

_LEASE_INSERT = Q["lease_insert"]
_LEASE_DELETE = Q["lease_delete"]
_READY_OFFER = Q["ready_offer"]


def _delete(db: Database, fencing_token: int, kind: str) -> None:
    db.execute(_LEASE_DELETE, (fencing_token,))
    if kind in ("dir", "glob", "region"):  # these have baselines; most leases are on files
        db.execute(Q["baselines_delete"], (fencing_token,))


class LeaseGranted(Event, tag="lease_granted"):
    SENTENCE = "{agent} got {resource} ({mode}, token {fencing_token}) until {expires_at}"

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

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            _LEASE_INSERT,
            (
                self.fencing_token,
                self.resource,
                self.agent,
                instant,
                self.description,
                self.expires_at,
                self.lease_kind,
                self.mode,
                self.scope,
                self.slot,
                self.inode,
                self.worktree,
                self.content_hash,
                self.acquisition_id,
                self.task,
                self.ttl_ms,
                self.max_until,
                self.agreed_as,
                self.goes_with,
                self.lent_by,
                self.began_at,
                self.purpose,
            ),
        )
        if self.baselines:
            rows = [(self.fencing_token, path, digest) for path, digest in self.baselines]
            db.executemany(Q["baseline_insert"], rows)


class LeaseAgreed(Event, tag="lease_agreed"):
    """Its holder shares it with the asker from now on: all of them write it."""

    SENTENCE = "{agent} shares {resource} with whoever asked ({agreed_as}): all write it"

    fencing_token: int
    agent: str
    resource: str
    slot: str
    agreed_as: str

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["lease_agree"], (self.fencing_token, self.slot, self.agreed_as))


class LeaseRenewed(Event, tag="lease_renewed"):
    SENTENCE = "{agent} renewed its leases"

    agent: str
    until: list[tuple[int, str]]  # (fencing token, new expires_at)
    asked: list[int] = []  # of these tokens: its holder asks for what was taken for it until now

    def apply(self, db: Database, instant: str) -> None:
        db.executemany(Q["lease_extend"], self.until)
        db.executemany(Q["lease_asked"], [(token,) for token in self.asked])


class LeaseWarned(Event, tag="lease_warned"):
    """Its holder was told that the lease ends soon."""

    SENTENCE = "{agent} was told that its lease on {resource} ends soon"

    fencing_token: int
    agent: str
    resource: str

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["lease_warned"], (self.fencing_token,))


class LeaseReleased(Event, tag="lease_released"):
    SENTENCE = "{agent} released {resource}"

    fencing_token: int
    resource: str
    scope: str
    agent: str
    lease_kind: str
    task: str | None = None
    by: str | None = None  # someone else, by force

    def apply(self, db: Database, instant: str) -> None:
        _delete(db, self.fencing_token, self.lease_kind)


class LeaseLapsed(Event, tag="lease_lapsed"):
    """Expired, or its holder fell silent, left or failed: see `reason`."""

    SENTENCE = "{agent}'s lease on {resource} ended: {reason}"

    fencing_token: int
    resource: str
    scope: str
    agent: str
    task: str | None
    lease_kind: str
    reason: str
    expired_at: str
    review: str | None = None

    def apply(self, db: Database, instant: str) -> None:
        _delete(db, self.fencing_token, self.lease_kind)


class LeasePlaced(Event, tag="lease_placed"):
    """The holder starts from the present content: it works in this linked worktree (None: in the
    main one), or had waited for the lease."""

    SENTENCE = "{agent} works on {resource}"

    fencing_token: int
    agent: str
    resource: str
    lease_kind: str
    worktree: str | None
    content_hash: str | None
    task: str | None = None
    baselines: list[tuple[str, str]] | None = None

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["lease_place"], (self.fencing_token, self.worktree, self.content_hash))
        if self.baselines is not None:
            db.execute(Q["baselines_delete"], (self.fencing_token,))
            rows = [(self.fencing_token, path, digest) for path, digest in self.baselines]
            db.executemany(Q["baseline_insert"], rows)


class LeaseMoved(Event, tag="lease_moved"):
    """The leased file was renamed, and the lease followed: nothing is to be kept at its old name.
    """

    SENTENCE = "{moved_from} was renamed to {resource}; {agent}'s lease followed"

    fencing_token: int
    agent: str
    resource: str
    old_scope: str
    scope: str
    slot: str
    moved_from: str

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["lease_move"], (self.fencing_token, self.resource, self.scope, self.slot))
        if self.resource.endswith("/"):
            db.execute(Q["baselines_move"], (self.fencing_token, self.moved_from, self.resource))
        elif "/::" in self.scope:  # the region's file
            old, new = path_of(self.moved_from, "region"), path_of(self.resource, "region")
            db.execute(Q["baselines_move"], (self.fencing_token, old, new))
        db.execute(_READY_OFFER, (self.old_scope,))


class LeasesShifted(Event, tag="leases_shifted"):
    """The machine slept, or the wall clock was set. Live leases get that time back."""

    SENTENCE = "the machine's clock jumped; {delta_ms} ms were given back to live leases"

    delta_ms: int
    tokens: list[tuple[int, str, str]]  # (fencing token, expires_at, max_until)
    claims: list[tuple[str, str, str]]  # (task, claim_until, claim_max)
    waiters: list[tuple[str, str]] = []  # (acquisition id, until)

    def apply(self, db: Database, instant: str) -> None:
        db.executemany(Q["lease_shift"], self.tokens)
        db.executemany(Q["task_claim_shift"], self.claims)
        db.executemany(Q["waiter_shift"], self.waiters)


class WriteLost(Event, tag="write_lost"):
    """An agent's proposal was based on a content that somebody else has replaced since."""

    SENTENCE = "{agent} lost a write of {resource}: somebody had written before"

    agent: str
    resource: str
    scope: str
    wasted_ms: int = 0  # since it had read that, where it is known

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["lost_write_add"],
                   (self.agent, self.scope, self.resource, self.wasted_ms, instant))


class WriteStood(Event, tag="write_stood"):
    """An agent that had lost writes of this resource has written it."""

    SENTENCE = "{agent} has written {resource}"

    agent: str
    resource: str
    scope: str

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["lost_write_over"], (self.agent, self.scope))
