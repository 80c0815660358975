"""The hooks and the permission callback on the real Claude Agent SDK, driven through a scripted transport."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

pytestmark = pytest.mark.frameworks
pytest.importorskip("claude_agent_sdk")

from claude_agent_sdk import (  # noqa: E402
    ClaudeAgentOptions,
    ClaudeSDKClient,
    CLIConnectionError,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    ToolPermissionContext,
    Transport,
)

from coordinator import Client  # noqa: E402
from coordinator.frameworks.claude_sdk import ClaudeLeases  # noqa: E402
from coordinator.words import requests as rq  # noqa: E402
from tests.conftest import Repo  # noqa: E402
from tests.waiting import patience  # noqa: E402

BODY = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"


class ScriptedCLI(Transport):
    """What the CLI says and asks, a line of the script after the other; the answers are kept."""

    def __init__(self, *asks: dict[str, Any], blocks: bool = True) -> None:
        self.asks, self.answers, self.blocks = list(asks), [], blocks
        self.callbacks: dict[str, list[str]] = {}
        self._said: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._number = 0

    async def connect(self) -> None:
        pass

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        pass

    async def close(self) -> None:
        self._said.put_nowait(None)

    async def write(self, data: str) -> None:
        said = json.loads(data)
        if said["type"] == "control_request":
            for event, matchers in (said["request"].get("hooks") or {}).items():
                self.callbacks[event] = [one for matcher in matchers for one in matcher["hookCallbackIds"]]
            self._said.put_nowait({"type": "control_response", "response": {
                "subtype": "success", "request_id": said["request_id"],
                "response": {"hook_on_failure_supported": self.blocks}}})
            return
        if said["type"] == "control_response":
            self.answers.append(said["response"].get("response", said["response"]))
        self._next()

    def _next(self) -> None:
        self._number += 1
        if not self.asks:
            self._said.put_nowait({
                "type": "result", "subtype": "success", "duration_ms": 1, "duration_api_ms": 1, "is_error": False,
                "num_turns": 1, "session_id": "s", "result": "done"})
            return
        request = self.asks.pop(0)
        if request["subtype"] == "hook_callback":
            event = request["input"]["hook_event_name"]
            request = {**request, "callback_id": self.callbacks[event][request.pop("which", -1)]}
        self._said.put_nowait({"type": "control_request", "request_id": f"r{self._number}", "request": request})

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:  # type: ignore[override]
        while (said := await self._said.get()) is not None:
            yield said


def hook(repo: Repo, event: str, tool: str, given: dict[str, Any], call: str = "t1", session: str = "s", **more: Any) -> dict[str, Any]:
    return {"subtype": "hook_callback", "tool_use_id": call, "input": {
        "hook_event_name": event, "session_id": session, "transcript_path": "", "cwd": str(repo.root), "tool_name": tool,
        "tool_input": given, "tool_use_id": call, **more}}


def write(repo: Repo, file: str = "a.py", content: str = BODY) -> dict[str, Any]:
    return {"file_path": str(repo.root / file), "content": content}


def converse(options: ClaudeAgentOptions, *asks: dict[str, Any]) -> list[Any]:
    """What the SDK answered to each of the CLI's questions."""
    cli = ScriptedCLI(*asks)

    async def main() -> None:
        async with ClaudeSDKClient(options, cli) as session:
            await session.query("go")
            async for message in session.receive_response():
                if isinstance(message, ResultMessage):
                    return

    asyncio.run(asyncio.wait_for(main(), patience(60)))
    assert not cli.asks
    return cli.answers


@pytest.fixture
def client(repo: Repo) -> Client:
    repo.write("a.py", BODY)
    return repo.client("session")


def held(client: Client) -> dict[str, str]:
    return {one.resource: one.locked_by for one in client.call(rq.Locks()).items if not one.resource.startswith("edit:")}


