"""Parsing the words of a command by its signature.

Words that do not fit are left to Typer, which parses them again and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from coordinator.commands.signatures import COMMANDS, Command, Parameter

#: Words of one command; more are left to Typer.
WORDS_MAX = 10_000
#: The beginning of the sentence about too many words.
EXTRA = "Got unexpected extra argument"
HELP = frozenset({"-h", "--help"})


class Typed(msgspec.Struct):
    """A command that was understood: its name, and its parameters."""

    name: str
    values: dict[str, Any]


class NotUnderstoodError(Exception):
    """These words are Typer's. `message`: what is wrong with them, if they prove wrong; empty:
    Typer knows that better."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message


def parse(words: Sequence[str]) -> Typed | None:
    """Parse these words; None if they are not understood. Knows the commands declared so far."""
    try:
        return parse_line(words)
    except NotUnderstoodError:
        return None


def explain_mistake(words: Sequence[str]) -> str:
    """What is wrong with words that Typer has refused; empty if Typer tells it."""
    try:
        parse_line(words)
    except NotUnderstoodError as mistake:
        return mistake.message
    return ""


def parse_line(words: Sequence[str]) -> Typed:
    """Parse these words.

    Raises:
        NotUnderstoodError: they are not understood.
    """
    for count in (2, 1):
        command = COMMANDS.get(" ".join(words[:count])) if len(words) >= count else None
        if command is not None:
            return Typed(command.name, parse_values(command, words[count:]))
    raise NotUnderstoodError


def parse_values(command: Command, words: Sequence[str]) -> dict[str, Any]:
    """The parameters that these words give a command.

    Raises:
        NotUnderstoodError: they are not understood.
    """
    asks_help = not command.hidden and not HELP.isdisjoint(words)
    if asks_help or command.passes_on or len(words) > WORDS_MAX:
        raise NotUnderstoodError
    if command.takes_all:
        return {command.arguments[0].name: list(words)}
    given: dict[str, Any] = {}
    _take_arguments(command, _take_options(command, words, given), given)
    for parameter in command.parameters:
        if parameter.required and parameter.name not in given:
            raise NotUnderstoodError(f"Missing {parameter.kind} {parameter.quoted}.")
    return {p.name: given.get(p.name, p.default) for p in command.parameters}


def _take_options(command: Command, words: Sequence[str], given: dict[str, Any]) -> list[str]:
    """Give options their values; the words that are left."""
    rest: list[str] = []
    left = iter(words)
    for word in left:
        if word == "--":
            rest += left
        elif word.startswith("-") and word != "-":
            _take_option(command, word, left, given)
        else:
            rest.append(word)
    return rest


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
        raise NotUnderstoodError(f"{EXTRA}(s) ({' '.join(rest)})")


def _give(parameter: Parameter, word: str, given: dict[str, Any]) -> None:
    value = _make_value(parameter, word)
    if parameter.many:
        given.setdefault(parameter.name, []).append(value)
    else:
        given[parameter.name] = value


def _make_value(parameter: Parameter, word: str) -> Any:
    wrong = ""
    value = word
    if parameter.choices and word not in parameter.choices:
        wrong = f"{word!r} is not one of {', '.join(map(repr, parameter.choices))}."
    elif parameter.type in (int, float):
        value, wrong = _make_number(parameter, word)
    else:
        value = parameter.type(word)
    if wrong:
        raise NotUnderstoodError(f"Invalid value for {parameter.quoted}: {wrong}")
    return value


def _make_number(parameter: Parameter, word: str) -> tuple[Any, str]:
    """The typed number, and what is wrong with it."""
    try:
        value = parameter.type(word)
    except ValueError:
        return None, f"{word!r} is not a valid {parameter.type.__name__}."
    bare = word[1:] if word[:1] == "-" else word
    if not bare.isascii() or not bare.replace(".", "", parameter.type is float).isdigit():
        raise NotUnderstoodError  # another way to write a number
    least, most = parameter.least, parameter.most
    inside = (least is None or value >= least) and (most is None or value <= most)
    return value, "" if inside else f"{value} is not in the range {parameter.bounds}."
