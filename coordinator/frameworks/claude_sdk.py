"""Leases for the Claude Agent SDK: its hooks ask coord what the hook of the CLI itself would ask.

    async with ClaudeLeases(client) as leases:
        options = ClaudeAgentOptions(hooks=leases.hooks(), env=leases.env())
        async with ClaudeSDKClient(options) as session: ...

So the same holds as for Claude Code after `coord init`. An edit is leased by region before it is
made. A write on replaced content is refused with the difference. Sub-agents are holders of their
own, and messages come with the next call. Coord only adds refusals: a hook without an objection
says nothing, and the CLI's own rules decide. The daemon parses the tools' inputs, except for
`can_use_tool`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from coordinator import _hook
from coordinator.client.client import Client
from coordinator.files.state import StateDir
from coordinator.frameworks.asynchronous import in_thread, to_the_end
from coordinator.frameworks.extras import missing
from coordinator.words.refusals import Refusal

try:
    from claude_agent_sdk import (
        HookMatcher,
        PermissionResultAllow,
        PermissionResultDeny,
        ToolPermissionContext,
    )
except ImportError as bad:
    raise missing("claude_sdk", "the Claude Agent SDK", "claude-agent-sdk", bad) from bad

__all__ = ["ClaudeLeases"]

#: The profile whose dialect the SDK's hooks speak (agents/claude-code.toml).
PROFILE = b"claude-code"
#: The events that coord listens to.
EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop",
          "SubagentStop")
#: Tools that write a file, and where in their input it is.
WRITES = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path",
          "NotebookEdit": "notebook_path"}
#: How long an answer may take (seconds), and how much longer the CLI waits for it.
PATIENCE_S, MARGIN_S = 60.0, 30.0
#: Calls that a hook has passed and that were not heard of again.
PASSED_MAX = 1000

CanUseTool = Callable[
    [str, dict[str, Any], ToolPermissionContext],
    Awaitable[PermissionResultAllow | PermissionResultDeny],
]


class ClaudeLeases:
    """One SDK session's leases.

    Args:
        client: its agent is the holder, and its sub-agents' parent. One client for a session:
            two that share one are one holder, and do not keep each other out.
        patience: seconds that an answer may take before a call is denied.
    """

    def __init__(self, client: Client, *, patience: float = PATIENCE_S) -> None:
        self._client = client
        self._patience = patience
        self._passed: dict[str, None] = {}
        self._session = ""

    async def __aenter__(self) -> ClaudeLeases:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.release()

    async def release(self) -> None:
        """Free what the session holds for no task, because it is over. The SDK has no hook for
        that. Leases outlast a turn, as they do in Claude Code, and expire when nothing more is
        done.

        Raises:
            Refusal, OSError: there is no answer.
        """
        await to_the_end(lambda: self._asked({
            "hook_event_name": "SessionEnd", "session_id": self._session, "transcript_path": "",
            "cwd": str(self._client.root), "reason": "other"}))

    def hooks(
        self, also: Mapping[Any, Sequence[HookMatcher]] | None = None,
    ) -> dict[Any, list[HookMatcher]]:
        """For `ClaudeAgentOptions(hooks=…)`, with your own (`also`) beside them."""
        result = {event: list(matchers) for event, matchers in (also or {}).items()}
        for event in EVENTS:
            result.setdefault(event, []).append(HookMatcher(
                hooks=[self.hook], timeout=self._patience + MARGIN_S,
                # The SDK refuses a CLI that would continue after a failed hook.
                on_failure="block" if event == "PreToolUse" else None))
        return result

    def env(self) -> dict[str, str]:
        """For `ClaudeAgentOptions(env=…)`: makes the CLI's own hooks (if `coord init` has wired the
        repository) and commands act as this agent, too.

        Raises:
            Refusal: the coordinator cannot be reached.
        """
        name = self._client.name()
        return {"COORD_ROOT": str(self._client.root), "COORD_AGENT": name,
                "COORD_AGENT_TOKEN": str(self._client.token)}

    async def hook(self, message: Any, call: str | None, context: Any) -> dict[str, Any]:
        """The callback of each event: what coord answers, in the CLI's own form."""
        event = str(message.get("hook_event_name", ""))
        self._session = str(message.get("session_id", self._session))
        try:
            result = await in_thread(lambda: self._asked(dict(message)))
        except (Refusal, OSError, ValueError) as bad:
            result = _denied(f"No coordinator answers ({bad}), so this is stopped. Next: `coord "
                             "up`.",
                             event)
        if event == "PreToolUse" and call and not _reason(result):
            while len(self._passed) >= PASSED_MAX:
                del self._passed[next(iter(self._passed))]
            self._passed[call] = None
        elif event in ("PostToolUse", "PostToolUseFailure") and call:
            self._passed.pop(call, None)
        return result

    def can_use_tool(self, then: CanUseTool) -> CanUseTool:
        """For `ClaudeAgentOptions(can_use_tool=…)`: `then` is the user's own, and decides whatever
        coord has nothing against.

        The CLI asks it only where its rules would ask a person, so it does not see every write:
        `hooks` do. Beside them it asks nothing twice. Alone it leases the whole file, until the
        session is released.
        """

        async def ask(
            tool: str, given: dict[str, Any], context: ToolPermissionContext,
        ) -> PermissionResultAllow | PermissionResultDeny:
            file = given.get(WRITES.get(tool, ""))
            call = getattr(context, "tool_use_id", None)
            if tool in WRITES and (call is None or call not in self._passed):
                if not isinstance(file, str) or not file:
                    return PermissionResultDeny(
                        message=f"{tool} does not say which file it writes, so nobody can tell "
                        f"whether another holds it. Next: call it with {WRITES[tool]}.")
                named = file
                try:
                    await in_thread(lambda: self._client.acquire(
                        named, retry=False, reentrant=True,  # (it has edited it before)
                        description=f"{tool} by {self._client.name()}"))
                except Refusal as refusal:
                    message = refusal.message
                    more = "" if refusal.next in message else f" Next: {refusal.next}"
                    return PermissionResultDeny(message=message + more)
            return await then(tool, given, context)

        return ask

    def _asked(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The daemon's answer to a hook's input.

        Raises:
            Refusal, OSError: there is no answer.
            ValueError: what came is no answer.
        """
        self._client.name()
        path = str(StateDir(self._client.root).socket())
        token = str(self._client.token).encode()
        payload = json.dumps(fields).encode()
        code, output, err, link = _hook.ask(path, PROFILE, token, payload, self._patience)
        if code == 3:  # the call is about files of other repositories, too
            code, output, err, link = _hook.seldom("elsewhere", _hook.ask, PROFILE, payload,
                                                   self._patience, output, err, link)
        try:
            event = str(fields.get("hook_event_name", ""))
            answer: dict[str, Any] = json.loads(output) if output.strip() else {}
            if code:
                answer = _denied(err.decode("utf-8", "replace").strip(), event)
            if output or err:
                link.send(b"told\n")
        finally:
            link.close()
        return answer


def _denied(why: str, event: str) -> dict[str, Any]:
    """A denial, if the event allows one; otherwise the words alone."""
    if event != "PreToolUse":
        return {"systemMessage": f"coord: {why}"}
    return {"hookSpecificOutput": {"hookEventName": event, "permissionDecision": "deny",
                                   "permissionDecisionReason": why}}


def _reason(answer: Mapping[str, Any]) -> str:
    """Why a call is denied; empty if it is not."""
    inner = answer.get("hookSpecificOutput") or {}
    return str(inner.get("permissionDecisionReason", "no")) if (
        inner.get("permissionDecision") == "deny") else ""
