"""Pages of the documentation that are made from the code: all commands with their options, all
requests with their fields; and tables within pages that are written by hand (the fields of a task
file, the tools over MCP, the settings). Written by `make docs` (documents.py); decides nothing.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from coordinator.commands.help_pages import describe
from coordinator.commands.signatures import COMMANDS, GROUPS, Command, Parameter
from coordinator.mcp.tools import TOOLS
from coordinator.operations.field_meanings import meaning
from coordinator.operations.listing import BY_HAND, OPERATIONS, method_of
from coordinator.rules.pools import Pool
from coordinator.settings import SECTIONS, Settings
from coordinator.slices.backlog import task_fields
from generators import client_methods, command_files

NOTE = "<!-- Made by `make docs` from the code; do not edit. -->\n"


def commands() -> str:
    """Every command, by the words that it is typed with."""
    parts = [
        NOTE + "# Commands\n\nAll commands with their options; `--help` after each says the "
        "same. Durations are written `45`, `45s`, `30m` or `2h`. Every\ncommand that reads takes "
        "`--json`. Exit codes: `coord help exit-codes`.\n\nAlone on a terminal, `coord` is the "
        "dashboard.\n",
    ]
    for name in command_files.list_names():
        command = COMMANDS.get(name)
        if not name or (command is not None and command.hidden):
            continue
        parts.append(f"{'##' if ' ' not in name else '###'} coord {name}\n")
        parts.append(_paragraphs(describe(name)))
        if command is not None and name not in GROUPS:
            parts.append(f"```text\n{_usage(command)}\n```\n")
            parts += _parameters(command)
    return "\n".join(part for part in parts if part)


def _paragraphs(text: str) -> str:
    # What looks like Markdown in a help text, and is none: an example of a task in a list.
    text = re.sub(r"^- (\{.*\})$", r"    - \1", text, flags=re.M)
    return re.sub(r"<(?=\w)", r"\\<", text) + "\n"


def _usage(command: Command) -> str:
    words = [f"coord {command.name}"]
    if command.options:
        words.append("[OPTIONS]")
    for argument in command.arguments:
        word = _name_argument(argument).rstrip("…") + ("…" if argument.many else "")
        words.append(word if argument.required else f"[{word}]")
    return " ".join(words)


def _name_argument(argument: Parameter) -> str:
    return (argument.metavar or argument.name).upper()


def _parameters(command: Command) -> list[str]:
    rows = []
    for parameter in command.parameters:
        if parameter.hidden:
            continue
        names = [*parameter.names, *parameter.opposites] or [_name_argument(parameter)]
        value = f" {_kind(parameter)}" if parameter.names and not parameter.is_flag else ""
        shown = " ".join(f"`{name}{value}`" for name in names)
        rows.append(f"| {shown} | {_cell(parameter.help)}{_default(parameter)} |")
    return ["| | |\n|---|---|\n" + "\n".join(rows) + "\n"] if rows else []


def _kind(option: Parameter) -> str:
    """What stands for an option's value."""
    if option.metavar or option.choices:
        return option.metavar or "\\|".join(option.choices)
    return {"str": "TEXT", "int": "N", "float": "N"}.get(option.type.__name__, "PATH")


def _default(parameter: Parameter) -> str:
    value = parameter.default
    return "" if parameter.is_flag or value in (None, "") else f" (default: `{value}`)"


def _cell(text: str) -> str:
    """Text as it may stand in a table."""
    return text.replace("|", "\\|").replace("<", "\\<").replace("\n", " ")


def requests() -> str:
    """Every request with its fields, and what is answered."""
    parts = [
        NOTE + "# Requests\n\nWhat can be asked, at each door: HTTP (`/v1/…`; some have further "
        "paths there, which `/openapi.json` lists), the socket "
        "([the protocol](../protocol.md)), Python. A field without a\ndefault is required. The "
        "same, with all answers, is at `/openapi.json` of the HTTP door (`coord up --http PORT`).\n"
        "[The operations](../../context_archive/operations.md) are the short list.\n",
    ]
    for operation in OPERATIONS.values():
        method, path = operation.request.http
        python = operation.name if operation.name in BY_HAND else method_of(operation.name)
        parts.append(f"## {operation.name}\n")
        who = "; not for agents" if operation.operator_only else ""
        parts.append(f"`{method} {path}`, in Python `{python}`{who}.\n")
        parts.append(inspect.cleandoc(operation.meaning).replace("<", "\\<") + "\n")
        rows = []
        for field in msgspec.structs.fields(operation.request):
            default = "" if field.required else f"`{_value(field)}`"
            told = meaning(operation.request, field.name)
            rows.append(f"| `{field.name}` | {_cell(_type(field.type))} | {default} "
                        f"| {_cell(told)} |")
        if rows:
            parts.append("| field | type | default | |\n|---|---|---|---|\n" + "\n".join(rows)
                         + "\n")
        parts.append(f"Answer: `{operation.reply.__name__}`.\n")
    return "\n".join(parts)


