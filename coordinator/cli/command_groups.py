"""How commands are listed, and what is said of one that does not exist.

`coord --help` lists them by what a person wants to do, with each sentence whole: one that is cut
off in the middle tells little. What a command does is written where the command is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.core import TyperGroup

from coordinator.cli.unknown_command import sentence, step

#: What a person wants to do -> the commands for it, the most wanted first.
GROUPS = {
    "Begin": ("init", "launch", "run", "shims", "agents", "trust", "doctor"),
    "See what goes on": ("status", "web", "locks", "logs", "attach", "events", "explain", "report",
                         "replay"),
    "Say what is to be done": ("task", "verify"),
    "Decide on half-done work": ("review", "lost-writes", "dead", "sweep"),
    "Lease, wait, and ask": ("commit", "lock", "unlock", "renew", "request", "tell", "messages",
                             "limit", "signal", "archive"),
    "Parts of files, and values": ("regions", "commit-region", "propose", "impact", "merge-driver",
                                   "merge-file", "state"),
    "The coordinator": ("up", "down", "ps", "serve", "compact", "guard", "hook", "mcp",
                        "completion", "help"),
}

class Listed(TyperGroup):
    """Commands, listed whole; on the first level by groups."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """All commands that are not hidden."""
        shown = {name: command.get_short_help_str(1000) for name, command in self.commands.items()
                 if not command.hidden}
        wide = max(map(len, shown), default=0)
        for title, names in self._grouped(list(shown)):
            with formatter.section(title):
                formatter.write_dl([(name.ljust(wide), shown[name]) for name in names])

    def _grouped(self, names: list[str]) -> Iterator[tuple[str, list[str]]]:
        if "init" not in names:
            yield "Commands", names
            return
        for title, wanted in GROUPS.items():
            if here := [name for name in wanted if name in names]:
                yield title, here
        known = [name for wanted in GROUPS.values() for name in wanted]
        if others := [name for name in names if name not in known]:
            yield "Others", others

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of this name; of one that does not exist it is said what may be meant."""
        try:
            return super().resolve_command(ctx, args)
        except Exception as bad:
            # Each Typer has a class of its own for this; its message is what they have in common.
            if getattr(bad, "message", "").startswith("No such command"):
                shown = [name for name, one in self.commands.items() if not one.hidden]
                bad.message = sentence(args[0], shown)  # type: ignore[attr-defined]
                bad.step = step(self.name or "", args[0], shown)  # type: ignore[attr-defined]
            raise
