"""When a lease may be granted (invariants 1, 5, 9), as plain functions of facts and an instant.

* Two leases conflict when they overlap, have different holders, and are not both shared. A lease
  shared by agreement allows writing, so it is compatible only with leases of that agreement.
* A lease is dead when `now >= expires_at`, for every reader. The sweep only tidies.
* Waiters are served by priority, which rises with the time waited, then by age (`standing`). So a
  stream of small requests cannot starve a large one, and a stream of urgent requests cannot starve
  a patient one. `kernel.leasing.blockers` applies the order: a new request may not pass an earlier
  waiter, except one that waits for the requester itself, because that would be a deadlock.

The module knows no clock, no database and no files.
"""

from __future__ import annotations

from typing import Protocol, cast

from coordinator.rules.globs import overlaps
from coordinator.words.clock import from_iso
from coordinator.words.purposes import is_unasked
from coordinator.words.resource_names import Kind, Resource

#: The reach of a right that counts in all working trees.
EVERYWHERE = "*"
#: The prefix of a holder's further slots, for its copies in other working trees.
TREE = "tree:"


class Held(Protocol):
    """The facts about a live lease that a decision needs."""

    @property
    def locked_by(self) -> str: ...
    @property
    def expires_at(self) -> str: ...
    @property
    def mode(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def file_path(self) -> str: ...
    @property
    def scope(self) -> str: ...
    @property
    def agreed_as(self) -> str | None: ...
    @property
    def purpose(self) -> str: ...
    @property
    def worktree(self) -> str | None: ...


def as_resource(name: str, kind: str, scope: str) -> Resource:
    """Return the resource that a row describes. The schema's CHECK guarantees its kind."""
    return Resource(name, cast(Kind, kind), scope)


def dead(expires_at: str, now: str) -> bool:
    """Whether a lease with this expiry no longer gives a right at `now` (both ISO text)."""
    return now >= expires_at


def reach(kind: str, purpose: str, worktree: str | None) -> str:
    """The working tree in which a right counts. Two trees hold two files, so a right that coord
    took on its holder's behalf counts in its own tree. A right that somebody asked for counts
    EVERYWHERE, and so does every right to a key."""
    if kind == "key" or not is_unasked(purpose):
        return EVERYWHERE
    return worktree or ""


def meet(reach: str, other: str) -> bool:
    """Whether two rights count in a common working tree."""
    return reach == other or EVERYWHERE in (reach, other)


def conflicts(
    asked: Resource, mode: str, holder: str, lease: Held, agreed: str | None = None,
    within: str = EVERYWHERE,
) -> bool:
    """Whether `lease`, if it is live, keeps `holder` from getting `asked`.

    Args:
        agreed: the name of the agreement by which it is wanted.
        within: the `reach` of what is asked for.
    """
    if lease.locked_by == holder or both_shared(mode, lease, agreed):
        return False
    if not meet(within, reach(lease.kind, lease.purpose, lease.worktree)):
        return False
    return overlaps(asked, as_resource(lease.file_path, lease.kind, lease.scope))


def both_shared(mode: str, lease: Held, agreed: str | None = None) -> bool:
    """Whether a request in this mode, and by this agreement, is compatible with the lease: both
    only read, or all holders have agreed to write."""
    return mode == lease.mode == "shared" and lease.agreed_as == agreed


def slot(kind: Kind, name: str, mode: str, holder: str) -> str:
    """Return the slot of a lease. The schema allows one lease for each scope and slot, and so
    guarantees a single writer.

    Globs of one directory share a scope, but need not overlap, so their slot has the pattern. A
    shared lease has its holder in the slot, because others may share the scope.
    """
    pattern = name if kind == "glob" else ""
    return pattern if mode == "exclusive" else f"{holder}\n{pattern}"


def slot_of_tree(slot: str, worktree: str | None) -> str:
    """Return the slot of a holder's further lease, on the copy in this working tree (None: the main
    one). No other exclusive slot has a line end."""
    return f"{TREE}{worktree or ''}\n{slot}"


def standing(priority: int, asked_at: str, now_ms: int, age_step_ms: int) -> tuple[int, str]:
    """Return the place in the queue, smallest first. Waiting `age_step_ms` adds 1 to the priority.
    """
    aged = max(0, now_ms - from_iso(asked_at)) // age_step_ms
    return (-(priority + aged), asked_at)


def renewed_until(now_ms: int, ttl_ms: int, max_until_ms: int, current_ms: int) -> int:
    """Return the new expiry of a renewed lease: never earlier than before, never past
    `max_until_ms`, so that an idle live agent does not hold a file for ever."""
    return max(current_ms, min(now_ms + ttl_ms, max_until_ms))


class Agent(Protocol):
    """The facts about an agent that this decision needs."""

    @property
    def state(self) -> str: ...
    @property
    def is_label(self) -> bool: ...
    @property
    def seen_at(self) -> str: ...
    @property
    def silence_ms(self) -> int | None: ...


def is_there(agent: Agent | None, now_ms: int) -> bool:
    """Whether anyone receives a later grant to this name: a session, a launch, or a program, with a
    sign of life within its silence. A name that a person only acted for has no receiver."""
    if agent is None or agent.is_label or agent.state != "active":
        return False
    return agent.silence_ms is None or now_ms - from_iso(agent.seen_at) < agent.silence_ms
