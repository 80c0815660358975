"""The wire to the daemon: find it, start it if need be, one line out, one line in.

Blocking and small: standard library and msgspec only, for the CLI's start-up time counts. It speaks
only to a socket in a folder of this user's own, and to a daemon that this user runs.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from coordinator.files import ownership
from coordinator.files.roots import find_root
from coordinator.files.state import StateDir, check_socket
from coordinator.words.refusals import Code, Refusal

PROTOCOL = 1
START_TIMEOUT_S = 20.0
#: How long another process may take that starts it already (seconds). One that hangs holds nobody
#: up for longer.
TURN_S = 5.0
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
    """The repository that a command means: `COORD_ROOT`, else found from the working directory.

    Raises:
        Refusal: INVALID: what is named is not there. (What lies above it is another place.)
    """
    given = os.environ.get("COORD_ROOT")
    if given and not Path(given).is_dir():
        raise Refusal(
            Code.INVALID, f"COORD_ROOT is {given}, which is no directory. Nothing was done.",
            next="Correct COORD_ROOT, or unset it.",
        )
    if start is not None and not given and not start.exists():
        raise Refusal(Code.INVALID, f"{start} does not exist. Nothing was done.",
                      next="Name a path in the repository.")
    try:
        return find_root(Path(given) if given else (start or Path.cwd()))
    except FileNotFoundError:
        raise Refusal(Code.INVALID, "The working directory was removed. Nothing was done.",
                      next="Go to a directory that exists.") from None


def connect(state: StateDir, timeout_s: float = 5.0) -> socket.socket | None:
    """A connection to the running daemon, or None when there is none (a dead socket included).

    Raises:
        Refusal: FOREIGN: what is there is another user's; DAEMON_DOWN.
    """
    return reach(state.socket(), timeout_s)


def reach(path: Path, timeout_s: float = 5.0) -> socket.socket | None:
    """A connection to the daemon at this socket, or None when there is none.

    Raises:
        Refusal: FOREIGN: what is there is another user's; DAEMON_DOWN.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(timeout_s)
    try:
        check_socket(path)
        sock.connect(str(path))
        _check_peer(sock, path)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        sock.close()
        return None
    except Refusal:
        sock.close()
        raise
    except PermissionError:
        sock.close()
        raise ownership.foreign(path, "belongs to another user",
                          "Run coord as the user who started the coordinator.") from None
    except OSError as bad:
        sock.close()
        raise Refusal(Code.DAEMON_DOWN, f"{path}: {bad.strerror or bad}.") from None
    return sock


