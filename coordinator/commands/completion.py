"""Completing a command line: words, options, and the names of tasks, agents and the like.

The commands and options come from the program itself, in `words.json`, which `make docs` writes.
The names come from the coordinator. For file names the module answers nothing, because the shell
completes them better.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from functools import cache
from typing import Annotated, Any

import msgspec

from coordinator.commands.lists import in_line, middle
from coordinator.commands.shell import Asking, Shell, ask
from coordinator.commands.signatures import Argument, command
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal

#: The following words, the options and the arguments of each command and group.
FILE = "words.json"
#: Names that are offered at once.
OFFERED_MAX = 500
#: The commands whose `--agent` names a kind of agent.
KINDS = {("launch", "agent"), ("init", "agent")}
ABOUT_COLUMNS = 60

Candidate = tuple[str, str]
Names = Generator[rq.Request[Any], Any, Iterable[Candidate]]


@command("__complete", hidden=True, takes_all=True)
def complete(
    shell: Shell, *,
    words: Annotated[list[str], Argument()],
) -> Asking:
    """Print what the last of these words (maybe empty) may become, `value TAB what it is`."""
    *before, begun = words or [""]
    candidates = yield from _candidates(before, begun)
    for value, about in candidates:
        if value.startswith(begun):
            shell.say(f"{value}\t{middle(in_line(about), ABOUT_COLUMNS)}" if about else value)


@cache
def _read_words() -> dict[str, dict[str, Any]]:
    """All that may be typed, also what this process has not read in."""
    with open(f"{__file__.rpartition('/')[0]}/{FILE}", "rb") as file:  # noqa: PTH123
        words: dict[str, dict[str, Any]] = msgspec.json.decode(file.read())
    return words


def _candidates(before: Sequence[str], begun: str) -> Names:
    name, rest = _command(before)
    words = _read_words()[name]
    options: dict[str, list[Any]] = words["options"]
    if rest and rest[-1] in options and not options[rest[-1]][1]:
        meant, _, about = options[rest[-1]]
        return (yield from _values("profile" if (name, meant) in KINDS else meant, about))
    if begun.startswith("-"):
        return [(typed, about) for typed, (_, _, about) in options.items() if typed not in rest]
    if not words["arguments"]:
        return list(map(tuple, words["commands"]))
    place = min(_positionals(rest, options), len(words["arguments"]) - 1)
    return (yield from _held() if name == "unlock" else _values(*words["arguments"][place]))


def _command(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The command that was typed, and what follows it."""
    name = ""
    for place, word in enumerate(words):
        longer = f"{name} {word}".strip()
        if longer not in _read_words():
            return name, words[place:]
        name = longer
    return name, ()


def _positionals(words: Sequence[str], options: dict[str, list[Any]]) -> int:
    """The number of arguments among these words."""
    count, skips = 0, False
    for word in words:
        if skips:
            skips = False
        elif word.startswith("-") and word != "-":
            skips = word in options and not options[word][1]
        else:
            count += 1
    return count


def _values(name: str, about: str) -> Names:
    """The possible values of an option or argument of this name; none for a file or a text."""
    kinds = {
        "agent": _agents, "who": _agents, "holder": _agents, "task": _tasks, "tasks": _tasks,
        "after": _tasks,
        "review": _reviews, "reviews": _reviews, "request": _requests, "letter": _letters,
        "letters": _letters, "key": _keys, "prefix": _keys, "change": _changes,
        "subject": _subjects,
    }
    if name in kinds:
        try:
            return (yield from kinds[name]())
        except Refusal:
            return []
    if name == "topic":
        return list(map(tuple, _read_words()[""]["commands"]))
    if name in ("profile", "profiles"):
        choices = _read_words()[""]["profiles"]
    else:
        choices = ["exclusive", "shared"] if name == "mode" else about.rstrip(".").split(", ")
    is_list = len(choices) > 1 and (name in ("profile", "profiles") or "".join(choices).isalpha())
    return [(choice, "") for choice in choices] if is_list else []


def _subjects() -> Names:
    """Everything that has a story."""
    subjects = [*(yield from _tasks()), *(yield from _reviews()), *(yield from _requests())]
    return [*subjects, *(yield from _agents())]


def _agents() -> Names:
    return [(row.agent, row.progress or row.state)
            for row in (yield from ask(rq.Agents())).items][:OFFERED_MAX]


def _tasks() -> Names:
    return [(row.task, f"{row.state}: {row.title}") for row in
            (yield from ask(rq.Tasks(limit=OFFERED_MAX))).items]


def _reviews() -> Names:
    return [(row.review, row.summary) for row in
            (yield from ask(rq.Reviews(limit=OFFERED_MAX))).items]


def _requests() -> Names:
    return [(row.request, f"{row.requested_by} asks {row.holder} for {row.resource}") for row in
            (yield from ask(rq.Requests(limit=OFFERED_MAX))).items]


def _letters() -> Names:
    return [(row.id, f"{row.what}: {row.why}") for row in
            (yield from ask(rq.Dead(limit=OFFERED_MAX))).items]


def _keys() -> Names:
    return [(row.key, f"version {row.version}") for row in
            (yield from ask(rq.StateKeys(limit=OFFERED_MAX))).items]


def _changes() -> Names:
    return [(row.change, f"{row.state}: {row.key}") for row in
            (yield from ask(rq.Changes(limit=OFFERED_MAX))).items]


def _held() -> Names:
    try:
        return [(row.resource, row.locked_by) for row in
                (yield from ask(rq.Locks(limit=OFFERED_MAX))).items]
    except Refusal:
        return []
