"""Speaking to the keeper, finding it and starting it: one JSON object a line, both ways.

`hold` tells who may write which paths, `session` makes a namespace, `enter` asks for its
descriptors, `sessions` lists those of a root. Each has a number `n` that its answer repeats. A
`hold` that is too long for one order goes in several. All but the last say `more`, and the last has
them carried out as one. The keeper also sends messages by itself: `{"entered": KEY, "pid": N}` when
a process has become the first of a session, `{"ended": KEY}` when that process has ended. The
functions block. The daemon has a form of its own (daemon/namespaces.py).
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
from coordinator.files.state import SOCKET_PATH_MAX
from coordinator.namespaces import kernel
from coordinator.words.refusals import Code, Refusal
from coordinator.words.requests.agents import SessionOpened

#: The program that enters a session and becomes the agent.
ENTER = Path(__file__).resolve().parent.parent / "_enter.py"
#: How long (seconds) a keeper may take to start, or to answer.
START_S, ANSWER_S = 10.0, 30.0
#: The longest line, in bytes: a whole order or answer, however long paths are as JSON. An order's
#: paths are divided, so that no order comes near it; an answer names no more than `LEFT_MAX`.
LINE_BYTES_MAX = 16 << 20
HELD_BYTES_MAX = 1 << 20
LEFT_MAX = 200


def socket_path() -> Path:
    """The socket of this user's keeper: in one place, whatever temporary folder the asking shell or
    hook has."""
    path = ownership.state_folder() / "namespaces"
    if len(os.fsencode(path)) > SOCKET_PATH_MAX:
        path = ownership.temporary_folder() / "namespaces"
    return path


def connect(*, start: bool) -> socket.socket:
    """A connection to this user's keeper.

    Args:
        start: start one if there is none. Only outside of all sessions: inside it would have no
            power over any.

    Raises:
        Refusal: FOREIGN; BAD_TRANSITION: there can be none here, or there is none.
    """
    if not kernel.available():
        raise no_session(kernel.refused())
    path, deadline = socket_path(), time.monotonic() + START_S
    while True:
        link = _connected(path)
        if link is None:
            if not start:
                raise no_session("no session of this user runs")
            ownership.make_folder(path.parent)
            link = _started(path)
        try:
            ask(link, {"do": "sessions", "root": ""})
        except Refusal as refusal:
            link.close()
            # It may have been about to end without sessions: there is another in a moment.
            if not refusal.facts.get("lost") or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
            continue
        link.setblocking(True)
        return link


def entrance(opened: SessionOpened, directory: Path) -> list[str]:
    """The words before an agent's own command that make it run in this session."""
    return [sys.executable, "-I", "-S", "-E", str(ENTER), opened.socket, opened.key,
            str(directory)]


def ask(link: socket.socket, order: dict[str, Any]) -> dict[str, Any]:
    """One answer.

    Raises:
        Refusal: what the keeper could not do; BAD_TRANSITION: it has gone.
    """
    link.settimeout(ANSWER_S)
    try:
        link.sendall(json.dumps(order).encode() + b"\n")
        data = b""
        while not data.endswith(b"\n"):
            piece = link.recv(65536)
            if not piece:
                raise OSError("it has gone")
            data += piece
    except OSError as bad:
        raise lost(bad.strerror or str(bad)) from None
    result: dict[str, Any] = json.loads(data)
    if "error" in result:
        raise no_session(result["error"], inside="inside" in result)
    return result


def start_outside(root: Path) -> bool:
    """From within a session: have the coordinator of a root started outside of it. False if this
    process is in none.

    Raises:
        Refusal: it cannot be had.
    """
    path = socket_path()
    try:
        connect(start=False).close()
        return False
    except Refusal as refusal:
        if not refusal.facts.get("inside"):
            return False
    link = _connected(path)
    if link is None:
        return False
    with link:
        ask(link, {"do": "start", "root": str(root)})
    return True


def lost(why: str = "") -> Refusal:
    """BAD_TRANSITION: the keeper has gone, or does not answer."""
    refusal = no_session(f"the sessions' keeper does not answer{why and f' ({why})'}")
    refusal.facts["lost"] = True
    return refusal


def no_session(why: str, *, inside: bool = False) -> Refusal:
    """BAD_TRANSITION: why an agent cannot be given a session of its own."""
    return Refusal(
        Code.BAD_TRANSITION, f"No protected session can be had: {why}. Nothing was started.",
        next="`coord doctor` says what can be had here. Started by itself, the program is guarded "
        "by its hooks.", why=why, inside=inside,
    )


def _connected(path: Path) -> socket.socket | None:
    try:
        ownership.check_folder(path.parent)
    except FileNotFoundError:
        return None
    try:
        link = socket.socket(socket.AF_UNIX)
    except OSError as bad:
        raise no_session(f"no socket can be made: {bad.strerror or bad}") from None
    try:
        link.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        link.close()
        return None
    except OSError as bad:
        link.close()
        raise no_session(f"{path}: {bad.strerror or bad}") from None
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
        data = b""
        os.set_blocking(reading, False)
        while time.monotonic() < deadline:
            link = _connected(path)
            if link is not None:
                return link
            with contextlib.suppress(BlockingIOError):
                data += os.read(reading, 1000)
            if process.poll() is not None and process.returncode:
                break
            time.sleep(0.005)
    finally:
        os.close(reading)
    why = data.decode("utf-8", "replace").strip()
    raise no_session(why or "the sessions' keeper did not start")
