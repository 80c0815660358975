"""The `coord` command's frame: the app, the session that each command opens, and how it ends.

Commands parse, call one operation, and print. With `--json` they print the API's own reply. A
refusal becomes its sentence and next step on standard error, and the catalogue's exit code; no
traceback reaches a user.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import IO, Annotated, Any, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.segment import Segment

from coordinator.client.client import Client
from coordinator.resources import program_version
from coordinator.words import requests as rq
from coordinator.words import texts
from coordinator.words.refusals import HELD, Code, Refusal

R = TypeVar("R")

app = typer.Typer(
    name="coord",
    help="Run several AI coding agents in one repository at once.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)



def _told(asked: bool) -> None:
    if asked:
        say(f"coord {program_version()}")
        raise typer.Exit


@app.callback()
def coord(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_told, is_eager=True,
                           help="Say which version this is.")
    ] = False,
) -> None:
    """Run several AI coding agents in one repository at once."""


AsJson = Annotated[bool, typer.Option("--json", help="Print the API's own reply.")]
AgentName = Annotated[
    str | None, typer.Option("--agent", "-a", help="Whom you act for (default: $COORD_AGENT).")
]


#: What is taken for the width of a pipe.
PIPE_COLUMNS = 4000


class _Harmless(Console):
    """A console that steers the terminal by its own colours alone: no text that it is given can."""

    def render(self, *args: Any, **kwargs: Any) -> Iterator[Segment]:
        for segment in super().render(*args, **kwargs):
            if segment.control is None and not texts.is_harmless(segment.text):
                yield Segment(texts.masked(segment.text), segment.style)
            else:
                yield segment


def out(file: IO[str] | None = None) -> Console:
    """Standard output; plain when piped or under NO_COLOR. A pipe is as wide as its longest line:
    whoever filters it needs all of it. `file`: where it is written instead, as it would be there.
    """
    piped = not sys.stdout.isatty()
    width = _columns_given()
    if file is not None and not piped and width is None:
        width = shutil.get_terminal_size().columns
    return _Harmless(
        width=(width or PIPE_COLUMNS) if piped else width, highlight=False, soft_wrap=False,
        emoji=False, markup=False, file=file,
        force_terminal=None if piped or file is None else True,
    )


def width() -> int | None:
    """How wide lists may be; None when piped: whoever filters them needs all of it."""
    given = _columns_given()
    if not sys.stdout.isatty():
        return given
    return given or shutil.get_terminal_size().columns


def _columns_given() -> int | None:
    given = os.environ.get("COLUMNS", "")
    return int(given) or None if given.isascii() and given.isdigit() else None


def say(text: str) -> None:
    """One line of plain text, never wrapped: for people and for pipes."""
    sys.stdout.write(texts.harmless(as_typed(text)) + "\n")


def complain(text: str) -> None:
    """One line on standard error."""
    sys.stderr.write(texts.harmless(as_typed(text)) + "\n")


def as_typed(text: str) -> str:
    """With what to type next as it can be typed here: an agent's shell may have no `coord` on its
    PATH, only the program that it was told of (daemon/coord_command.py)."""
    program = os.environ.get("COORD_PROGRAM")
    if not program or shutil.which("coord"):
        return text
    return re.sub(r"(`|next: )coord ", lambda found: f"{found[1]}{shlex.quote(program)} ", text)


def client() -> Client:
    """A client for the repository that the command stands in. With `COORD_AGENT_TOKEN` set it is
    held to that agent; without, it speaks for the person at the keyboard. A question that changes
    nothing makes no `.coord/` where there is none, and starts nothing there."""
    return Client(token=os.environ.get("COORD_AGENT_TOKEN"), prepares=False,
                  starting=lambda: complain("coord: starting the coordinator …"))


def ask(request: rq.Request[R]) -> R:
    """One question to the coordinator, on a connection of its own."""
    with client() as session:
        return session.call(request)


def agent_or_refuse(agent: str | None) -> str:
    """The agent that the command acts for: the one that is named, else the one in whose session it
    is run.

    Raises:
        Refusal: INVALID when nobody is named.
    """
    name = agent or os.environ.get("COORD_AGENT") or agent_around()
    if not name:
        raise Refusal(
            Code.INVALID, "Name the agent you act for.",
            next=f"Add `--agent NAME` (say `--agent {person()}`), or set COORD_AGENT.",
        )
    return name


def agent_around() -> str | None:
    """The agent whose session, as its hooks have shown it, this process is in."""
    with contextlib.suppress(Refusal), Client(agent="", autostart=False) as asking:
        return asking.call(rq.AgentOfProcess(pid=os.getpid())).agent
    return None


def person() -> str:
    """The human at the keyboard, for the record of verdicts and overrides."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "operator"


def one_of(text: str, known: Iterable[Any], refused: str) -> Any:
    """The one of `known` that was typed.

    Raises:
        Refusal: INVALID, with this sentence and what there is.
    """
    words = list(known)
    for word in words:
        if word == text:
            return word
    raise Refusal(Code.INVALID, f"{refused}: {', '.join(words)}.")


def print_json(value: Any) -> None:
    """A reply as indented JSON; what could deceive on a terminal is escaped."""
    plain = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    sys.stdout.write(texts.in_json(plain) + "\n")


def seconds(text: str | None) -> float | None:
    """`30m`, `45`, `1.5h`, `250ms` as seconds; None stays None.

    Raises:
        Refusal: INVALID.
    """
    if text is None:
        return None
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
    bare = text.strip().lower()
    for unit in ("ms", "s", "m", "h", "d"):
        if bare.endswith(unit):
            number, factor = bare[: -len(unit)], units[unit]
            break
    else:
        number, factor = bare, 1.0
    try:
        return float(number) * factor
    except ValueError:
        raise Refusal(
            Code.INVALID, f"{text!r} is not a duration.", next="Write 45, 45s, 30m or 2h."
        ) from None


def fail(refusal: Refusal) -> int:
    """Say a refusal on standard error; the exit code that goes with it."""
    complain(f"coord: {refusal.code.value}: {refusal.message}")
    if refusal.code in HELD:
        conflicts = refusal.facts.get("conflicts", [])
        for conflict in conflicts[:10] if len(conflicts) > 1 else ():
            until = conflict.get("until")
            complain(
                f"  {conflict['resource']}: {conflict['holder']}"
                + (f" until {until}" if until else "")
            )
    complain(f"  next: {refusal.next}")
    return refusal.exit_code
