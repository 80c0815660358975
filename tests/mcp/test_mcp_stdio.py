"""`coord mcp` over standard input and output: each tool, and for whom it is done."""

from __future__ import annotations

import os
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError

from coordinator.mcp.server import carry_out
from coordinator.mcp.tools import TOOLS
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.hook.test_sessions import Claude
from tests.mcp.talking import agents, code, holders, process, server, talk, text
from tests.waiting import until

pytestmark = pytest.mark.slow

SESSION = "0c3f7a52-1111-4222-8333-4444abcd9876"
NAME = "claude-code-abcd9876"


@pytest.fixture
def ready(repo: Repo) -> Repo:
    repo.write("notes.txt", "one\n")
    repo.write("lib/sum.py", "def add(a, b):\n    return a - b\n")
    repo.write("context_archive/notes.md", "# Notes\n\n## Why they are ordered\n\nThe importer reads `notes.txt`.\n")
    repo.coord("init")
    return repo


def session(repo: Repo, number: str = SESSION) -> Any:
    return server(repo, CLAUDE_CODE_SESSION_ID=number)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_both_eras_of_the_protocol_are_served(ready: Repo, mode: str) -> None:
    async def script(client: Client) -> Any:
        return client.instructions, (await client.list_tools()).tools, client.protocol_version

    to = process(ready, CLAUDE_CODE_SESSION_ID=SESSION)
    told, tools, version = talk(to, script, mode)
    assert "next_task" in told and "leased" in told
    assert [tool.name for tool in tools] == list(TOOLS)
    assert (version >= "2026") is (mode == "auto")
    for tool in tools:
        assert tool.input_schema["additionalProperties"] is False
        assert all(field["description"] for field in tool.input_schema["properties"].values())
        assert tool.annotations.destructive_hint is False
        assert tool.annotations.read_only_hint is (tool.name in ("who_holds", "read_messages", "search_archive", "get_state"))
        assert "agent" not in tool.input_schema["properties"]


def test_a_task_is_taken_carried_out_and_finished(ready: Repo) -> None:
    with ready.client() as client:
        client.call(rq.TaskAdd(title="Order the notes", prompt="By date.", resources=["notes.txt"]))

    async def script(client: Client) -> None:
        got = await client.call_tool("next_task", {})
        assert not got.is_error
        for part in ('T-1: "Order the notes"', "By date.", "notes.txt", "Why they are ordered", "complete_task"):
            assert part in text(got)
        assert got.structured_content["message"] == text(got)
        assert got.structured_content["task"]["claimed_by"] == NAME
        assert "lease_token" not in str(got.structured_content)
        assert holders(ready) == {"notes.txt": NAME}
        again = await client.call_tool("next_task", {"task": "T-1"})
        assert not again.is_error, text(again)
        done = await client.call_tool("complete_task", {"task": "T-1", "result": "ordered"})
        assert done.structured_content["state"] == "done"
        assert "next_task" in text(done)

    talk(session(ready), script)
    assert holders(ready) == {}
    with ready.client() as client:
        assert client.call(rq.TaskShow(task="T-1")).result == "ordered"


def test_leases_are_taken_seen_and_given_back(ready: Repo) -> None:
    async def script(client: Client) -> None:
        got = await client.call_tool(
            "acquire", {"resources": ["notes.txt", "lib/"], "description": "tidying", "task": None})
        assert "notes.txt, lib/" in text(got)
        seen = await client.call_tool("who_holds", {"resource": "lib/sum.py"})
        assert text(seen).startswith(f"lib/: {NAME} (exclusive) until ")
        assert "tidying" in text(seen) and "notes.txt" not in text(seen)
        back = await client.call_tool("release", {"resources": ["lib/"]})
        assert text(back) == "Released: lib/."
        assert code(await client.call_tool("release", {"resources": ["lib/"]})) == "UNKNOWN_LEASE"
        shared = await client.call_tool("acquire", {"resources": ["a.md"], "mode": "shared"})
        assert shared.structured_content["leases"][0]["mode"] == "shared"

    talk(session(ready), script)
    assert holders(ready, "notes.txt") == {"notes.txt": NAME}


