"""`python -P -m coordinator.daemon.log_summary snapshot|waypoint DATABASE SEQ`: what the log comes
to after an event.

A process of its own, for it computes for seconds where the log is long. Reads the database and
writes the summary's bytes to standard output; changes nothing.

The daemon's own log: one line a message, for people; or one JSON object a line, for programs.

Owns how lines look and that the file stays small. What strangers wrote cannot look like a line of
its own in either form, nor steer a terminal.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import logging.handlers
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from coordinator.files import ownership
from coordinator.files.state import StateDir
from coordinator.slices.story.lanes import pack
from coordinator.slices.story.report import carry
from coordinator.store.database import open_reader
from coordinator.store.ledger import View
from coordinator.store.rebuild import snapshot
from coordinator.words.clock import iso
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import in_json, one_line

#: Other work goes first.
NICE = 10


async def summarize_log(what: Literal["snapshot", "waypoint"], database: Path, upto: int) -> bytes:
    """The state after event `upto`, as another process makes it from the log; of a waypoint also
    what had begun and not ended (`read_waypoint`).

    Raises:
        Refusal: STORAGE.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", __name__, what, str(database), str(upto),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE, cwd="/",
    )
    try:
        body, data = await process.communicate()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.kill()
        raise
    if process.returncode:
        last = data.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise Refusal(Code.STORAGE, f"The log could not be summed up ({last}); nothing was "
                      "removed.", next="`coord doctor` checks the database.")
    return body


def make_waypoint(view: View, upto: int) -> tuple[bytes, bytes]:
    """The waypoint after event `upto`: the state, and what had begun and not ended."""
    return snapshot(view.db, upto, by_waypoint=True), pack(carry(view, upto))


def read_waypoint(body: bytes) -> tuple[bytes, bytes]:
    """A waypoint as its process writes it."""
    return msgspec.msgpack.decode(body, type=tuple[bytes, bytes])


def main(arguments: Sequence[str]) -> int:
    """0, or 1 with words on standard error."""
    with suppress(OSError):
        os.nice(NICE)
    what, database, upto = arguments
    try:
        db = open_reader(Path(database))
        if what == "snapshot":
            body = snapshot(db, int(upto))
        else:
            body = msgspec.msgpack.encode(make_waypoint(View(db, 0), int(upto)))
    except Refusal as refusal:
        sys.stderr.write(f"{refusal.message}\n")
        return 1
    sys.stdout.buffer.write(body)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))


LogFormat = Literal["text", "json"]
LOG_BYTES_MAX = 1_000_000
LOGS_KEPT = 3


def form_of(state: StateDir, asked: LogFormat | None, setting: LogFormat) -> LogFormat:
    """The form that the start asked for, otherwise that of a killed coordinator by its note,
    otherwise the setting."""
    with contextlib.suppress(OSError, Refusal):
        if asked is not None:
            ownership.write(state.log_format, asked.encode())
            return asked
        before = (ownership.read(state.log_format) or b"").decode("ascii", "replace")
        return "json" if before == "json" else "text" if before == "text" else setting
    return asked or setting


def log_to(path: Path, form: LogFormat) -> None:
    """Write all that is logged in this process to a file."""
    handler = logging.handlers.RotatingFileHandler(
        path, maxBytes=LOG_BYTES_MAX, backupCount=LOGS_KEPT, encoding="utf-8"
    )
    with contextlib.suppress(OSError):
        if (begins := path.open("rb").read(1)) and (begins == b"{") != (form == "json"):
            handler.doRollover()  # a reader of one form finds no line of the other
    handler.setFormatter(_JsonLines() if form == "json" else
                         _Lines("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


class _Lines(logging.Formatter):
    """For people."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        return one_line(super().formatMessage(record))


class _JsonLines(logging.Formatter):
    """`{"at", "level", "logger", "message", "traceback"?}`; `at` is UTC, ISO 8601."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {"at": iso(int(record.created * 1000)), "level": record.levelname.lower(),
                "logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return in_json(json.dumps(fields, ensure_ascii=False))
