"""`coord ps`, `coord down`: this user's coordinators, all of them or the repository's own."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from coordinator.cli.app import complain, people_only, print_json, say, width
from coordinator.client import running_coordinators
from coordinator.client.connection import Wire
from coordinator.client.locating import connect, holder, locate_root, reach
from coordinator.commands.lists import columns
from coordinator.commands.signatures import AsJson, Option, command
from coordinator.files import coordinators
from coordinator.files.state import StateDir
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: How long a coordinator may take to drain, and one without a socket to see that (seconds).
DRAIN_S, ALONE_S = 15.0, 5.0


@command("ps")
def ps(as_json: AsJson = False) -> None:
    """The coordinators that you run, of all repositories."""
    running = running_coordinators.ask_all(coordinators.tidy(time.time()))
    if as_json:
        print_json(rq.CoordinatorList(items=running))
        return
    if not running:
        say("No coordinator runs.")
        return
    rows = [(str(row.pid), (row.since or "")[:16].replace("T", " ") + "Z",
             f"{(row.resident_bytes or 0) / 1e6:.0f} MB", str(row.leases), str(row.agents),
             row.root) if row.answers else (str(row.pid), "does not answer", "", "", "", row.root)
            for row in running]
    heads = ("pid", "since", "memory", "leases", "agents", "repository")
    for line in columns(heads, rows, "=====/", width()):
        say(line)
    for row in running:
        if not row.answers:
            say(f"next: {_kill(row.pid)}")


@command("down")
def down(
    everyone: Annotated[bool, Option("All that you run, of all repositories.", "--all")] = False,
    as_json: AsJson = False,
) -> int:
    """Drain and stop the coordinator. Leases and tasks stay."""
    people_only("stopping the coordinator", "Go on with your work; `coord status` shows it.",
                typed=True)
    if everyone:
        return _all_down(as_json)
    state = StateDir(locate_root())
    stopped = stop(state)
    if as_json:
        print_json({"stopped": stopped})
    else:
        say("The coordinator has stopped." if stopped else "No coordinator was running.")
    return 0


def stop(state: StateDir) -> bool:
    """Stop the coordinator of a state directory and wait until it has ended; False if none runs.

    Raises:
        Refusal: DAEMON_DOWN: it does not end.
    """
    return _stop(state, lambda: connect(state), Wire(state, autostart=False))


def _all_down(as_json: bool) -> int:
    items, code = [], 0
    for note in coordinators.every():
        state = StateDir(Path(note.root))
        try:
            with running_coordinators.open_wire(note) as wire:
                _stop(state, partial(reach, Path(note.socket)), wire)
        except Refusal as refusal:
            if refusal.code is Code.DAEMON_DOWN:
                continue  # it does not run
            complain(f"coord: {note.root}: {refusal.message}")
            code = refusal.exit_code
            continue
        items.append({"root": note.root, "pid": note.pid})
        if not as_json:
            say(f"stopped  {note.root}")
    if as_json:
        print_json({"items": items, "next": None})
    elif not items and not code:
        say("No coordinator was running.")
    return code


def _stop(state: StateDir, again: Callable[[], Any], wire: Wire) -> bool:
    """Stop the running coordinator and wait until it has ended; False if none runs. A client may
    start another one at once; this function ignores that one."""
    pid = holder(state)
    try:
        if _tell(wire) != pid:
            pid = 0  # its number is another one in a container, or it is not the one of just now
    except Refusal as refusal:
        if refusal.code is not Code.DAEMON_DOWN:
            raise
        if _answers(again):
            raise Refusal(
                Code.DAEMON_DOWN, f"The coordinator of {state.root} runs and does not answer.",
                next=_kill(holder(state))) from None
        return _stop_without_socket(state, again)
    finally:
        wire.close()
    if not _until(lambda: _has_left(state, pid, again), DRAIN_S):
        raise Refusal(Code.DAEMON_DOWN, f"The coordinator of {state.root} has not ended within "
                      f"{DRAIN_S:g} s.", next=f"Look at {state.log}, or wait.")
    return True


def hangs(state: StateDir) -> Refusal | None:
    """Return the problem of a running coordinator that does not answer. None if it answers, if none
    runs, or if a sandbox keeps this process from it."""
    try:
        sock = connect(state)
    except Refusal as refusal:
        if refusal.code is Code.SANDBOXED:
            return None
        raise
    if sock is None:
        return None
    wire = Wire(state, autostart=False)
    wire.take(sock)
    began = time.monotonic()
    try:
        wire.ask("health", b"{}", running_coordinators.ASKED_S)
    except Refusal:
        if time.monotonic() - began >= running_coordinators.ASKED_S:
            return Refusal(
                Code.DAEMON_DOWN, f"The coordinator of {state.root} runs and does not answer.",
                next=_kill(holder(state)))
    finally:
        wire.close()
    return None


def _kill(pid: int | None) -> str:
    if not pid:  # in a container, for example
        return "End its process; what it has acknowledged is on the disk."
    return (f"`kill -9 {pid}` ends it; what it has acknowledged is on the disk, and the next "
            "command starts another.")


def _tell(wire: Wire) -> int:
    """Tell it to end. Its process (0: the system does not tell)."""
    try:
        wire.ask("shutdown", b"{}", 10)
    except Refusal as refusal:
        if refusal.code is not Code.SHUTTING_DOWN:  # it is at it already
            raise
    return wire.process


def _has_left(state: StateDir, pid: int | None, again: Callable[[], Any]) -> bool:
    holds = holder(state)
    return not _answers(again) if holds is None else bool(pid and holds and holds != pid)


def _stop_without_socket(state: StateDir, again: Callable[[], Any]) -> bool:
    """Stop a coordinator that cannot be asked: it starts, or ends, or is about to notice that its
    socket is gone."""
    pid = holder(state)
    if pid is None:
        return False
    _until(lambda: holder(state) != pid or _answers(again), ALONE_S)
    if holder(state) != pid:
        return True
    sock = again()
    if sock is not None:  # it has started meanwhile
        wire = Wire(state, autostart=False)
        wire.take(sock)
        return _stop(state, again, wire)
    if pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    if not _until(lambda: holder(state) != pid, DRAIN_S):
        raise Refusal(Code.DAEMON_DOWN, f"The coordinator of {state.root} (pid {pid}) holds its "
                      "lock, answers nobody, and has not ended.", next=f"`kill {pid}`")
    return True


def _until(over: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not over():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _answers(again: Callable[[], Any]) -> bool:
    sock = again()
    if sock is not None:
        sock.close()
    return sock is not None
