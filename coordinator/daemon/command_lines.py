"""Running typed commands in the daemon, so that the `coord` program has to load nothing.

The typed words arrive in a frame (hook_protocol.py), and the finished text goes back in another.
Only commands that ask the coordinator and print are run here (`coordinator.commands`). They read no
file and start no program, so a process in a sandbox gains nothing by asking. Words that the table
does not understand are answered NOT_SERVED, and the program continues by itself.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pwd
import shlex
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

import coordinator
from coordinator._served import ENDING, NOT_SERVED, make_stamp
from coordinator.commands.listing import parse_served
from coordinator.commands.parsing import Typed
from coordinator.commands.shell import Asking, Shell, carried_out
from coordinator.commands.signatures import COMMANDS
from coordinator.daemon.ground import Ground
from coordinator.daemon.hook_protocol import Answer
from coordinator.daemon.request_router import RequestRouter
from coordinator.files.content import write_atomic
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.hooks")
NAME = "coord"
#: The program, as far as the coordinator does the work for it.
QUICK_PROGRAM = str(Path(coordinator.__file__).with_name("_command.py"))


class CoordCommand:
    """`coord` for agents' shells, also where it is on no PATH: a small program in `folder`, the
    repository's `.coord/bin/`, that runs this very installation."""

    def __init__(self, folder: Path) -> None:
        self._program = folder / NAME
        words = shlex.join([sys.executable, "-I", "-S", QUICK_PROGRAM])
        script = f'#!/bin/sh\nexport COORD_PROGRAM="$0"\nexec {words} "$@"\n'
        try:
            if not self._program.is_file() or self._program.read_text("utf-8") != script:
                folder.mkdir(mode=0o700, exist_ok=True)
                write_atomic(self._program, script.encode(), 0o700)
        except OSError as bad:
            log.error("agents' shells may lack `coord`: %s", bad)

    def named(self, text: str, path: str | None) -> str:
        """A text for an agent whose shell has this PATH (None: not known): with the program's whole
        path, where `coord` alone would not be found."""
        if path and shutil.which(NAME, path=path):
            return text
        return text.replace(f"`{NAME} ", f"`{shlex.quote(str(self._program))} ")

log = logging.getLogger("coord.commands")
#: How many fields a frame has before the words: see `_command.said`.
FIELDS = 11
#: Commands that the program runs itself on a terminal, because they use a pager.
PAGED = frozenset({"review show"})
_encode = msgspec.json.Encoder().encode


class CommandLines:
    """Runs commands in frames. Used in the loop's thread only."""

    def __init__(self, router: RequestRouter, ground: Ground) -> None:
        self._router, self._ground = router, ground
        self._stamp = _make_stamp()

    def ask(self, token: str | None, payload: bytes, answer: Callable[[Answer], None], peer: int,
            gone: Callable[[], bool]) -> None:
        """Run the command in a frame, and call `answer` once. `peer`: the process that asks; 0 if
        it is not known."""
        try:
            fields = payload.decode("utf-8").split("\0")
        except UnicodeDecodeError:  # the program itself can print a name that is no text
            answer(Answer(NOT_SERVED))
            return
        typed = parse_served(fields[FIELDS:])
        if typed is None or fields[0] != self._stamp:
            answer(Answer(NOT_SERVED))
            return
        _, cwd, agent, program, columns, colour, terminal, pid, user, key, offset = fields[:FIELDS]
        if typed.name in PAGED and terminal:
            answer(Answer(NOT_SERVED))
            return
        shell = Shell(
            cwd=cwd, now_ms=self._router.now_ms(), agent=agent or None, user=user or _own_name(),
            width=int(columns) if columns.isdigit() else None, program=program or None,
            colour=colour == "1", terminal=terminal == "1",
            command=typed.name,
            pid=peer or (int(pid) if pid.isdigit() else 0),
            utc_offset_s=int(offset) if offset.lstrip("-").isdigit() else 0,
        )
        _Run(self, shell, typed, token, key, answer, gone).begin()

    def request(self, request: rq.Request[Any], token: str | None, key: str | None,
                answer: Callable[[Any], None], gone: Callable[[], bool], caller: int) -> None:
        """Pass a command's request to the router, as if it had come over the socket."""
        if not request.writes:
            try:
                self._ground.check_read()
            except Refusal as refusal:
                answer(refusal)
                return
        self._router.ask(request.op, _encode(request), token, answer, gone, key, caller)


class _Run:
    """One command that is running."""

    def __init__(self, lines: CommandLines, shell: Shell, typed: Typed, token: str | None,
                 key: str, answer: Callable[[Answer], None], gone: Callable[[], bool]) -> None:
        self._lines, self._shell, self._typed = lines, shell, typed
        self._token, self._key, self._answer, self._gone = token, key, answer, gone
        self._asking: Asking = carried_out(COMMANDS[typed.name].function, shell, typed.values)
        self._count = 0

    def begin(self) -> None:
        self._step(partial(next, self._asking))

    def _replied(self, request: rq.Request[Any], value: Any) -> None:
        if isinstance(value, Refusal):
            if value.code is Code.SHUTTING_DOWN:
                self._answer(Answer(ENDING))
                return
            # A copy, because a raised exception keeps its traceback.
            self._step(partial(self._asking.throw, Refusal(
                value.code, value.message, next=value.next, **value.facts)))
            return
        try:  # make the reply as it would come over the socket
            reply = msgspec.json.decode(_encode(value), type=request.reply_shape())
        except msgspec.DecodeError as bad:
            self._bug(bad)
            return
        self._step(partial(self._asking.send, reply))

    def _step(self, step: Callable[[], rq.Request[Any]]) -> None:
        try:
            request = step()
        except StopIteration:
            self._end(0)
            return
        except Refusal as refusal:
            as_json = bool(self._typed.values.get("as_json"))
            self._end(self._shell.refused(refusal, as_json))
            return
        except Exception as bad:
            self._bug(bad)
            return
        key = None
        if request.writes:
            self._count += 1
            key = f"{self._key}-{self._count}" if self._key else None
        self._lines.request(request, self._token, key, partial(self._replied, request), self._gone,
                            self._shell.pid)

    def _bug(self, bad: Exception) -> None:
        log.error("%s failed", self._typed.name, exc_info=bad)
        self._end(self._shell.refused(
            Refusal(Code.INTERNAL, f"coord met a bug ({type(bad).__name__})."), False))

    def _end(self, code: int) -> None:
        rows = self._shell.taken()
        self._answer(Answer(code, "".join(text for plain, text in rows if plain),
                            "".join(text for plain, text in rows if not plain)))


def _make_stamp() -> str:
    """The stamp of this program. A client with another stamp runs its commands itself."""
    with contextlib.suppress(OSError):
        return make_stamp(QUICK_PROGRAM)
    return ""


def _own_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return "operator"
