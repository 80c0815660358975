"""Listing the coordinators of this user in all repositories, with the health of each.

Each coordinator leaves a note about itself (`files.coordinators`). A note may be older than the
process, so a reply counts only if it comes from the coordinator that the note names.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from coordinator.client.connection import Wire
from coordinator.client.locating import peer, reach
from coordinator.files import coordinators
from coordinator.files.coordinators import Note
from coordinator.files.state import StateDir
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.shapes import read

#: How long each has to answer (seconds): it takes ms, unless it hangs.
ASKED_S = 5.0
#: How many are asked at once, so that one that hangs does not delay the others.
ASKED_AT_ONCE = 16


def ask_all(notes: Sequence[Note]) -> list[rq.Coordinator]:
    """The running ones, in the order of their notes."""
    notes = [note for note in notes if note.pid is not None]
    if len(notes) < 2:
        return [row for note in notes for row in _ask(note)]
    from concurrent.futures import ThreadPoolExecutor  # most people run one

    with ThreadPoolExecutor(min(len(notes), ASKED_AT_ONCE)) as pool:
        return [row for rows in pool.map(_ask, notes) for row in rows]


@contextlib.contextmanager
def open_wire(note: Note) -> Iterator[Wire]:
    """A connection to the coordinator that a note is about, if it is still that one.

    Raises:
        Refusal: DAEMON_DOWN: it no longer runs (the note is corrected); FOREIGN.
    """
    sock = reach(Path(note.socket)) if note.pid is not None else None
    listener = peer(sock) if sock is not None else None
    if sock is None or (listener is not None and listener[0] not in (note.pid, 0)):
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


def _ask(note: Note) -> list[rq.Coordinator]:
    """The one that a note is about; empty: it does not run."""
    try:
        with open_wire(note) as wire:
            return [_about(note, wire)]
    except Refusal:
        return []


def _about(note: Note, wire: Wire) -> rq.Coordinator:
    began = time.monotonic()
    try:
        answer = wire.ask("status", b'{"events":1}', ASKED_S)
    except Refusal:
        if time.monotonic() - began < ASKED_S:  # the coordinator has hung up
            raise
        return rq.Coordinator(root=note.root, pid=note.pid or 0, answers=False)
    status = read(answer, rq.StatusReply)
    return rq.Coordinator(
        root=note.root, pid=note.pid or 0, since=status.health["started_at"],
        resident_bytes=status.health["resident_bytes"], leases=len(status.leases),
        agents=len(status.agents), reviews=len(status.reviews), requests=len(status.requests),
        messages=status.messages, http=status.health["http"],
    )
