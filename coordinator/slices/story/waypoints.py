"""What a report and its lanes carry from one event to the next, kept with each waypoint.

Whoever asks about a part of the time reads the log from the nearest waypoint on, and not from its
beginning.
"""

from __future__ import annotations

import zlib

import msgspec

from coordinator.slices.story.idle_agents import IdleAgents
from coordinator.slices.story.lanes import OpenPeriods
from coordinator.store.ledger import View
from coordinator.store.rows import Row


class Begun(msgspec.Struct):
    """All that had begun and not ended after an event."""

    now_ms: int
    lanes: OpenPeriods
    idle: IdleAgents
    #: Lease -> (agent, resource), by fencing token.
    leases: dict[int, tuple[str, str]]


def pack(begun: Begun) -> bytes:
    """As a waypoint holds it."""
    return zlib.compress(msgspec.msgpack.encode(begun))


class WaypointRow(Row, frozen=True):
    """The nearest waypoint. `size`: bytes of all of it; `begun`: packed."""

    seq: int
    size: int
    begun: bytes


def find_waypoint(view: View, up_to: int) -> tuple[int, Begun] | None:
    """The nearest waypoint up to an event: after which event it is, and what had begun by then.
    None: there is none, or none that this version can read; the log says the same."""
    row = view.first(WaypointRow, "waypoint_begun", up_to)
    if row is None:
        return None
    try:
        return row.seq, msgspec.msgpack.decode(zlib.decompress(row.begun), type=Begun)
    except (zlib.error, msgspec.MsgspecError):
        return None
