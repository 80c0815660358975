"""The rows of the state tables, in the column order of `queries/`.

Made in C, and read at less cost than a named tuple: a lease's row is read some twenty times.
"""

from __future__ import annotations

import msgspec


class Row(msgspec.Struct, frozen=True, gc=False):
    """Base of all rows: texts and numbers only."""


class LeaseRow(Row, frozen=True):
    """A row of `file_locks`; instants are ISO text."""

    fencing_token: int
    file_path: str
    locked_by: str
    locked_at: str
    task_description: str
    expires_at: str
    kind: str
    mode: str
    scope: str
    slot: str
    inode: str | None
    worktree: str | None
    content_hash: str | None
    acquisition_id: str
    task_id: str | None
    ttl_ms: int
    max_until: str
    warned: int = 0
    agreed_as: str | None = None
    goes_with: str | None = None
    lent_by: str | None = None
    began_at: str | None = None
    purpose: str = "asked"

    @property
    def began(self) -> str:
        """Since when it is known what this lease began with: of what was seen of a file, all from
        then on is later than that."""
        return self.locked_at if self.began_at is None else self.began_at


class ReadRow(Row, frozen=True):
    """What an agent knows of a file's content; see `agent_reads` in schema.sql."""

    hash: str | None
    at: str
    partial: int
    base: str | None
    told: str | None


class WaiterRow(Row, frozen=True):
    """A row of `waiters`."""

    acquisition_id: str
    agent: str
    mode: str
    priority: int
    asked_at: str
    until: str
    held: int
    ttl_ms: int
    task_id: str | None
    description: str
    purpose: str = "asked"


class NearWaiter(Row, frozen=True):
    """One resource of a waiter that may overlap."""

    acquisition_id: str
    agent: str
    mode: str
    priority: int
    asked_at: str
    until: str
    name: str
    kind: str
    scope: str
    purpose: str
    worktree: str | None


class Wanting(Row, frozen=True):
    """One resource that a waiter wants."""

    acquisition_id: str
    agent: str
    mode: str
    priority: int
    asked_at: str
    until: str
    met: str
    gives_way_to: str | None
    name: str
    kind: str
    scope: str
    purpose: str
    worktree: str | None


class UnlockRow(Row, frozen=True):
    """A row of `unlock_requests`."""

    request_id: str
    n: int
    requested_by: str
    holder: str
    resource: str
    kind: str
    scope: str
    mode: str
    reason: str
    requested_at: str
    status: str
    responded_at: str | None
    responded_by: str | None
    override: int
    answer: str | None


class TaskRow(Row, frozen=True):
    """A row of `tasks`."""

    task_id: str
    n: int
    title: str
    prompt: str
    priority: int
    state: str
    attempts: int
    attempts_max: int
    not_before: str | None
    claimed_by: str | None
    claimed_at: str | None
    claim_until: str | None
    claim_max: str | None
    ttl_ms: int | None
    partial: str | None
    result: str | None
    created_at: str
    updated_at: str


class AgentRow(Row, frozen=True):
    """A row of `agents`."""

    agent: str
    parent: str | None
    profile: str
    description: str
    token_hash: str | None
    state: str
    registered_at: str
    seen_at: str
    progress_at: str | None
    progress: str | None
    silence_ms: int | None
    session: str | None
    hooked_at: str | None
    rests_until: str | None = None
    rests_why: str | None = None
    explained: str | None = None
    origin: str = "program"

    @property
    def is_label(self) -> bool:
        """Whether a person acted for this name, and nobody registered it."""
        return self.origin == "person"


class ReviewRow(Row, frozen=True):
    """A row of `reviews`."""

    review_id: str
    n: int
    state: str
    reason: str
    agent: str | None
    task_id: str | None
    summary: str
    log_tail: str
    leased_at: str | None
    opened_at: str
    decided_at: str | None
    decided_by: str | None
    note: str | None
    events_from: int
    task_before: str | None
    part_of: str | None = None


class LandingRow(Row, frozen=True):
    """A row of `landings`, with its task's title."""

    task_id: str
    title: str
    agent: str
    target: str
    queued_at: str
    began_at: str | None


class ReviewFileRow(Row, frozen=True):
    """A row of `review_files`."""

    path: str
    scope: str
    worktree: str | None
    change: str
    kept: int
    baseline_hash: str | None
    flagged_hash: str | None
    verdict_hash: str | None
    written_hash: str | None
    verdict_mode: int | None
    inode: str | None
    last_hash: str | None

    @property
    def is_written(self) -> bool:
        """Whether a verdict has written it."""
        return self.verdict_hash != self.written_hash


class VerdictRow(Row, frozen=True):
    """A row of `verdicts`."""

    review_id: str
    what: str
    by: str
    note: str
    begun_at: str


