"""The daemon's own log: one line a message, for people; or one JSON object a line, for programs.

Owns how lines look and that the file stays small. What strangers wrote cannot look like a line of
its own in either form, nor steer a terminal.
"""

from __future__ import annotations

import contextlib
import json
import logging
import logging.handlers
from pathlib import Path
from typing import Literal

from coordinator.files import ownership
from coordinator.files.state import StateDir
from coordinator.words.clock import iso
from coordinator.words.refusals import Refusal
from coordinator.words.texts import in_json, one_line

LogFormat = Literal["text", "json"]
LOG_BYTES_MAX = 1_000_000
LOGS_KEPT = 3


def form_of(state: StateDir, asked: LogFormat | None, setting: LogFormat) -> LogFormat:
    """The form that was asked for with the start; else that of a coordinator that was killed, which
    had left a note of it; else the setting."""
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
            handler.doRollover()  # whoever reads a file of one form finds no line of the other
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
        said = {"at": iso(int(record.created * 1000)), "level": record.levelname.lower(),
                "logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        return in_json(json.dumps(said, ensure_ascii=False))
