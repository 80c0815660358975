"""What a profile says about its agent's hooks: the dialect, and which of its tools do what. Data
only.

A tool is known by its name. The table says which of its parameters has the path, the patch or the
command. A tool that is in no list is unknown, and the policy decides about it.
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
        old, new: what is replaced, and by what; `every`: whether in every place.
        edits: a list of several, each of which has those.
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
        timeout_s: how long the agent waits for a hook (seconds). Past it, most let the write
            happen: coord answers well before.
        context: moments at which the model reads what a hook adds.
        one_session: its process has one session at a time. A new id without the former one's end
            is the same session.
        stop: whether a hook may make the agent go on when it wants to stop.
        writes, reads, shells, patches: tool -> parameter that holds the path, command or patch.
        folders: tool -> parameters, any of which may name the directory that its command runs in,
            from the agent's own on. Where a call has none of these, it runs in that.
        texts: tool -> where its edit's texts are: what is in none of these takes the whole file.
        own: how the names of coord's own MCP tools begin (several: a server that came with a
            plugin is named after it, too).
        mark: a parameter that the hook adds to their calls: the session's id. For agents whose
            MCP servers are not told it otherwise.
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
    """The edits of each of them, if known; empty: the whole file is taken."""
    command: str = ""
    folder: str = ""
    """The directory that the command runs in, as the agent names it; empty: the agent's own."""
    parameter: str = ""
    """The parameter that the hook adds to coord's own tools."""


def call_of(table: HookTable, tool: str, given: Any) -> Call:
    """What a tool would do with this input.

    Raises:
        Refusal: INVALID: a tool that writes, without a readable path: it is unknown what it would
            write.
    """
    if table.own and tool.startswith(table.own):
        return Call("own", parameter=table.mark)
    if tool in table.patches:
        text = given if isinstance(given, str) else _text(given, table.patches[tool])
        if text is None:
            raise _unreadable(tool, table.patches[tool])
        paths = paths_of(text)
        made = edits_of(text)
        return Call("write", paths, tuple(made.get(path, ()) for path in paths))
    if tool in table.writes:
        path = _text(given, table.writes[tool])
        if not path:
            raise _unreadable(tool, table.writes[tool])
        return Call("write", (path,), (_edits(table.texts.get(tool), given),))
    if tool in table.shells:
        command = _text(given, table.shells[tool])
        if command is None:
            raise _unreadable(tool, table.shells[tool])
        folders = (_text(given, text) for text in table.folders.get(tool, ()))
        return Call("shell", command=command, folder=next(filter(None, folders), ""))
    if tool in table.reads:
        path = _text(given, table.reads[tool])
        return Call("read", (path,) if path else ())
    return Call("own") if tool in table.harmless else Call("unknown")


def _edits(texts: Texts | None, given: dict[str, Any]) -> tuple[Edit, ...]:
    """The edits in a tool's input; empty if they are unclear."""
    if texts is None:
        return ()
    several = given.get(texts.edits) if texts.edits else None
    if isinstance(several, list):
        edits = [_edit(texts, item) for item in several[: EDITS_MAX + 1]]
        return tuple(edit for edit in edits if edit) if all(edits) else ()
    edit = _edit(texts, given)
    return (edit,) if edit is not None else ()


def _edit(texts: Texts, given: Any) -> Edit | None:
    if not isinstance(given, dict):
        return None
    whole = given.get(texts.whole) if texts.whole else None
    if isinstance(whole, str):
        return Edit(None, whole)
    old, new = given.get(texts.old), given.get(texts.new)
    if not (texts.old and isinstance(old, str) and isinstance(new, str) and old):
        return None
    return Edit(old, new, every=bool(texts.every and given.get(texts.every) is True))


def _text(given: Any, key: str) -> str | None:
    value = given.get(key) if isinstance(given, dict) else None
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    return value if isinstance(value, str) else None


def _unreadable(tool: str, key: str) -> Refusal:
    return Refusal(
        Code.INVALID, f"{tool[:60]} without a readable `{key}`; the call is stopped, for nobody "
        "knows what it would write.", next=f"Repeat it with `{key}` as text.",
    )
