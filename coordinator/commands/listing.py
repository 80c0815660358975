"""The commands that are carried out without a terminal, and which of them a line means."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.commands import (  # noqa: F401 - each declares its commands
    agents,
    completion,
    leases,
    requests,
)
from coordinator.commands.parsing import Typed, parse
from coordinator.commands.signatures import COMMANDS, Parameter
from coordinator.words.slices import import_parts

for _ in import_parts("commands"):
    pass  # each declares its commands


def parse_served(words: Sequence[str]) -> Typed | None:
    """Parse these words; None if they are not understood, or need the program."""
    typed = parse(words)
    if typed is None:
        return None
    command = COMMANDS[typed.name]
    if command.needs_program or any(
            _needs_program(parameter, typed.values[parameter.name])
            for parameter in command.parameters):
        return None
    return typed


def _needs_program(parameter: Parameter, value: object) -> bool:
    return (parameter.needs_program and value != parameter.default) or (
        parameter.reads_input and value == "-")
