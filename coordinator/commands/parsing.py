"""The words of a command, by its signature. What is not understood is nobody's here: Typer then
parses the words itself, and says what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from coordinator.commands.signatures import COMMANDS, Command, Parameter

#: Words of one command; more are left to Typer.
WORDS_MAX = 10_000
HELP = frozenset({"-h", "--help"})


class Typed(NamedTuple):
    """A command that was understood: its name, and its parameters."""

    name: str
    values: dict[str, Any]


class NotUnderstoodError(Exception):
    """These words are Typer's."""


def parse(words: Sequence[str]) -> Typed | None:
    """What these words say; None: not understood. Knows the commands that were declared so far."""
    for count in (2, 1):
        command = COMMANDS.get(" ".join(words[:count])) if len(words) >= count else None
        if command is not None:
            values = parse_values(command, words[count:])
            return None if values is None else Typed(command.name, values)
    return None


def parse_values(command: Command, words: Sequence[str]) -> dict[str, Any] | None:
    """The parameters that these words give a command; None: not understood."""
    if len(words) > WORDS_MAX or command.passes_on or (
            not command.hidden and not HELP.isdisjoint(words)):
        return None
    if command.takes_all:
        return {command.arguments[0].name: list(words)}
    given: dict[str, Any] = {}
    rest: list[str] = []
    left = iter(words)
    try:
        for word in left:
            if word == "--":
                rest += left
            elif word.startswith("-") and word != "-":
                _take_option(command, word, left, given)
            else:
                rest.append(word)
        _take_arguments(command, rest, given)
    except NotUnderstoodError:
        return None
    if any(p.required and p.name not in given for p in command.parameters):
        return None
    return {p.name: given.get(p.name, p.default) for p in command.parameters}


def _take_option(command: Command, word: str, left: Iterator[str], given: dict[str, Any]) -> None:
    name, sign, value = word.partition("=") if word.startswith("--") else (word, "", "")
    parameter = command.options.get(name)
    if parameter is None:  # there is none, or these are several short ones in one word
        raise NotUnderstoodError
    if parameter.is_flag:
        if sign:
            raise NotUnderstoodError
        given[parameter.name] = name not in parameter.opposites
        return
    if not sign:
        value = next(left, "--")
        if value == "--" or (value.startswith("-") and value in command.options):
            raise NotUnderstoodError
    _give(parameter, value, given)


def _take_arguments(command: Command, rest: list[str], given: dict[str, Any]) -> None:
    """Give each argument its word; one that takes many gets all that are left."""
    for parameter in command.arguments:
        for word in rest if parameter.many else rest[:1]:
            _give(parameter, word, given)
        del rest[: None if parameter.many else 1]
    if rest:
        raise NotUnderstoodError


def _give(parameter: Parameter, word: str, given: dict[str, Any]) -> None:
    value = _make_value(parameter, word)
    if parameter.many:
        given.setdefault(parameter.name, []).append(value)
    else:
        given[parameter.name] = value


def _make_value(parameter: Parameter, word: str) -> Any:
    if parameter.choices and word not in parameter.choices:
        raise NotUnderstoodError
    if parameter.type not in (int, float):
        return parameter.type(word)
    bare = word[1:] if word[:1] == "-" else word
    if not bare.isascii() or not bare.replace(".", "", parameter.type is float).isdigit():
        raise NotUnderstoodError
    value = parameter.type(word)
    if parameter.least is not None and value < parameter.least:
        raise NotUnderstoodError
    if parameter.most is not None and value > parameter.most:
        raise NotUnderstoodError
    return value
