"""The daemon's eyes: the watcher's batches, turned into content versions for the service.

Hashing happens in the watcher's own thread; recording in the writer. An overflow, or a start, is
told as such: nothing is guessed about what was not seen.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from coordinator.daemon.watcher import Change, Watcher
from coordinator.daemon.writer import Writer
from coordinator.files.content import snapshot
from coordinator.service import line, watching
from coordinator.service.core import Service
from coordinator.store.ledger import Tx

log = logging.getLogger("coord.watcher")


class Eyes:
    """The watcher joined to the writer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, service: Service, writer: Writer,
                 archive_changed: Callable[[], None]) -> None:
        self._loop = loop
        self._service = service
        self._writer = writer
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
        """What git has of the path, when the policy is to show what an unleased write changed."""
        if self._service.settings.watch.unleased != "review":
            return None
        try:
            done = subprocess.run(
                ["git", "show", f"HEAD:./{path}"], cwd=self._service.tree.root, timeout=10,
                capture_output=True, check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None

    def _look(self, path: str, moved: str | None) -> watching.Seen:
        try:
            content = snapshot(self._service.tree.root / path,
                               self._service.settings.review.file_bytes_max)
        except OSError:
            return watching.Seen(path, "unreadable", moved_from=moved)
        if content.kind in ("file", "symlink", "large"):
            before = self._committed(path)
            return watching.Seen(path, content.hash, content.data, before, moved,
                                 changed_ms=_changed_ms(self._service.tree.root / path))
        return watching.Seen(path, None, before=self._committed(path), moved_from=moved)

    def _tell(self, seen: list[watching.Seen]) -> None:
        def job(tx: Tx) -> None:
            watching.seen(self._service, tx, seen)
            if tx.freed:
                line.settle(self._service, tx)

        self._writer.submit(job, lambda value: None)


def _changed_ms(file: Path) -> int | None:
    try:
        return file.lstat().st_mtime_ns // 1_000_000
    except OSError:
        return None
