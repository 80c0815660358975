"""The shell that a command was typed in, as far as a command may know it, and the lines it prints.

Commands are generators of requests (`Asking`). The caller sends the requests and prints the
lines. The module knows no terminal and no connection.
"""

from __future__ import annotations

import contextlib
import math
import re
import shlex
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from coordinator.commands.signatures import COMMANDS
from coordinator.words import file_names, texts
from coordinator.words import requests as rq
from coordinator.words.refusals import HELD, Code, Refusal

R = TypeVar("R")
#: Asks by yielding; is sent the reply, or a `Refusal` is raised in it.
Asking = Generator[rq.Request[Any], Any, None]
#: The function of a command: it gets a `Shell`, and its parameters by name.
Body = Callable[..., Asking]
#: The terminal's codes of a style (ECMA-48, SGR).
STYLES = {"title": "1;36", "bold": "1", "dim": "2", "yellow": "33", "magenta": "35",
          "cyan": "36"}
#: The places of `coord` in sentences that tell a person or an agent what to type.
_TYPED = re.compile(r"(`|next: )coord ")
#: A field of a request, where a sentence names one.
_FIELD = re.compile(r"`([a-z]\w*)`")
#: The operation that such a sentence begins with.
_OPERATION = re.compile(r"^[a-z_]+: (?=`)")
#: Parameters of a caller without messages: a program reads the output, or a person overrides.
UNHEARD = ("as_json", "short", "quiet", "force")
_SEVERAL = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


class Shell(msgspec.Struct):
    """The place and the circumstances of a typed command.

    Attributes:
        cwd: the working directory, absolute.
        now_ms: the instant (ms since 1970, UTC).
        agent: $COORD_AGENT; None: not set.
        pid: the process that asks: an agent's session is known by it.
        user: the person at the keyboard, for records.
        width: characters in a line of the terminal; None: a pipe, which gets whole values.
        colour: whether lines may have a style.
        command: the words that it began with, as far as they name a command.
        terminal: whether a person reads it there, and no pipe or file.
        program: what to type in place of `coord`, where that is not on PATH.
        acts_for: the agent that the command has asked something for.
        utc_offset_s: the seconds by which local time there is ahead of UTC.
        change: $COORD_CHANGE, the change of a key that is being applied there; None: not known.
    """

    cwd: str
    now_ms: int
    agent: str | None = None
    pid: int = 0
    user: str = "operator"
    width: int | None = None
    program: str | None = None
    colour: bool = False
    terminal: bool = False
    command: str = ""
    acts_for: str | None = None
    change: str | None = None
    utc_offset_s: int = 0
    _lines: list[tuple[bool, str]] = msgspec.field(default_factory=list)

    def say(self, text: str, style: str = "") -> None:
        """One line of plain text on standard output, never wrapped. `style`: a name in `STYLES`,
        for a terminal that shows colours."""
        self.say_parts((text, style))

    def say_parts(self, *parts: tuple[str, str]) -> None:
        """One line of texts, each with its style."""
        line = "".join(self._styled(text, style) for text, style in parts)
        self._lines.append((True, line + "\n"))

    def _styled(self, text: str, style: str) -> str:
        plain = texts.harmless(file_names.shown(name_program(text, self.program)))
        return (f"\x1b[{STYLES[style]}m{plain}\x1b[0m" if self.colour and style and plain
                else plain)

    def complain(self, text: str) -> None:
        """One line on standard error."""
        line = texts.harmless(file_names.shown(name_program(text, self.program)))
        self._lines.append((False, line + "\n"))

    def json(self, value: Any) -> None:
        """A reply as indented JSON; what could deceive on a terminal is escaped."""
        plain = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
        self._lines.append((True, texts.in_json(plain) + "\n"))

    def compact(self, value: Any) -> None:
        """A value as JSON in one line."""
        plain = msgspec.json.encode(value).decode()
        self._lines.append((True, texts.in_json(plain) + "\n"))

    def refused(self, refusal: Refusal, as_json: bool) -> int:
        """Say a refusal; the exit code that goes with it."""
        if as_json:
            self.json({"error": refusal.body()})
        message = self._by_options(refusal, refusal.message)
        self.complain(f"coord: {refusal.code.value}: {message}")
        conflicts = refusal.facts.get("conflicts", []) if refusal.code in HELD else []
        held = [conflict for conflict in conflicts if not conflict.get("waiting")]
        for item in held[1:10]:  # the first one is in the sentence
            until = f" until {item['until'][11:16]}Z" if item.get("until") else ""
            self.complain(f"  {item['resource']}: {item['holder']}{until}")
        left = len(held[10:]) + refusal.facts.get("conflicts_unlisted", 0)
        if left:
            self.complain("  … and more: `coord locks` lists them")
        if refusal.code is not Code.LOCKED or refusal.next not in refusal.message:
            self.complain(f"  next: {self._next(refusal)}")
        return refusal.exit_code

    def _by_options(self, refusal: Refusal, text: str) -> str:
        """A sentence about a field, by the name of the option that it was typed with."""
        if refusal.code is not Code.INVALID or "coord.toml" in refusal.message:
            return text
        options = COMMANDS[self.command].options if self.command in COMMANDS else {}

        def as_typed(match: re.Match[str]) -> str:
            option = "--" + match[1].removesuffix("_s").replace("_", "-")
            return f"`{option}`" if option in options else match[0]

        return _FIELD.sub(as_typed, _OPERATION.sub("", text))

    def _next(self, refusal: Refusal) -> str:
        """The next step; general only if nothing better is known."""
        if self.command and refusal.next == Code.INVALID.row.next:
            return f"coord {self.command} --help"
        return self._by_options(refusal, refusal.next)

    def taken(self) -> list[tuple[bool, str]]:
        """Take the lines printed since the last call: (whether on standard output, text)."""
        lines, self._lines = self._lines, []
        return lines

    def acting(self, agent: str | None,
               otherwise: str = "") -> Generator[rq.Request[Any], Any, str]:
        """The agent that the command acts for: the named one, otherwise the one whose session runs
        it. `otherwise`: the next step if there is none.

        Raises:
            Refusal: INVALID: no agent is named.
        """
        name = agent or self.agent or (yield from self.agent_around())
        if not name:
            raise Refusal(
                Code.INVALID,
                "It is not said which agent you act for. Nothing was done.",
                next=otherwise
                or f"Add `--agent NAME` (say `--agent {self.user}`), or set COORD_AGENT.",
            )
        self.acts_for = name
        return name

    def agent_around(self) -> Generator[rq.Request[Any], Any, str | None]:
        """The agent whose session, as its hooks have shown it, the command was typed in."""
        try:
            return (yield from ask(rq.AgentOfProcess(pid=self.pid))).agent
        except Refusal:
            return None


