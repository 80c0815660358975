"""The entry point of `coord`: gathers the commands and turns whatever happens into an exit code."""

from __future__ import annotations

import importlib
import os
import sys

import click

from coordinator.cli.app import app, complain, fail, print_json
from coordinator.words.refusals import Refusal

#: Where the commands are; each module adds its own to `app` when imported.
COMMANDS = ("daemon", "locks", "tasks", "reviews", "status", "story", "launch", "bench")


def run() -> None:
    """`coord …`; never returns."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: list[str]) -> int:
    """The exit code of `coord` with these arguments."""
    for name in COMMANDS:
        importlib.import_module(f"coordinator.cli.{name}")
    try:
        done = app(arguments, prog_name="coord", standalone_mode=False)
        return done if isinstance(done, int) else 0
    except Refusal as refusal:
        if "--json" in arguments:
            print_json({"error": refusal.body()})
        return fail(refusal)
    except click.exceptions.NoArgsIsHelpError as usage:
        complain(usage.format_message())
        return 2
    except click.UsageError as usage:
        complain(f"coord: {usage.format_message()}")
        if usage.ctx is not None:
            complain(f"  next: {usage.ctx.command_path} --help")
        return 2
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except (click.Abort, KeyboardInterrupt):
        complain("coord: interrupted")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


if __name__ == "__main__":
    run()