def _value(field: Any) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return str(msgspec.json.encode(field.default_factory()).decode())
    return str(msgspec.json.encode(field.default).decode())


def _type(hint: Any) -> str:
    shown, _ = client_methods.type_of(hint, "x")
    words = {"str": "text", "int": "whole number", "float": "number", "bool": "true or false",
             "Any": "any JSON", "None": "null"}
    told = re.sub(r"Sequence\[(.*)\]", r"list of \1", shown).replace("rq.", "")
    return re.sub(r"\b(str|int|float|bool|Any|None)\b", lambda found: words[found[0]], told)


def settings() -> str:
    """Every key of `coord.toml`."""
    lines = [
        NOTE + "# Settings\n",
        "`coord.toml` in the repository root; overridden by `COORD_<SECTION>_<KEY>` in the "
        "environment of the daemon.\n`coord doctor` shows what is in force and where it came "
        "from. Keys that end in `_s` are seconds, `_bytes` bytes.\n",
    ]
    for section in SECTIONS:
        values = msgspec.to_builtins(getattr(Settings(), section))
        shape = type(getattr(Settings(), section))
        lines.append(f"## [{section}]\n\n{' '.join((shape.__doc__ or '').split())}\n\n"
                     "| key | default | |\n|---|---|---|")
        lines += [f"| `{section}.{key}` | `{value}` | {_cell(meaning(shape, key))} |"
                  for key, value in values.items()]
        lines.append("")
    lines += ["## [pools.NAME]\n", "Values of the environment of which a task or session is given "
              "one: [pools](../docs/guides/pools.md).\n",
              *(f"* `{name}`: {meaning(Pool, name)}" for name in Pool.__struct_fields__)]
    return "\n".join(lines).rstrip() + "\n"


def _fields() -> str:
    """The fields of a task in a file."""
    shown = task_fields.schema()["$defs"]["task"]["anyOf"][1]["properties"]
    rows = []
    for name in task_fields.NAMES:
        one, told = shown[name], shown[name]["description"]
        if "minimum" in one:
            told += f" From {one['minimum']} to {one['maximum']}."
        if "maxLength" in one:
            told += f" At most {one['maxLength']:,} characters."
        rows.append(f"| `{name}` | {_cell(told)} |")
    return "| field | |\n|---|---|\n" + "\n".join(rows) + "\n"


def _tools() -> str:
    """The tools over MCP."""
    rows = [f"| `{tool.name}` | {_cell(' '.join(tool.description.split()))} |"
            for tool in TOOLS.values()]
    return "| tool | |\n|---|---|\n" + "\n".join(rows) + "\n"


#: Page -> (how what is made begins, how it ends, what it is).
WITHIN: dict[str, tuple[str, str, Callable[[], str]]] = {
    "task-file.md": (
        "<!-- fields: made by `make docs` from coordinator/slices/backlog/task_fields.py; do not "
        "edit -->\n", "<!-- end of fields -->\n", _fields),
    "guides/mcp.md": (
        "<!-- tools: made by `make docs`; do not edit -->\n", "<!-- end of tools -->\n", _tools),
}


def pages(folder: Path) -> dict[Path, str]:
    """The pages below `docs/` that are made, or have something in them that is."""
    out = {folder / "reference" / "commands.md": commands(),
           folder / "reference" / "requests.md": requests()}
    for name, (begin, end, make) in WITHIN.items():
        text = (folder / name).read_text("utf-8")
        before, begun, rest = text.partition(begin)
        _, ended, after = rest.partition(end)
        out[folder / name] = f"{before}{begun}{make()}{ended}{after}" if begun and ended else text
    return out
