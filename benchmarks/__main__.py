"""`python -m benchmarks NAME`: every benchmark of coord, each a command; and what
is shown of it: a demonstration, a recording, a picture.

Each command stands in the module that does its work; this list names them. No benchmark touches the
repository that it is started in, and none is part of the installed program.
"""

from __future__ import annotations

import importlib
import signal
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from coordinator.cli.app import fail
from coordinator.words.refusals import Refusal

#: Command -> its module and function.
COMMANDS = {
    "replay": "replay.command:replay_release",
    "locks": "locks:measure_locks",
    "hook": "guarded_write:measure_hook",
    "session": "session:measure_session",
    "cli": "typed_commands:measure_commands",
    "words": "words:count_words",
    "dispatch": "growth:measure_dispatch",
    "overlap": "growth:measure_overlap",
    "past": "past:measure_past",
    "stall": "stall:measure_stall",
    "rest": "rest:measure_rest",
    "regions": "regions:measure_regions",
    "one-file": "one_file:measure_one_file",
    "meaning": "meaning:measure_meaning",
    "billing": "billing:measure_billing",
    "state": "state:measure_state",
    "strategies": "strategies:measure_strategies",
    "commit-beside": "commit_beside:measure_commits",
    "signals": "signals:simulate_signals",
    "merge-corpus": "merge_corpus:merge_corpus",
    "merge-branches": "merge_branches:merge_branches",
    "merge-history": "merge_history:merge_history",
    "meaning-oracle": "meaning_oracle:ask_mypy",
    "meaning-oracle-typescript": "meaning_oracle_typescript:ask_compiler",
    "demo": "demo:show_demo",
    "recording": "recording:record_agents",
    "screenshot": "screenshot:draw_status",
}


class Benchmarks(TyperGroup):
    """Lists each benchmark with its whole sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """All of them, in their order."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(1000))
                                for name, command in self.commands.items()])


def build_app(words: list[str]) -> typer.Typer:
    """The program for these words: with the named command alone, or with all of them for help."""
    app = typer.Typer(
        cls=Benchmarks, name="benchmarks", help="Measure coord on this machine.",
        no_args_is_help=True, add_completion=False, rich_markup_mode=None,
        pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(tidy_up_when_ended)
    named = [word for word in words[:1] if word in COMMANDS]
    for name in named or COMMANDS:
        module, _, function = COMMANDS[name].partition(":")
        imported = importlib.import_module(f"benchmarks.{module}")
        app.command(name)(getattr(imported, function))
    return app


def tidy_up_when_ended() -> None:
    """Have SIGTERM end a benchmark as it ends by itself: its daemon would stay behind else."""
    signal.signal(signal.SIGTERM, _exit)


def _exit(number: int, frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)  # once is enough; what tidies up is not interrupted
    raise SystemExit(128 + number)


def main(words: list[str]) -> int:
    """Run the command that these words name; its exit code."""
    try:
        build_app(words)(words, prog_name="python -m benchmarks")
    except Refusal as refusal:
        return fail(refusal)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
