"""The events of finished work and of its verifications."""

from __future__ import annotations

from coordinator.store.events.base import Database, Event
from coordinator.store.statements import STATEMENTS as Q

#: Verifications that are kept; the log has them all.
KEPT = 200


class WorkFinished(Event, tag="work_finished"):
    """A task was done with these changes: path, content (None: deleted). For landed work: the
    commits around it. `head`: what was checked out then."""

    SENTENCE = "{agent} finished {task}; it waits for verification ({files})"

    n: int
    task: str
    agent: str
    files: list[tuple[str, str | None]]
    head: str | None = None
    before: str | None = None
    after: str | None = None

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            Q["work_insert"],
            (self.n, self.task, self.agent, instant, self.head, self.before, self.after),
        )
        db.executemany(Q["work_file_insert"], [(self.n, path, name) for path, name in self.files])


class VerificationBegun(Event, tag="verification_begun"):
    """`upto`: the last finished work that it is about."""

    SENTENCE = "{verification} began for {by}: the command runs on what was finished"

    verification: str
    n: int
    by: str
    command: str
    upto: int

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            Q["verification_insert"],
            (self.verification, self.n, self.by, instant, self.command, self.upto),
        )
        db.execute(Q["verifications_trim"], (self.n - KEPT,))


class VerificationEnded(Event, tag="verification_ended"):
    """The result of a verification. `works`: number, state, the task whose repair it waits for.
    `base`: the tree that the command passes on now, as a commit (None: as before), with `head` and
    `since`. `task`: the first of `tasks`, which broke it."""

    SENTENCE = "{verification} is over ({outcome}, {runs} runs): {said}"

    verification: str
    n: int
    outcome: str
    runs: int
    works: list[tuple[int, str, str | None]] = []
    tasks: list[str] = []
    task: str | None = None
    said: str = ""
    tail: str = ""
    base: str | None = None
    head: str = ""
    since: int = 0

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            Q["verification_end"],
            (
                self.verification,
                self.outcome,
                instant,
                self.runs,
                " ".join(self.tasks),
                self.said,
                self.tail,
            ),
        )
        db.executemany(Q["work_set"], self.works)
        if self.base is not None:
            _begin_with(db, instant, self.base, self.head, self.since)


class VerifiedFrom(Event, tag="verified_from"):
    """Verifications begin with this commit, which contains what was finished up to `since`. Empty:
    nothing is verified any more."""

    SENTENCE = "verification begins with {base:.12}"

    base: str
    since: int

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["work_all_good"])
        _begin_with(db, instant, self.base, self.base, self.since)
        if not self.base:
            db.execute(Q["verified_base_delete"])


def _begin_with(db: Database, instant: str, base: str, head: str, since: int) -> None:
    db.execute(Q["verified_base_put"], (base, head, since, instant))
    for forget in ("work_forget_files", "work_forget"):
        db.execute(Q[forget], (since,))
