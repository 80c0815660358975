"""Asking whether files may be committed, as the guard in git's hooks does; noting an override."""

from __future__ import annotations

from coordinator.words.requests.base import Reply, Request
from coordinator.words.texts import Line, Words


class GuardHeld(Reply):
    path: str  # as it was asked
    resource: str  # what is leased
    holder: str
    task: str | None
    description: str
    since: str
    until: str
    worktree: str | None  # where its holder works; null: the root


class GuardHeldList(Reply):
    agent: str | None  # for whom that was looked at; null: a person
    items: list[GuardHeld]
    next: str | None = None


class GuardCheck(Request[GuardHeldList]):
    """Which of these files others than the committer are about to change (hold exclusively).

    `paths` are absolute, and of files, whatever signs they contain; what is not in the repository
    is left out. The committer is the token's agent, else `agent`, else the session of `profile`,
    else a person, to whom every agent is another. Changes nothing.
    """

    op = "guard_check"
    http = ("POST", "/v1/guard/check")
    writes = False
    paths: list[str]
    agent: str | None = None
    profile: str = ""
    session: str = ""


class GuardOverride(Request[GuardHeldList]):
    """A person goes on over the guard: noted with what others hold of it, and they are told."""

    op = "guard_override"
    http = ("POST", "/v1/guard/override")
    operator_only = True
    paths: list[str]
    by: Line
    action: Words
