"""Tasks that are added and edited, and whom they are kept from."""

from __future__ import annotations

from coordinator.store.events.base import Database, Event
from coordinator.store.parking import offer_next, places_of
from coordinator.store.statements import STATEMENTS as Q

_READY_OFFER = Q["ready_offer"]
#: Finished tasks keep no blackboard.
FINISHED = frozenset({"done", "cancelled"})
#: Candidates of a task that are kept on its blackboard; the log has them all.
CANDIDATES_KEPT = 20


class TaskAdded(Event, tag="task_added"):
    SENTENCE = "{task} was added: {title}"

    task: str
    n: int
    title: str
    prompt: str
    priority: int
    state: str
    attempts_max: int
    resources: list[tuple[str, str, str, str]]  # (name, kind, scope, mode)
    after: list[str]

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            Q["task_insert"],
            (
                self.task,
                self.n,
                self.title,
                self.prompt,
                self.priority,
                self.state,
                self.attempts_max,
                instant,
            ),
        )
        db.executemany(
            Q["task_resource_insert"], [(self.task, *resource) for resource in self.resources]
        )
        db.executemany(Q["task_after_insert"], [(self.task, after) for after in self.after])
        if self.state == "ready":
            db.execute(Q["ready_enter"], (self.task,))


class TaskEdited(Event, tag="task_edited"):
    """A person has changed what it says: all of that, as it is afterwards, and which of it."""

    SENTENCE = "a person has changed {fields} of {task}: {title}"

    task: str
    title: str
    prompt: str
    priority: int
    attempts_max: int
    resources: list[tuple[str, str, str, str]]  # (name, kind, scope, mode)
    after: list[str]
    fields: list[str]

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            Q["task_edit"],
            (self.task, self.title, self.prompt, self.priority, self.attempts_max, instant),
        )
        for forget in ("task_resources_forget", "task_after_forget"):
            db.execute(Q[forget], (self.task,))
        db.executemany(
            Q["task_resource_insert"], [(self.task, *resource) for resource in self.resources]
        )
        db.executemany(Q["task_after_insert"], [(self.task, after) for after in self.after])
        for place in places_of(db, self.task):
            # Its priority gives it a new place, and it may no longer need what blocked it.
            db.execute(Q["ready_leave"], (self.task,))
            db.execute(Q["ready_enter"], (self.task,))
            offer_next(db, place)


class TaskAvoids(Event, tag="task_avoids"):
    """Agents of this profile leave it to others until then: their provider's limit is reached."""

    SENTENCE = "{task} is left to agents of other profiles than {profile} until {until}"

    task: str
    agent: str
    profile: str
    until: str

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["task_avoid"], (self.task, self.profile, self.until))


class ClaimWaits(Event, tag="claim_waits"):
    SENTENCE = "{agent} waits for a task, for others hold what the ready ones need"

    agent: str
    until: str  # no later than this (UTC); it has a task before, or is gone
