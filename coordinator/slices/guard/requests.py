"""Asking whether files may be committed, as the guard in git's hooks does; noting an override."""

from __future__ import annotations

from coordinator.words.requests.base import Reply, Request, Whole
from coordinator.words.texts import Line, Name, Words


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

    `paths` are absolute or from the root, and of files, whatever signs they contain; what is not in
    the repository is left out. The committer is the token's agent, else `agent`, else the session
    of `profile`, else a person, to whom every agent is another. Changes nothing.
    """

    op = "guard_check"
    http = ("POST", "/v1/guard/check")
    writes = False
    paths: list[Name]
    agent: Name | None = None
    profile: Name = ""
    session: Name = ""


class GuardOverride(Request[GuardHeldList]):
    """A person overrides the guard. This is recorded with what others hold of it, and they are
    told."""

    op = "guard_override"
    http = ("POST", "/v1/guard/override")
    operator_only = True
    paths: list[Name]
    by: Line
    action: Words


class GitTurnTaken(Reply):
    agent: str | None  # the agent whose turn it is; null: no known agent


class GitTurn(Request[GitTurnTaken]):
    """A git command is about to change a whole working tree. It may, if nobody else is at work in
    the tree. Until its process ends nobody else is granted anything there.

    Refused (LOCKED) while others are at work. The script before git in agents' sessions asks this.
    """

    op = "git_turn"
    http = ("POST", "/v1/guard/git-turn")
    pid: Whole
    """The process that becomes git, on this machine."""
    top: Name
    """The top of its working tree, absolute or from the root."""
    command: Words
    """As it was called, for others to read."""
    replaces: list[Name] = []
    """The parents of commits that it takes out of the branch. Refused where one of these commits is
    another agent's."""
    parent: Name | None = None
    """Of a commit: the commit that it is made on top of. It takes no turn then."""
