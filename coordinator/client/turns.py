"""Turns on resources within one client: what its bodies do to one happens one after the other, so
that what the coordinator answers to each is true while it is judged (holdings.py).

Owns the order; asks nothing of anybody.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    import asyncio

_COUNTING = threading.Lock()


class Turn:
    """One at a time. For threads (`with`), or the tasks of one event loop (`asyncio`).

    Attributes:
        changes: how often it was had.
        waiting: how many wait in line for the resource, who do so without having it.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.changes = self.waiting = 0

    @cached_property
    def asyncio(self) -> asyncio.Lock:
        """The same for one event loop. (Most programs have none, and load nothing for it.)"""
        import asyncio

        return asyncio.Lock()

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.changes += 1
        self.lock.release()


class Turns:
    """Several, in an order that is the same for all. `with` them a body gets its leases, or gives
    them back: what the coordinator answers meanwhile is not changed by other bodies of the client.
    (A grant from the line comes when it comes: of that, `is_sure` tells.)"""

    def __init__(self, turns: Mapping[str, Turn]) -> None:
        self.names = list(turns)
        self._turns = list(turns.values())
        self._before: list[int] = []

    def __enter__(self) -> None:
        for one in self._turns:
            one.__enter__()

    def __exit__(self, *_: object) -> None:
        for one in reversed(self._turns):
            one.__exit__()

    async def __aenter__(self) -> None:
        for one in self._turns:
            await one.asyncio.acquire()

    async def __aexit__(self, *_: object) -> None:
        for one in reversed(self._turns):
            one.changes += 1
            one.asyncio.release()

    @contextlib.contextmanager
    def waited_for(self) -> Iterator[None]:
        """Somebody asks for these, and may wait in line."""
        with _COUNTING:
            self._before = [one.changes for one in self._turns]
            for one in self._turns:
                one.waiting += 1
        try:
            yield
        finally:
            with _COUNTING:
                for one in self._turns:
                    one.waiting -= 1

    def others_wait(self) -> bool:
        """Whether others wait in line for one of them, too."""
        return any(one.waiting > 1 for one in self._turns)

    def is_sure(self) -> bool:
        """In the turn: whether nothing else has happened since it was begun to wait, so that the
        grant is as it was told."""
        return not self.others_wait() and self._before == [one.changes for one in self._turns]


class TurnTable:
    """The turns of one client, by resource, as long as somebody has or waits for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns: WeakValueDictionary[str, Turn] = WeakValueDictionary()

    def of(self, name: str) -> Turn:
        """Of those who ask for it one has it at a time: what a client does to one resource."""
        with self._lock:
            known = self._turns.get(name)
            if known is None:
                known = self._turns[name] = Turn()
            return known

    def of_all(self, names: Iterable[str]) -> Turns:
        """Those of several resources together."""
        return Turns({name: self.of(name) for name in sorted(set(names))})


def turn_names(names: Iterable[str], root: os.PathLike[str] | str, cwd: str | None) -> list[str]:
    """What leases on these would be called that are asked for from `cwd`, by their letters."""
    out = []
    base = posixpath.join(os.fspath(root), "")
    here = posixpath.join(cwd or base, "")
    for name in names:
        if name.startswith("key:"):
            out.append(name)
            continue
        start = base if name.startswith(":/") or not here.startswith(base) else here
        path = posixpath.normpath(posixpath.join(start, name.removeprefix(":/")))
        out.append(path.removeprefix(base) + "/" * name.endswith("/"))
    return out
