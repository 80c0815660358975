"""The kinds of event: what happened, with all that is needed to make the state again from it.

An event is a fact; it holds no rule. `coordinator.store.projections` says what each one does to
the state tables; nothing else may change them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import attrgetter, or_
from typing import Any, ClassVar

import msgspec


class Event(msgspec.Struct, kw_only=True, tag_field="kind", tag=True, omit_defaults=True, gc=False):
    """Base. `kind` in the log is the tag; `agent`, `task` and `resource` are its index columns.
    A field that has its default is left out of the log, and reads as that."""

    kind: ClassVar[str]


class AgentRegistered(Event, tag="agent_registered"):
    agent: str
    parent: str | None
    profile: str
    description: str
    token_hash: str | None
    silence_ms: int | None
    anew: bool = False  # a session of its own: what one before it left under this name is forgotten


class AgentSeen(Event, tag="agent_seen"):
    agent: str
    progress: str | None = None
    moved: bool = False


class AgentState(Event, tag="agent_state"):
    """active, stale or gone, and why."""

    agent: str
    state: str
    reason: str


class AgentHooked(Event, tag="agent_hooked"):
    """A hook of the agent reported in, from this session of its CLI."""

    agent: str
    session: str


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


class LeaseRenewed(Event, tag="lease_renewed"):
    agent: str
    until: list[tuple[int, str]]  # (fencing token, new expires_at)


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
    """The leased file was renamed; the lease followed."""

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


class AcquisitionRefused(Event, tag="acquisition_refused"):
    agent: str
    resources: list[str]
    holders: list[str]
    task: str | None = None
    redirect: str | None = None


class WaiterQueued(Event, tag="waiter_queued"):
    acquisition_id: str
    agent: str
    mode: str
    priority: int
    asked_at: str  # earlier than the event when it asked again and kept its place
    until: str
    held: bool
    ttl_ms: int
    task: str | None
    description: str
    resources: list[tuple[str, str, str]]  # (name, kind, scope)
    met: str = ""  # scope of the lease that is in its way
    worktrees: dict[str, str] = {}  # of the names that were asked for in a linked worktree
    gives_way_to: str | None = None  # it asked again, and was told before to give way to this one


class WaiterChanged(Event, tag="waiter_changed"):
    """Whether a request is still held open for it."""

    acquisition_id: str
    agent: str
    held: bool


class GivesWay(Event, tag="gives_way"):
    """Of a circle of agents that wait for each other one was chosen, and told to give way."""

    agent: str
    acquisition_id: str  # by which it is in the circle
    to: str  # one of those that wait for what it holds
    circle: list[str]  # itself first; not all, where they are many
    size: int


class WaiterLeft(Event, tag="waiter_left"):
    """Granted, withdrawn, timed out or its agent is gone: see `reason`."""

    acquisition_id: str
    agent: str
    reason: str


class UnlockAsked(Event, tag="unlock_asked"):
    """A holder is asked to release a resource; the asker stands in line under `request`."""

    request: str
    n: int
    agent: str  # who asks
    holder: str
    resource: str
    resource_kind: str
    scope: str
    mode: str
    reason: str


class UnlockPassed(Event, tag="unlock_passed"):
    """What is asked for went to a sub-agent, or back: its holder answers now."""

    request: str
    agent: str
    holder: str
    resource: str


class UnlockAnswered(Event, tag="unlock_answered"):
    """approved, rejected or withdrawn, by whom and with which words."""

    request: str
    agent: str  # who had asked
    resource: str
    status: str
    by: str
    override: bool
    answer: str


class TaskAdded(Event, tag="task_added"):
    task: str
    n: int
    title: str
    prompt: str
    priority: int
    state: str
    attempts_max: int
    resources: list[tuple[str, str, str, str]]  # (name, kind, scope, mode)
    after: list[str]


class TaskChanged(Event, tag="task_changed"):
    """All that may change in a task, as it is afterwards."""

    task: str
    verb: str
    state: str
    attempts: int
    agent: str | None = None  # who did it
    not_before: str | None = None
    claimed_by: str | None = None
    claimed_at: str | None = None
    claim_until: str | None = None
    claim_max: str | None = None
    ttl_ms: int | None = None
    partial: str | None = None
    result: str | None = None
    why: str = ""


class TaskResourcesLearned(Event, tag="task_resources_learned"):
    """Working on it showed that it needs these too."""

    task: str
    agent: str | None
    resources: list[tuple[str, str, str, str]]


class CandidateJudged(Event, tag="candidate_judged"):
    """Something was tried for a task, and this came of it: an outcome, and its remedy.
    `regions`: name, the content that its text was made from, its text's own."""

    task: str
    agent: str
    n: int
    outcome: str
    remedy: str
    regions: list[tuple[str, str | None, str | None]]
    note: str = ""


class RippleLeft(Event, tag="ripple_left"):
    """A task closed, and many come after it: those numbered above `after` follow in later
    transactions. `after` is None when all have followed."""

    task: str
    after: int | None


