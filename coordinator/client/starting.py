"""Starting a coordinator if none serves: a single one, however many processes ask at once.

The module owns the process until it serves, and explains a failed start.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from coordinator.client.asking import STARTS
from coordinator.client.locating import connect, holder, reach
from coordinator.files import ownership
from coordinator.files.state import StateDir
from coordinator.namespaces import orders
from coordinator.words.refusals import Code, Refusal

START_TIMEOUT_S = 20.0
#: How long to wait (seconds) for another process that is starting it. It may hang.
TURN_S = 5.0


def start(state: StateDir, http_port: int | None = None, *, asked: bool = False,
          log_format: str | None = None) -> None:
    """Start the daemon in the background and wait until it listens. `asked`: whether a person
    asked and named this folder. `log_format`: `text` or `json`, instead of the setting.

    Raises:
        Refusal: the daemon's reason for not starting; DAEMON_DOWN.
    """
    try:
        state.create(asked=asked)
    except OSError as bad:
        raise unwritable(state, bad) from None
    check_place(state)
    failed = None
    for _ in range(STARTS):
        outside = False
        with _turn(state) as serves:
            try:
                failed = None if serves else _start(state, http_port, log_format)
            except _Outside:
                outside = True
        if outside:  # the daemon that is started there needs the turn
            _await_outside(state)
            return
        if failed is None or failed[0] >= 0:
            break  # otherwise it was killed in that moment
    if failed is not None:  # another process may have the turn, and start a daemon elsewhere
        _explain_failure(state, *failed)


class _Outside(Exception):
    """The coordinator is started by another process, outside of this session."""


def check_place(state: StateDir) -> None:
    """Check that no coordinator serves at another place than this environment names. A second
    coordinator cannot start, so waiting for it is in vain.

    Raises:
        Refusal: DAEMON_DOWN.
    """
    here, path, connection = state.socket(), Path(), None
    with contextlib.suppress(OSError, Refusal):
        path = Path(os.fsdecode(ownership.read(state.socket_path) or b""))
        # In a copied folder the path is the original's; the lock is never a copy's.
        if path.is_absolute() and path != here and holder(state) is not None:
            connection = reach(path)
    if connection is None:
        return
    connection.close()
    given = os.environ.get("COORD_SOCKET")
    raise Refusal(
        Code.DAEMON_DOWN, f"Nobody answers at {here}{', which COORD_SOCKET names' if given else ''}"
        f"; the coordinator of {state.root} listens at {path}. Nothing was asked.",
        next="`unset COORD_SOCKET`, and repeat." if given and path.parent == state.path else
        f"`export COORD_SOCKET={path}`, and repeat; or `coord down`, and repeat.")


@contextlib.contextmanager
def _turn(state: StateDir) -> Iterator[bool]:
    """Take the turn to start it, by a lock on the state directory itself, and yield whether a
    coordinator serves now. After a crash fifty agents find none at once, and fifty starts would
    slow down the only start that counts.

    Raises:
        Refusal: STORAGE; the reason why another process could not start it just now.
    """
    try:
        turn = os.open(state.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as bad:
        raise unwritable(state, bad) from None
    try:
        until, waited = time.monotonic() + TURN_S, False
        while not _try_lock(turn) and time.monotonic() < until:
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


def _try_lock(descriptor: int) -> bool:
    """Lock the file without waiting. False if another process has the lock."""
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


def _serves_within(state: StateDir, seconds: float,
                   ended: Callable[[], bool] = lambda: False) -> bool:
    """Wait until a coordinator serves. False if the time is over, or `ended()`, before that."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if _serves(state):
            return True
        if ended():
            return False
        time.sleep(0.02)
    return False


def _check_failure(state: StateDir) -> None:
    """Raise the recorded failure of the last start, if there is one.

    Raises:
        Refusal: why that start failed.
    """
    with contextlib.suppress(OSError, ValueError):
        why = Refusal.from_body(json.loads(ownership.read(state.failure) or b""))
        if why.code is not Code.BAD_TRANSITION:
            raise why


