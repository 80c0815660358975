"""What the command modules define their commands by: Typer; or nothing, where it is not needed.

Typer is the one definition of words, options and help. Reading it in, and building its parser,
takes longer than most commands. Where the table that is made from it (`typed_words.py`) has
understood a line already, the commands' functions are all that is wanted: `forget` lets their
modules be read in without Typer. Decided once, when a program starts, before any of them is read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import typer

    from coordinator.cli.command_groups import Listed

__all__ = ["Listed", "typer"]
F = TypeVar("F", bound=Callable[..., Any])
_forgets = False


def forget() -> None:
    """From now on definitions are taken and forgotten, unless some were taken already."""
    global _forgets
    _forgets = "coordinator.cli.app" not in sys.modules


def __getattr__(name: str) -> Any:
    """Typer itself, or what stands for it."""
    if name == "typer":
        if _forgets:
            return _Forgetting()
        import typer

        return typer
    if name == "Listed":
        if _forgets:
            return None
        from coordinator.cli.command_groups import Listed

        return Listed
    raise AttributeError(name)


class _Commands:
    """In place of `typer.Typer`: each function stays what it is."""

    def __init__(self, **_: Any) -> None:
        """Whatever the group is to be."""

    def command(self, *_: Any, **__: Any) -> Callable[[F], F]:
        """One command."""
        return lambda function: function

    callback = command

    def add_typer(self, *_: Any, **__: Any) -> None:
        """A group in this one."""


class _Forgetting:
    """In place of the module `typer`."""

    Typer = _Commands

    def __getattr__(self, name: str) -> Any:
        import typer  # what a command does with it while it runs

        return getattr(typer, name)

    @staticmethod
    def Option(*_: Any, **__: Any) -> None:  # noqa: N802  (as it is called there)
        """What an option is."""

    @staticmethod
    def Argument(*_: Any, **__: Any) -> None:  # noqa: N802
        """What an argument is."""
