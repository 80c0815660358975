"""Agents, their messages and what they have read."""

from __future__ import annotations

import msgspec

from coordinator.store import events as ev
from coordinator.store.projections.base import Apply, Database
from coordinator.store.statements import STATEMENTS as Q
from coordinator.words.resource_names import copy_name

_JSON = msgspec.json.Encoder()


def _agent_registered(db: Database, at: str, e: ev.AgentRegistered) -> None:
    if e.anew and db.execute(Q["agent_has_left"], (e.agent,)).fetchall():
        for forget in ("agent_delete", "reads_delete", "kept_edits_delete"):
            db.execute(Q[forget], (e.agent,))
        db.execute(Q["notices_delete"], (e.agent, 2**62))
    db.execute(
        Q["agent_put"],
        (e.agent, e.parent, e.profile, e.description, e.token_hash, at, e.silence_ms,
         e.origin),
    )


def _agent_seen(db: Database, at: str, e: ev.AgentSeen) -> None:
    db.execute(Q["agent_touch"], (e.agent, at, e.progress, e.moved))


def _agent_state(db: Database, at: str, e: ev.AgentState) -> None:
    db.execute(Q["agent_state_set"], (e.agent, e.state))
    if e.state == "gone":
        db.execute(Q["reads_delete"], (e.agent,))
        db.execute(Q["kept_edits_delete"], (e.agent,))
        db.execute(Q["lost_writes_of"], (e.agent,))


def _agent_hooked(db: Database, at: str, e: ev.AgentHooked) -> None:
    db.execute(Q["agent_hooked"], (e.agent, e.session, at))


def _agent_rests(db: Database, at: str, e: ev.AgentRests) -> None:
    db.execute(Q["agent_rest"], (e.agent, e.until, e.note or None))


def _notice_posted(db: Database, at: str, e: ev.NoticePosted) -> None:
    facts = _JSON.encode(e.facts).decode()
    db.execute(Q["notice_insert"], (e.notice, e.agent, at, e.about, e.text, facts))


def _notices_delivered(db: Database, at: str, e: ev.NoticesDelivered) -> None:
    db.execute(Q["notices_delete"], (e.agent, e.up_to))


def _edits_kept(db: Database, at: str, e: ev.EditsKept) -> None:
    copy = copy_name(e.path, e.worktree)
    db.execute(Q["kept_edits_forget"], (e.agent, copy))
    db.executemany(Q["kept_edit_insert"], [
        (e.agent, copy, n, e.path, e.worktree, *edit) for n, edit in enumerate(e.edits)])


def _content_read(db: Database, at: str, e: ev.ContentRead) -> None:
    if e.partial:
        db.executemany(Q["read_put_partial"], [(e.agent, *read) for read in e.reads])
    else:
        db.executemany(Q["read_put"], [
            (e.agent, path, digest, at, e.how) for path, digest in e.reads])


APPLY: dict[type[ev.Event], Apply] = {
    ev.AgentRegistered: _agent_registered,
    ev.AgentSeen: _agent_seen,
    ev.AgentState: _agent_state,
    ev.AgentHooked: _agent_hooked,
    ev.AgentRests: _agent_rests,
    ev.NoticePosted: _notice_posted,
    ev.NoticesDelivered: _notices_delivered,
    ev.ContentRead: _content_read,
    ev.EditsKept: _edits_kept,
}
