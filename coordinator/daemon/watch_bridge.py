"""From the watcher to the service: its batches, turned into content versions.

Hashing happens in the watcher's own thread; recording in the writer. An overflow, or a start, is
told as such: nothing is guessed about what was not seen.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from coordinator.daemon.request_router import RequestRouter
from coordinator.daemon.watcher import Change, Watcher
from coordinator.files.git import Git, GitError
from coordinator.service import repository_files
from coordinator.service.core import Service
from coordinator.service.enforcement import seen_writes
from coordinator.service.engine import decide
from coordinator.service.repository_files import NOTHING, Bytes
from coordinator.store.ledger import Tx

log = logging.getLogger("coord.watcher")
#: Changes that one transaction records: others wait for it.
SEEN_AT_ONCE = 25


class WatchBridge:
    """Takes what the watcher saw to the coordinator."""

    def __init__(self, loop: asyncio.AbstractEventLoop, service: Service, router: RequestRouter,
                 archive_changed: Callable[[], None]) -> None:
        self._loop = loop
        self._service = service
        self._router = router
        self._archive_changed = archive_changed
        self._watcher: Watcher | None = None
        #: One batch is recorded at a time.
        self._turn = asyncio.Lock()
        #: Whether what an unleased write changed is kept for a review.
        self._keeps = service.settings.watch.unleased == "review"
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
        seen: list[seen_writes.Seen] = []
        before = self._committed([c.to or c.path for c in changes
                                  if not c.is_dir and c.kind != "overflow"])
        for change in changes:
            if change.kind == "overflow":
                log.warning("more changes at once than could be told one by one")
                continue
            path = change.to if change.kind == "moved" and change.to else change.path
            moved = change.path if change.kind == "moved" else None
            if change.is_dir:
                if moved is not None:
                    seen.append(seen_writes.Seen(path, NOTHING, moved_from=moved, is_dir=True))
                continue
            now = repository_files.look(self._service, None, path, keep=self._keeps)
            seen.append(seen_writes.Seen(path, now, before.get(path, NOTHING), moved))
        if seen:
            self._loop.call_soon_threadsafe(self._tell, seen)
        if any(one.path.startswith(self._folders) for one in seen):
            self._loop.call_soon_threadsafe(self._archive_changed)

    def _committed(self, paths: Sequence[str]) -> dict[str, Bytes]:
        """What git has of these, when the policy is to show what an unleased write changed."""
        if not self._keeps:
            return {}
        git = Git(self._service.tree.root)
        try:
            above = git.text("rev-parse", "--show-prefix")  # the root may lie below git's own
            entries = {above + path: of for path, of in git.entries("HEAD", paths).items()}
            found = repository_files.from_git(self._service, git, entries)
        except GitError:
            return {}
        return {path.removeprefix(above): content for path, content in found.items()}

    def _tell(self, seen: list[seen_writes.Seen]) -> None:
        self._router.engine.task(self._record(seen))

    async def _record(self, seen: list[seen_writes.Seen]) -> None:
        """Leases follow what was moved, each move by itself; then what is there now is recorded, a
        slice at a time, so that a checkout of thousands of files holds nobody up."""
        engine, service = self._router.engine, self._service
        async with self._turn:  # what was seen later is recorded later
            for change in seen:
                if change.moved_from is not None:
                    job = partial(_follow, service, change.moved_from, change.path)
                    await decide(engine, service, job)
            ended = seen_writes.EndedRights()
            for at in range(0, len(seen), SEEN_AT_ONCE):
                some = seen[at : at + SEEN_AT_ONCE]
                await engine.write(partial(_see, service, some, ended))
            if any(change.link for change in seen):  # a name may lead elsewhere by now
                await seen_writes.follow_names(engine, service)


def _follow(service: Service, old: str, new: str, tx: Tx) -> None:
    seen_writes.follow(service, tx, old, new)


def _see(service: Service, seen: Sequence[seen_writes.Seen], ended: seen_writes.EndedRights,
         tx: Tx) -> None:
    seen_writes.seen(service, tx, seen, ended)