def test_a_refusal_is_read_by_the_model_with_one_next_act_that_it_has_a_tool_for(ready: Repo) -> None:
    with ready.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["notes.txt"], description="ordering them"))
        client.call(rq.TaskAdd(title="Correct the sum", resources=["lib/sum.py"]))

    async def script(client: Client) -> None:
        no = await client.call_tool("acquire", {"resources": ["notes.txt"]})
        assert code(no) == "LOCKED"
        assert "ann" in text(no) and "ordering them" in text(no) and "Why they are ordered" in text(no)
        assert 'next_task {"task": "T-1"}' in text(no) and "coord task claim" not in text(no)
        error = no.structured_content["error"]
        assert error["next"] == 'next_task {"task": "T-1"}' and error["retryable"] is True
        assert error["conflicts"][0]["holder"] == "ann"
        assert not (await client.call_tool("next_task", {"task": "T-1"})).is_error
        assert code(await client.call_tool("complete_task", {"task": "T-9"})) == "UNKNOWN_TASK"
        assert code(await client.call_tool("next_task", {"wait_s": 0.1})) == "NOTHING_TO_DO"

    talk(session(ready), script)
    assert holders(ready, "notes.txt") == {"notes.txt": "ann"}


def test_a_task_that_meets_another_holder_is_given_back_until_that_is_free(ready: Repo) -> None:
    with ready.client() as client:
        client.call(rq.TaskAdd(title="Correct the sum", resources=["lib/sum.py"]))
        client.call(rq.Acquire(agent="ann", resources=["notes.txt"]))

    async def script(client: Client) -> None:
        await client.call_tool("next_task", {})
        back = await client.call_tool(
            "fail_task", {"task": "T-1", "reason": "needs the notes", "blocked": ["notes.txt"]})
        assert not back.is_error, text(back)

    talk(session(ready), script)
    with ready.client() as client:
        task = client.call(rq.TaskShow(task="T-1"))
        assert set(task.resources) == {"lib/sum.py", "notes.txt"}
        assert task.claimed_by is None


def test_waiting_ends_with_the_grant(ready: Repo) -> None:
    with ready.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["notes.txt"]))

        async def script(mine: Client) -> None:
            short = await mine.call_tool("wait_for", {"resources": ["notes.txt"], "wait_s": 0.2})
            assert code(short) == "LOCKED"

            async def free() -> None:
                while not client.call(rq.Locks()).waiters:
                    await anyio.sleep(0.02)
                client.call(rq.Release(agent="ann", resources=["notes.txt"]))

            async with anyio.create_task_group() as group:
                group.start_soon(free)
                got = await mine.call_tool("wait_for", {"resources": ["notes.txt"], "wait_s": 40})
            assert not got.is_error, text(got)

        talk(session(ready), script)
    assert holders(ready) == {"notes.txt": NAME}


def test_other_calls_are_served_while_one_waits_and_a_call_taken_back_lets_go(ready: Repo) -> None:
    async def script(client: Client) -> None:
        async def wait() -> None:
            await client.call_tool("next_task", {"wait_s": 40})

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            seen = await client.call_tool("who_holds", {})
            assert text(seen) == "Nothing is leased."
            await anyio.sleep(0.2)
            group.cancel_scope.cancel()  # the client says notifications/cancelled
        await client.call_tool("who_holds", {})  # that word has come by now

        async def add() -> None:
            with ready.client() as other:
                other.call(rq.TaskAdd(title="Later", resources=["notes.txt"]))

        async with anyio.create_task_group() as group:
            group.start_soon(add)
            got = await client.call_tool("next_task", {"wait_s": 5})
        assert "Later" in text(got)  # not given to the call that nobody waits for

    talk(process(ready, CLAUDE_CODE_SESSION_ID=SESSION), script)


