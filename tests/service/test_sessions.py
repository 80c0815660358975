"""A holder is a session, not a name: a live session's name is never adopted, and a session that
comes after one of its name inherits nothing."""

from __future__ import annotations

from coordinator.dialects.decode import HookCall
from coordinator.kernel.core import Actor, token_hash
from coordinator.kernel.holders import sessions
from coordinator.store.ledger import Tx
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.world import World


def test_a_live_name_is_refused_or_numbered(world: World) -> None:
    first = world.ask(rq.Register(agent="importer", profile="python"))
    world.ask(rq.Acquire(agent="importer", resources=["key:account"]), first.token)
    assert world.refused(rq.Register(agent="importer")).code is Code.NAME_TAKEN
    second = world.ask(rq.Register(agent="importer", unique=True))
    assert second.agent == "importer-2"
    # Both are sessions of their own: the second does not get what the first holds
    refusal = world.refused(rq.Acquire(agent="importer-2", resources=["key:account"]), second.token)
    assert refusal.code is Code.LOCKED
    assert world.ask(rq.Renew(agent="importer", resources=["key:account"]), first.token).leases


def test_a_name_that_a_person_acted_for_becomes_a_sessions(world: World) -> None:
    world.acquire("me", "a.py")
    made = world.ask(rq.Register(agent="me", profile="python"))
    assert made.agent == "me"
    assert world.ask(rq.Release(agent="me", resources=["a.py"]), made.token).released


def test_a_new_session_of_an_old_name_inherits_nothing(world: World) -> None:
    """Hook reports, progress, messages and tokens ended with the one before."""
    made = world.ask(rq.Register(agent="claude-code-1", profile="claude-code"))

    def hooked(tx: Tx) -> None:
        row = tx.agent_of(token_hash(made.token))
        assert row is not None
        heard = HookCall(event="PreToolUse", moment="before", session="s1")
        sessions.holder(world.service, tx, Actor(row), "claude-code", heard)

    world.decide(hooked)
    world.ask(rq.Heartbeat(agent="claude-code-1", progress="editing"), made.token)
    world.acquire("claude-code-1", "a.py", ttl_s=2)
    world.clock.advance(3_000)
    world.ask(rq.Sweep())  # leaves a message
    world.ask(rq.Leave(agent="claude-code-1"))
    world.clock.advance(60_000)
    world.ask(rq.Register(agent="claude-code-1", profile="claude-code", unique=True))
    (row,) = world.ask(rq.Agents()).items
    assert (row.session, row.hooked_at, row.progress) == (None, None, None)
    assert row.registered_at == world.view().now
    assert world.ask(rq.Heartbeat(agent="claude-code-1")).notices == []
    assert world.refused(rq.Heartbeat(agent="claude-code-1"), made.token).code is Code.UNAUTHORIZED
    assert world.replay_differs() == []
