"""The entry point of `coord`: gathers the commands and turns whatever happens into an exit code."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import traceback

import typer

from coordinator.cli.app import app, complain, fail, print_json
from coordinator.cli.opening import opened
from coordinator.words.refusals import Code, Refusal

#: Where the commands are; each module adds its own to `app` when imported.
COMMANDS = ("daemon", "coordinators", "locks", "regions", "merging", "impact", "requests",
            "agents", "tasks", "limits", "signals", "messages", "state", "propose", "dead",
            "reviews", "verify", "status", "story", "launch", "attach", "run", "shims", "wiring",
            "guard", "trust", "mcp", "bench")


def run() -> None:
    """`coord …`; never returns."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: list[str]) -> int:
    """The exit code of `coord` with these arguments."""
    for name in COMMANDS:
        if name == "bench" and arguments and arguments[0] not in ("bench", "--help", "-h"):
            continue  # a quarter of each start, for what is seldom asked
        if importlib.util.find_spec(f"coordinator.cli.{name}"):
            importlib.import_module(f"coordinator.cli.{name}")
    try:
        if not arguments and _dashboard():
            return 0
        done = app(arguments or ["--help"], prog_name="coord", standalone_mode=False)
        return done if isinstance(done, int) else 0
    except Refusal as refusal:
        if "--json" in arguments:
            print_json({"error": refusal.body()})
        return fail(refusal)
    except typer.Exit as leave:
        return leave.exit_code
    except (typer.Abort, KeyboardInterrupt):
        complain("coord: interrupted")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as bad:
        return _usage(bad)


def _dashboard() -> bool:
    """`coord` alone on a terminal: whether the dashboard was opened there, and closed. Where there
    is nothing to be seen, that is said, and the commands are listed as anywhere else."""
    try:
        return opened("dashboard")
    except Refusal as refusal:
        complain(f"coord: {refusal.message}\n")
        return False


def _usage(bad: Exception) -> int:
    """Typer's own usage errors, told by what they can do (older Typers take theirs from click)."""
    tell = getattr(bad, "format_message", None)
    if tell is None:
        return _bug(bad)
    said = tell()
    complain(said if said.startswith("Usage") else f"coord: {said}")
    context = getattr(bad, "ctx", None)
    if context is not None:
        complain(f"  next: {context.command_path} --help")
    return 2


def _bug(bad: Exception) -> int:
    """Ours to mend: the traceback goes to a file, a sentence to the person."""
    handle, path = tempfile.mkstemp(prefix="coord-bug-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        traceback.print_exception(bad, file=file)
    return fail(
        Refusal(
            Code.INTERNAL, f"coord met a bug ({type(bad).__name__}: {bad}).",
            next=f"Please report it with {path}.",
        )
    )


if __name__ == "__main__":
    run()
