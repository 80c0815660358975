"""The help of each command, from its signature: `coord COMMAND --help`, and the file with all of it
for a client that loads nothing.

`coord --help` lists commands by a person's aims, each sentence whole, because a cut sentence tells
little.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator, Sequence

from coordinator.commands.signatures import COMMANDS, GROUPS, Command, Parameter, list_members

#: The aims of a person -> the commands for them, the most wanted first. Other commands follow
#: below.
PURPOSES = {
    "Begin": ("init", "launch", "run", "shims", "agents", "trust", "doctor"),
    "See what goes on": ("status", "web", "locks", "logs", "attach", "events", "explain", "report",
                         "replay"),
    "Say what is to be done": ("task", "verify"),
    "Decide on half-done work": ("review", "lost-writes", "dead", "sweep"),
    "Lease, wait, and ask": ("commit", "lock", "unlock", "renew", "env", "ports", "request", "tell",
                             "messages", "limit", "signal", "archive"),
    "Parts of files, and values": ("regions", "commit-region", "propose", "impact", "merge-driver",
                                   "merge-file", "state"),
    "The coordinator": ("up", "down", "ps", "serve", "compact", "guard", "hook", "mcp",
                        "completion", "help"),
}
#: The fewest and the most characters of a line; two of the terminal's stay free.
COLUMNS_MIN, COLUMNS_MAX = 50, 80
#: A longer left half has its right half below it.
LEFT_MAX = 30
HELP_ROW = ("-h, --help", "Show this message and exit.")

Row = tuple[str, str]


def draw_page(name: str, columns: int = COLUMNS_MAX) -> str:
    """The help of a command or group."""
    width = max(COLUMNS_MIN, min(columns, COLUMNS_MAX) - 2)
    lines = [*_draw_usage(name, width), "", *_draw_text(describe(name), width)]
    for title, rows in _list_sections(name):
        lines += ["", f"{title}:", *_draw_rows(rows, width)]
    if name in GROUPS and GROUPS[name].epilog:
        lines += ["", *_draw_text(GROUPS[name].epilog, width)]
    return "\n".join(lines) + "\n"


def describe(name: str) -> str:
    """The help of a command, or of a group of commands."""
    text = GROUPS[name].help if name in GROUPS else COMMANDS[name].help
    return inspect.cleandoc(text).replace("\f", "").strip()


def summarize(name: str) -> str:
    """The first sentence of that."""
    words = describe(name).partition("\n\n")[0].split()
    end = next((n for n, word in enumerate(words, 1) if word.endswith(".")), len(words))
    return " ".join(words[:end])


def list_shown(group: str) -> list[str]:
    """The words that follow those of a group, without hidden ones; the top commands in the order of
    a person's aims."""
    shown = [word for word in list_members(group)
             if (name := f"{group} {word}".strip()) in GROUPS or not COMMANDS[name].hidden]
    named = [word for words in PURPOSES.values() for word in words]
    return shown if group else [*(word for word in named if word in shown),
                                *(word for word in shown if word not in named)]


def name_value(parameter: Parameter) -> str:
    """The placeholder for an option's value."""
    if parameter.metavar:
        return parameter.metavar
    kind = "|".join(parameter.choices) or parameter.type.__name__.lower()
    return f"<{kind}{' range' if parameter.bounds else ''}>"


def name_argument(parameter: Parameter) -> str:
    """An argument in a line of usage."""
    shown = parameter.metavar or parameter.name
    return (f"{{{shown}}}" if parameter.required else f"[{shown}]") + _tell_more(parameter)


def _tell_more(parameter: Parameter) -> str:
    """The mark of an argument that may be typed several times."""
    return "..." if parameter.many and not parameter.metavar else ""


def _draw_usage(name: str, width: int) -> list[str]:
    command = COMMANDS.get(name)
    words = ["[OPTIONS]", *(name_argument(p) for p in (command.arguments if command else ()))]
    if name in GROUPS:
        words += ["COMMAND", "[ARGS]..."]
    begin = f"Usage: {f'coord {name}'.strip()} "
    return textwrap.wrap(" ".join(words), width, initial_indent=begin,
                         subsequent_indent=" " * len(begin))


def _draw_text(text: str, width: int) -> list[str]:
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        lines += ["", *textwrap.wrap(paragraph, width, initial_indent="  ",
                                     subsequent_indent="  ")]
    return lines[1:]


def _list_sections(name: str) -> Iterator[tuple[str, list[Row]]]:
    command = COMMANDS.get(name)
    arguments, options = _list_parameters(command) if command else ([], [])
    if arguments:
        yield "Arguments", arguments
    yield "Options", [*options, HELP_ROW]
    if name not in GROUPS:
        return
    members = list_shown(name)
    left = max(map(len, members), default=0)
    sections = {**PURPOSES, "More": tuple(members)} if not name else {"Commands": tuple(members)}
    for title, words in sections.items():
        shown = [word for word in words if word in members]
        members = [word for word in members if word not in shown]
        if shown:
            yield title, [(word.ljust(left), summarize(f"{name} {word}".strip()))
                          for word in shown]


def _list_parameters(command: Command) -> tuple[list[Row], list[Row]]:
    """The rows of its arguments, and those of its options."""
    arguments = [((p.metavar or p.name) + _tell_more(p), _explain(p)) for p in command.arguments]
    options = [(_name_option(p), _explain(p)) for p in command.parameters
               if p.names and not p.hidden]
    return arguments, options


def _name_option(parameter: Parameter) -> str:
    names = ", ".join(sorted(parameter.names, key=lambda name: name.startswith("--")))
    if parameter.opposites:
        return f"{names} / {', '.join(parameter.opposites)}"
    return names if parameter.is_flag else f"{names} {name_value(parameter)}"


def _explain(parameter: Parameter) -> str:
    """The help of a parameter, and the rules for its value in brackets."""
    facts = (_tell_default(parameter), parameter.bounds, "required" * parameter.required)
    extra = "; ".join(filter(None, facts))
    return "  ".join(filter(None, (parameter.help, extra and f"[{extra}]")))


def _tell_default(parameter: Parameter) -> str:
    default = parameter.default
    if parameter.opposites and default is not None:
        name = (parameter.names if default else parameter.opposites)[0]
        return f"default: {name.lstrip('-')}"
    return "" if parameter.is_flag or default in (None, "") else f"default: {default}"


def _draw_rows(rows: Sequence[Row], width: int) -> list[str]:
    """Two columns, the right one folded."""
    left = min(max(len(name) for name, _ in rows), LEFT_MAX) + 2
    lines: list[str] = []
    for name, text in rows:
        folded = textwrap.wrap(text, max(width - left - 2, 10))
        if len(name) <= left - 2 and folded:
            lines.append(f"  {name.ljust(left)}{folded.pop(0)}")
        else:
            lines.append(f"  {name}")
        lines += [" " * (left + 2) + line for line in folded]
    return lines
