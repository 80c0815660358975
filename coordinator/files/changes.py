"""Reducing many raw file events to the net change of each path.

The module is pure. It looks at no disk and no clock. An editor that writes a temporary file and
renames it over the real one has modified the real one. A file that was made and deleted between two
questions never existed. A file that was moved twice was moved once.

An event does not tell whether a rename replaced a file. So a place that a file passed through is
reported as `deleted`, perhaps once too often, but never once too few.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

#: How many renames are reported one by one; of more, only the net result.
MOVES_MAX = 1_000
ChangeKind = Literal["created", "modified", "deleted", "moved", "overflow"]


@dataclass(frozen=True, slots=True)
class Change:
    """One path's change since the last batch.

    A directory that vanishes, or moves out of sight, may be reported alone: what lay below it is
    then gone with it. `overflow` (with an empty path) says that too much happened to tell, so that
    everything has to be looked at again.

    Attributes:
        path: relative to the root; of a move, where from.
        to: of a move, its target; otherwise None.
        heard_ms: of a move or a deletion, when it was reported (Unix ms), if known.
        is_new: of a move, what was moved was made since the last batch.
    """

    kind: ChangeKind
    path: str
    to: str | None = None
    is_dir: bool = False
    heard_ms: int | None = field(default=None, compare=False)
    is_new: bool = False


@dataclass(slots=True)
class _Net:
    kind: ChangeKind
    is_dir: bool
    origin: str = ""
    """The origin of a path that something was moved to."""
    written: bool = False
    """Whether it was also written to, before or after it was moved."""
    heard_ms: int | None = None
    """When the deletion or move was reported."""


class Changes:
    """Gathers raw events and gives them back boiled down, in the order of each path's first."""

    def __init__(self) -> None:
        self._net: dict[str, _Net] = {}
        self._moves: list[Change] = []
        self._moves_of_new = 0

    def __len__(self) -> int:
        return len(self._net)

    def knows_written(self, path: str) -> bool:
        """Whether another `modified` of this path would add nothing."""
        net = self._net.get(path)
        return net is not None and (net.kind in ("created", "modified") or net.written)

    def add(self, kind: ChangeKind, path: str, to: str | None = None, is_dir: bool = False,
            heard_ms: int | None = None) -> None:
        """Take in one event, in the order in which they happened."""
        if kind == "created":
            self._created(path, is_dir)
        elif kind == "modified":
            self._modified(path, is_dir)
        elif kind == "deleted":
            self._deleted(path, is_dir, heard_ms)
        elif kind == "moved" and to is not None:
            self._note_move(path, to, is_dir, heard_ms)
            self._moved(path, to, is_dir, heard_ms)

    def clear(self) -> None:
        """Forget everything."""
        self._net.clear()
        self._forget_moves()

    def moves(self) -> list[Change]:
        """Return and forget each rename since the last time, in order. A reader that keeps track of
        names needs intermediate names, too. Of very many renames only the net result is returned;
        of those of new files, like temporary ones, only the first."""
        changes, many = self._moves, len(self._moves) - self._moves_of_new > MOVES_MAX
        self._forget_moves()
        return changes if not many else [
            Change("moved", net.origin, path, net.is_dir)
            for path, net in self._net.items() if net.kind == "moved"]

    def take(self) -> list[Change]:
        """Everything since the last time, and forget it."""
        changes = []
        for path, net in self._net.items():
            if net.kind == "moved":
                changes.append(Change("moved", net.origin, path, net.is_dir, net.heard_ms))
                if net.written and not net.is_dir:
                    changes.append(Change("modified", path))
            else:
                changes.append(Change(net.kind, path, None, net.is_dir, net.heard_ms))
        self._net = {}
        return changes

    def _note_move(self, path: str, to: str, is_dir: bool, heard_ms: int | None) -> None:
        net = self._net.get(path)
        is_new = net is not None and net.kind == "created"
        alike = self._moves_of_new if is_new else len(self._moves) - self._moves_of_new
        if alike < MOVES_MAX + (not is_new):  # one more of the others shows that they are many
            self._moves.append(Change("moved", path, to, is_dir, heard_ms, is_new))
            self._moves_of_new += is_new

    def _forget_moves(self) -> None:
        self._moves, self._moves_of_new = [], 0

    def _created(self, path: str, is_dir: bool) -> None:
        net = self._net.get(path)
        if net is None or is_dir:
            self._net[path] = _Net("created", is_dir)
        elif net.kind == "deleted":
            self._net[path] = _Net("modified", False)
        else:
            net.written = True

    def _modified(self, path: str, is_dir: bool) -> None:
        net = self._net.get(path)
        if is_dir:
            return
        if net is None or net.kind == "deleted":
            self._net[path] = _Net("modified", False)
        else:
            net.written = True

    def _deleted(self, path: str, is_dir: bool, heard_ms: int | None) -> None:
        net = self._net.pop(path, None)
        if net is not None and net.kind == "created":
            return
        if net is not None and net.kind == "moved":
            self._gone(net)
        # Something else may have been at `path` before the move: better said once too often.
        self._net[path] = _Net("deleted", is_dir, heard_ms=heard_ms)

    def _moved(self, path: str, to: str, is_dir: bool, heard_ms: int | None) -> None:
        net = self._net.pop(path, None)
        there = self._net.pop(to, None)
        if there is not None and there.kind == "moved":
            self._gone(there)
        if net is not None and net.kind == "created":
            # A temporary file that took the place of another; or a new one, which is read alike.
            new = is_dir or (there is not None and there.kind == "created")
            self._net[to] = _Net("created" if new else "modified", is_dir)
            return
        moved = _Net("moved", is_dir, path, net is not None and net.kind == "modified", heard_ms)
        if net is not None and net.kind == "moved":
            moved.origin, moved.written = net.origin, net.written
            # The first move may have hit an unreported file at `path`.
            self._net[path] = _Net("deleted", is_dir, heard_ms=heard_ms)
        if moved.origin != to:
            self._net[to] = moved
        elif moved.written and not is_dir:
            self._net[to] = _Net("modified", False)

    def _gone(self, net: _Net) -> None:
        """Note that a moved file was lost: its origin is deleted, or has something newer."""
        newer = self._net.get(net.origin)
        if newer is None:
            self._net[net.origin] = _Net("deleted", net.is_dir, heard_ms=net.heard_ms)
        elif newer.kind == "created":
            newer.kind = "deleted" if newer.is_dir != net.is_dir else "modified"
