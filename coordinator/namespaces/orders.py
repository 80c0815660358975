"""What is said to the keeper, and how it is found and started: one JSON object a line, both ways.

`hold` tells who may write which paths, `session` makes a namespace, `enter` asks for its
descriptors, `sessions` lists those of a root. Each has a number `n` that its answer bears. The
keeper also tells by itself: `{"ended": KEY}` when the first process of a session has ended.
Blocking; the daemon has a form of its own (daemon/namespaces.py).
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

from coordinator.files import ownership
from coordinator.namespaces import kernel
from coordinator.words.refusals import Code, Refusal

#: How long (seconds) a keeper may take to start, or to answer.
START_S, ANSWER_S = 10.0, 30.0


def socket_path() -> Path:
    """Where this user's keeper listens: in one place, whatever the shell or the hook that asks
    has for a temporary folder."""
    return ownership.state_folder() / "namespaces"


def connect(*, start: bool) -> socket.socket:
    """A connection to this user's keeper.

    Args:
        start: start one if there is none. Only outside of all sessions: inside it would have no
            power over any.

    Raises:
        Refusal: FOREIGN; BAD_TRANSITION: there can be none here, or there is none.
    """
    if not kernel.available():
        raise no_session("this system has no namespaces that could protect a session")
    path = socket_path()
    link = _connected(path)
    if link is not None:
        return link
    if not start:
        raise no_session("no session of this user runs")
    ownership.make_folder(path.parent)
    return _started(path)


def ask(link: socket.socket, order: dict[str, Any], *, descriptors: int = 0) -> tuple[
        dict[str, Any], list[int]]:
    """One answer, and the descriptors that came with it.

    Raises:
        Refusal: what the keeper could not do; BAD_TRANSITION: it has gone.
    """
    link.settimeout(ANSWER_S)
    try:
        link.sendall(json.dumps(order).encode() + b"\n")
        data, found = b"", []
        while not data.endswith(b"\n"):
            piece, more, _, _ = socket.recv_fds(link, 65536, descriptors)
            if not piece:
                raise OSError("it has gone")
            data += piece
            found += more
    except OSError as bad:
        raise no_session(f"the sessions' keeper does not answer ({bad.strerror or bad})") from None
    said: dict[str, Any] = json.loads(data)
    if "error" in said:
        raise no_session(said["error"])
    return said, found


def no_session(why: str) -> Refusal:
    """BAD_TRANSITION: why an agent cannot be given a session of its own."""
    return Refusal(
        Code.BAD_TRANSITION, f"No protected session can be had: {why}. Nothing was started.",
        next="`coord doctor` says what is missing.",
    )


def _connected(path: Path) -> socket.socket | None:
    try:
        ownership.check_folder(path.parent)
    except FileNotFoundError:
        return None
    link = socket.socket(socket.AF_UNIX)
    try:
        link.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        link.close()
        return None
    except OSError:
        link.close()
        raise
    return link


def _started(path: Path) -> socket.socket:
    reading, writing = os.pipe()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COORD_")}
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "coordinator.namespaces.keeper", str(path), str(writing)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd="/", start_new_session=True, env=environment, pass_fds=(writing,),
        )
        os.close(writing)
        deadline = time.monotonic() + START_S
        said = b""
        os.set_blocking(reading, False)
        while time.monotonic() < deadline:
            link = _connected(path)
            if link is not None:
                return link
            with contextlib.suppress(BlockingIOError):
                said += os.read(reading, 1000)
            if process.poll() is not None and process.returncode:
                break
            time.sleep(0.005)
    finally:
        os.close(reading)
    why = said.decode("utf-8", "replace").strip()
    raise no_session(why or "the sessions' keeper did not start")
