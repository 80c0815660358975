"""Asking for the sweep and for a human's verdicts.

Closing what has ended, now.
"""

from __future__ import annotations

from coordinator.words.requests.base import Reply, Request
from coordinator.words.requests.leases import Lease


class ReviewFile(Reply):
    path: str
    change: str
    kept: bool
    baseline_hash: str | None
    flagged_hash: str | None
    note: str
    diff: str = ""
    hunks: int | None = None  # of the whole difference, where it is shown
    cut: bool | None = None  # the difference is longer than shown
    worktree: str | None = None  # its linked worktree; None: the main one
    baseline: str | None = None  # the bytes when it was leased (base64); only when asked for
    flagged: str | None = None
    baseline_at: str | None = None  # instead, of what is too large: the file that has the bytes
    flagged_at: str | None = None


class Review(Reply):
    review: str
    state: str
    reason: str
    agent: str | None
    task: str | None
    summary: str
    leased_at: str | None
    opened_at: str
    decided_at: str | None
    decided_by: str | None
    note: str | None
    files: list[ReviewFile]
    log_tail: str = ""
    timeline: list[str] = []
    part_of: str | None = None  # the review that it was taken out of, by a verdict on a part
    under_way: str | None = None  # a verdict that is being carried out now: revert, undo
    saved: list[str] = []  # what somebody saved in the middle of one, and where it is kept
    warnings: list[str] = []  # with the answer to a verdict: what it could not do
    may: list[str] = []  # what a person can do with it as it is: keep, revert, reassign, undo


class Swept(Reply):
    lapsed: list[Lease]
    stale: list[str]
    reviews: list[str]
    tasks: list[str]
    granted: list[str]


class Sweep(Request[Swept]):
    """Tidy now: close what has expired, flag partial work, serve the queue."""

    op = "sweep"
    http = ("POST", "/v1/sweep")