def test_a_wait_that_is_taken_back_as_it_is_granted_gives_that_back_and_no_more(ready: Repo) -> None:
    with ready.client("bob") as bob:
        bob.acquire("own.txt")

        async def script() -> None:
            with anyio.CancelScope() as scope:
                async def ask(request: rq.Request[Any]) -> Any:
                    reply = await anyio.to_thread.run_sync(bob.call, request)
                    if isinstance(reply, rq.Acquired):
                        scope.cancel()  # the answer has come, and so has its client's word
                    return reply

                await carry_out(TOOLS["wait_for"], {"resources": ["notes.txt", "own.txt"], "wait_s": 20}, "bob", None, ask)
                raise AssertionError("nobody is told")

        anyio.run(script)
    assert holders(ready) == {"own.txt": "bob"}


def test_a_task_that_is_claimed_as_its_call_is_taken_back_is_given_back(ready: Repo) -> None:
    with ready.client("bob") as bob:
        bob.register()
        for title in ("One", "Two"):
            bob.call(rq.TaskAdd(title=title, resources=[f"{title}.txt"]))

        async def script(asked: dict[str, Any]) -> None:
            with anyio.CancelScope() as scope:
                async def ask(request: rq.Request[Any]) -> Any:
                    reply = await anyio.to_thread.run_sync(bob.call, request)
                    if isinstance(reply, rq.Claimed):
                        scope.cancel()
                    return reply

                await carry_out(TOOLS["next_task"], asked, "bob", None, ask)
                raise AssertionError("nobody is told")

        anyio.run(script, {"wait_s": 20})
        assert holders(ready) == {}
        one = bob.call(rq.TaskShow(task="T-1"))
        assert one.claimed_by is None and one.attempts == 0
        mine = bob.call(rq.TaskClaim(agent="bob", task="T-2"))
        anyio.run(script, {"task": "T-2"})  # it had that one before
        assert bob.call(rq.TaskShow(task="T-2")).claimed_at == mine.task.claimed_at


def test_progress_brings_messages_once(ready: Repo) -> None:
    with ready.client() as client:
        client.call(rq.Acquire(agent="ann", resources=["notes.txt"]))

        async def script(mine: Client) -> None:
            await mine.call_tool("acquire", {"resources": ["notes.txt"]})
            client.call(rq.Release(agent="ann", resources=["notes.txt"]))
            for _ in range(100):  # whoever waits is served just after the release
                told = text(await mine.call_tool("report_progress", {"progress": "reading"}))
                if told != "Noted.":
                    break
            assert "notes.txt" in told
            assert text(await mine.call_tool("report_progress", {"progress": "reading on"})) == "Noted."

        talk(session(ready), script)
        row = next(one for one in client.call(rq.Agents()).items if one.agent == NAME)
        assert row.progress == "reading on"


def test_the_archive_is_searched(ready: Repo) -> None:
    async def script(client: Client) -> None:
        found = await client.call_tool("search_archive", {"query": "importer"})
        assert "Why they are ordered" in text(found) and "notes.md" in text(found)
        none = await client.call_tool("search_archive", {"query": "zebra"})
        assert text(none) == "The context archive says nothing on that."

    talk(session(ready), script)
    assert agents(ready) == []  # whoever only reads need not be anybody


def test_two_sessions_contend_and_one_holds(ready: Repo) -> None:
    async def both() -> list[Any]:
        answers: list[Any] = []

        async def one(number: str) -> None:
            async with Client(process(ready, CLAUDE_CODE_SESSION_ID=number)) as client:
                answers.append(await client.call_tool("acquire", {"resources": ["notes.txt"]}))

        async with anyio.create_task_group() as group:
            group.start_soon(one, "aaaaaaa1")
            group.start_soon(one, "bbbbbbb2")
        return answers

    answers = anyio.run(both)
    assert sorted(answer.is_error for answer in answers) == [False, True]
    (holder,) = holders(ready).values()
    assert holder in ("claude-code-aaaaaaa1", "claude-code-bbbbbbb2")


# Who --------------------------------------------------------------------------------------------


