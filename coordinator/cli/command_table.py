"""What is made from the program's own definition, for those who do without the program: the table
of options (of commands that the coordinator carries out: `coordinator/commands/options.json`; of
all, for the program: `coordinator/cli/options.json`), and the help of each command
(`coordinator/commands/help.txt`). Written by `make docs`, checked in CI.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import json
import os
from collections.abc import Iterator
from typing import Any, get_type_hints
from unittest.mock import patch

import typer

from coordinator.cli import app, main
from coordinator.commands.listing import COMMANDS
from coordinator.resources import packaged

#: Options that need the program itself: it goes on printing.
PROGRAMS_OWN = {"events": {"follow"}, "status": {"watch"}, "review show": {"side_by_side"}}
#: Commands that need Typer's own definition: they show it.
PARSED_ALWAYS = {"help"}
#: Kinds of values that are words and numbers, and nothing besides.
PLAIN = {"str", "text", "int", "integer", "float", "boolean"}
#: Signs in a line of help.
HELP_COLUMNS = 80


def program() -> Any:
    """The whole program, with all its commands."""
    for name in main.COMMANDS:
        importlib.import_module(f"coordinator.cli.{name}")
    root: Any = typer.main.get_command(app.app)
    words = [word for words in main.COMMANDS.values() for word in words]
    words.sort(key=lambda word: hasattr(root.commands[word], "commands"))  # as a start orders them
    root.commands = {word: root.commands[word] for word in words}
    return root


def leaves(group: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """All commands and groups, by the words that they are typed with."""
    for word, command in sorted(group.commands.items()):
        full = f"{name} {word}".strip()
        yield full, command
        if hasattr(command, "commands"):
            yield from leaves(command, full)


def table() -> str:
    """The options of the commands that need no terminal, as JSON: a line each."""
    known = dict(leaves(program()))
    told = [f"{json.dumps(name)}: {json.dumps(_options(name, known[name]))}" for name in COMMANDS
            if name in known and not known[name].hidden]
    return "{\n" + ",\n".join(told) + "\n}\n"


def program_table() -> str:
    """The options of all commands, and who carries each out, as JSON: a line each. A command that
    wants more than words (its parser, or another kind of argument) is not in it."""
    known = dict(leaves(program()))
    told = [f"{json.dumps(name)}: {json.dumps(_by(name, command))}"
            for name, command in sorted(known.items())
            if not hasattr(command, "commands") and name not in PARSED_ALWAYS
            and _is_plain(command)]
    return "{\n" + ",\n".join(told) + "\n}\n"


def _by(name: str, command: Any) -> dict[str, Any]:
    function = inspect.unwrap(command.callback)
    module = function.__module__.removeprefix("coordinator.cli.")
    return {"by": f"{module}:{function.__name__}", **_options(name, command, plain=True)}


def _is_plain(command: Any) -> bool:
    hints = get_type_hints(inspect.unwrap(command.callback)).values()
    needed = (one for one in command.params
              if type(one).__name__.endswith("Argument") or one.required)
    settings = command.context_settings or {}
    return (typer.Context not in hints and all(map(_is_plain_word, needed))
            and not settings.get("ignore_unknown_options")
            and not settings.get("allow_extra_args"))


def _is_plain_word(one: Any) -> bool:
    """Whether its value is what was typed, or a number."""
    return one.type.name in PLAIN and one.callback is None and not one.envvar


def _options(name: str, command: Any, *, plain: bool = False) -> dict[str, Any]:
    """`plain`: leave those to the program that want more than words, and no others."""
    hints = get_type_hints(command.callback)
    signature = inspect.signature(command.callback)
    defaults = {one.name: one.default for one in signature.parameters.values()
                if hints[one.name] is not typer.Context}
    options: dict[str, tuple[str, str, Any]] = {}
    arguments: list[tuple[str, bool, bool]] = []
    required: list[str] = []
    for one in command.params:
        if one.name not in defaults or (
                not _is_plain_word(one) if plain else one.name in PROGRAMS_OWN.get(name, ())):
            continue
        kind = _kind(hints[one.name])
        if type(one).__name__.endswith("Argument"):
            arguments.append((one.name, one.nargs == -1, bool(one.required)))
        elif one.is_flag:
            options.update(dict.fromkeys(one.opts, (one.name, "flag", True)))
            options.update(dict.fromkeys(one.secondary_opts, (one.name, "flag", False)))
        else:
            means = "many" if one.multiple else "one"
            options.update(dict.fromkeys(one.opts, (one.name, kind, means)))
            if one.required:
                required.append(one.name)
    return {
        "arguments": arguments, "options": options, "required": required,
        "defaults": {key: None if value is inspect.Parameter.empty else value
                     for key, value in defaults.items()},
    }


def _kind(hint: Any) -> str:
    words = str(hint)
    return "float" if "float" in words else "int" if "int" in words else "text"


def words() -> str:
    """What may be typed, as JSON, a command or group a line: the words that follow it, its options
    (name, whether a flag, what it is), its arguments (name, what it is)."""
    root = program()
    own = sorted(file.name.removesuffix(".toml") for file in packaged("agents").iterdir())
    told = [("", {**_words(root), "profiles": own})]
    told += [(name, _words(command)) for name, command in leaves(root)]
    lines = [f"{json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}" for name, one in told
             if not name.startswith("__")]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _words(command: Any) -> dict[str, Any]:
    options: dict[str, tuple[str, bool, str]] = {}
    arguments: list[tuple[str, str]] = []
    for one in command.params:
        about = getattr(one, "help", None) or ""
        if type(one).__name__.endswith("Argument"):
            arguments.append((one.name, about))
        else:
            for typed in (*one.opts, *one.secondary_opts):
                options[typed] = (one.name, bool(one.is_flag), about)
    commands = [(word, other.get_short_help_str(limit=60))
                for word, other in getattr(command, "commands", {}).items() if not other.hidden]
    return {"commands": commands, "options": options, "arguments": arguments}


def help_texts() -> str:
    """The help of each command: form feed, its words, a line each for the rest."""
    root = program()
    names = ["", *(name for name, _ in leaves(root))]
    with patch.dict(os.environ, {"COLUMNS": str(HELP_COLUMNS)}):
        return "".join(f"\f{name}\n{_help(root, name)}" for name in names)


def _help(root: Any, name: str) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        root([*name.split(), "--help"], prog_name="coord", standalone_mode=False)
    return said.getvalue()


#: Files of the package that are made, below its folder.
FILES = {"commands/options.json": table, "cli/options.json": program_table,
         "commands/words.json": words, "commands/help.txt": help_texts}
