"""Values of keys: versioned, compared and set, fenced, bounded, and never in the log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.rules.state import TRIM_EVERY, VERSIONS_KEPT, merged
from coordinator.settings import Keys, Settings
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.world import World

KEY = "key:account:1"


@pytest.fixture(autouse=True)
def the_log_gives_the_state(world: World) -> Iterator[None]:
    yield
    assert world.replay_differs() == []


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


def putting(value: Any, version: int | None, agent: str = "ann", key: str = KEY, **more: Any) -> rq.StatePut:
    return rq.StatePut(agent=agent, key=key, value=raw(value), version=version, **more)


def put(world: World, value: Any, version: int | None, **more: Any) -> int:
    return int(world.ask(putting(value, version, **more)).version)


def got(world: World, key: str = KEY, **more: Any) -> Any:
    return json.loads(bytes(world.ask(rq.StateGet(key=key, **more)).value))


def test_compared_and_set(world: World) -> None:
    assert world.refused(rq.StateGet(key=KEY)).code is Code.UNKNOWN_KEY
    assert put(world, {"owes": 100}, 0) == 1
    assert put(world, {"owes": 150}, 1) == 2
    refusal = world.refused(putting({"owes": 80}, 1, agent="bob"))
    assert refusal.code is Code.VERSION_CHANGED and "you have read version 1" in refusal.message
    assert refusal.facts["value"] == {"owes": 150} and refusal.facts["version"] == 2
    assert '-  "owes": 100' in refusal.facts["diff"] and '+  "owes": 150' in refusal.facts["diff"]
    assert got(world) == {"owes": 150} and got(world, version=1) == {"owes": 100}
    assert world.refused(putting(1, 0)).code is Code.VERSION_CHANGED, "0: only where nothing is"
    assert world.refused(putting(1, 99)).code is Code.VERSION_CHANGED
    assert world.refused(putting(1, None)).code is Code.INVALID, "a version has to be said"


def test_deleted_and_stored_anew_its_versions_go_on(world: World) -> None:
    put(world, 1, 0)
    deleted = world.ask(rq.StateDelete(agent="ann", key=KEY, version=1))
    assert (deleted.version, deleted.deleted) == (2, True)
    assert world.refused(rq.StateGet(key=KEY)).code is Code.UNKNOWN_KEY
    assert world.refused(rq.StateDelete(agent="ann", key=KEY, version=2)).code is Code.UNKNOWN_KEY
    assert world.refused(putting(5, 1)).code is Code.VERSION_CHANGED, "whoever read the old one"
    assert put(world, 7, 0) == 3 and got(world, version=1) == 1
    assert [one.version for one in world.ask(rq.StateHistory(key=KEY)).items] == [3, 2, 1]


def test_a_lease_keeps_others_out_and_its_token_is_asked_for(world: World) -> None:
    put(world, 1, 0)
    (lease,) = world.acquire("ann", "key:account").leases
    blocked = world.refused(putting(2, 1, agent="bob"))
    assert blocked.code is Code.LOCKED and blocked.facts["conflicts"][0]["holder"] == "ann"
    assert world.refused(putting(2, 1)).code is Code.INVALID, "its holder says its token"
    assert world.refused(putting(2, 1, fencing_token=lease.fencing_token + 1)).code is Code.STALE_TOKEN
    assert put(world, 2, None, fencing_token=lease.fencing_token) == 2, "and needs no version then"
    assert world.ask(rq.StateGet(key=KEY)).fencing_token == lease.fencing_token
    world.ask(rq.Release(agent="ann", resources=["key:account"]))
    late = world.refused(putting(3, None, fencing_token=lease.fencing_token))
    assert late.code is Code.STALE_TOKEN and got(world) == 2, "a write after its end changes nothing"


def test_a_shared_lease_of_others_keeps_a_writer_out(world: World) -> None:
    put(world, 1, 0)
    world.acquire("bob", KEY, mode="shared")
    assert world.refused(putting(2, 1)).code is Code.LOCKED
    world.acquire("ann", KEY, mode="shared")
    assert world.refused(putting(2, 1)).code is Code.LOCKED


def test_patched_by_fields(world: World) -> None:
    put(world, {"owes": 100, "name": "Zoë", "tags": {"a": 1, "b": 2}}, 0)
    world.ask(rq.StatePatch(agent="ann", key=KEY, patch=raw({"owes": 150, "tags": {"a": None}}), version=1))
    assert got(world) == {"owes": 150, "name": "Zoë", "tags": {"b": 2}}
    assert world.refused(rq.StatePatch(agent="ann", key=KEY, patch=raw({}), version=1)).code is Code.VERSION_CHANGED
    assert world.ask(rq.StatePatch(agent="ann", key="key:new", patch=raw({"a": 1, "b": None}), version=0)).version == 1
    assert got(world, "key:new") == {"a": 1}


# The examples of RFC 7396, appendix A.
@pytest.mark.parametrize("before, patch, after", [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}), ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}), ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}), ({"a": ["b"]}, {"a": "c"}, {"a": "c"}), ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}), ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]), ({"a": "b"}, ["c"], ["c"]), ({"a": "foo"}, None, None), ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}), ([1, 2], {"a": "b", "c": None}, {"a": "b"}), ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
])
def test_a_merge_patch(before: Any, patch: Any, after: Any) -> None:
    kept = json.dumps(before)
    assert merged(before, patch) == after and json.dumps(before) == kept


JSON = st.recursive(st.none() | st.booleans() | st.integers(-2**53, 2**53) | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3), max_leaves=8)


@given(JSON, JSON)
def test_a_patch_taken_twice_is_taken_once(before: Any, patch: Any) -> None:
    once = merged(before, patch)
    assert merged(once, patch) == once


@pytest.mark.parametrize("key, code", [
    ("a.py", Code.INVALID), ("src/", Code.INVALID), ("key:", Code.INVALID), ("edit:a", Code.INVALID),
    ("git:index", Code.INVALID), ("task:T-1", Code.INVALID), ("key:a:*", Code.INVALID), ("", Code.INVALID), ("a.py::f", Code.INVALID),
])
def test_what_is_no_key(world: World, key: str, code: Code) -> None:
    before = world.rows()
    assert world.refused(putting(1, 0, key=key)).code is code
    assert world.refused(rq.StateGet(key=key)).code is code and world.rows() == before


def test_what_is_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Keys, "keys_max", 2)
    world = World(tmp_path / "small", Settings(state=Keys(value_bytes_max=100)))
    assert world.refused(putting("x" * 200, 0)).code is Code.LIMIT
    deep = "[" * 150 + "]" * 150
    assert world.refused(rq.StatePut(agent="ann", key=KEY, value=msgspec.Raw(deep.encode()), version=0)).code is Code.LIMIT
    put(world, {"a": "x" * 50}, 0)
    grown = rq.StatePatch(agent="ann", key=KEY, patch=raw({"b": "y" * 60}), version=1)
    assert world.refused(grown).code is Code.LIMIT and got(world) == {"a": "x" * 50}
    put(world, 1, 0, key="key:b")
    assert world.refused(putting(1, 0, key="key:c")).code is Code.LIMIT
    world.close()


def test_the_log_and_all_that_is_told_of_it_hold_no_value(world: World) -> None:
    put(world, {"password": "hunter2-secret"}, 0)
    world.ask(rq.StatePatch(agent="ann", key=KEY, patch=raw({"password": "hunter3-secret"}), version=1))
    world.ask(rq.ChangeAdd(agent="bob", key=KEY, wanted=raw({"password": "hunter4-secret"})))
    world.acquire("ann", KEY)
    world.refused(putting({"password": "hunter5-secret"}, 2, agent="bob"))
    said = repr(world.db.execute("SELECT * FROM events").fetchall()) + repr(world.ask(rq.Events(limit=1000)))
    said += repr(world.ask(rq.Explain(subject=KEY))) + repr(world.ask(rq.Status())) + repr(world.rows())
    assert "secret" not in said and "hunter" not in said


def test_older_versions_are_forgotten_in_time(world: World) -> None:
    version = 0
    for n in range(VERSIONS_KEPT + 20):
        version = put(world, n, version)
    kept = world.ask(rq.StateHistory(key=KEY, limit=1000)).items
    assert len(kept) == VERSIONS_KEPT and kept[0].version == VERSIONS_KEPT + 20
    (rows,) = world.db.execute("SELECT count(*) FROM state_versions").fetchone()
    assert VERSIONS_KEPT <= rows < VERSIONS_KEPT + TRIM_EVERY, "and little more is kept"
    assert world.refused(rq.StateGet(key=KEY, version=3)).code is Code.UNKNOWN_KEY
    world.clock.advance(200_000_000)
    world.ask(rq.Compact(keep_days=0.001))
    world.restart()
    assert got(world) == VERSIONS_KEPT + 19 and got(world, version=25) == 24, "and what is kept can be read"


def test_keys_are_listed_by_what_they_continue(world: World) -> None:
    for n in range(5):
        put(world, n, 0, key=f"key:account:{n}")
    put(world, 1, 0, key="key:accounts")
    world.ask(rq.StateDelete(agent="ann", key="key:account:3", version=1))
    first = world.ask(rq.StateKeys(prefix="key:account", limit=2))
    rest = world.ask(rq.StateKeys(prefix="key:account", after=first.next))
    assert [one.key for one in (*first.items, *rest.items)] == [f"key:account:{n}" for n in (0, 1, 2, 4)]
    assert all(bytes(one.value) == b"null" for one in first.items)
    assert len(world.ask(rq.StateKeys()).items) == 5


@given(st.data())
def test_of_many_writers_each_write_is_seen_by_the_next(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Compare-and-set counters: whatever is interleaved, the sum is the number of writes that were
    acknowledged."""
    world = World(tmp_path_factory.mktemp("cas"))
    world.checked = False
    read: dict[str, tuple[int, int]] = {}
    acknowledged = 0
    for _ in range(data.draw(st.integers(1, 25))):
        agent = data.draw(st.sampled_from(["ann", "bob", "cyd"]))
        if agent not in read or data.draw(st.booleans()):
            now = world.ask(rq.StateWatch(key=KEY, wait_s=0)).state
            read[agent] = now.version, json.loads(bytes(now.value)) or 0
            continue
        version, value = read.pop(agent)
        try:
            world.ask(putting(value + 1, version, agent=agent))
            acknowledged += 1
        except Exception as refusal:
            assert getattr(refusal, "code", None) is Code.VERSION_CHANGED
    now = world.ask(rq.StateWatch(key=KEY, wait_s=0)).state
    assert (json.loads(bytes(now.value)) or 0) == acknowledged == now.version
    world.close()
