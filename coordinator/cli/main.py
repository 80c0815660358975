"""The entry point of `coord`: gathers the commands and turns every result into an exit code."""

# ruff: noqa: E402 (Ctrl-C during the imports just ends the program: there is nothing to report yet)
from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # (`signal` takes ms to load)

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
_READ_IN = signal.getsignal(signal.SIGINT) is signal.SIG_DFL  # (`coordinator._command` does, too)

import errno
import io
import os
import sys
from typing import Any

from coordinator._served import tell_interrupted
from coordinator.cli import lazy_imports

if __name__ == "__main__":
    lazy_imports.begin()
from coordinator.cli.modules import (
    UnknownCommandError,
    is_command,
    list_first_words,
    read_command,
    read_group,
)
from coordinator.commands.parsing import EXTRA, Typed, explain_mistake, parse
from coordinator.words.refusals import Code, Exit, Refusal

#: Commands that may run without end and notice by themselves when their output has no reader.
FOLLOWERS = frozenset({"events", "logs", "attach", "status", "state", "mcp", "launch"})
#: The errors of a disk that takes no more.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
#: The command to suggest if one of these got more words than it takes.
MORE_WORDS = {"task add": "coord task add 'SEVERAL WORDS' -r FILE -r FILE"}


def run(*, short: bool = False) -> None:
    """Run `coord …` and never return. `short`: it runs one command, and ends."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115
    pipe = None if "".join(sys.argv[1:2]) in FOLLOWERS else _outlived()
    code = main(sys.argv[1:])
    if pipe is not None and pipe.closed_by_reader and code == Exit.OK:
        code = Exit.PIPE_CLOSED
    if short:
        _leave(code)
    sys.exit(code)


class _Pipe(io.FileIO):
    """Standard output that may lose its reader. The command is carried out all the same."""

    closed_by_reader = False

    def write(self, text: Any) -> int:
        try:
            return super().write(text)
        except BrokenPipeError:
            self.closed_by_reader = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())  # for its children, too
            return len(text)


def _outlived() -> _Pipe | None:
    was = sys.__stdout__
    if was is None or was is not sys.stdout or was.isatty():  # closed: another stream replaced it
        return None
    raw = _Pipe(was.fileno(), "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        raw if was.write_through else io.BufferedWriter(raw), was.encoding, was.errors,
        line_buffering=was.line_buffering, write_through=was.write_through)
    return raw


def _leave(code: int) -> None:
    """End like an interpreter, but without destroying each object, which would be a tenth of a
    short command's time. Returns if there is more to wait for."""
    threading = sys.modules.get("threading")
    if threading is not None and threading.active_count() > 1:
        return
    import atexit

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            return
    os._exit(code)


