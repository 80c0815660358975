"""Asking about agents: registering, heartbeats, leaving; their notices."""

from __future__ import annotations

from typing import Any, Literal

from coordinator.words.requests.base import Number, Reply, Request, Whole
from coordinator.words.texts import Line, Name, Page, Words


class Registered(Reply):
    agent: str
    token: str
    warnings: list[str] = []


class Register(Request[Registered]):
    """Register a session as a holder. A name that a live session has is refused (NAME_TAKEN), or
    numbered with `unique`; never adopted. A program that is run again after it ended has its name
    again, with the messages to it; what its former life held is closed. A name that only a person
    acted for (`coord lock --agent NAME`) is taken with what is held in it."""

    op = "register"
    http = ("POST", "/v1/agents")
    agent: Name
    profile: Line = ""
    parent: Name | None = None
    description: Line = ""
    silence_s: Number | None = None
    """Silent for so many seconds: stale, its leases are closed. Null: stale after 15 minutes
    without a word, a connection and a lease."""
    launch: Line = ""  # the launch that starts it; set by `coord launch` itself
    unique: bool = False  # take `name-2`, `name-3`, … when the name is in use


class Joined(Reply):
    agent: str


class Join(Request[Joined]):
    """The holder that the hooks of an agent's session act for. It is registered if it is new.

    `call` is the id of a tool call that the hooks have announced; then the answer is the agent that
    makes that call, also a sub-agent. `session` is the whole id: an agent that is not this session
    is refused.
    """

    op = "join"
    http = ("POST", "/v1/agents/join")
    operator_only = True
    profile: Line
    session: Line = ""
    call: Line = ""


class Notice(Reply):
    notice: int
    at: str
    kind: str
    text: str
    data: dict[str, Any]


class Alive(Reply):
    agent: str
    state: str
    notices: list[Notice]
    hears: Literal["hooks", "commands", "calls"] = "calls"


class Heartbeat(Request[Alive]):
    """The agent is alive; with `progress` it moves, and its leases and claims are renewed."""

    op = "heartbeat"
    http = ("POST", "/v1/agents/heartbeat")
    agent: Name
    progress: Line | None = None
    ack: Whole = 0  # notices up to this number have been delivered


class SessionOpened(Reply):
    key: str
    """Good for entering once."""
    socket: str
    """The socket of the keeper that gives out the descriptors (namespaces/orders.py)."""


class OpenSession(Request[SessionOpened]):
    """A mount namespace for an agent's process, in which what others hold is read-only; kept so as
    long as a process is in it. `ends`: the agent's session ends with its first process.

    Refused (BAD_TRANSITION) where this user can have no namespace, or no keeper runs.
    """

    op = "open_session"
    http = ("POST", "/v1/agents/open-session")
    agent: Name
    ends: bool = True
    path: Words = ""
    """The PATH that its programs are found by: git asks in it (git_guard/turn.py)."""
    directory: Words = ""
    """The directory in which it is going to work. Coord's own files are read-only there, except a
    worktree that contains this directory."""


class SessionJoined(Reply):
    key: str | None
    socket: str | None


class JoinSession(Request[SessionJoined]):
    """The namespace that a command of an agent, which a person started by itself, may enter; made
    where there is none yet. Nulls: this process of this machine is no agent's, or in one already,
    or there can be none."""

    op = "join_session"
    http = ("POST", "/v1/agents/join-session")
    pid: Whole
    path: Words = ""
    """The PATH that its programs are found by."""


class ProcessesAgent(Reply):
    agent: str | None
    surely: bool = False  # the agent's own program was seen above it


class AgentOfProcess(Request[ProcessesAgent]):
    """The agent in whose session a process of this machine is, as that agent's hooks have shown;
    null if none is known. `surely`: the session's own program was seen, too; otherwise a person may
    have typed the hook. A program with a token does not need to ask."""

    op = "agent_of_process"
    http = ("GET", "/v1/agents/of-process")
    writes = False
    pid: Whole


class Left(Reply):
    agent: str
    released: list[str]
    reviews: list[str]


class Leave(Request[Left]):
    """The session ends. `clean`: its work is finished and leases are released; otherwise partial
    work is flagged exactly as if they had expired."""

    op = "leave"
    http = ("POST", "/v1/agents/leave")
    agent: Name
    clean: bool = True
    reason: Words = ""
    log_tail: Page = ""


class AgentRow(Reply):
    agent: str
    parent: str | None
    profile: str
    description: str
    state: str
    registered_at: str
    seen_at: str
    progress_at: str | None
    progress: str | None
    leases: int
    tasks: list[str]
    waiting_for: list[str]
    session: str | None = None
    hooked_at: str | None = None
    rests_until: str | None = None  # until when its provider's limit lasts (UTC); null: none
    rests_why: str | None = None


class AgentList(Reply):
    items: list[AgentRow]
    next: str | None = None


class Agents(Request[AgentList]):
    """Registered agents; those that left only with `all`."""

    op = "agents"
    http = ("GET", "/v1/agents")
    writes = False
    all: bool = False
