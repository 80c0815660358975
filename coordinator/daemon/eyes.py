"""The daemon's eyes: the watcher's batches, turned into content versions for the service.

Hashing happens in the watcher's own thread; recording in the writer. An overflow, or a start, is
told as such: nothing is guessed about what was not seen.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from coordinator.daemon.desk import Desk
from coordinator.daemon.watcher import Change, Watcher
from coordinator.files.content import snapshot
from coordinator.files.git import Git, GitError
from coordinator.service import watching
from coordinator.service.core import Service
from coordinator.service.engine import decide
from coordinator.store.ledger import Tx

log = logging.getLogger("coord.watcher")
#: Changes that one transaction records.
SEEN_AT_ONCE = 100


class Eyes:
    """Takes what the watcher saw to the coordinator."""

    def __init__(self, loop: asyncio.AbstractEventLoop, service: Service, desk: Desk,
                 archive_changed: Callable[[], None]) -> None:
        self._loop = loop
        self._service = service
        self._desk = desk
        self._archive_changed = archive_changed
        self._watcher: Watcher | None = None
        self._folders = tuple(f.rstrip("/") + "/" for f in service.settings.archive.folders)

    def open(self) -> None:
        """Begin to watch, if that is wanted."""
        settings = self._service.settings.watch
        if not settings.enabled:
            return
        self._watcher = Watcher(
            self._service.tree, self._service.ignore, self._batch,
            debounce_s=settings.debounce_s, poll=settings.poll,
        )
        self._watcher.start()

    def close(self) -> None:
        """Stop watching."""
        if self._watcher is not None:
            self._watcher.stop()

    def health(self) -> dict[str, Any]:
        """How the watching goes."""
        if self._watcher is None:
            return {"mode": "off", "detail": "off"}
        return dict(self._watcher.health())

    def _batch(self, changes: Sequence[Change]) -> None:
        """In the watcher's thread."""
        seen = []
        for change in changes:
            if change.kind == "overflow":
                log.warning("more changes at once than could be told one by one")
                continue
            path = change.to if change.kind == "moved" and change.to else change.path
            moved = change.path if change.kind == "moved" else None
            if change.is_dir:
                if moved is not None:
                    seen.append(watching.Seen(path, None, moved_from=moved, is_dir=True))
                continue
            seen.append(self._look(path, moved))
        if seen:
            self._loop.call_soon_threadsafe(self._tell, seen)
        if any(one.path.startswith(self._folders) for one in seen):
            self._loop.call_soon_threadsafe(self._archive_changed)

    def _committed(self, path: str) -> bytes | None:
        """What git has of the path, as a checkout writes it, when the policy is to show what an
        unleased write changed."""
        if self._service.settings.watch.unleased != "review":
            return None
        try:
            return Git(self._service.tree.root).run(
                "cat-file", "--filters", f"HEAD:./{path}", timeout_s=10)
        except GitError:
            return None

    def _look(self, path: str, moved: str | None) -> watching.Seen:
        try:
            content = snapshot(self._service.tree.root / path,
                               self._service.settings.review.file_bytes_max)
        except OSError:
            return watching.Seen(path, "unreadable", moved_from=moved)
        if content.kind in ("file", "symlink", "large"):
            before = self._committed(path)
            return watching.Seen(path, content.hash, content.data, before, moved,
                                 changed_ms=_changed_ms(self._service.tree.root / path),
                                 link=content.kind == "symlink")
        return watching.Seen(path, None, before=self._committed(path), moved_from=moved)

    def _tell(self, seen: list[watching.Seen]) -> None:
        self._desk.engine.task(self._record(seen))

    async def _record(self, seen: list[watching.Seen]) -> None:
        """Leases follow what was moved, each move by itself; then what is there now is recorded, a
        slice at a time, so that a checkout of thousands of files holds nobody up."""
        engine, service = self._desk.engine, self._service
        for change in seen:
            if change.moved_from is not None:
                job = partial(_follow, service, change.moved_from, change.path)
                await decide(engine, service, job)
        for at in range(0, len(seen), SEEN_AT_ONCE):
            await engine.write(partial(_see, service, seen[at : at + SEEN_AT_ONCE]))
        if any(change.link for change in seen):  # a name may lead elsewhere by now
            await watching.follow_names(engine, service)


def _follow(service: Service, old: str, new: str, tx: Tx) -> None:
    watching.follow(service, tx, old, new)


def _see(service: Service, seen: Sequence[watching.Seen], tx: Tx) -> None:
    watching.seen(service, tx, seen)


def _changed_ms(file: Path) -> int | None:
    try:
        return file.lstat().st_mtime_ns // 1_000_000
    except OSError:
        return None