def test_a_launched_agent_is_itself_whatever_else_is_said(ready: Repo) -> None:
    with ready.client() as client:
        token = client.call(rq.Register(agent="claude-code-1", profile="claude-code")).token

    async def script(client: Client) -> None:
        await client.call_tool(
            "acquire", {"resources": ["notes.txt"]}, meta={"claudecode/toolUseId": "x", "sessionId": "bob"})

    talk(process(ready, COORD_AGENT="claude-code-1", COORD_AGENT_TOKEN=token, CLAUDE_CODE_SESSION_ID=SESSION), script)
    assert holders(ready) == {"notes.txt": "claude-code-1"}


def test_a_token_of_nobody_is_refused(ready: Repo) -> None:
    async def script(client: Client) -> str:
        return code(await client.call_tool("acquire", {"resources": ["notes.txt"]}))

    assert talk(server(ready, COORD_AGENT="ann", COORD_AGENT_TOKEN="f" * 32), script) == "UNAUTHORIZED"
    assert talk(server(ready, COORD_AGENT_TOKEN="f" * 32), script) == "UNAUTHORIZED"
    assert holders(ready) == {}


def test_a_name_in_the_environment_is_taken(ready: Repo) -> None:
    async def script(client: Client) -> None:
        await client.call_tool("acquire", {"resources": ["notes.txt"]})

    talk(server(ready, profile=None, COORD_AGENT="ann"), script)
    assert holders(ready) == {"notes.txt": "ann"}


def test_codex_names_its_session_in_each_call(ready: Repo) -> None:
    async def script(client: Client) -> None:
        for number, path in (("00000001", "a.txt"), ("00000002", "b.txt")):
            await client.call_tool("acquire", {"resources": [path]}, meta={"sessionId": number})

    talk(server(ready, profile="codex"), script)
    assert holders(ready) == {"a.txt": "codex-00000001", "b.txt": "codex-00000002"}


def test_no_session_can_be_made_up_that_is_another_agent(ready: Repo) -> None:
    """Names of sessions are made from their ids: one that gives a launched agent's name, or that
    of a session with another id, gets nothing."""
    with ready.client() as client:
        client.call(rq.Register(agent="codex-1", profile="codex"))
    true = Claude(ready, "11111111-2222-4333-8444-000012345678", profile="codex")
    assert true.hook("SessionStart")

    async def script(client: Client) -> None:
        call = {"resources": ["notes.txt"]}
        for made_up in ("1", "99999999-8888-4777-8666-000012345678"):
            no = await client.call_tool("acquire", call, meta={"sessionId": made_up})
            assert code(no) == "UNAUTHORIZED"
        assert holders(ready) == {}
        yes = await client.call_tool("acquire", call, meta={"sessionId": true.session})
        assert not yes.is_error, text(yes)

    talk(server(ready, profile="codex"), script)
    assert holders(ready) == {"notes.txt": "codex-12345678"}


def test_who_is_known_by_nothing_is_an_agent_of_its_own_and_leaves_with_its_connection(ready: Repo) -> None:
    with ready.client() as client:
        client.call(rq.TaskAdd(title="Order the notes", resources=["notes.txt"]))

    async def script(client: Client) -> None:
        await client.call_tool("next_task", {})
        ready.write("notes.txt", "half done\n")
        assert agents(ready) == ["agent-mcp"]

    talk(process(ready, profile=None), script)
    until(lambda: agents(ready) == [])
    assert holders(ready) == {}
    with ready.client() as client:
        assert client.call(rq.Reviews()).items  # its half of a task waits for a person


def test_a_repository_that_does_not_use_coord_is_left_alone(repo: Repo) -> None:
    async def script(client: Client) -> Any:
        assert "coord init" in client.instructions
        assert (await client.list_tools()).tools == []
        return code(await client.call_tool("next_task", {}))

    assert talk(session(repo), script) == "INVALID"
    assert not repo.state.path.exists()


def test_a_killed_coordinator_is_started_again(ready: Repo) -> None:
    async def script(client: Client) -> None:
        await client.call_tool("acquire", {"resources": ["notes.txt"]})
        os.kill(ready.pid(), 9)
        seen = await client.call_tool("who_holds", {})
        assert NAME in text(seen)

    talk(session(ready), script)


