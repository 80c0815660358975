"""The `coord` command's frame: the session that each command opens, and how it ends.

Commands parse, call one operation, and print. With `--json` they print the API's own reply. A
refusal becomes its sentence and next step on standard error, and the catalogue's exit code; no
traceback reaches a user.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import IO, TYPE_CHECKING, Any, TypeVar

import msgspec

from coordinator.commands.shell import Body, Shell, carried_out, name_program, one_of, seconds
from coordinator.commands.signatures import COMMANDS, find_command
from coordinator.words import file_names, texts
from coordinator.words import requests as rq
from coordinator.words.clock import SystemClock, utc_offset_s
from coordinator.words.refusals import Code, Refusal

if TYPE_CHECKING:
    from rich.console import Console

    from coordinator.client.client import Client

__all__ = ["one_of", "seconds"]  # defined elsewhere, for the other commands

R = TypeVar("R")

class EndedError(Exception):
    """The command ends here, with this exit code."""

    def __init__(self, exit_code: int = 0) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


#: The width that a pipe counts as.
PIPE_COLUMNS = 4000


def out(file: IO[str] | None = None) -> Console:
    """Standard output; plain when piped or under NO_COLOR. A pipe is as wide as its longest line,
    because a filter needs all of it. `file`: written to instead, in the same form."""
    from coordinator.cli.harmless_console import HarmlessConsole  # Rich is slow to load

    piped = not sys.stdout.isatty()
    width = _columns_given()
    if file is not None and not piped and width is None:
        width = _terminal_columns()
    return HarmlessConsole(
        width=(width or PIPE_COLUMNS) if piped else width, highlight=False, soft_wrap=False,
        emoji=False, markup=False, file=file,
        force_terminal=None if piped or file is None else True,
    )


def width() -> int | None:
    """The maximum width of lists; None when piped, because a filter needs all of it."""
    given = _columns_given()
    if not sys.stdout.isatty():
        return given
    return given or _terminal_columns()


def _terminal_columns() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _columns_given() -> int | None:
    given = os.environ.get("COLUMNS", "")
    return int(given) or None if given.isascii() and given.isdigit() else None


def say(text: str) -> None:
    """Print a line of plain text, never wrapped: for people and for pipes."""
    sys.stdout.write(texts.harmless(file_names.shown(as_typed(text))) + "\n")


def complain(text: str) -> None:
    """Print a line on standard error."""
    sys.stderr.write(texts.harmless(file_names.shown(as_typed(text))) + "\n")


def as_typed(text: str) -> str:
    """The text with its next commands in a form that works here. An agent's shell may have no
    `coord` on its PATH, only the program that it was given (daemon/coord_command.py)."""
    return name_program(text, _program())


def _program() -> str | None:
    """Return the program to type instead of `coord`; None if `coord` is on PATH, or if unknown."""
    program = os.environ.get("COORD_PROGRAM")
    if not program:
        return None
    import shutil

    return None if shutil.which("coord") else program


def client() -> Client:
    """A client for the repository that contains the working directory. With `COORD_AGENT_TOKEN`
    set, it is bound to that agent; otherwise it speaks for the person at the keyboard. A question
    that changes nothing makes no `.coord/` and starts no coordinator where there is none."""
    from coordinator.client.client import Client  # not every command asks

    return Client(token=os.environ.get("COORD_AGENT_TOKEN"), prepares=False,
                  starting=_told_of_the_start)


def _told_of_the_start() -> None:
    from coordinator.client.locating import locate_root
    from coordinator.files.state import StateDir

    state = StateDir(locate_root())
    made = "" if state.path.is_dir() else f", and making {state.path}/"
    complain(f"coord: starting the coordinator{made} …")


#: How long (seconds) the coordinator may take to name the session of a typed command.
AROUND_S = 2.0


def people_only(what: str, step: str, *, typed: bool = False) -> None:
    """See that a person types this, and no agent in the shell that coord has made for it; `typed`:
    nor one in the session that a person has started by itself.

    Raises:
        Refusal: UNAUTHORIZED.
    """
    if os.environ.get("COORD_AGENT_TOKEN") or (typed and _around().surely):
        raise Refusal(Code.UNAUTHORIZED, f"This is an agent's own shell; {what} is for people. "
                      "Nothing was changed.", next=step)


def ask(request: rq.Request[R]) -> R:
    """Ask the coordinator one question, on a connection of its own."""
    with client() as session:
        return session.call(request)


def as_text(typed: Any) -> Any:
    """Convert a word to the coordinator's form: a byte that is no UTF-8 is written as in names.
    Anything but a word is returned unchanged."""
    if not isinstance(typed, str) or typed.isascii():
        return typed
    return file_names.from_bytes(os.fsencode(typed))


def agent_or_refuse(agent: str | None) -> str:
    """Return the agent that the command acts for: the named one, otherwise that of the session.

    Raises:
        Refusal: INVALID: no agent is named.
    """
    asking = here().acting(agent)
    try:
        next(asking)
        around = agent_around()
        asking.send(rq.ProcessesAgent(agent=around))
    except StopIteration as end:
        return str(end.value)
    raise AssertionError("it asks one question")


def agent_around() -> str | None:
    """Return the agent whose session, by its hooks, this process is in."""
    return _around().agent


def _around() -> rq.ProcessesAgent:
    from coordinator.client.asking import encoded
    from coordinator.client.connection import Wire
    from coordinator.client.locating import locate_root
    from coordinator.files.state import StateDir
    from coordinator.words.shapes import read

    asked = rq.AgentOfProcess(pid=os.getpid())
    with contextlib.suppress(Refusal), contextlib.closing(
            Wire(StateDir(locate_root()), autostart=False)) as wire:
        # A coordinator that hangs has to be stoppable, too.
        return read(wire.ask(asked.op, encoded(asked), AROUND_S), asked.reply_shape())
    return rq.ProcessesAgent(agent=None)


def person() -> str:
    """Return the person at the keyboard, for the record of verdicts and overrides."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "operator"