def main(arguments: list[str]) -> int:
    """Run `coord` with these arguments, and return its exit code."""
    word = arguments[0] if arguments else ""
    fault = _find_fault(word)
    if fault is not None:
        return _mistyped(*fault, arguments)
    read_command(arguments)
    typed = parse(arguments)
    from coordinator.cli import app

    if _READ_IN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        done = _carry_out(typed, arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        app.complain(tell_interrupted(arguments))
        return Exit.INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.PIPE_CLOSED
    except Exception as bad:
        return _end(bad, arguments)
    if done == Exit.INTERRUPTED and word != "run":  # Typer has caught it (`run`: the agent's)
        app.complain(tell_interrupted(arguments))
    return done


def _find_fault(word: str) -> tuple[str, str] | None:
    """Return why no command that begins with this word can run here, and the next step."""
    if word != "hook" and not _stands_somewhere():  # a hook has its own words for that
        return ("coord: This shell's working directory does not exist any more. Nothing was done.",
                "cd to a directory that is there")
    if word[:1] not in ("", "-") and not is_command(word):
        unknown = UnknownCommandError("", word, list_first_words())
        return f"coord: {unknown.message}", "coord --help"
    return None


def _carry_out(typed: Typed | None, arguments: list[str]) -> int:
    from coordinator.cli.app import run_command

    if typed is not None:
        done = run_command(typed.name, typed.values)
    elif arguments in (["--version"], ["-V"]):
        done = _tell_version()
    elif not arguments and _show_dashboard():
        done = Exit.OK
    else:
        done = _parse(arguments)
    return done if isinstance(done, int) else Exit.OK


def _stands_somewhere() -> bool:
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return False
    return True


def _wants_json(arguments: list[str]) -> bool:
    """Whether the answer is for a program. Words after `--` are for another command."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return "--json" in arguments[:end]


def _mistyped(message: str, step: str, arguments: list[str]) -> int:
    """Report that the typed words are no command."""
    from coordinator.cli.app import complain, print_json

    if _wants_json(arguments):
        print_json({"error": Refusal(Code.INVALID, message.removeprefix("coord: "),
                                     next=f"`{step}`").body()})
    complain(f"{message}\n  next: {step}")
    return Exit.INVALID


def _parse(arguments: list[str]) -> Any:
    """Parse by Typer, which knows all commands, and reports mistakes."""
    read_group(arguments[0] if arguments else "")
    from coordinator.cli.typer_program import build_program

    return build_program()(arguments or ["--help"], prog_name="coord", standalone_mode=False)


def _tell_version() -> int:
    from coordinator.cli.app import say
    from coordinator.resources import program_version

    say(f"coord {program_version()}")
    return Exit.OK


def _show_dashboard() -> bool:
    """Open the dashboard for `coord` alone on a terminal, until it is closed. Returns False if it
    cannot be shown; then the reason is printed, and the commands are listed as usual."""
    from coordinator.cli.app import complain
    from coordinator.cli.opening import opened

    try:
        return opened("dashboard")
    except Refusal as refusal:
        complain(f"coord: {refusal.message}\n")
        return False


def _end(bad: Exception, arguments: list[str]) -> int:
    """Report the exception that ended a command, and return its exit code. Typer's exceptions are
    recognised by their attributes, because older versions take theirs from click."""
    from coordinator.cli.app import EndedError, complain, fail, print_json

    if isinstance(bad, Refusal):
        if _wants_json(arguments):
            print_json({"error": bad.body()})
        return fail(bad)
    if isinstance(bad, UnknownCommandError):
        return _mistyped(f"coord: {bad.message}", bad.next, arguments)
    if isinstance(bad, EndedError) or type(bad).__name__ == "Exit":
        return int(getattr(bad, "exit_code", 0))
    if type(bad).__name__ == "Abort":
        complain("coord: interrupted")
        return Exit.INTERRUPTED
    if isinstance(bad, OSError) and bad.errno in FULL:
        return _tell_full(bad)
    return _tell_usage(bad, arguments) if hasattr(bad, "format_message") else _bug(bad)


def _tell_full(bad: OSError) -> int:
    from coordinator.cli.app import fail

    if bad.filename is None:  # the output failed: do not try the rest again at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    what = f"{bad.filename} could not be written" if bad.filename else "The output stopped"
    return fail(Refusal(Code.STORAGE, f"{what}: {bad.strerror}.",
                        next="Make room there, and look what has been done before you repeat."))


def _tell_usage(bad: Any, arguments: list[str]) -> int:
    message = explain_mistake(arguments) or bad.format_message()
    context = getattr(bad, "ctx", None)
    path = context.command_path if context is not None else " ".join(["coord", *arguments[:1]])
    step = f"{path} --help"
    if message.startswith(EXTRA):
        step = MORE_WORDS.get(path.removeprefix("coord "), step)
    return _mistyped(message if message.startswith("Usage") else f"coord: {message}", step,
                     arguments)


def _bug(bad: Exception) -> int:
    """Report a bug of ours: the traceback goes to a file, a sentence to the person."""
    import tempfile
    import traceback

    from coordinator.cli.app import fail

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
