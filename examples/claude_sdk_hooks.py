"""The Claude Agent SDK: two sessions write one file, each through coord's hooks, with a script in
place of the CLI. Ends with 1 if an update was lost.

With the real CLI it is `ClaudeSDKClient(options)`, without a transport.

    python -P examples/claude_sdk_hooks.py
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
    Transport,
)

from coordinator.client.client import Client
from coordinator.frameworks.claude_sdk import ClaudeLeases


async def my_rules(tool: str, given: dict[str, Any], context: ToolPermissionContext,
                   ) -> PermissionResultAllow | PermissionResultDeny:
    if given.get("file_path", "").endswith(".lock"):
        return PermissionResultDeny(message="Lock files are written by the package manager.")
    return PermissionResultAllow()


class ScriptedCLI(Transport):
    """Reads a file, asks before it appends a line to it, as the CLI does before its Write, and
    writes if it may. It rests with the file written until `go_on` is set."""

    def __init__(self, file: Path, line: str, go_on: asyncio.Event) -> None:
        self.file, self.line, self.go_on = file.resolve(), line, go_on
        self.wrote, self.denied = asyncio.Event(), ""
        self._hooks: dict[str, str] = {}
        self._out: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._work: asyncio.Task[None] | None = None

    async def write(self, data: str) -> None:
        said = json.loads(data)
        if said["type"] == "control_request":
            for event, matchers in (said["request"].get("hooks") or {}).items():
                self._hooks[event] = matchers[-1]["hookCallbackIds"][-1]
            self._out.put_nowait({"type": "control_response", "response": {
                "subtype": "success", "request_id": said["request_id"],
                "response": {"hook_on_failure_supported": True}}})
        elif said["type"] == "control_response":
            self._answers.put_nowait(said["response"]["response"])
        else:
            self._work = asyncio.create_task(self._turn())

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self._out.put_nowait({"type": "control_request", "request_id": "r", "request": request})
        return await self._answers.get()

    async def _hook(self, event: str, given: dict[str, Any], tool: str = "Write",
                    ) -> dict[str, Any]:
        return await self._ask({
            "subtype": "hook_callback", "callback_id": self._hooks[event], "tool_use_id": "t",
            "input": {"hook_event_name": event, "session_id": self.line, "transcript_path": "",
                      "cwd": str(self.file.parent), "tool_name": tool, "tool_input": given,
                      "tool_use_id": "t", "tool_response": {}}})

    async def _turn(self) -> None:
        read = {"file_path": str(self.file)}
        await self._hook("PreToolUse", read, "Read")
        text = (self.file.read_text() if self.file.exists() else "") + self.line + "\n"
        await self._hook("PostToolUse", read, "Read")
        given = {"file_path": str(self.file), "content": text}
        answer = (await self._hook("PreToolUse", given)).get("hookSpecificOutput", {})
        if answer.get("permissionDecision") == "deny":
            self.denied = answer["permissionDecisionReason"]
        else:
            may = await self._ask({"subtype": "can_use_tool", "tool_name": "Write", "input": given,
                                   "tool_use_id": "t", "permission_suggestions": []})
            assert may["behavior"] == "allow", may
            self.file.write_text(text)
            await self._hook("PostToolUse", given)
        self.wrote.set()
        await self.go_on.wait()
        await self._hook("Stop", {})
        self._out.put_nowait({
            "type": "result", "subtype": "success", "duration_ms": 1, "duration_api_ms": 1,
            "is_error": False, "num_turns": 1, "session_id": self.line, "result": "done"})

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while (said := await self._out.get()) is not None:
            yield said

    async def connect(self) -> None: ...

    async def end_input(self) -> None: ...

    async def close(self) -> None:
        self._out.put_nowait(None)

    def is_ready(self) -> bool:
        return True


async def session(client: Client, cli: ScriptedCLI) -> None:
    async with ClaudeLeases(client) as leases:
        options = ClaudeAgentOptions(
            hooks=leases.hooks(), can_use_tool=leases.can_use_tool(my_rules), env=leases.env())
        async with ClaudeSDKClient(options, cli) as claude:
            await claude.query("Append a line.")
            async for _ in claude.receive_response():
                pass


async def main() -> int:
    file, go_on, at_once = Path("shared.txt"), asyncio.Event(), asyncio.Event()
    at_once.set()
    file.write_text("")
    with Client(agent="session-1") as one, Client(agent="session-2") as two:
        first = ScriptedCLI(file, "one", go_on)
        running = asyncio.create_task(session(one, first))
        await first.wrote.wait()
        blocked = ScriptedCLI(file, "two", at_once)
        await session(two, blocked)
        go_on.set()
        await running  # its session is over: it gives back what it held
        await session(two, ScriptedCLI(file, "two", at_once))
    print(f"session-2 read: {blocked.denied}")
    print(f"the file: {file.read_text().split()}")
    return 0 if file.read_text() == "one\ntwo\n" and "session-1" in blocked.denied else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
