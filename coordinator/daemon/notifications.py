"""Telling the person on this machine what waits for them, by the desktop and by a command.

These events count: a review, an agent that hangs, a question, and work that was given up. Events
that come together are told at once, and never more often than `notify.every_s` and
`notify.per_hour_max` allow. Each message is sent by a thread of its own, one at a time, within a
time limit. A failure is logged and forgotten. A message that has to arrive needs a webhook, which
is tried again.
"""

from __future__ import annotations

import html
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from coordinator.kernel.core import Service
from coordinator.kernel.event_sentences import make_event_reply, tell_event
from coordinator.store.ledger import View
from coordinator.store.rows import LogRow
from coordinator.words.refusals import Refusal

#: Kinds of events that may wait for a person; for some it depends on what they say (`waits`).
FOR_PEOPLE = frozenset({"review_opened", "candidate_judged", "step_moved", "change_moved",
                        "task_changed", "unlock_asked", "set_aside", "agent_state", "message_sent"})
#: Events that a person is told of at once, because nobody else acts on them.
AT_ONCE = FOR_PEOPLE - {"unlock_asked", "set_aside", "step_moved", "change_moved"}
#: (kind, field) -> the one value of it that waits for a person.
_ONLY = {("step_moved", "state"): "dead", ("change_moved", "state"): "dead",
         ("task_changed", "state"): "dead", ("candidate_judged", "remedy"): "person",
         ("agent_state", "state"): "stale", ("message_sent", "to"): "human"}


def waits(row: LogRow) -> bool:
    """Whether this event waits for a person."""
    if row.kind not in FOR_PEOPLE:
        return False
    data: dict[str, Any] = msgspec.json.decode(row.data)
    return all(data.get(field) == value for (kind, field), value in _ONLY.items()
               if kind == row.kind)


log = logging.getLogger("coord.notifications")
#: How long a program may take to tell it (seconds).
TOLD_S = 10.0
#: How long the end of the daemon waits for one that tells it just now (seconds).
END_S = 2.0
#: It is looked so often whether it has to be ended (seconds).
LOOK_S = 0.2
#: How many events are looked at in one second, and kept until they are told. The oldest are
#: dropped.
LOOKED_AT, KEPT_MAX = 500, 50
#: How many of several events are told in sentences, and how long each is (characters).
SENTENCES, SENTENCE_CHARS = 3, 200
HOUR_S = 3600.0
#: Variables that the command does not get, because it is no agent.
_SECRET = ("COORD_AGENT_TOKEN", "COORD_AGENT")


class Notifications:
    """One per daemon; used from the loop's thread only.

    Args:
        look: runs a reading of the committed state; a `Refusal` is a value.
    """

    def __init__(self, service: Service, look: Callable[[Callable[[View], Any]], Any]) -> None:
        self._service, self._look = service, look
        self._settings = service.settings.notify
        self._desktop = desktop() if self._settings.desktop else None
        self._at: int | None = None
        self._came = False
        self._left: deque[LogRow] = deque(maxlen=KEPT_MAX)
        self._told_at: deque[float] = deque()
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()

    @property
    def wanted(self) -> bool:
        """Whether there is any way to tell it."""
        return self._desktop is not None or bool(self._settings.command.strip())

    def begin(self) -> None:
        """From now on."""
        last_event = self._look(lambda view: int(view.value("event_last") or 0))
        self._at = last_event if isinstance(last_event, int) else None

    def events_came(self) -> None:
        """After a commit: look at what it brought with the next second."""
        self._came = True

    def tend(self) -> None:
        """Once a second: tell new events, if that is allowed now."""
        if self._came and self._at is not None:
            self._take()
        if not self._left or (self._thread is not None and self._thread.is_alive()):
            return
        now = time.monotonic()
        while self._told_at and now - self._told_at[0] >= HOUR_S:
            self._told_at.popleft()
        if self._told_at and now - self._told_at[-1] < self._settings.every_s:
            return
        if len(self._told_at) >= self._settings.per_hour_max:
            return
        rows = list(self._left)
        self._left.clear()
        self._told_at.append(now)
        self._thread = threading.Thread(target=self._tell, args=(rows,), name="notify", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """The daemon ends. A running message has a moment left. Then its program is ended, because
        nobody would be there to end it."""
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(END_S)
            self._ending.set()
            self._thread.join(END_S)

    def _take(self) -> None:
        self._came = False
        rows = self._look(lambda view: (
            view.each(LogRow, "events_after", self._at, None, None, None, None, LOOKED_AT),
            int(view.value("event_last") or 0)))
        if isinstance(rows, Refusal):
            return
        for row in rows[0]:
            if row.kind in AT_ONCE and waits(row):
                self._left.append(row)
            self._at = row.seq
        self._came = self._at is not None and self._at < rows[1]

    # ------------------------------------------------------------ in a thread

    def _tell(self, rows: Sequence[LogRow]) -> None:
        try:
            name = Path(self._service.root).name
            title = f"coord: {len(rows)} things wait in {name}" if len(rows) > 1 else (
                f"coord: {name}")
            sentences = [tell_event(row, stamp=False)[:SENTENCE_CHARS] for row in rows[-SENTENCES:]]
            if len(rows) > SENTENCES:
                sentences.append(f"… and {len(rows) - SENTENCES} more")
            if self._desktop is not None:
                self._run(self._desktop(title, "\n".join(sentences)))
            if self._settings.command.strip():
                body = {"repository": self._service.root, "title": title,
                        "text": "\n".join(sentences),
                        "events": [msgspec.to_builtins(make_event_reply(row)) for row in rows]}
                self._run(["sh", "-c", self._settings.command], msgspec.json.encode(body))
        except Exception:
            log.exception("what waits could not be told")

    def _run(self, words: list[str], given: bytes = b"") -> None:
        """Run it in a session of its own, and end all of it when it takes too long."""
        env = {name: value for name, value in os.environ.items() if name not in _SECRET}
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd=self._service.root, env=env, start_new_session=True,
        )
        over = time.monotonic() + TOLD_S
        rest: bytes | None = given
        while True:
            try:
                process.communicate(rest, timeout=LOOK_S)
                if process.returncode:
                    log.warning("%s ended with exit code %d", words[0], process.returncode)
                return
            except subprocess.TimeoutExpired:
                rest = None  # it continues with what it has
                if time.monotonic() < over and not self._ending.is_set():
                    continue
            log.warning("%s took longer than %g s and was ended", words[0], TOLD_S)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return


def desktop() -> Callable[[str, str], list[str]] | None:
    """The command that tells this machine's desktop (title, text); None if it has none."""
    if sys.platform == "darwin" and shutil.which("osascript"):
        script = ["-e", "on run argv", "-e",
                  "display notification (item 2 of argv) with title (item 1 of argv)", "-e",
                  "end run"]
        return lambda title, text: ["osascript", *script, title, text]
    if (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")) and (
            shutil.which("notify-send")):
        return lambda title, text: ["notify-send", "--app-name=coord", "--", title,
                                    html.escape(text, quote=False)]
    return None