def peer(sock: socket.socket) -> tuple[int, int] | None:
    """The process and the user at the other end; None where the system does not tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", raw)
    return pid, uid


def _check_peer(sock: socket.socket, path: Path) -> None:
    """That the daemon is this user's, or root's: nothing is said to another."""
    found = peer(sock)
    if found is not None and found[1] not in (ownership.user(), 0):
        raise ownership.foreign(path, f"is served by another user ({ownership.name_of(found[1])})",
                          "Run coord as the user who started the coordinator.")


def start(state: StateDir, http_port: int | None = None, *, asked: bool = False) -> None:
    """Start the daemon in the background and wait until it listens. `asked`: by a person, who has
    named this folder.

    Raises:
        Refusal: what kept it from starting, in its own words; DAEMON_DOWN.
    """
    try:
        state.create(asked=asked)
    except OSError as bad:
        raise unwritable(state, bad) from None
    with _turn(state) as serves:
        failed = None if serves else _start(state, http_port)
    if failed is not None:  # (another may have its turn: one is started elsewhere, perhaps)
        _explain_failure(state, *failed)


@contextlib.contextmanager
def _turn(state: StateDir) -> Iterator[bool]:
    """One starts it at a time, with a lock on the state directory itself: after a crash fifty
    agents find nobody at once, and fifty starts would keep the machine from the one that counts.
    Gives whether somebody serves by now.

    Raises:
        Refusal: STORAGE; what kept another from starting it just now.
    """
    try:
        turn = os.open(state.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as bad:
        raise unwritable(state, bad) from None
    try:
        until, waited = time.monotonic() + TURN_S, False
        while not _is_locked(turn) and time.monotonic() < until:
            waited = True
            if _serves(state):
                break
            time.sleep(0.02)
        serves = _serves(state)
        if waited and not serves:
            _check_failure(state)
        yield serves
    finally:
        os.close(turn)


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _serves(state: StateDir) -> bool:
    sock = connect(state)
    if sock is not None:
        sock.close()
    return sock is not None


def _check_failure(state: StateDir) -> None:
    """
    Raises:
        Refusal: why whoever tried just before could not start it.
    """
    with contextlib.suppress(OSError, ValueError):
        why = Refusal.from_body(json.loads(ownership.read(state.failure) or b""))
        if why.code is not Code.BAD_TRANSITION:
            raise why


def _start(state: StateDir, http_port: int | None) -> tuple[int, bytes] | None:
    """None: it serves; else its exit code, and what it has told."""
    try:
        state.failure.unlink(missing_ok=True)
        ownership.write(state.errors, b"")
        errors = os.fdopen(ownership.open_own(state.errors, os.O_WRONLY | os.O_APPEND), "wb")
    except OSError as bad:
        raise unwritable(state, bad) from None
    # What keeps it from starting is told through a pipe: a disk may be what keeps it.
    reading, writing = os.pipe()
    # -P: a module of the repository that is called like one of ours must not be imported
    command = [sys.executable, "-P", "-m", "coordinator.daemon", "--root", str(state.root),
               "--tell", str(writing)]
    if http_port is not None:
        command += ["--http", str(http_port)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COORD_AGENT")}
    try:
        with errors:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, cwd=state.root,
                start_new_session=True, env=environment, pass_fds=(writing,),
            )
        os.close(writing)
        code = _await(state, process)
        return None if code is None else (code, _read_all(reading))
    finally:
        os.close(reading)


def _read_all(pipe: int) -> bytes:
    """What is in it by now."""
    said = b""
    while select.select([pipe], [], [], 0)[0] and (piece := os.read(pipe, 65536)):
        said += piece
    return said


def unwritable(state: StateDir, bad: OSError) -> Refusal:
    """STORAGE for a state directory that cannot be written, with the true reason."""
    full = bad.errno in (errno.ENOSPC, errno.EDQUOT)
    return Refusal(
        Code.STORAGE, f"{bad.filename or state.path} cannot be written: {bad.strerror or bad}. "
        "No coordinator was started.",
        next="Make room (bytes and inodes: `df`, `df -i`), then repeat." if full
        else f"Give write access to {state.root}.",
    )


def _await(state: StateDir, process: subprocess.Popen[bytes]) -> int | None:
    """None as soon as somebody serves; the exit code, if it has ended.

    Raises:
        Refusal: DAEMON_DOWN: it does neither.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        sock = connect(state)
        if sock is not None:
            sock.close()
            _call_off(state, process)
            return None
        code = process.poll()
        if code is not None:
            return code
        time.sleep(0.02)
    raise Refusal(
        Code.DAEMON_DOWN, f"The coordinator did not answer within {START_TIMEOUT_S:g} s.",
        next=f"Look at {state.log}.",
    )


def _call_off(state: StateDir, process: subprocess.Popen[bytes]) -> None:
    """Somebody serves. If that is not the daemon that we started, ours came too late: it must not
    sit there, still starting, and take over when the other one is told to stop."""
    with contextlib.suppress(OSError, Refusal):
        if (ownership.read(state.lock) or b"").strip() != b"%d" % process.pid:
            process.kill()
            process.wait()


def _explain_failure(state: StateDir, code: int, said: bytes) -> None:
    """Say why the start failed; return if another daemon won the race and serves."""
    why = None
    with contextlib.suppress(ValueError):
        why = Refusal.from_body(json.loads(said))
    if why is not None and why.code is not Code.BAD_TRANSITION:
        raise why
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        sock = connect(state)
        if sock is not None:
            sock.close()
            return
        time.sleep(0.02)
    if why is not None:
        raise why
    last = ""
    with contextlib.suppress(OSError, Refusal):
        lines = (
            (ownership.read(state.errors) or b"").decode("utf-8", "replace").strip().splitlines()
        )
        last = f": {lines[-1]}" if lines else ""
    raise Refusal(
        Code.DAEMON_DOWN, f"The coordinator could not start (exit {code}){last}.",
        next=f"Look at {state.log} and {state.errors}.",
    )