class PartRow(Row, frozen=True):
    """A row of `verdict_parts`, without its review."""

    path: str
    hunks: str
    part_before: str | None
    part_after: str | None
    rest_before: str | None
    rest_after: str | None

    @property
    def numbers(self) -> list[int]:
        """The hunks by their numbers; none: the whole file."""
        return [int(n) for n in self.hunks.split(",") if n]


class StepRow(Row, frozen=True):
    """A row of `verdict_steps`, without its review."""

    n: int
    path: str
    scope: str
    worktree: str | None
    old_hash: str | None
    old_mode: int
    new_hash: str | None
    new_mode: int
    aside: str
    in_place: int
    done: int


class AsideRow(Row, frozen=True):
    """A row of `set_aside`."""

    what: str
    subject: str
    reason: str
    since: str
    tries: int
    retry_at: str


class WorkRow(Row, frozen=True):
    """A row of `finished_work`."""

    n: int
    task_id: str
    agent: str
    at: str
    state: str
    because: str | None
    head: str | None
    before: str | None
    after: str | None


class VerificationRow(Row, frozen=True):
    """A row of `verifications`; `tasks` with spaces between."""

    verification_id: str
    n: int
    state: str
    by: str
    begun_at: str
    ended_at: str | None
    command: str
    upto: int
    runs: int
    tasks: str
    said: str
    tail: str


class LogRow(Row, frozen=True):
    """A row of `events`."""

    seq: int
    at: str
    kind: str
    agent: str | None
    task: str | None
    resource: str | None
    data: str


class SignalRow(Row, frozen=True):
    """A hint on a resource."""

    scope: str
    name: str
    subject: str
    strength: float
    half_life_ms: int
    at: str
    agent: str | None
    note: str


class StateRow(Row, frozen=True):
    """One version of a key's value."""

    scope: str
    version: int
    key: str
    content: str | None
    size: int
    written_by: str
    written_at: str
    fencing_token: int | None


class ChangeRow(Row, frozen=True):
    """A change that is asked of a key's owner."""

    change_id: str
    n: int
    key: str
    scope: str
    asked_by: str
    content: str
    note: str
    during: str | None
    state: str
    attempts: int
    attempts_max: int
    not_before: str | None
    given_to: str | None
    given_until: str | None
    version: int | None
    why: str
    asked_at: str
    closed_at: str | None


class BlockedStepRow(Row, frozen=True):
    """A step that was blocked. `resources`: a JSON list of names."""

    step_id: str
    n: int
    kind: str
    name: str
    agent: str | None
    resources: str
    content: str
    state: str
    attempts: int
    attempts_max: int
    not_before: str | None
    given_to: str | None
    given_until: str | None
    why: str
    asked_at: str
    closed_at: str | None


class MessageRow(Row, frozen=True):
    """A row of `messages`."""

    message_id: str
    n: int
    thread: str
    sender: str
    recipient: str
    task_id: str | None
    reply_to: str | None
    text: str
    sent_at: str
    seen_at: str | None


class CountRow(Row, frozen=True):
    """The count of a name."""

    name: str
    count: int


class InStateRow(Row, frozen=True):
    """A task or a review by its name, and the state that it is in."""

    name: str
    state: str


class NumberedRow(Row, frozen=True):
    """A task, and a number of one: its own, or the one after which its dependents are left."""

    task_id: str
    n: int


class ContentRow(Row, frozen=True):
    """A file, and the content that something knows of it. `hash` None: it is not there."""

    path: str
    hash: str | None


class PlaceRow(Row, frozen=True):
    """A resource that a waiter waits for, and its linked worktree; None: the main one."""

    name: str
    kind: str
    scope: str
    worktree: str | None


class NeedRow(Row, frozen=True):
    """A resource that a task needs."""

    name: str
    kind: str
    scope: str
    mode: str


class AgentNameRow(Row, frozen=True):
    """An agent with the name of a resource or of a place in the wait queue."""

    agent: str
    name: str


class VersionRow(Row, frozen=True):
    """The content of a path as it was seen last. `agent`: who wrote it; `was`: what was before."""

    hash: str | None
    seen_at: str
    agent: str | None
    was: str | None


class ListedRow(Row, frozen=True):
    """A task as lists order it."""

    task_id: str
    n: int
    priority: int
    state: str


class BlobRow(Row, frozen=True):
    """A row of `blobs`. `data`: deflated; empty: it is kept as a file."""

    hash: str
    size: int
    data: bytes
    mode: int | None


class KeptBlobRow(Row, frozen=True):
    """How a content is kept. `size`: bytes in the database."""

    mode: int | None
    size: int
