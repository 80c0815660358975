"""What a transaction leaves to be done once it is on disk: a value, handed to whoever does it."""

from __future__ import annotations

from typing import Any


class Effects:
    """What a transaction leaves to be done once it is on disk."""

    __slots__ = ("_events", "granted", "joined", "keys_written", "offers", "rippled", "stays",
                 "turned_back", "wake")

    def __init__(self, events: list[tuple[Any, ...]]) -> None:
        self._events = events
        #: (acquisition id, reply) of waiters that were granted.
        self.granted: list[tuple[str, Any]] = []
        #: Waiters (acquisition ids) told to give way: a request held open for one ends at once.
        self.turned_back: list[str] = []
        #: Places in the queue that one more request is about to be held open for.
        self.joined: set[str] = set()
        #: Places that requests are held open for, and that somebody who does not wait goes on with:
        #: the name that each had, and has from now on.
        self.stays: dict[str, str] = {}
        #: Waiters (acquisition ids) that may be served now, each in a transaction of its own.
        self.wake: dict[str, None] = {}
        #: Tasks that were told, in this transaction, of the end of what they come after.
        self.rippled = 0
        #: Something became free or ready: whoever waits for a task should look again.
        self.offers = False
        #: A key has a new value: whoever watches one should look again.
        self.keys_written = False

    def kinds(self) -> list[str]:
        """The kind of each event of the transaction."""
        return [str(event[2]) for event in self._events]
