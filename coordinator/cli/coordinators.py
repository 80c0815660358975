"""`coord ps`, `coord down`: this user's coordinators, all of them or the repository's own."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec

from coordinator.cli.app import AsJson, app, complain, people_only, print_json, say, width
from coordinator.cli.definition import typer
from coordinator.client.connection import Wire
from coordinator.client.locating import connect, holder, locate_root, peer, reach
from coordinator.commands.lists import columns
from coordinator.files import coordinators
from coordinator.files.coordinators import Note
from coordinator.files.state import StateDir
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.shapes import read

#: How long a coordinator may take to drain, and one without a socket to see that (seconds).
DRAIN_S, ALONE_S = 15.0, 5.0
#: How long one is asked how it is (seconds): it answers in ms, unless it hangs.
ASKED_S = 5.0
#: How many are asked at once: one that hangs keeps nobody from the others.
ASKED_AT_ONCE = 16


class Running(msgspec.Struct, kw_only=True):
    """One coordinator that runs. One that does not answer tells nothing but its process."""

    root: str
    pid: int
    since: str | None = None
    resident_bytes: int | None = None
    leases: int | None = None
    agents: int | None = None
    http: str | None = None
    answers: bool = True


@app.command("ps")
def ps(as_json: AsJson = False) -> None:
    """The coordinators that you run, of all repositories."""
    found = _asked(coordinators.tidy(time.time()))
    if as_json:
        print_json({"items": found, "next": None})
        return
    if not found:
        say("No coordinator runs.")
        return
    rows = [(str(one.pid), (one.since or "")[:16].replace("T", " ") + "Z",
             f"{(one.resident_bytes or 0) / 1e6:.0f} MB", str(one.leases), str(one.agents),
             one.root) if one.answers else (str(one.pid), "does not answer", "", "", "", one.root)
            for one in found]
    heads = ("pid", "since", "memory", "leases", "agents", "repository")
    for line in columns(heads, rows, "=====/", width()):
        say(line)
    for one in found:
        if not one.answers:
            say(f"next: {_kill(one.pid)}")


@app.command("down")
def down(
    everyone: Annotated[
        bool, typer.Option("--all", help="All that you run, of all repositories.")
    ] = False,
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
            with _wire(note) as wire:
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
    """Stop the coordinator that is there now and wait until it has ended; False if none runs. A
    client may start another one at once: that one is nobody's concern here."""
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
    """What is wrong with a coordinator that runs and does not answer; None: it answers, there is
    none, or a sandbox keeps this process from it."""
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
        wire.ask("health", b"{}", ASKED_S)
    except Refusal:
        if time.monotonic() - began >= ASKED_S:
            return Refusal(
                Code.DAEMON_DOWN, f"The coordinator of {state.root} runs and does not answer.",
                next=_kill(holder(state)))
    finally:
        wire.close()
    return None


def _kill(pid: int | None) -> str:
    if not pid:  # in a container, for one
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
    """Nobody can ask it: it starts, or ends, or sees in a moment that its socket is gone."""
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


@contextlib.contextmanager
def _wire(note: Note) -> Any:
    """A connection to the coordinator that a note is about, if it is still that one.

    Raises:
        Refusal: DAEMON_DOWN: it does not run any more (the note is put right); FOREIGN.
    """
    sock = reach(Path(note.socket)) if note.pid is not None else None
    found = peer(sock) if sock is not None else None
    if sock is None or (found is not None and found[0] not in (note.pid, 0)):
        if sock is not None:
            sock.close()
        coordinators.ended(note)
        raise Refusal(Code.DAEMON_DOWN, f"No coordinator runs for {note.root}.")
    wire = Wire(StateDir(Path(note.root)), autostart=False)
    wire.take(sock)
    try:
        yield wire
    finally:
        wire.close()


def _asked(notes: Sequence[Note]) -> list[Running]:
    """Those that run, in the order of their notes."""
    notes = [note for note in notes if note.pid is not None]
    if len(notes) < 2:
        return [one for note in notes for one in _look(note)]
    from concurrent.futures import ThreadPoolExecutor  # most people run one

    with ThreadPoolExecutor(min(len(notes), ASKED_AT_ONCE)) as pool:
        return [one for found in pool.map(_look, notes) for one in found]


def _look(note: Note) -> list[Running]:
    """The one that a note is about; empty: it does not run."""
    try:
        with _wire(note) as wire:
            return [_about(note, wire)]
    except Refusal:
        return []


def _about(note: Note, wire: Wire) -> Running:
    began = time.monotonic()
    try:
        said = wire.ask("status", b'{"events":1}', ASKED_S)
    except Refusal:
        if time.monotonic() - began < ASKED_S:  # whoever is there has hung up
            raise
        return Running(root=note.root, pid=note.pid or 0, answers=False)
    status = read(said, rq.StatusReply)
    return Running(
        root=note.root, pid=note.pid or 0, since=status.health["started_at"],
        resident_bytes=status.health["resident_bytes"], leases=len(status.leases),
        agents=len(status.agents), http=status.health["http"],
    )
