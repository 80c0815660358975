"""What is made of the declared commands for those who read in none of them: the words that a line
may have (`commands/words.json`, for completion), and the help of each command
(`commands/help.txt`). Written by `make docs`, checked in CI.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from coordinator.cli.modules import read_group
from coordinator.commands.help_pages import draw_page, list_shown, summarize
from coordinator.commands.signatures import COMMANDS, GROUPS
from coordinator.resources import packaged

#: Signs of a summary in a list of candidates.
SUMMARY_MAX = 60


def list_names() -> list[str]:
    """All commands and groups that people type, by their words; the program itself first."""
    read_group("")
    return sorted(name for name in {*COMMANDS, *GROUPS} if not name.startswith("__"))


def make_words() -> str:
    """What may be typed, as JSON, a command or group a line: the words that follow it, its options
    (name, whether a flag, what it is), its arguments (name, what it is)."""
    profiles = sorted(file.name.removesuffix(".toml") for file in packaged("agents").iterdir())
    words = {name: _list_words(name) for name in list_names()}
    words[""]["profiles"] = profiles
    lines = [f"{json.dumps(name)}: {json.dumps(about, ensure_ascii=False)}"
             for name, about in words.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _list_words(name: str) -> dict[str, Any]:
    command = COMMANDS.get(name)
    members = list_shown(name) if name in GROUPS else []
    options = command.options if command else {}
    return {
        "commands": [(word, _shorten(summarize(f"{name} {word}".strip()))) for word in members],
        "options": {typed: (p.name, p.is_flag, p.help) for typed, p in options.items()},
        "arguments": [(p.name, p.help) for p in (command.arguments if command else ())],
    }


def _shorten(text: str) -> str:
    """As many whole words as have room."""
    if len(text) <= SUMMARY_MAX:
        return text
    return text[:SUMMARY_MAX - 2].rpartition(" ")[0] + "..."


def make_help() -> str:
    """The help of each command: form feed, its words, a line each for the rest; and the version."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
    version = f"\f--version\ncoord {project['project']['version']}\n"
    return version + "".join(f"\f{name}\n{draw_page(name)}" for name in list_names())


#: Files of the package that are made, below its folder.
FILES = {"commands/words.json": make_words, "commands/help.txt": make_help}