def confirm(question: str) -> bool:
    """Whether the person at the keyboard agrees."""
    import typer  # few commands ask, and it is slow to load

    return typer.confirm(question, err=True)


def print_json(value: Any) -> None:
    """Print a reply as indented JSON. Characters that could deceive on a terminal are escaped."""
    plain = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    sys.stdout.write(texts.in_json(plain) + "\n")


def fail(refusal: Refusal) -> int:
    """Say a refusal on standard error; the exit code that goes with it."""
    shell = here()
    shell.command = find_command(sys.argv[1:])
    code = shell.refused(refusal, as_json=False)
    tell(shell)
    return code


# ------------------------------------------------------------ commands that are written elsewhere


def here() -> Shell:
    """Return the shell that this program was typed in."""
    return Shell(
        cwd=as_text(os.getcwd()), now_ms=SystemClock().now_ms(),  # noqa: PTH109
        agent=os.environ.get("COORD_AGENT"), pid=os.getpid(), user=person(), width=width(),
        program=_program(), change=os.environ.get("COORD_CHANGE"),
        colour=(sys.stdout.isatty() and not os.environ.get("NO_COLOR")
                and os.environ.get("TERM", "") not in ("", "dumb")),
        terminal=sys.stdout.isatty(), utc_offset_s=utc_offset_s(),
    )


def tell(shell: Shell) -> None:
    """Print the lines of a command."""
    for plain, text in shell.taken():
        (sys.stdout if plain else sys.stderr).write(text)


def run_command(name: str, values: dict[str, Any]) -> Any:
    """Carry out a declared command. If it returns a number, exit with it.

    Raises:
        Refusal: what the coordinator, or the command itself, has against it.
    """
    command = COMMANDS[name]
    for parameter in command.parameters:
        if parameter.reads_input and values[parameter.name] == "-":
            values[parameter.name] = sys.stdin.read()
    if command.in_program is None and command.asks:
        return carry_out(command.function, **values)
    return (command.in_program or command.function)(**values)


def carry_out(body: Body, **values: Any) -> None:
    """Carry out a command (`coordinator.commands`): send its questions, print its lines.

    Raises:
        Refusal: what the coordinator, or the command itself, has against it.
    """
    shell = here()
    values = {name: [*map(as_text, value)] if isinstance(value, list) else as_text(value)
              for name, value in values.items()}
    asking = carried_out(body, shell, values)
    key = os.environ.pop("COORD_IDEMPOTENCY_KEY", None)  # sent before, without an answer
    try:
        with client() as session:
            request, count = next(asking), 0
            while True:
                count += request.writes
                once = f"{key}-{count}" if key and request.writes else None
                try:
                    reply = session.call(request, key=once)
                except Refusal as refusal:
                    if session._wire.failed:  # a failed start is not tried again
                        session._wire.autostart = False
                    request = asking.throw(refusal)
                else:
                    request = asking.send(reply)
    except StopIteration:
        pass
    finally:
        tell(shell)
