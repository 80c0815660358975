"""The hook table of a profile: the agent's dialect, and what each of its tools does. Pure.

The table lists tools by name, with the parameter that holds the path, the patch or the command.
`read_call` reads a tool's input by it. A tool in no list is unknown; the policy decides about it.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from coordinator.dialects.patches import edits_of, paths_of
from coordinator.rules.edits import EDITS_MAX, Edit
from coordinator.words.refusals import Code, Refusal

Dialect = Literal["claude", "gemini", "copilot", "plain"]
Moment = Literal["session", "prompt", "before", "after", "stop", "end", "sub start", "sub stop",
                 "settings", "other"]
CallKind = Literal["write", "read", "shell", "own", "unknown"]


class Texts(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of a tool's input that hold the texts of its edit.

    Attributes:
        whole: the file's new content.
        old, new: the text that the edit replaces, and the new text.
        every: whether the edit replaces the text in every place.
        edits: a list of edits, each with the parameters above.
    """

    whole: str = ""
    old: str = ""
    new: str = ""
    every: str = ""
    edits: str = ""


class HookTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The `[hooks]` section of a profile.

    Attributes:
        dialect: how the agent's hook input and answer are laid out.
        timeout_s: how long the agent waits for a hook (seconds). After that most agents let the
            write happen, so coord answers well before.
        context: moments at which the model reads what a hook adds.
        one_session: whether its process has one session at a time. A new id is then the same
            session, unless the former one has ended.
        stop: whether a hook may make the agent continue when it wants to stop.
        writes, reads, shells, patches: tool -> parameter that holds the path, command or patch.
        folders: tool -> parameters that may name the directory of its command, relative to the
            agent's own. Without any of them the command runs in the agent's own directory.
        texts: tool -> parameters with the texts of its edit. Other tools take the whole file.
        own: how the names of coord's own MCP tools begin. A plugin's name may be a part of it, so
            there may be several.
        mark: a parameter that the hook adds to the calls of coord's own tools: the session's id.
            Some agents tell it to an MCP server in no other way.
        harmless: tools that touch no file.
        trust: what a person has to do once so that the agent runs its hooks at all.
    """

    dialect: Dialect
    timeout_s: float = 60.0
    context: tuple[Moment, ...] = ()
    one_session: bool = False
    stop: bool = True
    writes: dict[str, str] = {}
    patches: dict[str, str] = {}
    texts: dict[str, Texts] = {}
    reads: dict[str, str] = {}
    shells: dict[str, str] = {}
    folders: dict[str, tuple[str, ...]] = {}
    own: str | tuple[str, ...] = "mcp__coord__"
    mark: str = ""
    harmless: tuple[str, ...] = ()
    trust: str = ""


class Call(msgspec.Struct, frozen=True):
    """One tool call, as far as it concerns leases."""

    kind: CallKind
    paths: tuple[str, ...] = ()
    edits: tuple[tuple[Edit, ...], ...] = ()
    """For each path its edits. If a path has none, the call takes the whole file."""
    command: str = ""
    folder: str = ""
    """The directory of the command, as the agent names it; empty: the agent's own."""
    parameter: str = ""
    """The parameter that the hook adds to coord's own tools."""


def read_call(table: HookTable, tool: str, tool_input: Any) -> Call:
    """What a tool would do with this input.

    Raises:
        Refusal: INVALID: the tool writes or runs a command, and its parameter cannot be read.
    """
    if table.own and tool.startswith(table.own):
        return Call("own", parameter=table.mark)
    if tool in table.patches:
        patch = (tool_input if isinstance(tool_input, str)
                 else _read_text(tool_input, table.patches[tool]))
        if patch is None:
            raise _refuse_unreadable(tool, table.patches[tool])
        paths = paths_of(patch)
        edits = edits_of(patch)
        return Call("write", paths, tuple(edits.get(path, ()) for path in paths))
    if tool in table.writes:
        path = _read_text(tool_input, table.writes[tool])
        if not path:
            raise _refuse_unreadable(tool, table.writes[tool])
        return Call("write", (path,), (_read_edits(table.texts.get(tool), tool_input),))
    if tool in table.shells:
        command = _read_text(tool_input, table.shells[tool])
        if command is None:
            raise _refuse_unreadable(tool, table.shells[tool])
        folders = (_read_text(tool_input, name) for name in table.folders.get(tool, ()))
        return Call("shell", command=command, folder=next(filter(None, folders), ""))
    if tool in table.reads:
        path = _read_text(tool_input, table.reads[tool])
        return Call("read", (path,) if path else ())
    return Call("own") if tool in table.harmless else Call("unknown")


def _read_edits(texts: Texts | None, tool_input: dict[str, Any]) -> tuple[Edit, ...]:
    """The edits in a tool's input; empty if they are unclear."""
    if texts is None:
        return ()
    several = tool_input.get(texts.edits) if texts.edits else None
    if isinstance(several, list):
        edits = [_read_edit(texts, item) for item in several[: EDITS_MAX + 1]]
        return tuple(edit for edit in edits if edit) if all(edits) else ()
    edit = _read_edit(texts, tool_input)
    return (edit,) if edit is not None else ()


def _read_edit(texts: Texts, tool_input: Any) -> Edit | None:
    if not isinstance(tool_input, dict):
        return None
    whole = tool_input.get(texts.whole) if texts.whole else None
    if isinstance(whole, str):
        return Edit(None, whole)
    old, new = tool_input.get(texts.old), tool_input.get(texts.new)
    if not (texts.old and isinstance(old, str) and isinstance(new, str) and old):
        return None
    return Edit(old, new, every=bool(texts.every and tool_input.get(texts.every) is True))


def _read_text(tool_input: Any, key: str) -> str | None:
    value = tool_input.get(key) if isinstance(tool_input, dict) else None
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    return value if isinstance(value, str) else None


def _refuse_unreadable(tool: str, key: str) -> Refusal:
    return Refusal(
        Code.INVALID, f"{tool[:60]} without a readable `{key}`; the call is stopped, for nobody "
        "knows what it would write.", next=f"Repeat it with `{key}` as text.",
    )
