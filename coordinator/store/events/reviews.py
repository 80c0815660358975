"""Partial work, its verdicts, and the journal of what they write."""

from __future__ import annotations

import msgspec

from coordinator.store.events.base import Database, Event
from coordinator.store.parking import at_review
from coordinator.store.statements import STATEMENTS as Q

_READY_OFFER = Q["ready_offer"]


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
    last_hash: str | None = None  # its last content, of one that is gone and was leased in parts


class ReviewOpened(Event, tag="review_opened"):
    SENTENCE = "{review} was opened: {summary}"

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

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            Q["review_insert"],
            (
                self.review,
                self.n,
                self.reason,
                self.agent,
                self.task,
                self.summary,
                self.log_tail,
                self.leased_at,
                instant,
                self.events_from,
            ),
        )
        rows = [
            (
                self.review,
                f.path,
                f.scope,
                f.worktree,
                f.change,
                int(f.kept),
                f.baseline_hash,
                f.flagged_hash,
                f.inode,
                f.last_hash,
            )
            for f in self.files
        ]
        db.executemany(Q["review_file_insert"], rows)


class ReviewDecided(Event, tag="review_decided"):
    SENTENCE = "{review} was {state} by {by}"

    review: str
    agent: str | None
    task: str | None
    state: str
    by: str
    note: str
    task_before: str | None
    files: list[tuple[str, str | None, str | None]]  # (path, hash before, hash written)
    modes: dict[str, int] = {}  # path -> permission bits before

    def apply(self, db: Database, instant: str) -> None:
        db.execute(
            Q["review_set"],
            (self.review, self.state, instant, self.by, self.note, self.task_before)
        )
        rows = [(self.review, *file, self.modes.get(file[0])) for file in self.files]
        db.executemany(Q["review_file_set"], rows)
        db.execute(_READY_OFFER, (at_review(self.review),))


class ReviewPart(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A file of a review, or some hunks of it (by number; none: all of it), that a verdict is about
    by itself. Contents by name, from `before` to `after`: of what leaves the review, and of what
    stays, where hunks of the file do."""

    path: str
    hunks: list[int] = []
    part_before: str | None = None
    part_after: str | None = None
    rest_before: str | None = None
    rest_after: str | None = None


class ReviewSplit(Event, tag="review_split"):
    """These files and hunks of a review are a review of their own (`part`) from now on."""

    SENTENCE = "a part of {review} was taken out of it as {part}"

    review: str
    part: str
    n: int
    agent: str | None
    task: str | None
    files: list[ReviewPart]

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["review_part_insert"], (self.review, self.part, self.n))
        for f in self.files:
            if not f.hunks:
                db.execute(Q["review_file_taken_out"], (self.review, f.path, self.part))
                continue
            db.execute(
                Q["review_file_divided"],
                (self.review, f.path, self.part, f.part_before, f.part_after),
            )
            db.execute(Q["review_file_rest"], (self.review, f.path, f.rest_before, f.rest_after))


class ReviewUndone(Event, tag="review_undone"):
    SENTENCE = "the verdict on {review} was undone by {by}"

    review: str
    agent: str | None
    task: str | None
    by: str

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["review_set"], (self.review, "open", None, None, None, None))


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

    SENTENCE = "{by} began to {what} {review}"

    review: str
    agent: str | None
    task: str | None
    what: str
    by: str
    note: str
    steps: list[VerdictStep]
    parts: list[ReviewPart] = []  # it is about these alone

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["verdict_insert"], (self.review, self.what, self.by, self.note, instant))
        rows = [
            (
                self.review,
                n,
                s.path,
                s.scope,
                s.worktree,
                s.old,
                s.old_mode,
                s.new,
                s.new_mode,
                s.aside,
                int(s.in_place),
            )
            for n, s in enumerate(self.steps)
        ]
        db.executemany(Q["verdict_step_insert"], rows)
        db.executemany(
            Q["verdict_part_insert"],
            [
                (
                    self.review,
                    p.path,
                    ",".join(map(str, p.hunks)),
                    p.part_before,
                    p.part_after,
                    p.rest_before,
                    p.rest_after,
                )
                for p in self.parts
            ],
        )


class VerdictStepped(Event, tag="verdict_stepped"):
    """These steps of it are done, by their numbers; `back`: they are about to be taken back."""

    SENTENCE = "some files of {review} are written"

    review: str
    steps: list[int]
    back: bool = False

    def apply(self, db: Database, instant: str) -> None:
        db.executemany(
            Q["verdict_step_done"], [(self.review, n, int(not self.back)) for n in self.steps]
        )


class VerdictEnded(Event, tag="verdict_ended"):
    """It is done, or was taken back (`outcome`); what somebody saved meanwhile and is kept as a
    blob: (path, hash)."""

    SENTENCE = "the {what} of {review} is {outcome}"

    review: str
    agent: str | None
    task: str | None
    what: str
    outcome: str
    why: str = ""
    saved: list[tuple[str, str]] = []

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["verdict_steps_delete"], (self.review,))
        db.execute(Q["verdict_parts_delete"], (self.review,))
        db.execute(Q["verdict_delete"], (self.review,))
        db.executemany(Q["review_saved_insert"], [(self.review, *saved) for saved in self.saved])