def name_program(text: str, program: str | None) -> str:
    """Replace `coord` in commands to type by this program, if `coord` is not on PATH."""
    if not program or "coord " not in text:
        return text
    return _TYPED.sub(lambda typed: f"{typed[1]}{shlex.quote(program)} ", text)


def carried_out(body: Body, shell: Shell, values: Mapping[str, Any]) -> Asking:
    """Run a command, then give its agent the messages for it, because an agent without hooks has no
    other way to get them. A program that reads the output gets none; they come the next time.

    Raises:
        Refusal: what the command itself raises.
    """
    try:
        yield from body(shell, **values)
    except Refusal:
        yield from _hear(shell, values)
        raise
    yield from _hear(shell, values)


def _hear(shell: Shell, values: Mapping[str, Any]) -> Asking:
    agent = shell.acts_for or shell.agent
    if agent is None or any(values.get(name) for name in UNHEARD):
        return
    with contextlib.suppress(Refusal):  # the command is done in any case
        alive = yield from ask(rq.Heartbeat(agent=agent))
        if alive.hears == "hooks" or not alive.notices:
            return
        if alive.hears == "calls" and shell.agent != agent:
            return  # a person types this
        for notice in alive.notices:
            shell.complain(f"[coord] {notice.text}")
        yield rq.Heartbeat(agent=agent, ack=alive.notices[-1].notice)


def ask(request: rq.Request[R]) -> Generator[rq.Request[Any], Any, R]:
    """The reply to a request, as its own type: `found = yield from ask(request)`.

    Raises:
        Refusal: with its code and facts.
    """
    reply: R = yield request
    return reply


def each(
    shell: Shell, requests: Sequence[rq.Request[R]], tell: Callable[[R], None], as_json: bool
) -> Asking:
    """Ask several things, each by itself: one that is refused leaves the others alone.

    Raises:
        Refusal: the first of them; as JSON it has what was `done`, and the others (`refused`).
    """
    done: list[R] = []
    refused: list[Refusal] = []
    for request in requests:
        try:
            done.append((yield from ask(request)))
        except Refusal as refusal:
            refused.append(refusal)
            continue
        if not as_json:
            tell(done[-1])
    if refused:
        for other in refused[1:] if not as_json else ():
            shell.refused(other, as_json=False)
        if len(requests) > 1:
            refused[0].facts.update(done=done, refused=[refusal.body() for refusal in refused[1:]])
        raise refused[0]
    if as_json:
        shell.json(done[0] if len(requests) == 1 else {"items": done})


def seconds(text: str | None, of: str = "") -> float | None:
    """`30m`, `45`, `1.5h`, `250ms`, `1h30m` (as lists show them) as seconds; None stays None. `of`:
    the option with this value.

    Raises:
        Refusal: INVALID.
    """
    if text is None:
        return None
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
    bare = text.strip().lower()
    several = _SEVERAL.fullmatch(bare)
    if several is not None and any(several.groups()):
        return sum(float(number) * units[unit] for number, unit in
                   zip(several.groups(), "dhms", strict=True) if number)
    for unit in ("ms", "s", "m", "h", "d"):
        if bare.endswith(unit):
            number, factor = bare[: -len(unit)], units[unit]
            break
    else:
        number, factor = bare, 1.0
    with contextlib.suppress(ValueError):
        if math.isfinite(value := float(number) * factor):
            return value
    raise Refusal(
        Code.INVALID,
        f"{of}{': ' if of else ''}{text!r} is not a duration. Nothing was done.",
        next="Write 45, 45s, 30m, 2h or 1h30m.",
    )


def choices(request: type[Any], field: str) -> tuple[str, ...]:
    """The words that a request takes in this field."""
    return get_args(get_type_hints(request)[field])


def one_of(text: str, choices: Iterable[Any], refused: str) -> Any:
    """The one of `choices` that was typed.

    Raises:
        Refusal: INVALID, with this sentence and what there is.
    """
    words = list(choices)
    for word in words:
        if word == text:
            return word
    raise Refusal(
        Code.INVALID, f"{refused}. Nothing was done.", next=f"One of: {', '.join(words)}."
    )
