"""Tasks, their claims, and what was tried for them."""

from __future__ import annotations

from coordinator.store.events.base import Database, Event
from coordinator.store.parking import ASIDE, at_review, offer_next, park, places_of
from coordinator.store.statements import STATEMENTS as Q

_READY_OFFER = Q["ready_offer"]
#: Finished tasks keep no blackboard.
FINISHED = frozenset({"done", "cancelled"})
#: Candidates of a task that are kept on its blackboard; the log has them all.
CANDIDATES_KEPT = 20


class TaskChanged(Event, tag="task_changed"):
    """All that may change in a task, as it is afterwards."""

    SENTENCE = "{task} is {told_state}"

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

    def apply(self, db: Database, instant: str) -> None:
        before = db.execute(Q["task_partial"], (self.task,)).fetchall()
        db.execute(
            Q["task_update"],
            (
                self.task,
                self.state,
                self.attempts,
                self.not_before,
                self.claimed_by,
                self.claimed_at,
                self.claim_until,
                self.claim_max,
                self.ttl_ms,
                self.partial,
                self.result,
                instant,
            ),
        )
        db.execute(Q["landing_over"], (self.task,))
        if self.state in FINISHED:
            for forget in ("candidates_trim", "candidate_regions_trim"):
                db.execute(Q[forget], (self.task, 2**62))
        if self.state == "ready":
            db.execute(Q["ready_enter"], (self.task,))
        else:
            db.execute(Q["aside_delete"], ("task", self.task))
            for place in places_of(db, self.task):
                db.execute(Q["ready_leave"], (self.task,))
                offer_next(db, place)
        for partial in dict.fromkeys((self.partial, *(review for (review,) in before))):
            if partial is not None:  # it keeps others back, or not, as its task goes
                db.execute(_READY_OFFER, (at_review(str(partial)),))


class TaskResourcesLearned(Event, tag="task_resources_learned"):
    """Working on it showed that it needs these too."""

    SENTENCE = "{task} was found to need more"

    task: str
    agent: str | None
    resources: list[tuple[str, str, str, str]]

    def apply(self, db: Database, instant: str) -> None:
        db.executemany(
            Q["task_resource_insert"], [(self.task, *resource) for resource in self.resources]
        )


class CandidateJudged(Event, tag="candidate_judged"):
    """Something was tried for a task, and this came of it: an outcome, and its remedy.
    `regions`: name, the content that its text was made from, its text's own."""

    SENTENCE = "{agent} tried {regions} for {task} ({n}): {outcome}"

    task: str
    agent: str
    n: int
    outcome: str
    remedy: str
    regions: list[tuple[str, str | None, str | None]]
    note: str = ""

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            Q["candidate_insert"],
            (self.task, self.n, self.agent, instant, self.outcome, self.remedy, self.note),
        )
        db.executemany(
            Q["candidate_region_insert"], [(self.task, self.n, *region) for region in self.regions]
        )
        for forget in ("candidates_trim", "candidate_regions_trim"):
            db.execute(Q[forget], (self.task, self.n - CANDIDATES_KEPT))


class RippleLeft(Event, tag="ripple_left"):
    """A task closed, and many come after it: those numbered above `after` follow in later
    transactions. `after` is None when all have followed."""

    SENTENCE = "tasks that come after {task} follow"

    task: str
    after: int | None

    def apply(self, db: Database, instant: str) -> None:
        if self.after is None:
            db.execute(Q["ripple_delete"], (self.task,))
        else:
            db.execute(Q["ripple_put"], (self.task, self.after))


class ClaimRenewed(Event, tag="claim_renewed"):
    SENTENCE = "{agent} renewed its claims"

    agent: str
    until: list[tuple[str, str]]  # (task, new claim_until)

    def apply(self, db: Database, instant: str) -> None:
        db.executemany(Q["task_claim_extend"], self.until)


class SetAside(Event, tag="set_aside"):
    """A waiter, task or expiry could not be served; it is tried again at `retry_at`. `what`: which
    of the three; `subject`: its id."""

    SENTENCE = "the {what} {subject} could not be served and was set aside: {reason}"

    what: str
    subject: str
    reason: str
    tries: int
    retry_at: str
    agent: str | None = None
    task: str | None = None

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            Q["aside_put"],
            (self.what, self.subject, self.reason, instant, self.tries, self.retry_at)
        )
        if self.what == "task":
            park(db, self.subject, ASIDE)


class TakenUp(Event, tag="taken_up"):
    """What was set aside is tried again, or is over."""

    SENTENCE = "the {what} {subject}, set aside before, is tried again"

    what: str
    subject: str

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["aside_delete"], (self.what, self.subject))
        if self.what == "task":
            db.execute(Q["ready_unpark"], (self.subject, ASIDE))
