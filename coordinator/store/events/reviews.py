"""Partial work, its verdicts, and the journal of what they write."""

from __future__ import annotations

import msgspec

from coordinator.store.events.base import Event


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

    review: str
    part: str
    n: int
    agent: str | None
    task: str | None
    files: list[ReviewPart]


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
    parts: list[ReviewPart] = []  # it is about these alone


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
