"""What the commands of `python -m benchmarks` have in common: options, and how they print."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from coordinator.cli.app import print_json, say
from coordinator.words.refusals import Code, Exit, Refusal

__all__ = [
    "AsJson", "Folder", "InstallPeers", "Peers", "Seed", "Verbose", "end", "parse_numbers",
    "show_report",
]
R = TypeVar("R")

AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
Folder = Annotated[
    Path | None, typer.Option("--dir", help="Where to put the databases (default: temporary).")
]
Peers = Annotated[bool, typer.Option("--peers", help="Other tools from PyPI, too.")]
InstallPeers = Annotated[
    bool, typer.Option("--install-peers", help="Fetch them first, into the user's cache.")
]
Seed = Annotated[int, typer.Option(help="Of everything random.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Each case as it goes.")]


def parse_numbers(text: str, least: int = 1, most: int = 10_000_000) -> list[int]:
    """A list of numbers as it is typed: 1,8,64.

    Raises:
        Refusal: INVALID.
    """
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or any(not least <= number <= most for number in numbers):
        raise Refusal(Code.INVALID, f"{text!r} is not a list of numbers from {least} to {most}.",
                      next="Write 2,10.")
    return numbers


def show_report(report: R, as_json: bool, describe: Callable[[R], Iterable[str]]) -> None:
    """Print a report, as JSON or in the lines that `describe` makes of it."""
    if as_json:
        print_json(report)
        return
    for line in describe(report):
        say(line)


def end(*, good: bool) -> None:
    """End the command with the exit code that tells whether nothing was lost.

    Raises:
        typer.Exit: INCOMPLETE.
    """
    if not good:
        raise typer.Exit(Exit.INCOMPLETE)
