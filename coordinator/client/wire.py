"""The wire to the daemon: find it, start it if need be, one line out, one line in.

Blocking and small: standard library and msgspec only, for the CLI's start-up time counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from coordinator.files.roots import find_root
from coordinator.files.state import StateDir
from coordinator.words.refusals import Code, Refusal

PROTOCOL = 1
START_TIMEOUT_S = 20.0
#: A reply that takes longer than this (beyond a request's own wait) means that the daemon hangs.
REPLY_TIMEOUT_S = 120.0
#: How long a broken connection is made anew before the daemon is said to be down.
RECONNECT_S = 10.0


class _Line(msgspec.Struct):
    id: int | str | None = None
    ok: msgspec.Raw = msgspec.Raw()
    error: dict[str, Any] | None = None
    event: msgspec.Raw = msgspec.Raw()


_decode = msgspec.json.Decoder(_Line).decode
_encode = msgspec.json.Encoder().encode


def locate_root(start: Path | None = None) -> Path:
    """The repository that a command means: `COORD_ROOT`, else found from the working directory."""
    given = os.environ.get("COORD_ROOT")
    return find_root(Path(given) if given else (start or Path.cwd()))


def connect(state: StateDir, timeout_s: float = 5.0) -> socket.socket | None:
    """A connection to the running daemon, or None when there is none (a dead socket included)."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(timeout_s)
    try:
        sock.connect(str(state.socket()))
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        sock.close()
        return None
    except PermissionError:
        sock.close()
        raise Refusal(
            Code.DAEMON_DOWN, f"The socket {state.socket()} belongs to another user.",
            next="Run coord as the user who started the coordinator.",
        ) from None
    except OSError as bad:
        sock.close()
        raise Refusal(Code.DAEMON_DOWN, f"{state.socket()}: {bad.strerror or bad}.") from None
    return sock


def start(state: StateDir, http_port: int | None = None) -> None:
    """Start the daemon in the background and wait until it listens.

    Raises:
        Refusal: what kept it from starting, in its own words; DAEMON_DOWN.
    """
    try:
        state.create()
        state.failure.unlink(missing_ok=True)
        errors = (state.path / "start.err").open("wb")
    except OSError as bad:
        raise Refusal(
            Code.STORAGE, f"{state.path} cannot be written: {bad.strerror}.",
            next=f"Give write access to {state.root}.",
        ) from None
    command = [sys.executable, "-m", "coordinator.daemon", "--root", str(state.root)]
    if http_port is not None:
        command += ["--http", str(http_port)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COORD_AGENT")}
    # -P: a module of the repository that is called like one of ours must not be imported
    command.insert(1, "-P")
    with errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, cwd=state.root,
            start_new_session=True, env=environment,
        )
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        sock = connect(state)
        if sock is not None:
            sock.close()
            _call_off(state, process)
            return
        code = process.poll()
        if code is not None:
            _explain_failure(state, code)
            return
        time.sleep(0.02)
    raise Refusal(
        Code.DAEMON_DOWN, f"The coordinator did not answer within {START_TIMEOUT_S:g} s.",
        next=f"Look at {state.log}.",
    )


def _call_off(state: StateDir, process: subprocess.Popen[bytes]) -> None:
    """Somebody serves. If that is not the daemon that we started, ours came too late: it must not
    sit there, still starting, and take over when the other one is told to stop."""
    with contextlib.suppress(OSError):
        if state.lock.read_text("utf-8").strip() != str(process.pid):
            process.kill()
            process.wait()


def _explain_failure(state: StateDir, code: int) -> None:
    """Say why the start failed; return if another daemon won the race and serves."""
    with contextlib.suppress(OSError, ValueError):
        raise Refusal.from_body(json.loads(state.failure.read_text("utf-8")))
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        sock = connect(state)
        if sock is not None:
            sock.close()
            return
        time.sleep(0.02)
    said = ""
    with contextlib.suppress(OSError):
        lines = (state.path / "start.err").read_text("utf-8", "replace").strip().splitlines()
        said = f": {lines[-1]}" if lines else ""
    raise Refusal(
        Code.DAEMON_DOWN, f"The coordinator could not start (exit {code}){said}.",
        next=f"Look at {state.log} and {state.path / 'start.err'}.",
    )