def _start(state: StateDir, http_port: int | None,
           log_format: str | None = None) -> tuple[int, bytes] | None:
    """Start the daemon. None if it serves; otherwise its exit code and its output.

    Raises:
        _Outside: this process is in a session, and another starts the daemon outside of it.
        Refusal: STORAGE, DAEMON_DOWN.
    """
    try:
        state.failure.unlink(missing_ok=True)
        ownership.write(state.errors, b"")
        errors = os.fdopen(ownership.open_own(state.errors, os.O_WRONLY | os.O_APPEND), "wb")
    except OSError as bad:
        if bad.errno == errno.EROFS and orders.start_outside(state.root):
            raise _Outside from None
        raise unwritable(state, bad) from None
    # The reason of a failed start comes through a pipe, because the reason may be the disk.
    reading, writing = os.pipe()
    # -P: a module of the repository with the name of one of ours must not be imported
    command = [sys.executable, "-P", "-m", "coordinator.daemon", "--root", str(state.root),
               "--tell", str(writing)]
    if http_port is not None:
        command += ["--http", str(http_port)]
    if log_format is not None:
        command += ["--log-format", log_format]
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
    """Read the pipe without waiting, and return its content."""
    data = b""
    while select.select([pipe], [], [], 0)[0] and (piece := os.read(pipe, 65536)):
        data += piece
    return data


def unwritable(state: StateDir, bad: OSError) -> Refusal:
    """Return STORAGE for a state directory that cannot be written, with the true reason."""
    full = bad.errno in (errno.ENOSPC, errno.EDQUOT)
    return Refusal(
        Code.STORAGE, f"{bad.filename or state.path} cannot be written: {bad.strerror or bad}. "
        "No coordinator was started.",
        next="Make room (bytes and inodes: `df`, `df -i`), then repeat." if full
        else f"Give write access to {state.path if state.path.is_dir() else state.root}.",
    )


def _await(state: StateDir, process: subprocess.Popen[bytes]) -> int | None:
    """Wait until a coordinator serves. Return None then, or the process's exit code if it ended.

    Raises:
        Refusal: DAEMON_DOWN: neither happened in time.
    """
    if _serves_within(state, START_TIMEOUT_S, lambda: process.poll() is not None):
        _call_off(state, process)
        return None
    code = process.poll()
    if code is None:
        raise _no_answer(state)
    return code


def _await_outside(state: StateDir) -> None:
    """Wait until the coordinator serves that another process starts outside of this session. The
    session itself may not write here.

    Raises:
        Refusal: why it could not start; DAEMON_DOWN.
    """
    if _serves_within(state, START_TIMEOUT_S):
        return
    _check_failure(state)
    raise _no_answer(state)


def _no_answer(state: StateDir) -> Refusal:
    return Refusal(
        Code.DAEMON_DOWN, f"The coordinator did not answer within {START_TIMEOUT_S:g} s.",
        next=f"Look at {state.log}.",
    )


def _call_off(state: StateDir, process: subprocess.Popen[bytes]) -> None:
    """End the daemon that we started if another one serves. It would take over later."""
    with contextlib.suppress(OSError, Refusal):
        if (ownership.read(state.lock) or b"").strip() != b"%d" % process.pid:
            process.kill()
            process.wait()


def _explain_failure(state: StateDir, code: int, data: bytes) -> None:
    """Raise the reason of a failed start. Return if another daemon won the race and serves."""
    why = None
    with contextlib.suppress(ValueError):
        why = Refusal.from_body(json.loads(data))
    if why is not None and why.code is not Code.BAD_TRANSITION:
        raise why
    if _serves_within(state, TURN_S):
        return
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


def main(root: str) -> int:
    """Start it for another process, which must not wait itself (async_transport.py). Return the
    exit code, and write a refusal to standard output, as JSON."""
    try:
        start(StateDir(Path(root)))
    except Refusal as refusal:
        sys.stdout.write(json.dumps(refusal.body()))
        return refusal.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
