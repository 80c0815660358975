"""Decoding what an agent's hook says into one form for all dialects: who, when, and which call.

Payloads come from programs that change every week. A missing field, or one of another type, counts
as absent, and an unknown event is `other`. Only what would be written must be understood.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from coordinator.dialects.table import Call, HookTable, Moment, read_call
from coordinator.words.refusals import Code, Refusal
from coordinator.words.wrong_values import in_words

#: How many characters of a tool's answer are read.
OUTPUT_MAX = 65_536

_MOMENTS: dict[str, dict[str, Moment]] = {
    "claude": {
        "SessionStart": "session", "UserPromptSubmit": "prompt", "PreToolUse": "before",
        "PostToolUse": "after", "PostToolUseFailure": "after", "Stop": "stop",
        "SubagentStart": "sub start", "SubagentStop": "sub stop", "SessionEnd": "end",
        "ConfigChange": "settings",
    },
    "gemini": {
        "SessionStart": "session", "BeforeAgent": "prompt", "BeforeTool": "before",
        "AfterTool": "after", "AfterAgent": "stop", "SessionEnd": "end",
    },
    "copilot": {
        "sessionStart": "session", "userPromptSubmitted": "prompt", "preToolUse": "before",
        "postToolUse": "after", "postToolUseFailure": "after", "agentStop": "stop",
        "subagentStart": "sub start", "subagentStop": "sub stop", "sessionEnd": "end",
    },
    "plain": {
        "session": "session", "prompt": "prompt", "before": "before", "after": "after",
        "stop": "stop", "sub start": "sub start", "sub stop": "sub stop", "end": "end",
    },
}


def moment_of(dialect: str, event: str) -> Moment:
    """The moment at which an agent of this dialect reports an event of this name."""
    return _MOMENTS[dialect].get(event, "other")


@dataclass(frozen=True, slots=True)
class HookCall:
    """One hook call. `session` and `sub` are the agent's own ids; empty where it has none."""

    moment: Moment
    event: str
    session: str = ""
    sub: str = ""
    sub_type: str = ""
    parent: str = ""
    """The session that a sub-agent's own session belongs to, where the two differ."""
    cwd: str | None = None
    tool: str = ""
    given: Any = None
    call: Call | None = None
    call_id: str = ""
    output: str = ""
    """The tool's answer, as text, once it has run."""
    again: bool = False
    """The agent wants to stop although it was asked before to continue."""
    can_read: bool = False
    """Its agent has tools by which it reads files, and its hooks tell of them."""
    stopped: Refusal | None = None
    """Why a call must not happen, no matter who holds what: its writes are unknown."""


def decode(table: HookTable, payload: bytes, event: str = "") -> HookCall:
    """Read this payload; `event` names it where the payload itself does not.

    Raises:
        Refusal: INVALID: not a hook's input.
    """
    try:
        message = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
        raise _not_understood(in_words(bad)) from None
    if not isinstance(message, dict):
        raise _not_understood("it is not an object")
    if not event and not _str(message, "hook_event_name"):
        raise _not_understood("it names no event")
    if table.dialect == "copilot":
        return _copilot(table, message, event)
    return _snake(table, message, event)


def _snake(table: HookTable, fields: dict[str, Any], event: str) -> HookCall:
    event = _str(fields, "hook_event_name") or event
    moment = moment_of(table.dialect, event)
    tool, given = _str(fields, "tool_name"), fields.get("tool_input")
    call, stopped = _call(table, moment, tool, given)
    return HookCall(
        moment=moment, event=event, session=_str(fields, "session_id"),
        sub=_str(fields, "agent_id"), sub_type=_str(fields, "agent_type"),
        parent=_str(fields, "parent_session_id"), cwd=_cwd(fields, call), tool=tool,
        given=given, call=call, stopped=stopped, can_read=bool(table.reads or table.shells),
        call_id=_str(fields, "tool_use_id") or _str(fields, "tool_call_id"),
        output=_output(fields.get("tool_response", fields.get("error"))) if moment == "after"
        else "",
        again=fields.get("stop_hook_active") is True,
    )


def _copilot(table: HookTable, fields: dict[str, Any], event: str) -> HookCall:
    moment = moment_of("copilot", event)
    tool, given = _str(fields, "toolName"), fields.get("toolArgs")
    call, stopped = _call(table, moment, tool, given)
    return HookCall(
        moment=moment, event=event, session=_str(fields, "sessionId"), sub=_str(fields, "agentId"),
        sub_type=_str(fields, "agentType"), parent=_str(fields, "parentAgentId"),
        cwd=_cwd(fields, call), tool=tool, given=given,
        call=call, stopped=stopped, can_read=bool(table.reads or table.shells),
        output=_output(fields.get("toolResult", fields.get("error"))) if moment == "after" else "",
        again=fields.get("stop_hook_active") is True,
    )


def _call(
    table: HookTable, moment: Moment, tool: str, given: Any
) -> tuple[Call | None, Refusal | None]:
    if moment not in ("before", "after"):
        return None, None
    try:
        call = read_call(table, tool, given)
        if any("\0" in path for path in call.paths):
            raise _not_understood("a path in it has a NUL character")
        return call, None
    except Refusal as refusal:
        # A call that has run, or was stopped, needs no stopping.
        return Call("unknown"), refusal if moment == "before" else None


def _output(value: Any) -> str:
    """The tool's answer as text, its beginning only: all texts in it, a line each."""
    matches: list[str] = []
    room, left = OUTPUT_MAX, [value]
    for _ in range(OUTPUT_MAX):
        if not left or room <= 0:
            break
        name = left.pop()
        if isinstance(name, str):
            matches.append(name[:room])
            room -= len(name) + 1
        elif isinstance(name, dict | list):
            inner = list(name.values()) if isinstance(name, dict) else name
            left += reversed(inner[:OUTPUT_MAX])
    return "\n".join(matches)


def _cwd(fields: dict[str, Any], call: Call | None) -> str | None:
    """The base of relative names: the agent's directory, or that of this one command."""
    cwd = _str(fields, "cwd")
    if call is None or not call.folder or "\0" in call.folder:
        return cwd or None
    folder = Path(cwd) / call.folder
    return str(folder) if folder.is_absolute() else None


def _str(fields: dict[str, Any], key: str) -> str:
    """A name: of a directory, a session, a tool.

    Raises:
        Refusal: INVALID: it has a NUL, as no path and no id can.
    """
    value = fields.get(key)
    if isinstance(value, str) and "\0" in value:
        raise _not_understood(f"`{key}` has a NUL character in it")
    return value[:4096] if isinstance(value, str) else ""


def _not_understood(why: str) -> Refusal:
    return Refusal(
        Code.INVALID, f"The hook's input is not understood ({why[:200]}).",
        next="Check the hook's entry in the agent's settings: `coord doctor`.",
    )
