"""The answer to a hook, in the words that each agent CLI takes: text for its standard output.

There is one `HookAnswer` for all. An empty text lets the call happen, everywhere. What a dialect
cannot say at a moment is left out here, and its sender keeps it for the next moment that can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from coordinator.dialects.decode import HookCall
from coordinator.dialects.table import HookTable
from coordinator.words.texts import harmless


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """The answer to a hook. `deny` stops the call. `mark` goes into the calls of coord's own tools;
    no other call is ever changed. The model reads `context`. `again` makes an agent that wants to
    stop continue."""

    deny: str = ""
    mark: str = ""
    context: str = ""
    again: str = ""


def can_add(table: HookTable, heard: HookCall) -> bool:
    """Whether the model reads additions at this moment."""
    return heard.moment in table.context


def encode(table: HookTable, heard: HookCall, verdict: HookAnswer) -> str:
    """The hook's output."""
    fields = _SAY[table.dialect](heard, HookAnswer(
        deny=harmless(verdict.deny), mark=verdict.mark, context=harmless(verdict.context),
        again=harmless(verdict.again)))
    return msgspec.json.encode(fields).decode() if fields else ""


def _claude(heard: HookCall, verdict: HookAnswer) -> dict[str, Any]:
    if verdict.again:
        return {"decision": "block", "reason": verdict.again}
    inner: dict[str, Any] = {}
    if verdict.deny:
        inner = {"permissionDecision": "deny", "permissionDecisionReason": verdict.deny}
    if verdict.context:
        inner["additionalContext"] = verdict.context
    return {"hookSpecificOutput": {"hookEventName": heard.event, **inner}} if inner else {}


def _gemini(heard: HookCall, verdict: HookAnswer) -> dict[str, Any]:
    if verdict.deny or verdict.again:
        return {"decision": "deny", "reason": verdict.deny or verdict.again}
    inner: dict[str, Any] = {}
    if verdict.mark:
        inner["tool_input"] = _marked(heard, verdict.mark)
    if verdict.context:
        inner["additionalContext"] = verdict.context
    return {"hookSpecificOutput": {"hookEventName": heard.event, **inner}} if inner else {}


def _copilot(heard: HookCall, verdict: HookAnswer) -> dict[str, Any]:
    if verdict.again:
        return {"decision": "block", "reason": verdict.again}
    result: dict[str, Any] = {}
    if verdict.deny:
        result = {"permissionDecision": "deny", "permissionDecisionReason": verdict.deny}
    if verdict.context:
        result["additionalContext"] = verdict.context
    return result


def _plain(heard: HookCall, verdict: HookAnswer) -> dict[str, Any]:
    return {
        key: value
        for key, value in (("deny", verdict.deny), ("context", verdict.context),
                           ("again", verdict.again))
        if value
    }


def _marked(heard: HookCall, mark: str) -> dict[str, Any]:
    given = dict(heard.given) if isinstance(heard.given, dict) else {}
    if heard.call is not None and heard.call.parameter:
        given[heard.call.parameter] = mark
    return given


_SAY = {"claude": _claude, "gemini": _gemini, "copilot": _copilot, "plain": _plain}
