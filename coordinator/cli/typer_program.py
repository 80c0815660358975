"""The program that Typer parses, made from the declared commands (`commands/signatures.py`).

Typer is imported only for rare lines: help, mistakes, and commands that pass options on. The pages
of help are our own (`commands/help_pages.py`), so they are the same with each Typer.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from enum import Enum
from inspect import Parameter as Place
from inspect import Signature
from itertools import zip_longest
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from coordinator.cli.app import run_command
from coordinator.cli.modules import UnknownCommandError
from coordinator.commands.help_pages import draw_page, list_shown
from coordinator.commands.parsing import HELP
from coordinator.commands.signatures import COMMANDS, GROUPS, Command, Parameter, list_members


class DeclaredCommand(TyperCommand):
    """A command with a page of help of ours."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the whole page."""
        formatter.write(draw_page(find_name(ctx), shutil.get_terminal_size().columns))


class DeclaredGroup(TyperGroup):
    """A group with a page of help of ours."""

    format_help = DeclaredCommand.format_help

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is typed first.

        Raises:
            UnknownCommandError: there is none of that name.
        """
        if args[0] not in self.commands:
            group = find_name(ctx)
            raise UnknownCommandError(group, args[0], list_shown(group))
        return super().resolve_command(ctx, args)


def find_name(context: Any) -> str:
    """Return the words by which a command was reached."""
    path: str = context.command_path
    return path.partition(" ")[2]


def build_program() -> Any:
    """Build the parser of all commands that were read in."""
    return typer.main.get_command(_build_group(""))


def _build_group(name: str) -> typer.Typer:
    is_command = bool(name) and name in COMMANDS
    group = typer.Typer(
        cls=DeclaredGroup, no_args_is_help=not is_command, add_completion=False,
        rich_markup_mode=None, pretty_exceptions_enable=False,
        context_settings={"help_option_names": sorted(HELP, key=len)},
    )
    callback = make_callback(COMMANDS[name], of_group=True) if is_command else do_nothing
    group.callback(invoke_without_command=is_command)(callback)
    for word in list_members(name):
        full = f"{name} {word}".strip()
        if full in GROUPS:
            group.add_typer(_build_group(full), name=word)
            continue
        if full not in COMMANDS:  # only a command below it was read in
            continue
        command = COMMANDS[full]
        settings = {"ignore_unknown_options": command.passes_on or command.takes_all}
        group.command(word, cls=DeclaredCommand, hidden=command.hidden,
                      context_settings=settings)(make_callback(command))
    return group


def do_nothing() -> None:
    """A group alone does nothing."""


def make_callback(command: Command, *, of_group: bool = False) -> Callable[..., Any]:
    """Make a function with the signature that Typer reads, which carries out the command.
    `of_group`: unless one of the commands below it is meant."""
    def callback(context: typer.Context | None = None, **values: Any) -> Any:
        if context is not None and context.invoked_subcommand is not None:
            return None
        return run_command(command.name, {name: getattr(value, "value", value)
                                          for name, value in values.items()})

    places = [_make_place(parameter) for parameter in command.parameters]
    if of_group:
        places.insert(0, Place("context", Place.KEYWORD_ONLY, annotation=typer.Context))
    callback.__signature__ = Signature(places)  # type: ignore[attr-defined]
    callback.__annotations__ = {place.name: place.annotation for place in places}
    return callback


def _make_place(parameter: Parameter) -> Place:
    """Return a parameter as Typer declares it."""
    kind: Any = parameter.type
    default = parameter.default
    if parameter.choices:
        make_enum: Any = Enum  # made of the declared choices
        kind = make_enum(parameter.name, {word: word for word in parameter.choices}, type=str)
        default = default and kind(default)
    if parameter.many:
        kind = list.__class_getitem__(kind)
    if not parameter.required:
        kind = kind | None
    about: dict[str, Any] = {"help": parameter.help, "metavar": parameter.metavar or None}
    if parameter.names:
        names = ("/".join(filter(None, pair)) for pair in
                 zip_longest(parameter.names, parameter.opposites))
        marker = typer.Option(*names, hidden=parameter.hidden, min=parameter.least,
                              max=parameter.most, **about)
    else:
        marker = typer.Argument(**about)
    return Place(parameter.name, Place.KEYWORD_ONLY, annotation=Annotated[kind, marker],
                 default=Place.empty if parameter.required else default)
