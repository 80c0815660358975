"""Asking for verifications: a person's command on what tasks have finished."""

from __future__ import annotations

from coordinator.words.requests.base import Reply


class Verification(Reply):
    """One of them. `state`: running; good (all passes); broken (`tasks` broke the command and are
    to be done again); base, committed (it fails without any task's work); flaky (it contradicted
    itself); untold (it could not be run)."""

    verification: str
    state: str
    by: str
    begun_at: str
    ended_at: str | None
    command: str
    runs: int
    tasks: list[str]
    said: str
    tail: str


class FinishedWork(Reply):
    """Work of a done task that is not verified."""

    task: str
    agent: str
    at: str
    state: str  # waiting, broken, held
    because: str | None  # the task whose repair it waits for


class VerificationList(Reply):
    items: list[Verification]
    command: str  # in force; empty: none
    base: str | None  # the tree that it last passed on, as a commit
    left: list[FinishedWork] = []
    next: str | None = None
