"""Passing the changes that the file watcher saw to the coordinator, which records them as versions.

The watcher's thread reads and hashes the files, and the ledger's writer records the contents. The
start also looks at renames and writes that were made while no coordinator ran.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from coordinator.daemon import moved_files
from coordinator.daemon.request_router import RequestRouter
from coordinator.daemon.running_calls import CLOCK_MS, RunningCalls
from coordinator.daemon.watcher import Change, Manner, Watcher
from coordinator.kernel import repository_files
from coordinator.kernel.core import Service
from coordinator.kernel.holders import notices
from coordinator.kernel.repository_files import NOTHING, Bytes
from coordinator.slices.guard import (
    adoption,
    ended_rights,
    renames,
    seen_writes,
    shell_commands,
    unleased_writes,
    unseen_writes,
)
from coordinator.slices.guard.adoption import Adopted
from coordinator.slices.guard.unleased_writes import Foreign
from coordinator.store.ledger import Tx
from coordinator.store.rows import LeaseRow
from coordinator.words.clock import from_iso, iso
from coordinator.words.refusals import Refusal

log = logging.getLogger("coord.watcher")
#: Changes that one transaction records. The next transaction records the others.
SEEN_AT_ONCE = 25
#: How long (seconds) `wait_for_watcher` waits for changes, and then for their record.
WATCHER_WAIT_S = 3.0
#: How often a file is looked at again if a newer version of it was recorded meanwhile.
LOOKS_AGAIN_MAX = 3
#: How long (seconds) the start waits for `catch_up` before clients can connect.
CATCH_UP_S = 2.0
#: Leases whose files are looked for at the start.
LEASES_MAX = 10_000
#: How long (ms) after a command's end a process that it left running may count as the writer.
LATE_MS = 2_000


class WatchBridge:
    """Passes what the watcher saw to the coordinator."""

    def __init__(self, loop: asyncio.AbstractEventLoop, service: Service, router: RequestRouter,
                 archive_changed: Callable[[], None], calls: RunningCalls,
                 is_compared: Callable[[str, str], bool]) -> None:
        self._loop = loop
        self._service = service
        self._router = router
        self._archive_changed = archive_changed
        self._calls = calls
        self._is_compared = is_compared
        self._watcher: Watcher | None = None
        #: Renames that belong to the next batch. Only the watcher's thread uses them.
        self._moves: list[Change] = []
        #: Its holder records a batch. Batches are recorded one after the other.
        self._recording = asyncio.Lock()
        #: Whether contents are kept, so that a review can show what an unleased write changed.
        self._keeps = service.settings.watch.unleased == "review"
        self._folders = tuple(f.rstrip("/") + "/" for f in service.settings.archive.folders)

    def open(self) -> None:
        """Start the watcher if it is enabled. Follow renames made while no coordinator ran."""
        self._router.engine.task(self._follow_missed_renames())
        settings = self._service.settings.watch
        if not settings.enabled:
            return
        self._watcher = Watcher(
            self._service.tree, self._service.ignore,
            lambda changes: self._pass_batch(changes, self._moves),
            on_renames=self._moves.extend,
            hurries=lambda: self._calls.races(self._router.now_ms()),
            manner=Manner(debounce_s=settings.debounce_s, poll=settings.poll),
        )
        self._watcher.start()
        self._service.wait_for_watcher = self.wait_for_watcher

    def wait_for_watcher(self, seconds: float = WATCHER_WAIT_S, sure: bool = True) -> None:
        """Wait in a thread until everything written and renamed so far is seen, and recorded. Each
        of the two waits ends after `seconds`. `sure`: also wait for changes that the kernel has yet
        to report; the watcher then makes a file for a moment."""
        if self._watcher is None:
            return
        self._watcher.flush(seconds, sure=sure)
        recorded = asyncio.run_coroutine_threadsafe(self._wait_for_recording(), self._loop)
        try:
            recorded.result(seconds)
        except TimeoutError:  # perhaps the recording waits for this very caller
            recorded.cancel()

    async def _wait_for_recording(self) -> None:
        async with self._recording:
            pass

    def close(self) -> None:
        """Stop watching."""
        if self._watcher is not None:
            self._watcher.stop()

    def health(self) -> dict[str, Any]:
        """The watcher's mode, and a sentence about it."""
        if self._watcher is None:
            return {"mode": "off", "detail": "off"}
        return dict(self._watcher.health())

    def _read_change(self, change: Change, before: Mapping[str, Bytes], in_git: Collection[str], *,
              keeps: bool) -> seen_writes.Seen:
        """Read the present content of a changed path. `before`: git's contents by path; `in_git`:
        the paths that git has."""
        path = change.to or change.path
        looked_ms = self._router.now_ms()
        now = repository_files.look(self._service, None, path, keep=keeps)
        return seen_writes.Seen(
            path, now, before.get(path, NOTHING),
            change.path if change.to and not change.is_new else None,
            before.get(change.path, NOTHING) if change.to else NOTHING,
            is_new=change.kind == "created", is_in_git=path in in_git,
            gone_ms=change.heard_ms if change.kind == "deleted" else None,
            looked_ms=looked_ms)

    def _note_impact(self, seen: Sequence[seen_writes.Seen], moved: Sequence[Change]) -> None:
        """Have the impact of these changes on other files computed."""
        if self._service.impact is not None:
            self._service.impact.note([
                *(path for sighting in seen for path
                  in (sighting.path, sighting.moved_from or sighting.path)),
                *(path for change in moved for path in (change.path, change.to or change.path))])

    def _pass_batch(self, changes: Sequence[Change], moves: list[Change]) -> None:
        """Read the changed files in a thread, and have the loop record them."""
        moved, moves[:] = moves[:], []
        keeps = self._keeps or self._calls.several()
        if any(change.kind == "overflow" for change in changes):
            log.warning("more changes at once than could be told one by one")
            if self._service.impact is not None:
                self._service.impact.note_all()
        files = _list_file_changes([*changes, *self._list_deleted_below(changes)])
        before = self._read_committed([change.to or change.path for change in files])
        deleted = [change.path for change in files if change.kind == "deleted"]
        in_git = set(before) if self._keeps else self._find_in_git(deleted)
        seen = [self._read_change(change, before, in_git, keeps=keeps) for change in files]
        if seen or moved:
            self._loop.call_soon_threadsafe(self._start_recording, seen, moved)
        self._note_impact(seen, moved)
        if any(sighting.path.startswith(self._folders) for sighting in seen):
            self._loop.call_soon_threadsafe(self._archive_changed)

    def _read_committed(self, paths: Sequence[str]) -> dict[str, Bytes]:
        """Git's contents of these paths, if a review may show what was changed, or if a command may
        have written the files; otherwise none."""
        adopts = (self._service.settings.hooks.adopt and len(paths) <= adoption.ADOPTED_MAX
                  and self._calls.any())
        if not self._keeps and not adopts:
            return {}
        return repository_files.committed(self._service, paths)

    def _list_deleted_below(self, changes: Sequence[Change]) -> list[Change]:
        """The deletions of git's files below deleted directories. The kernel reports a directory
        that was moved out of the tree without its files."""
        gone = {change.path: change.heard_ms for change in changes if change.is_dir
                and change.kind == "deleted"}
        paths = {change.path for change in changes}
        tops = list[str]()
        for path in sorted(gone):  # paths within another of these are left out
            if not tops or not path.startswith(f"{tops[-1]}/"):
                tops.append(path)
        heard_ms = max(filter(None, gone.values()), default=None)
        return [Change("deleted", path, heard_ms=heard_ms)
                for path in self._find_in_git(tops, below=True) if path not in paths]

    def _find_in_git(self, paths: Sequence[str], *, below: bool = False) -> set[str]:
        """The paths that git has among these; with `below`, the files that git has below them. Such
        a file was there before it was deleted."""
        if not paths or self._service.settings.watch.unleased == "ignore":
            return set()
        return repository_files.in_git(self._service, paths, below=below)

    def _start_recording(self, seen: list[seen_writes.Seen], moved: list[Change]) -> None:
        now = from_iso(self._router.now())
        self._router.engine.task(self._record(
            [self._add_calls(sighting, now) for sighting in seen], moved))

    def _add_calls(self, change: seen_writes.Seen, now_ms: int) -> seen_writes.Seen:
        """Add the calls that ran when the file was written. A deleted file tells no time, so the
        calls of the last moment are added."""
        written = change.touched_ms
        if written is None:
            late = int(1000 * self._service.settings.watch.debounce_s) * 2 + CLOCK_MS
            calls = self._calls.between(now_ms - late, now_ms)
        else:
            calls = self._calls.between(written, written + CLOCK_MS)
        lately = self._calls.between((written or now_ms) - LATE_MS, (written or now_ms) + CLOCK_MS)
        return replace(change, calls=calls, lately=lately) if lately else change

    def look_at(self, paths: Sequence[str]) -> None:
        """Treat these paths as reported changes, because the kernel reports no write through a
        memory map. Call it in a thread."""
        self._pass_batch([Change("modified", path) for path in paths], [])

    async def catch_up(self) -> None:
        """Record what was written to held files while no coordinator ran. If that takes longer than
        `CATCH_UP_S`, it continues while clients already ask."""
        try:
            await asyncio.wait_for(
                asyncio.shield(self._loop.create_task(self._record_missed_writes())), CATCH_UP_S)
        except TimeoutError:
            pass
        except Exception:  # the coordinator starts all the same
            log.exception("what was written while no coordinator ran could not be looked at")

    async def _record_missed_writes(self) -> None:
        engine, service = self._router.engine, self._service
        calls = self._calls.running()
        since = min((began for run, _, began in calls if run.is_command), default=None)
        if since is not None and service.settings.watch.enabled:
            await self._record_command_writes(since)
        running = [run for run, _, _ in calls]
        paths = self._router.look(lambda view: unseen_writes.to_look_at(service, view, running))
        if not isinstance(paths, list) or not paths:
            return

        def look() -> list[tuple[str, str | None]]:
            return [(path, content.hash) for path in paths
                    if (content := repository_files.look(service, None, path)).hash
                    != repository_files.UNREADABLE]

        contents = await engine.do(look)
        if isinstance(contents, list):
            await engine.write(lambda tx: unseen_writes.note(tx, contents))

    async def _record_command_writes(self, since_ms: int) -> None:
        """Record what the running commands have written, as if the watcher had seen it."""
        service, leases = self._service, self._list_live_leases()
        if not isinstance(leases, list):
            return

        def look() -> None:
            touched = moved_files.touched_since(service, since_ms)
            self._pass_batch([*(Change("created" if is_new else "modified", path)
                           for path, is_new in touched.items()),
                         *(Change("deleted", path)
                           for path in moved_files.gone(service, leases))], [])

        await self._router.engine.do(look)
        await self._wait_for_recording()

    def _list_live_leases(self) -> Any:
        return self._router.look(lambda view: view.each(
            LeaseRow, "leases_live", view.now, 0, None, LEASES_MAX))

    async def _follow_missed_renames(self) -> None:
        router, service = self._router, self._service
        now = router.now()
        leases = self._list_live_leases()
        if not isinstance(leases, list):
            return
        moved = await router.engine.do(partial(moved_files.moved_since, service, leases))
        if isinstance(moved, dict):
            for old, new in moved.items():
                await router.engine.decide(partial(
                    renames.follow, service, old=old, new=new, by=now))

    async def _record(self, seen: list[seen_writes.Seen], moved: list[Change]) -> None:
        """Move leases along with renamed files, one transaction for each rename. Then record the
        present contents in slices, so that a checkout of thousands of files delays nobody."""
        engine, service = self._router.engine, self._service
        async with self._recording:  # what was seen later is recorded later
            for change in moved:
                assert change.to is not None, "it is a rename"
                if change.is_new and self._router.look(
                        partial(renames.is_leased, service, name=change.path)) is False:
                    continue  # a temporary file, as editors make them
                by = None if change.heard_ms is None else iso(change.heard_ms)
                await engine.decide(partial(
                    renames.follow, service, old=change.path, new=change.to, by=by,
                    is_dir=change.is_dir))
            ended = ended_rights.EndedRights()
            for position in range(0, len(seen), SEEN_AT_ONCE):
                batch, looks_left = seen[position : position + SEEN_AT_ONCE], LOOKS_AGAIN_MAX
                while batch:
                    writes = await engine.write(partial(seen_writes.seen, service, changes=batch,
                                                        ended=ended))
                    if not isinstance(writes, list):
                        break
                    await self._follow_up(writes)
                    batch = [write.change for write in writes
                             if isinstance(write, seen_writes.Outdated)]
                    batch, looks_left = await self._look_again(batch, looks_left), looks_left - 1

    async def _look_again(self, changes: list[seen_writes.Seen], looks_left: int
                          ) -> list[seen_writes.Seen]:
        """Look at the changed files again. If no look is left, the last look counts."""
        if not changes:
            return []
        if not looks_left:
            return [replace(change, looked_ms=None) for change in changes]
        keeps = self._keeps or self._calls.several()

        def look() -> list[tuple[int, Bytes]]:
            return [(self._router.now_ms(), repository_files.look(
                self._service, None, change.path, keep=keeps)) for change in changes]

        looks = await self._router.engine.do(look)
        if isinstance(looks, Refusal):
            return []
        now_ms, result = self._router.now_ms(), list[seen_writes.Seen]()
        for sighting, (looked_ms, now) in zip(changes, looks, strict=True):
            fresh = replace(sighting, looked_ms=looked_ms)
            if now.stamp != sighting.now.stamp:  # other calls may have run at the newer write
                fresh = self._add_calls(replace(fresh, now=now, calls=(), lately=()), now_ms)
            result.append(fresh)
        return result

    def _must_tell_of(self, foreign: Foreign) -> bool:
        """Whether the watcher has to tell of another's write. The comparison at a command's end
        tells of that command's writes. What the holder may have written itself is not told."""
        agents = [foreign.agent] if foreign.agent is not None else [
            call.holder for call in foreign.change.calls if call.is_command]
        if (foreign.since is not None and foreign.agent is not None
                and self._calls.was_busy(foreign.holder, from_iso(foreign.since))):
            return False
        return not any(self._is_compared(agent, foreign.change.path) for agent in agents)

    async def _follow_up(self, writes: Sequence[
            Adopted | Foreign | seen_writes.Divided | seen_writes.Outdated]) -> None:
        """Act on the writes that need more than a record, each in a transaction of its own."""
        engine, service = self._router.engine, self._service
        for write in writes:
            if isinstance(write, seen_writes.Divided):
                await engine.decide(partial(_lease_changed_regions, service, write))
        for adopted in adoption.most([write for write in writes if isinstance(write, Adopted)]):
            await engine.decide(partial(_adopt, service, adopted))
        by_agent: dict[str | None, list[Foreign]] = {}
        for write in writes:
            if isinstance(write, Foreign) and self._must_tell_of(write):
                by_agent.setdefault(write.agent, []).append(write)
        for agent, foreign_writes in by_agent.items():
            if agent is None:
                for foreign in foreign_writes:
                    since = foreign.since
                    busy = () if since is None else self._calls.busy_since(from_iso(since))
                    await engine.decide(partial(_tell_holder, service, foreign, busy))
            else:
                await engine.decide(partial(_tell_writer, service, agent, foreign_writes))


def _list_file_changes(changes: Sequence[Change]) -> list[Change]:
    """The changes of files. A moved file counts as deleted at its old name, too."""
    files = [change for change in changes if not change.is_dir and change.kind != "overflow"]
    named = {change.to or change.path for change in files}
    return files + [Change("deleted", change.path, heard_ms=change.heard_ms) for change in files
                    if change.to is not None and change.path not in named]


def _lease_changed_regions(service: Service, divided: seen_writes.Divided, tx: Tx) -> None:
    seen_writes.beyond(service, tx, divided)


def _adopt(service: Service, adopted: Adopted, tx: Tx) -> None:
    adoption.adopt(service, tx, adopted)


def _tell_holder(service: Service, foreign: Foreign, busy: Collection[str], tx: Tx) -> None:
    unleased_writes.tell_of(service, tx, foreign, busy)


def _tell_writer(service: Service, agent: str, writes: list[Foreign], tx: Tx) -> None:
    broken = [shell_commands.Broken(write.change.path, write.holder, write.before)
              for write in writes]
    for text in shell_commands.violation(service, tx, agent, broken):
        notices.post(tx, agent, "violation", text.removeprefix("[coord] "))