class Wire:
    """One connection. Not for several threads at once."""

    def __init__(self, state: StateDir, *, token: str | None = None, autostart: bool = True,
                 starting: Any = None) -> None:
        self.state = state
        self.token = token
        self._autostart = autostart
        self._starting = starting
        self._sock: socket.socket | None = None
        self._file: Any = None
        self._number = 0
        self._over = False

    def open(self) -> None:
        """Connect, starting the daemon when there is none.

        Raises:
            Refusal: DAEMON_DOWN, or why it could not start.
        """
        if self._sock is not None:
            return
        sock = connect(self.state)
        if sock is None:
            if not self._autostart:
                raise Refusal(
                    Code.DAEMON_DOWN, f"No coordinator is running for {self.state.root}."
                )
            if self._starting is not None:
                self._starting()
            start(self.state)
            sock = connect(self.state)
            if sock is None:
                raise Refusal(Code.DAEMON_DOWN, "The coordinator went away again.")
        self._sock = sock
        self._file = sock.makefile("rb", buffering=1 << 16)

    def close(self) -> None:
        """Hang up."""
        if self._sock is not None:
            with contextlib.suppress(OSError):
                self._file.close()
                self._sock.close()
        self._sock = None

    def hang_up(self) -> None:
        """From another thread: end what waits here now; nothing is asked again."""
        self._over = True
        sock = self._sock
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def ask(self, op: str, params: bytes, timeout_s: float = REPLY_TIMEOUT_S,
            repeatable: bool = False) -> bytes:
        """The reply's JSON. When the connection breaks it is made anew, for `RECONNECT_S` at most;
        a request that may have been carried out is sent again only if `repeatable`.

        Raises:
            Refusal: what the daemon refused; DAEMON_DOWN.
        """
        deadline = time.monotonic() + RECONNECT_S
        while True:
            self.open()
            sent = False
            try:
                if self._over:
                    raise EOFError
                assert self._sock is not None
                self._sock.settimeout(timeout_s)
                self._number += 1
                head: dict[str, Any] = {"id": self._number, "op": op, "v": PROTOCOL}
                if self.token is not None:
                    head["token"] = self.token
                line = _encode(head)[:-1] + b',"params":' + params + b"}\n"
                self._sock.sendall(line)
                sent = True
                return self._receive(self._number)
            except TimeoutError:
                self.close()
                raise Refusal(
                    Code.DAEMON_DOWN, f"The coordinator gave no answer within {timeout_s:g} s.",
                    next="`coord doctor`",
                ) from None
            except (OSError, EOFError):
                self.close()
                if self._over or (sent and not repeatable) or time.monotonic() > deadline:
                    raise Refusal(
                        Code.DAEMON_DOWN,
                        f"The coordinator went away during `{op}`; whether it was done is not "
                        "known.", next="`coord status` shows what is so.",
                    ) from None
                time.sleep(0.02)  # a daemon that was killed takes a moment to be gone

    def _receive(self, number: int) -> bytes:
        while True:
            raw = self._file.readline()
            if not raw.endswith(b"\n"):
                raise EOFError
            line = _decode(raw)
            if line.error is not None and line.id in (number, None):
                raise Refusal.from_body(line.error)
            if line.id == number and bytes(line.ok):
                return bytes(line.ok)

    def events(self, after: int | None) -> Any:
        """Iterate over events from `after` on (default: now), for ever.

        Raises:
            Refusal: DAEMON_DOWN when the daemon goes.
        """
        self.open()
        assert self._sock is not None
        self._sock.settimeout(None)
        params = _encode({"after": after})
        self._sock.sendall(b'{"id":0,"op":"subscribe","params":' + params + b"}\n")
        while True:
            raw = self._file.readline()
            if not raw:
                self.close()
                raise Refusal(Code.DAEMON_DOWN, "The coordinator stopped.")
            line = _decode(raw)
            if line.error is not None:
                raise Refusal.from_body(line.error)
            if event := bytes(line.event):
                yield event