#: Connections that came with a fork: they are the parent's, and nothing of them is closed here
#: that the parent may be using.
_PARENTS: list[Any] = []


class Wire:
    """One connection. Not for several threads at once."""

    def __init__(self, state: StateDir, *, token: str | None = None, autostart: bool = True,
                 starting: Any = None) -> None:
        self.state = state
        self.token = token
        #: Whether a daemon is started where none runs; may be changed at any time.
        self.autostart = autostart
        #: Whether it is started also where there is no `.coord` yet, which is then made.
        self.prepares = True
        self._starting = starting
        self._sock: socket.socket | None = None
        self._file: Any = None
        self._number = 0
        self._over = False
        self._process = os.getpid()

    def another(self) -> Wire:
        """A connection of its own, for the same agent."""
        return Wire(self.state, token=self.token, autostart=self.autostart,
                    starting=self._starting)

    @property
    def ended(self) -> bool:
        """Whether `hang_up` was called."""
        return self._over

    @property
    def process(self) -> int:
        """The process at the other end; 0 where the system does not tell, or nobody is there."""
        found = peer(self._sock) if self._sock is not None else None
        return found[0] if found is not None else 0

    def open(self) -> None:
        """Connect, starting the daemon when there is none.

        Raises:
            Refusal: DAEMON_DOWN, or why it could not start.
        """
        if self._sock is not None and self._process != os.getpid():
            self._leave_to_parent()
        if self._sock is not None:
            return
        sock = connect(self.state)
        if sock is None:
            if not self.autostart:
                raise Refusal(
                    Code.DAEMON_DOWN, f"No coordinator is running for {self.state.root}."
                )
            if not self.prepares and not self.state.path.is_dir():
                raise Refusal(
                    Code.DAEMON_DOWN, f"{self.state.root} is not prepared for coord (it has no "
                    f"{self.state.path.name}), so nothing runs there. Nothing was started or made.",
                    next="`coord init` prepares it, or go to a repository that is.",
                )
            if self._starting is not None:
                self._starting()
            start(self.state)
            sock = connect(self.state)
            if sock is None:
                raise Refusal(Code.DAEMON_DOWN, "The coordinator went away again.")
        self.take(sock)

    def take(self, sock: socket.socket) -> None:
        """Speak over this connection."""
        self._sock = sock
        self._file = sock.makefile("rb", buffering=1 << 16)
        self._process = os.getpid()

    def _leave_to_parent(self) -> None:
        """This process was forked from the one that connected: its answers are not for us."""
        assert self._sock is not None
        _PARENTS.append(self._file)  # a thread that is not here may have been reading it
        os.close(self._sock.detach())
        self._sock = None

    def close(self) -> None:
        """Hang up."""
        if self._sock is not None and self._process != os.getpid():
            self._leave_to_parent()
        if self._sock is not None:
            with contextlib.suppress(OSError):
                self._file.close()
                self._sock.close()
        self._sock = None

    def is_over(self) -> bool:
        """Whether there is no connection, or the daemon has ended the one there is. Only for one
        that nothing was asked on: what it says would be taken for its end."""
        if self._sock is not None and select.select([self._sock], [], [], 0)[0]:
            self.close()
        return self._sock is None

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
            except Refusal as refusal:
                # A coordinator that ends has not begun it; the next one will.
                if refusal.facts.get("begun") is not False or not self.autostart:
                    raise
                self.close()
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            except TimeoutError:
                self.close()
                raise Refusal(
                    Code.DAEMON_DOWN, f"The coordinator gave no answer within {timeout_s:g} s.",
                    next="`coord doctor`",
                ) from None
            except (OSError, EOFError) as bad:
                self.close()
                # "Reset" means that it ended before it had read all of this.
                begun = sent and not isinstance(bad, ConnectionResetError)
                if self._over or (begun and not repeatable) or time.monotonic() > deadline:
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
