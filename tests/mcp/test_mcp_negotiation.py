"""Asking a holder to let go, and answering, as tools of two models."""

from __future__ import annotations

import pytest
from mcp import Client

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.mcp.talking import code, holders, server, talk, text

NAMES = ("claude-code-aaaaaaaa", "claude-code-bbbbbbbb")


@pytest.fixture
def ready(repo: Repo) -> Repo:
    repo.write("notes.txt", "one\n")
    repo.coord("init")
    return repo


def test_two_models_settle_it_between_them(ready: Repo) -> None:
    ann, bob = (server(ready, CLAUDE_CODE_SESSION_ID=name[-8:]) for name in NAMES)

    async def begin(client: Client) -> None:
        free = await client.call_tool("request_unlock", {"resource": "notes.txt", "reason": "x"})
        assert code(free) == "UNKNOWN_LEASE"
        assert 'acquire {"resources": ["notes.txt"]}' in text(free) and "coord lock" not in text(free)
        assert not (await client.call_tool("acquire", {"resources": ["notes.txt"]})).is_error

    async def ask(client: Client) -> None:
        none = await client.call_tool("request_unlock", {"resource": "notes.txt", "reason": ""})
        assert code(none) == "INVALID"
        wrong = await client.call_tool("request_unlock", {"resource": "notes.txt", "reason": "x", "holder": "cyd"})
        call = f'request_unlock {{"resource": "notes.txt", "reason": WHY, "holder": "{NAMES[0]}"}}'
        assert call in text(wrong) and "coord request" not in text(wrong)
        got = await client.call_tool(
            "request_unlock", {"resource": "notes.txt", "reason": "the build is red"})
        assert f"{NAMES[0]} is asked to release notes.txt (U-1)" in text(got)
        own = {"request": "U-1", "verdict": "approve"}
        assert code(await client.call_tool("answer_unlock", own)) == "NOT_HOLDER"
        unknown = {"request": "U-1", "verdict": "maybe"}
        assert code(await client.call_tool("answer_unlock", unknown)) == "INVALID"

    async def settle(client: Client) -> None:
        told = text(await client.call_tool("report_progress", {"progress": "done"}))
        assert f'{NAMES[1]} asks you to release notes.txt: "the build is red"' in told
        assert 'answer_unlock {"request": "U-1", "verdict": "approve"}' in told
        assert 'answer_unlock {"request": "U-1", "verdict": "reject"}' in told
        assert "coord request" not in told
        done = await client.call_tool(
            "answer_unlock", {"request": "U-1", "verdict": "approve", "answer": "sorted already"})
        assert text(done) == f"Released notes.txt; {NAMES[1]} has notes.txt now."
        assert "lease_token" not in str(done.structured_content)
        again = {"request": "U-1", "verdict": "reject"}
        assert code(await client.call_tool("answer_unlock", again)) == "REQUEST_CLOSED"

    async def hear(client: Client) -> None:
        told = text(await client.call_tool("report_progress", {"progress": "waiting"}))
        assert f'{NAMES[0]} gave up notes.txt, as you asked (U-1): "sorted already".' in told
        assert text(await client.call_tool("report_progress", {"progress": "on"})) == "Noted."

    for door, script in ((ann, begin), (bob, ask), (ann, settle), (bob, hear)):
        talk(door, script)
    assert holders(ready) == {"notes.txt": NAMES[1]}
    with ready.client() as client:
        assert client.call(rq.Requests()).items == []


def test_of_two_models_that_wait_for_each_other_one_gives_way(ready: Repo) -> None:
    ann, bob = (server(ready, CLAUDE_CODE_SESSION_ID=name[-8:]) for name in NAMES)
    for name in ("it's.txt", "notes.txt"):
        ready.coord("task", "add", f"change {name}", "--resource", name)

    async def begin(client: Client) -> None:
        assert not (await client.call_tool("next_task", {})).is_error

    async def first(client: Client) -> None:
        wants = {"resources": ["notes.txt"], "task": "T-1"}
        assert code(await client.call_tool("acquire", wants)) == "LOCKED"

    async def closes(client: Client) -> None:
        wants = {"resources": ["it's.txt"], "task": "T-2"}
        told = await client.call_tool("acquire", wants)
        assert code(told) == "DEADLOCK" and told.structured_content["error"]["give_way"] is True
        assert 'fail_task {"task": "T-2", "blocked": ["it\'s.txt"]}' in text(told)
        assert "coord task" not in text(told)
        done = await client.call_tool("fail_task", {"task": "T-2", "blocked": ["it's.txt"]})
        assert not done.is_error

    async def waits(client: Client) -> None:
        told = text(await client.call_tool("report_progress", {"progress": "on"}))
        assert "You waited for notes.txt: it is yours" in told and "give way" not in told

    for door, script in ((ann, begin), (bob, begin), (ann, first), (bob, closes), (ann, waits)):
        talk(door, script)
