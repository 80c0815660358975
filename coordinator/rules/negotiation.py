"""What becomes of an unlock request, and whom an approval may pass in the queue (invariant 9).
Pure.

A holder that approves hands on its own right. The resource was never free between, and nobody who
waits for it waits longer than for the holder. So it may go to the asker past others in the queue,
on two conditions.

* The asker wants no more than what is handed on (`covers`). Earlier waiters keep their claim to
  everything else.
* The asker keeps it no longer than the holder could have kept it (`no_longer_than`). Two agents
  that hand a file back and forth do not keep a third from it for ever.

If nobody is before the asker, the grant is an ordinary grant from the queue.

A holder may also answer in two other ways. It may keep a part (`narrow`), or share (`coexist`):
then both hold the file and write it one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.rules.globs import overlaps
from coordinator.rules.leases import Held, as_resource
from coordinator.words.resource_names import Resource, path_of

#: (state, verb) -> state. Only a pending request can be answered.
TRANSITIONS: dict[tuple[str, str], str] = {
    ("pending", "approve"): "approved",
    ("pending", "narrow"): "narrowed",
    ("pending", "coexist"): "coexisting",
    ("pending", "reject"): "rejected",
    ("pending", "withdraw"): "withdrawn",
}


def covers(lease: Held, asked: Resource, mode: str) -> bool:
    """Whether all of `asked`, in `mode`, is within the right that `lease` gives."""
    if lease.mode == "shared" and mode != "shared":
        return False
    held = as_resource(lease.file_path, lease.kind, lease.scope)
    if held.kind == "glob":
        return held == asked
    return asked.scope.startswith(held.scope)


def within(held: Resource, part: Resource) -> bool:
    """Whether all of `part` is within `held`: a file in a directory or among those of a glob, a
    region in a file."""
    if held.kind == "glob":
        return held == part or (part.kind in ("file", "region") and overlaps(held, part))
    if held.kind == "region" and held.scope != part.scope:
        return part.kind == "region" and part.scope.startswith(held.scope)
    return part.scope.startswith(held.scope)


def same_for_both(held: Resource, asked: Resource) -> bool:
    """Whether two can share these: they are one file, with its regions, or one directory or glob.
    For a directory and one file in it no session could tell who may write what."""
    files = {held.kind, asked.kind} <= {"file", "region"}
    return held == asked or (
        files and path_of(held.name, held.kind) == path_of(asked.name, asked.kind))


def no_longer_than(
    handed: Iterable[tuple[Held, str]], asked: Resource, mode: str
) -> str | None:
    """The latest time (ISO text) until which a holder that passes others in the queue may keep
    `asked`.

    Args:
        handed: each lease that is handed on, with the instant past which it could not be renewed.

    Returns:
        None if no lease that is handed on covers it: then no waiter may be passed.
    """
    kept = (until for lease, until in handed if covers(lease, asked, mode))
    return max(kept, default=None)
