"""`coord` as a person runs it at a terminal 80 columns wide."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

CTRL_C = "\x03"
#: What a program asks its terminal, and is answered: where the cursor is.
CURSOR_ASKED, CURSOR = b"\x1b[6n", b"\x1b[1;1R"
#: After so many seconds it is killed.
SECONDS = 60.0


class Terminal:
    """`coord` at a terminal that the test types at, and closes."""

    def __init__(self, where: Path, *words: str, env: Mapping[str, str] | None = None,
                 under: Sequence[str] = ()) -> None:
        self._ours, theirs = pty.openpty()
        self.process = _started(where, words, theirs, env, under)
        self._said = b""
        self._closed = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.closes()

    @property
    def shown(self) -> str:
        """All that it got so far."""
        return self._said.decode("utf-8", "replace")

    def types(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def closes(self) -> None:
        """As when its window is closed."""
        if not self._closed.is_set():
            self._closed.set()
            self._reader.join(5)
            os.close(self._ours)

    def _read(self) -> None:
        while not self._closed.is_set():
            try:
                if select.select([self._ours], [], [], 0.05)[0]:
                    data = os.read(self._ours, 65536)
                    self._said += data
                    if CURSOR_ASKED in data:
                        os.write(self._ours, CURSOR)
            except OSError:  # it has ended
                return


def at_a_terminal(where: Path, *words: str, env: Mapping[str, str] | None = None,
                  at: Mapping[str, str | Callable[[], None]] | None = None) -> tuple[int, str]:
    """Its exit code, and all that the terminal got. `at`: what is typed, or done, once a text is
    seen; each once."""
    left = dict(at or {})
    ours, theirs = pty.openpty()
    process = _started(where, words, theirs, env)
    shown = b""
    timer = threading.Timer(SECONDS, process.kill)
    timer.start()
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # it has ended
            break
        if not data:
            break
        shown += data
        for text in [text for text in left if text.encode() in shown]:
            act = left.pop(text)
            if isinstance(act, str):
                os.write(ours, act.encode())
            else:
                act()
    code = process.wait()
    timer.cancel()
    os.close(ours)
    return code, shown.decode("utf-8", "replace")


def _started(where: Path, words: Sequence[str], theirs: int, env: Mapping[str, str] | None,
             under: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """`under`: the program that starts it, as a shell does."""
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    process = subprocess.Popen(
        [*under, sys.executable, "-m", "coordinator.cli.main", *words], cwd=where, stdin=theirs,
        stdout=theirs, stderr=theirs, start_new_session=True,
        env={**clean, "TERM": "xterm-256color", **(env or {})}, preexec_fn=_as_a_shell_starts_it,
    )
    os.close(theirs)
    return process


def _as_a_shell_starts_it() -> None:
    """With the terminal, and with a Ctrl-C that counts whatever the tests were started with."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