def test_a_write_is_leased_before_and_nothing_is_said_about_it(client: Client, repo: Repo) -> None:
    seen: list[dict[str, str]] = []

    async def own(said: Any, call: Any, context: Any) -> dict[str, Any]:
        seen.append(held(client))
        return {}

    leases = ClaudeLeases(client)
    options = ClaudeAgentOptions(hooks=leases.hooks({"PostToolUse": [HookMatcher(hooks=[own])]}))
    given = write(repo, "new.py")
    before, mine, after = converse(
        options, hook(repo, "PreToolUse", "Write", given), {**hook(repo, "PostToolUse", "Write", given), "which": 0},
        hook(repo, "PostToolUse", "Write", given, tool_response={}))
    assert "permissionDecision" not in json.dumps(before), "the CLI's own rules decide"
    assert mine == {} and seen == [{"new.py": "session"}], "one's own hooks are beside it"
    assert "decision" not in json.dumps(after)


def test_what_another_holds_is_denied_in_coords_words(client: Client, repo: Repo) -> None:
    repo.client("other").acquire("a.py", description="renaming")
    (answer,) = converse(ClaudeAgentOptions(hooks=ClaudeLeases(client).hooks()), hook(repo, "PreToolUse", "Write", write(repo)))
    inner = answer["hookSpecificOutput"]
    assert inner["permissionDecision"] == "deny" and "a.py is leased by other" in inner["permissionDecisionReason"]
    assert "renaming" in inner["permissionDecisionReason"] and held(client) == {"a.py": "other"}


def test_two_sessions_edit_different_functions_of_one_file(client: Client, repo: Repo) -> None:
    """An edit leases the region that it changes, as with the CLI's own hooks."""
    one, two = ClaudeLeases(client), ClaudeLeases(repo.client("second"))

    def edit(number: int) -> dict[str, Any]:
        return {"file_path": str(repo.root / "a.py"), "old_string": f"return {number}", "new_string": f"return {number}0"}

    def answers(leases: ClaudeLeases, number: int) -> list[Any]:
        given = edit(number)
        out = converse(ClaudeAgentOptions(hooks=leases.hooks()), hook(repo, "PreToolUse", "Edit", given, f"t{number}"))
        repo.write("a.py", repo.read("a.py").replace(given["old_string"], given["new_string"]))
        return out + converse(ClaudeAgentOptions(hooks=leases.hooks()),
                              hook(repo, "PostToolUse", "Edit", given, f"t{number}", tool_response={}))

    assert "deny" not in json.dumps(answers(one, 1) + answers(two, 2))
    assert held(client) == {"a.py::f": "session", "a.py::g": "second"}
    (answer,) = converse(ClaudeAgentOptions(hooks=two.hooks()), hook(repo, "PreToolUse", "Edit", edit(1), "t3"))
    assert "deny" in json.dumps(answer)


def test_a_sub_agent_is_a_holder_of_its_own(client: Client, repo: Repo) -> None:
    leases = ClaudeLeases(client)
    given = write(repo, "sub.py")
    converse(ClaudeAgentOptions(hooks=leases.hooks()), hook(repo, "PreToolUse", "Write", given, agent_id="helper1", agent_type="x"))
    assert held(client) == {"sub.py": "session.helper1"}


def test_where_no_coordinator_answers_a_write_is_stopped(client: Client, repo: Repo) -> None:
    client.name()
    repo.down()
    (repo.state.path / "coord.sqlite3").write_bytes(b"no database")
    for name in ("coord.sqlite3-wal", "coord.sqlite3-shm"):
        (repo.state.path / name).unlink(missing_ok=True)
    (answer,) = converse(ClaudeAgentOptions(hooks=ClaudeLeases(client, patience=5).hooks()), hook(repo, "PreToolUse", "Write", write(repo)))
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "coord up" in answer["hookSpecificOutput"]["permissionDecisionReason"]


def test_a_cli_that_would_go_on_where_its_hook_has_failed_is_not_used(client: Client) -> None:
    async def main() -> None:
        async with ClaudeSDKClient(ClaudeAgentOptions(hooks=ClaudeLeases(client).hooks()), ScriptedCLI(blocks=False)):
            raise AssertionError("connected")

    with pytest.raises(CLIConnectionError, match="on_failure"):
        asyncio.run(main())


