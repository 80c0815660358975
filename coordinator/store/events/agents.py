"""Agents come, are seen and go; what they are told, and what they have read."""

from __future__ import annotations

from typing import Any

from coordinator.store.events.base import Event


class AgentRegistered(Event, tag="agent_registered"):
    agent: str
    parent: str | None
    profile: str
    description: str
    token_hash: str | None
    silence_ms: int | None
    anew: bool = False  # a session of its own: what one before it left under this name is forgotten
    origin: str = "program"  # how it came: see `agents.origin`


class AgentSeen(Event, tag="agent_seen"):
    agent: str
    progress: str | None = None
    moved: bool = False


class AgentState(Event, tag="agent_state"):
    """active, stale or gone, and why."""

    agent: str
    state: str
    reason: str


class AgentHooked(Event, tag="agent_hooked"):
    """A hook of the agent reported in, from this session of its CLI."""

    agent: str
    session: str


class AgentRests(Event, tag="agent_rests"):
    """Its provider's limit is reached: until then it is given nothing; None: it goes on."""

    agent: str
    until: str | None
    note: str = ""


class NoticePosted(Event, tag="notice_posted"):
    notice: int
    agent: str
    about: str
    text: str
    facts: dict[str, Any]


class NoticesDelivered(Event, tag="notices_delivered"):
    agent: str
    up_to: int


class EditsKept(Event, tag="edits_kept"):
    """What the agent's own edits of this file have made of it, the oldest first; empty: nothing of
    them has to be kept any more."""

    agent: str
    path: str
    worktree: str | None
    edits: list[tuple[str | None, str | None]]  # (hash before, hash after; None: not there)


class ContentRead(Event, tag="content_read"):
    """The agent knows this content of these files: it read or wrote it, or was told of it.

    `partial`: it wrote regions of them, of files that had changed since it read them. The content
    is what it had read, with these regions as they are now: no such file was ever there.
    `how`: what an agent was told of, it has to read before it replaces the file as a whole.
    """

    agent: str
    reads: list[tuple[str, str | None]]  # (path, hash; None: not there)
    partial: bool = False
    how: str = "written"  # or: read, told