class SetAside(Event, tag="set_aside"):
    """A waiter, task or lapse could not be served; it is tried again at `retry_at`. `what`: which
    of the three; `subject`: its id."""

    what: str
    subject: str
    reason: str
    tries: int
    retry_at: str
    agent: str | None = None
    task: str | None = None


class TakenUp(Event, tag="taken_up"):
    """What was set aside is tried again, or is over."""

    what: str
    subject: str


class ClaimRenewed(Event, tag="claim_renewed"):
    agent: str
    until: list[tuple[str, str]]  # (task, new claim_until)


class FlaggedFile(msgspec.Struct, kw_only=True):
    """One file of a review."""

    path: str
    scope: str
    change: str
    kept: bool
    worktree: str | None = None
    baseline_hash: str | None
    flagged_hash: str | None
    inode: str | None = None  # which file it was at the grant, of a file that was leased itself


class ReviewOpened(Event, tag="review_opened"):
    review: str
    n: int
    reason: str
    agent: str | None
    task: str | None
    summary: str
    log_tail: str
    leased_at: str | None
    events_from: int
    files: list[FlaggedFile]


class ReviewDecided(Event, tag="review_decided"):
    review: str
    agent: str | None
    task: str | None
    state: str
    by: str
    note: str
    task_before: str | None
    files: list[tuple[str, str | None, str | None]]  # (path, hash before, hash written)
    modes: dict[str, int] = {}  # path -> permission bits before


class ReviewUndone(Event, tag="review_undone"):
    review: str
    agent: str | None
    task: str | None
    by: str


class VerdictStep(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One file of a verdict: its content goes from `old` to `new`, if it still is `old`."""

    path: str
    scope: str
    worktree: str | None = None
    old: str | None = None
    old_mode: int = 0
    new: str | None = None
    new_mode: int = 0
    aside: str
    in_place: bool = False


class VerdictBegun(Event, tag="verdict_begun"):
    """A verdict is about to write files (`what`: revert or undo): all that it will do."""

    review: str
    agent: str | None
    task: str | None
    what: str
    by: str
    note: str
    steps: list[VerdictStep]


class VerdictStepped(Event, tag="verdict_stepped"):
    """These steps of it are done, by their numbers; `back`: they are about to be taken back."""

    review: str
    steps: list[int]
    back: bool = False


class VerdictEnded(Event, tag="verdict_ended"):
    """It is done, or was taken back (`outcome`); what somebody saved meanwhile and is kept as a
    blob: (path, hash)."""

    review: str
    agent: str | None
    task: str | None
    what: str
    outcome: str
    why: str = ""
    saved: list[tuple[str, str]] = []


class NoticePosted(Event, tag="notice_posted"):
    notice: int
    agent: str
    about: str
    text: str
    facts: dict[str, Any]


class NoticesDelivered(Event, tag="notices_delivered"):
    agent: str
    up_to: int


class VersionsSeen(Event, tag="versions_seen"):
    """Content that the watcher found; agent where a lease tells who wrote it."""

    versions: list[tuple[str, str | None, str | None]]  # (path, hash, agent)


class ContentRead(Event, tag="content_read"):
    """The agent knows this content of these files: it read or wrote it, or was told of it.

    `partial`: it wrote regions of them, of files that had changed since it read them. The content
    is what it had read, with these regions as they are now: no such file was ever there.
    """

    agent: str
    reads: list[tuple[str, str | None]]  # (path, hash; None: not there)
    partial: bool = False


class UnleasedWrite(Event, tag="unleased_write"):
    """A file changed that nobody had leased while agents were active."""

    resource: str
    hash: str | None
    agent: str | None = None


class TargetMoved(Event, tag="target_moved"):
    """A branch went from one commit to another with what an agent did; see `why`."""

    agent: str
    task: str
    target: str
    before: str
    after: str
    why: str
    paths: list[str]
    fencing_tokens: list[int]


class Noted(Event, tag="noted"):
    """Something that changes no state but belongs in the story: a sweep, a start, a stop."""

    what: str
    facts: dict[str, Any]


class CountersRaised(Event, tag="counters_raised"):
    """After a restore from a backup, or where a coordinator was before: numbers that may have been
    given out must never come again. `above`: counter -> all that are skipped."""

    by: int = 0
    above: dict[str, int] = msgspec.field(default_factory=dict)


#: Reads an event of any class, by its tag.
ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder(reduce(or_, Event.__subclasses__()))


#: The tag under which events of a class stand in the log.
KIND_OF = {kind: str(kind.__struct_config__.tag) for kind in Event.__subclasses__()}

#: (agent, task, resource) of an event, as far as it has them.
Subject = tuple[str | None, str | None, str | None]


def _subject(event: Event) -> Subject:
    resource = getattr(event, "resource", None)
    if isinstance(event, AcquisitionRefused) and event.resources:
        resource = event.resources[0]
    return getattr(event, "agent", None), getattr(event, "task", None), resource


_INDEXED = ("agent", "task", "resource")
#: How to find the subject of events of a class; in C where they have all of it.
SUBJECT_OF: dict[type[Event], Callable[[Event], Subject]] = {
    kind: attrgetter(*_INDEXED) if {*_INDEXED} <= {*kind.__struct_fields__} else _subject
    for kind in KIND_OF
}
