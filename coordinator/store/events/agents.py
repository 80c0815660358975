"""Events of agents: they come, are seen and go, receive messages, and read files."""

from __future__ import annotations

from typing import Any

import msgspec

from coordinator.store.events.base import Database, Event
from coordinator.store.statements import STATEMENTS as Q
from coordinator.words.resource_names import copy_name

_JSON = msgspec.json.Encoder()


class AgentRegistered(Event, tag="agent_registered"):
    SENTENCE = "{agent} registered"

    agent: str
    parent: str | None
    profile: str
    description: str
    token_hash: str | None
    silence_ms: int | None
    anew: bool = False  # a session of its own: what one before it left under this name is forgotten
    origin: str = "program"  # how it came: see `agents.origin`
    keeps_messages: bool = False  # a program that is run again is told what waits for it

    def apply(self, db: Database, instant: str) -> None:
        if self.anew and db.execute(Q["agent_has_left"], (self.agent,)).fetchall():
            for forget in ("agent_delete", "reads_delete", "kept_edits_delete"):
                db.execute(Q[forget], (self.agent,))
            forget = "notices_delete_but_messages" if self.keeps_messages else "notices_delete"
            db.execute(Q[forget], (self.agent, 2**62))
        db.execute(
            Q["agent_put"],
            (
                self.agent,
                self.parent,
                self.profile,
                self.description,
                self.token_hash,
                instant,
                self.silence_ms,
                self.origin,
            ),
        )


class AgentSeen(Event, tag="agent_seen"):
    SENTENCE = "{agent} was heard of"

    agent: str
    progress: str | None = None
    moved: bool = False

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["agent_touch"], (self.agent, instant, self.progress, self.moved))


class AgentState(Event, tag="agent_state"):
    """active, stale or gone, and why."""

    SENTENCE = "{agent} is {state}: {reason}"

    agent: str
    state: str
    reason: str

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["agent_state_set"], (self.agent, self.state))
        if self.state == "gone":
            db.execute(Q["reads_delete"], (self.agent,))
            db.execute(Q["kept_edits_delete"], (self.agent,))
            db.execute(Q["lost_writes_of"], (self.agent,))


class AgentHooked(Event, tag="agent_hooked"):
    """A hook of the agent reported in, from this session of its CLI."""

    SENTENCE = "the hooks of {agent} reported in"

    agent: str
    session: str

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["agent_hooked"], (self.agent, self.session, instant))


class AgentRests(Event, tag="agent_rests"):
    """An agent rests because its provider's limit is reached, until the given time; None: it
    continues."""

    SENTENCE = "{agent} has reached its provider's limit and rests until {until}: {note}"

    agent: str
    until: str | None
    note: str = ""

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["agent_rest"], (self.agent, self.until, self.note or None))


class NoticePosted(Event, tag="notice_posted"):
    SENTENCE = "{agent} is told: {text}"

    notice: int
    agent: str
    about: str
    text: str
    facts: dict[str, Any]

    def apply(self, db: Database, instant: str) -> None:
        facts = _JSON.encode(self.facts).decode()
        db.execute(Q["notice_insert"],
                   (self.notice, self.agent, instant, self.about, self.text, facts))


class NoticesDelivered(Event, tag="notices_delivered"):
    SENTENCE = "{agent} has its messages"

    agent: str
    up_to: int

    def apply(self, db: Database, instant: str) -> None:
        db.execute(Q["notices_delete"], (self.agent, self.up_to))


class EditsKept(Event, tag="edits_kept"):
    """What the agent's own edits have made of this file, the oldest first; empty: nothing of them
    has to be kept any more."""

    SENTENCE = "what {agent} has edited in {path} is kept"

    agent: str
    path: str
    worktree: str | None
    edits: list[tuple[str | None, str | None]]  # (hash before, hash after; None: not there)

    def apply(self, db: Database, instant: str) -> None:
        copy = copy_name(self.path, self.worktree)
        db.execute(Q["kept_edits_forget"], (self.agent, copy))
        db.executemany(
            Q["kept_edit_insert"],
            [
                (self.agent, copy, n, self.path, self.worktree, *edit)
                for n, edit in enumerate(self.edits)
            ],
        )


class ContentRead(Event, tag="content_read"):
    """The agent knows this content of these files: it read or wrote it, or was told of it.

    `partial`: it wrote regions of files that had changed since it read them. The content is what it
    had read, with these regions as they are now; no such file ever existed. `how`: an agent that
    was told of a content has to read it before it replaces the whole file.
    """

    SENTENCE = "{agent} knows the content of some files as it is now"

    agent: str
    reads: list[tuple[str, str | None]]  # (path, hash; None: not there)
    partial: bool = False
    how: str = "written"  # or: read, told

    def apply(self, db: Database, instant: str) -> None:
        if self.partial:
            db.executemany(Q["read_put_partial"], [(self.agent, *read) for read in self.reads])
        else:
            db.executemany(
                Q["read_put"],
                [(self.agent, path, digest, instant, self.how) for path, digest in self.reads],
            )
