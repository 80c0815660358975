"""What a profile says of its agent's hooks: the dialect, and which of its tools do what. Data only.

A tool is known by its name; the table says in which of its parameters the path, the patch or the
command stands. What is in none of the lists is unknown: policy decides about it, not this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from coordinator.dialects.patches import paths_of
from coordinator.words.refusals import Code, Refusal

Dialect = Literal["claude", "gemini", "copilot", "plain"]
Moment = Literal["session", "prompt", "before", "after", "stop", "end", "sub start", "sub stop",
                 "other"]
CallKind = Literal["write", "read", "shell", "own", "unknown"]


class HookTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The `[hooks]` section of a profile.

    Attributes:
        dialect: how the agent's hook input and answer are laid out.
        timeout_s: how long the agent waits for a hook (seconds). Past it, most let the write
            happen: coord answers well before.
        context: moments at which the model reads what a hook adds.
        stop: whether a hook may make the agent go on when it wants to stop.
        writes, reads, shells, patches: tool -> parameter that holds the path, command or patch.
        own: how the names of coord's own MCP tools begin.
        mark: a parameter that the hook adds to their calls: the session's id. For agents whose
            MCP servers are not told it otherwise.
        harmless: tools that touch no file.
        trust: what a person has to do once so that the agent runs its hooks at all.
    """

    dialect: Dialect
    timeout_s: float = 60.0
    context: tuple[Moment, ...] = ()
    stop: bool = True
    writes: dict[str, str] = {}
    patches: dict[str, str] = {}
    reads: dict[str, str] = {}
    shells: dict[str, str] = {}
    own: str = "mcp__coord__"
    mark: str = ""
    harmless: tuple[str, ...] = ()
    trust: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call, as far as it concerns leases."""

    kind: CallKind
    paths: tuple[str, ...] = ()
    command: str = ""
    parameter: str = ""
    """Of coord's own tools: the parameter that the hook adds."""


def call_of(table: HookTable, tool: str, given: Any) -> Call:
    """What a tool is about to do with this input.

    Raises:
        Refusal: INVALID: a tool that writes, without a readable path: nobody knows what it would
            write.
    """
    if table.own and tool.startswith(table.own):
        return Call("own", parameter=table.mark)
    if tool in table.patches:
        text = given if isinstance(given, str) else _text(given, table.patches[tool])
        if text is None:
            raise _unreadable(tool, table.patches[tool])
        return Call("write", paths_of(text))
    if tool in table.writes:
        path = _text(given, table.writes[tool])
        if not path:
            raise _unreadable(tool, table.writes[tool])
        return Call("write", (path,))
    if tool in table.shells:
        command = _text(given, table.shells[tool])
        if command is None:
            raise _unreadable(tool, table.shells[tool])
        return Call("shell", command=command)
    if tool in table.reads:
        path = _text(given, table.reads[tool])
        return Call("read", (path,) if path else ())
    return Call("own") if tool in table.harmless else Call("unknown")


def _text(given: Any, key: str) -> str | None:
    value = given.get(key) if isinstance(given, dict) else None
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return " ".join(value)
    return value if isinstance(value, str) else None


def _unreadable(tool: str, key: str) -> Refusal:
    return Refusal(
        Code.INVALID, f"{tool[:60]} without a readable `{key}`; the call is stopped, for nobody "
        "knows what it would write.", next=f"Repeat it with `{key}` as text.",
    )