def test_no_coordinator_to_be_had_is_said(ready: Repo) -> None:
    ready.coord("down")
    ready.write("coord.toml", "[leases]\nttl_s = 'never'\n")

    async def script(client: Client) -> str:
        no = await client.call_tool("acquire", {"resources": ["notes.txt"]})
        assert "coord.toml" in text(no)
        return code(no)

    assert talk(session(ready), script) == "INVALID"


def test_an_unknown_tool_is_an_error_of_the_protocol(ready: Repo) -> None:
    async def script(client: Client) -> None:
        with pytest.raises(MCPError, match="There is no tool called 'drop_tables'"):
            await client.call_tool("drop_tables", {})
        assert not (await client.call_tool("who_holds", {})).is_error

    talk(session(ready), script)


def test_a_call_is_made_by_whom_its_hook_announced_a_sub_agent_too(ready: Repo) -> None:
    """What the hook saw goes before what the environment says: that is of the process's start."""
    main, sub = Claude(ready, "abcd9876"), Claude(ready, "abcd9876", "helper11")
    later = Claude(ready, "99998888")
    for who in (main, sub, later):
        who.hook("PreToolUse", tool_name="mcp__coord__acquire", tool_input={}, tool_use_id=f"toolu-{who.name}")

    async def script(client: Client) -> None:
        for who, path in ((main, "a.txt"), (sub, "b.txt"), (later, "c.txt")):
            got = await client.call_tool(
                "acquire", {"resources": [path]}, meta={"claudecode/toolUseId": f"toolu-{who.name}"})
            assert not got.is_error, text(got)
        unknown = await client.call_tool(
            "acquire", {"resources": ["d.txt"]}, meta={"claudecode/toolUseId": "toolu-unheard"})
        assert not unknown.is_error

    talk(server(ready, CLAUDE_CODE_SESSION_ID="abcd9876"), script)
    assert holders(ready) == {
        "a.txt": main.name, "b.txt": sub.name, "c.txt": later.name, "d.txt": main.name}
    assert sub.edit("b.txt", "mine\n") == ""  # one holder over MCP and in the hook
    assert main.name in later.edit("a.txt", "no\n")


def test_geminis_hook_tells_the_session_in_the_call_itself(ready: Repo) -> None:
    gemini = Claude(ready, "1a142f64-b781-4216-8000-3b67b7814216", profile="gemini")
    said = gemini.hook("BeforeTool", tool_name="mcp_coord_acquire", tool_input={"resources": ["a.txt"]})
    assert said["tool_input"] == {"resources": ["a.txt"], "coord_session": "1a142f64-b781-4216-8000-3b67b7814216"}

    async def script(client: Client) -> None:
        listed = (await client.list_tools()).tools
        assert all("coord_session" in tool.input_schema["properties"] for tool in listed)
        got = await client.call_tool("acquire", said["tool_input"])
        assert not got.is_error, text(got)

    talk(server(ready, profile="gemini"), script)
    assert list(holders(ready).values()) == ["gemini-b7814216"]


def test_paths_begin_at_the_root_wherever_the_server_is_started(ready: Repo) -> None:
    """As its tools say; and a name that one tool answers is the next one's."""
    ready.write("pkg/app.py", "def f():\n    return 1\n")
    started = process(ready, CLAUDE_CODE_SESSION_ID="00000001")
    started.cwd = str(ready.root / "pkg")

    async def script(client: Client) -> None:
        assert "pkg/app.py" in text(await client.call_tool("acquire", {"resources": ["pkg/app.py"]}))
        assert holders(ready) == {"pkg/app.py": "claude-code-00000001"}
        assert "Released" in text(await client.call_tool("release", {"resources": ["pkg/app.py"]}))
        with ready.client("ann") as ann:
            ann.acquire("pkg/app.py")
        no = await client.call_tool("release", {"resources": ["pkg/app.py"]})
        assert code(no) == "NOT_HOLDER" and "--force" not in text(no) and text(no).endswith("Next: Ask ann."), text(no)

    talk(started, script)
