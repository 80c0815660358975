"""What one transaction knows already, and what one commit passes to the next.

It saves reading the same again and is never a second truth. It is dropped after any failure, and
whenever SQLite says that another connection has written (`store.ledger`).

`Effects` is what a transaction leaves to be done once it is on disk.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from coordinator.store.rows import AgentRow

#: Numbers of a counter that are taken from the table at once: a commit then writes one page less.
#: Those that a stop leaves unused are skipped for ever; only fencing tokens are asked for so often.
COUNTER_BLOCKS = {"fencing": 64}
#: Agents whose rows are carried from commit to commit.
AGENTS_MAX = 4096


class Present(msgspec.Struct, frozen=True, gc=False):
    """Things that seldom exist and are often asked for."""

    waiters: int
    """Somebody is queued."""
    reviews: int
    """Partial work is not settled."""
    parked: int
    """A task is parked on what somebody holds."""
    turns: int = 0
    """Somebody's git changes a working tree."""
    task_locks: int = 0
    """Somebody holds a task itself, or waits for one."""
    keys: int = 0
    """Somebody holds a key."""
    claims: int = 0
    """Somebody is at a task."""
    renamed: int = 0
    """Somebody holds what a rename has made a lease of."""


#: Nothing of it exists.
NOBODY = Present(0, 0, 0)


@dataclass(slots=True)
class WriterCache:
    """What a commit leaves for the next transaction, so that it need not be read again."""

    seq: int | None = None
    #: Counter -> the last number given; None until they are read.
    counters: dict[str, int] | None = None
    #: Counter -> what the table says: nothing above it was ever given.
    stored: dict[str, int] = field(default_factory=dict)
    agents: dict[str, AgentRow] = field(default_factory=dict)
    #: The same rows of those that have not left, by the hash of the agent's token.
    speakers: dict[str, AgentRow] = field(default_factory=dict)
    #: Events that may change it drop it. A later transaction has it only where nothing of it
    #: exists: what went by without an event is looked for again.
    present: Present | None = None

    def learn(self, row: AgentRow) -> None:
        """Carry an agent's row."""
        if len(self.agents) >= AGENTS_MAX:
            self.agents.clear()
            self.speakers.clear()
        self.agents[row.agent] = row
        if row.token_hash is not None and row.state != "gone":
            self.speakers[row.token_hash] = row

    def forget(self, agent: str) -> None:
        """An agent's row has changed."""
        row = self.agents.pop(agent, None)
        if row is not None and row.token_hash is not None:
            self.speakers.pop(row.token_hash, None)


class Effects(msgspec.Struct):
    """What a transaction leaves to be done once it is on disk.

    Attributes:
        recorded: rows of the events that it has appended.
        granted: (acquisition id, reply) of waiters that were granted.
        turned_back: waiters (acquisition ids) that were told to give way: an open request of one
            ends at once.
        joined: places in the queue that one more request is about to be held open for.
        stays: places with open requests that somebody who does not wait continues: the former and
            the new name of each.
        wake: waiters (acquisition ids) that may be served now, each in a transaction of its own.
        rippled: tasks that were told, in this transaction, of the end of a task that they come
            after.
        offers: something became free or ready, so requests that wait for a task look again.
        keys_written: a key has a new value, so requests that watch one look again.
    """

    recorded: list[tuple[Any, ...]]
    granted: list[tuple[str, Any]] = []
    turned_back: list[str] = []
    joined: set[str] = set()
    stays: dict[str, str] = {}
    wake: dict[str, None] = {}
    rippled: int = 0
    offers: bool = False
    keys_written: bool = False

    def kinds(self) -> list[str]:
        """The kind of each event of the transaction."""
        return [str(event[2]) for event in self.recorded]