def test_a_session_that_is_over_holds_nothing(client: Client, repo: Repo) -> None:
    async def allows(tool: str, given: dict[str, Any], context: ToolPermissionContext) -> Any:
        return PermissionResultAllow()

    async def main() -> None:
        async with ClaudeLeases(client) as leases:
            options = ClaudeAgentOptions(hooks=leases.hooks(), can_use_tool=leases.can_use_tool(allows))
            await leases.hook(hook(repo, "PreToolUse", "Write", write(repo, "one.py"))["input"], "t1", None)
            await leases.hook(hook(repo, "PostToolUse", "Write", write(repo, "one.py"))["input"], "t1", None)
            await options.can_use_tool("Write", write(repo, "two.py"), ToolPermissionContext(tool_use_id="t2"))
            assert set(held(client)) == {"one.py", "two.py"}

    asyncio.run(main())
    assert held(client) == {}


# ------------------------------------------------------------ can_use_tool


def asked(tool: str, given: dict[str, Any], call: str = "t1") -> dict[str, Any]:
    return {"subtype": "can_use_tool", "tool_name": tool, "input": given, "tool_use_id": call, "permission_suggestions": []}


def test_the_users_own_callback_decides_what_coord_has_nothing_against(client: Client, repo: Repo) -> None:
    heard: list[str] = []

    async def mine(tool: str, given: dict[str, Any], context: ToolPermissionContext) -> Any:
        heard.append(tool)
        return PermissionResultDeny(message="not today") if tool == "Write" else PermissionResultAllow(updated_input={"x": 1})

    leases = ClaudeLeases(client)
    options = ClaudeAgentOptions(can_use_tool=leases.can_use_tool(mine))
    answers = converse(options, asked("Write", write(repo)), asked("Bash", {"command": "ls"}))
    assert answers == [{"behavior": "deny", "message": "not today"}, {"behavior": "allow", "updatedInput": {"x": 1}}]
    assert heard == ["Write", "Bash"]


@pytest.mark.parametrize("tool", ["Write", "Edit", "MultiEdit", "NotebookEdit"])
def test_alone_it_denies_what_another_holds(client: Client, repo: Repo, tool: str) -> None:
    async def mine(tool: str, given: dict[str, Any], context: ToolPermissionContext) -> Any:
        raise AssertionError("asked")

    repo.client("other").acquire("a.py", description="renaming")
    options = ClaudeAgentOptions(can_use_tool=ClaudeLeases(client).can_use_tool(mine))
    field = "notebook_path" if tool == "NotebookEdit" else "file_path"
    denied, nameless = converse(options, asked(tool, {field: str(repo.root / "a.py")}), asked(tool, {}))
    assert denied["behavior"] == "deny" and "a.py is leased by other" in denied["message"]
    assert nameless["behavior"] == "deny" and "which file" in nameless["message"]


def test_beside_the_hooks_it_asks_nothing_twice(client: Client, repo: Repo) -> None:
    """The file stays leased by region, and the other's function is not in the way."""
    async def mine(tool: str, given: dict[str, Any], context: ToolPermissionContext) -> Any:
        return PermissionResultAllow()

    repo.client("other").acquire("a.py::g")
    leases = ClaudeLeases(client)
    options = ClaudeAgentOptions(hooks=leases.hooks(), can_use_tool=leases.can_use_tool(mine))
    given = {"file_path": str(repo.root / "a.py"), "old_string": "return 1", "new_string": "return 10"}
    hooked, permitted = converse(options, hook(repo, "PreToolUse", "Edit", given), asked("Edit", given))
    assert "deny" not in json.dumps(hooked) and permitted["behavior"] == "allow"
    assert held(client) == {"a.py::g": "other", "a.py::f": "session"}


def test_the_environment_makes_the_clis_own_hooks_the_same_agent(client: Client, repo: Repo) -> None:
    env = ClaudeLeases(client).env()
    assert env == {"COORD_ROOT": str(repo.root), "COORD_AGENT": "session", "COORD_AGENT_TOKEN": client.token}
