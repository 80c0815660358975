"""Tasks, their claims, and what was tried for them."""

from __future__ import annotations

from coordinator.store.events.base import Event


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


class TaskEdited(Event, tag="task_edited"):
    """A person has changed what it says: all of that, as it is afterwards, and which of it."""

    task: str
    title: str
    prompt: str
    priority: int
    attempts_max: int
    resources: list[tuple[str, str, str, str]]  # (name, kind, scope, mode)
    after: list[str]
    fields: list[str]


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


class TaskAvoids(Event, tag="task_avoids"):
    """Agents of this profile leave it to others until then: their provider's limit is reached."""

    task: str
    agent: str
    profile: str
    until: str


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


class ClaimWaits(Event, tag="claim_waits"):
    agent: str
    until: str  # no later than this (UTC); it has a task before, or is gone


class ClaimRenewed(Event, tag="claim_renewed"):
    agent: str
    until: list[tuple[str, str]]  # (task, new claim_until)


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
