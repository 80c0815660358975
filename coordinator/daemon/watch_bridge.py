"""Passing the watcher's batches to the service, as versions of contents.

Hashing happens in the watcher's thread and recording in the writer. An overflow, or a start, is
reported as such, and nothing is guessed about what was not seen.
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
#: Changes that one transaction records: others wait for it.
SEEN_AT_ONCE = 25
#: So long (seconds) it may take until the watcher has heard of what was done, and handed it over;
#: and until that is recorded (git may be asked for it).
HEAR_S = 3.0
#: So often a file is looked at again because something newer was recorded of it meanwhile.
LOOKED_AGAIN = 3
#: So long (seconds) the door waits at the start for what was written before.
CATCH_UP_S = 2.0
#: Leases that are looked for at the start.
LEASES_MAX = 10_000
#: For so long (ms) after a command what it left running is taken to write.
LATE_MS = 2_000


class WatchBridge:
    """Takes what the watcher saw to the coordinator."""

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
        #: Renames that belong to the batch which comes next. (Of the watcher's thread.)
        self._moves: list[Change] = []
        #: One batch is recorded at a time.
        self._turn = asyncio.Lock()
        #: Whether what an unleased write changed is kept for a review.
        self._keeps = service.settings.watch.unleased == "review"
        self._folders = tuple(f.rstrip("/") + "/" for f in service.settings.archive.folders)

    def open(self) -> None:
        """Begin to watch, if that is wanted, and look for renames of the time before."""
        self._router.engine.task(self._renamed_before())
        settings = self._service.settings.watch
        if not settings.enabled:
            return
        self._watcher = Watcher(
            self._service.tree, self._service.ignore,
            lambda changes: self._batch(changes, self._moves),
            on_renames=self._moves.extend,
            hurries=lambda: self._calls.races(self._router.now_ms()),
            manner=Manner(debounce_s=settings.debounce_s, poll=settings.poll),
        )
        self._watcher.start()
        self._service.hear = self.hear

    def hear(self, seconds: float = HEAR_S, sure: bool = True) -> None:
        """Wait until everything written and renamed so far has been heard of and recorded, at most
        so long for each of the two. For a thread. `sure`: also for what the kernel has yet to
        report, by a file that is made for a moment; otherwise only for what it has reported."""
        if self._watcher is None:
            return
        self._watcher.flush(seconds, sure=sure)
        recorded = asyncio.run_coroutine_threadsafe(self._recorded(), self._loop)
        try:
            recorded.result(seconds)
        except TimeoutError:  # this is a part of what is being recorded, perhaps
            recorded.cancel()

    async def _recorded(self) -> None:
        async with self._turn:
            pass

    def close(self) -> None:
        """Stop watching."""
        if self._watcher is not None:
            self._watcher.stop()

    def health(self) -> dict[str, Any]:
        """How the watching goes."""
        if self._watcher is None:
            return {"mode": "off", "detail": "off"}
        return dict(self._watcher.health())

    def _look(self, change: Change, before: Mapping[str, Bytes], in_git: Collection[str], *,
              keeps: bool) -> seen_writes.Seen:
        """The present content. `before`: what git has at these paths; `in_git`: the paths that it
        knows."""
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
        """The users of what is in these files may have changed."""
        if self._service.impact is not None:
            self._service.impact.note([
                *(path for sighting in seen for path
                  in (sighting.path, sighting.moved_from or sighting.path)),
                *(path for change in moved for path in (change.path, change.to or change.path))])

    def _batch(self, changes: Sequence[Change], moves: list[Change]) -> None:
        """In the watcher's thread."""
        moved, moves[:] = moves[:], []
        keeps = self._keeps or self._calls.several()
        if any(change.kind == "overflow" for change in changes):
            log.warning("more changes at once than could be told one by one")
            if self._service.impact is not None:
                self._service.impact.note_all()
        files = _of_files([*changes, *self._gone_with_their_directories(changes)])
        before = self._committed([change.to or change.path for change in files])
        deleted = [change.path for change in files if change.kind == "deleted"]
        in_git = set(before) if self._keeps else self._in_git(deleted)
        seen = [self._look(change, before, in_git, keeps=keeps) for change in files]
        if seen or moved:
            self._loop.call_soon_threadsafe(self._tell, seen, moved)
        self._note_impact(seen, moved)
        if any(sighting.path.startswith(self._folders) for sighting in seen):
            self._loop.call_soon_threadsafe(self._archive_changed)

    def _committed(self, paths: Sequence[str]) -> dict[str, Bytes]:
        """Git's contents of these, if the difference of an unleased write, or of a command, is to
        be shown."""
        adopts = (self._service.settings.hooks.adopt and len(paths) <= adoption.ADOPTED_MAX
                  and self._calls.any())
        if not self._keeps and not adopts:
            return {}
        return repository_files.committed(self._service, paths)

    def _gone_with_their_directories(self, changes: Sequence[Change]) -> list[Change]:
        """Git's files below directories that are gone. A directory that was moved out of the tree
        is reported alone."""
        gone = {change.path: change.heard_ms for change in changes if change.is_dir
                and change.kind == "deleted"}
        paths = {change.path for change in changes}
        tops = list[str]()
        for path in sorted(gone):  # paths within another of these are left out
            if not tops or not path.startswith(f"{tops[-1]}/"):
                tops.append(path)
        heard_ms = max(filter(None, gone.values()), default=None)
        return [Change("deleted", path, heard_ms=heard_ms)
                for path in self._in_git(tops, below=True) if path not in paths]

    def _in_git(self, paths: Sequence[str], *, below: bool = False) -> set[str]:
        """Which of these git has, or what it has below them: that was there before it was deleted.
        """
        if not paths or self._service.settings.watch.unleased == "ignore":
            return set()
        return repository_files.in_git(self._service, paths, below=below)

    def _tell(self, seen: list[seen_writes.Seen], moved: list[Change]) -> None:
        now = from_iso(self._router.now())
        self._router.engine.task(self._record(
            [self._with_calls(sighting, now) for sighting in seen], moved))

    def _with_calls(self, change: seen_writes.Seen, now_ms: int) -> seen_writes.Seen:
        """With the calls that ran when it was written; of what is gone, a moment ago."""
        written = change.touched_ms
        if written is None:
            late = int(1000 * self._service.settings.watch.debounce_s) * 2 + CLOCK_MS
            calls = self._calls.between(now_ms - late, now_ms)
        else:
            calls = self._calls.between(written, written + CLOCK_MS)
        lately = self._calls.between((written or now_ms) - LATE_MS, (written or now_ms) + CLOCK_MS)
        return replace(change, calls=calls, lately=lately) if lately else change

    def look_at(self, paths: Sequence[str]) -> None:
        """Look at these as if they had been reported, because nothing reports a write through a
        memory map. For a thread."""
        self._batch([Change("modified", path) for path in paths], [])

    async def catch_up(self) -> None:
        """Learn what was written to held files while no coordinator ran, before anybody asks, if
        that does not take long."""
        try:
            await asyncio.wait_for(
                asyncio.shield(self._loop.create_task(self._written_before())), CATCH_UP_S)
        except TimeoutError:
            pass
        except Exception:  # it starts all the same
            log.exception("what was written while no coordinator ran could not be looked at")

    async def _written_before(self) -> None:
        engine, service = self._router.engine, self._service
        calls = self._calls.running()
        since = min((began for run, _, began in calls if run.is_command), default=None)
        if since is not None and service.settings.watch.enabled:
            await self._written_by_commands(since)
        running = [run for run, _, _ in calls]
        paths = self._router.look(lambda view: unseen_writes.to_look_at(service, view, running))
        if not isinstance(paths, list) or not paths:
            return

        def look() -> list[tuple[str, str | None]]:
            return [(path, found.hash) for path in paths
                    if (found := repository_files.look(service, None, path)).hash
                    != repository_files.UNREADABLE]

        matches = await engine.do(look)
        if isinstance(matches, list):
            await engine.write(lambda tx: unseen_writes.note(tx, matches))

    async def _written_by_commands(self, since_ms: int) -> None:
        """Attribute what interrupted commands have written to them, as if it had been seen."""
        service, leases = self._service, self._live_leases()
        if not isinstance(leases, list):
            return

        def look() -> None:
            touched = moved_files.touched_since(service, since_ms)
            self._batch([*(Change("created" if is_new else "modified", path)
                           for path, is_new in touched.items()),
                         *(Change("deleted", path)
                           for path in moved_files.gone(service, leases))], [])

        await self._router.engine.do(look)
        await self._recorded()

    def _live_leases(self) -> Any:
        return self._router.look(lambda view: view.each(
            LeaseRow, "leases_live", view.now, 0, None, LEASES_MAX))

    async def _renamed_before(self) -> None:
        router, service = self._router, self._service
        now = router.now()
        leases = self._live_leases()
        if not isinstance(leases, list):
            return
        moved = await router.engine.do(partial(moved_files.moved_since, service, leases))
        if isinstance(moved, dict):
            for old, new in moved.items():
                await router.engine.decide(partial(
                    renames.follow, service, old=old, new=new, by=now))

    async def _record(self, seen: list[seen_writes.Seen], moved: list[Change]) -> None:
        """Let leases follow what was moved, each move by itself. Then record the present contents,
        a slice at a time, so that a checkout of thousands of files delays nobody."""
        engine, service = self._router.engine, self._service
        async with self._turn:  # what was seen later is recorded later
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
                some, again = seen[position : position + SEEN_AT_ONCE], LOOKED_AGAIN
                while some:
                    matches = await engine.write(partial(seen_writes.seen, service, changes=some,
                                                         ended=ended))
                    if not isinstance(matches, list):
                        break
                    await self._follow_up(matches)
                    some = [outdated.change for outdated in matches
                            if isinstance(outdated, seen_writes.Outdated)]
                    some, again = await self._looked_again(some, again), again - 1

    async def _looked_again(self, changes: list[seen_writes.Seen], times: int
                            ) -> list[seen_writes.Seen]:
        """The changes looked at again. After so many times they stay as they were last seen."""
        if not changes:
            return []
        if not times:
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
            if now.stamp != sighting.now.stamp:  # others may have run when that was written
                fresh = self._with_calls(replace(fresh, now=now, calls=(), lately=()), now_ms)
            result.append(fresh)
        return result

    def _is_to_be_told(self, other: Foreign) -> bool:
        """Whether nothing else tells of it: a command is compared when it ends, and what its holder
        may have done itself is its own."""
        by = [other.agent] if other.agent is not None else [
            call.holder for call in other.change.calls if call.is_command]
        if (other.since is not None and other.agent is not None
                and self._calls.was_busy(other.holder, from_iso(other.since))):
            return False
        return not any(self._is_compared(agent, other.change.path) for agent in by)

    async def _follow_up(self, writes: Sequence[
            Adopted | Foreign | seen_writes.Divided | seen_writes.Outdated]) -> None:
        """Act on writes with a known writer, each by itself."""
        engine, service = self._router.engine, self._service
        for part in writes:
            if isinstance(part, seen_writes.Divided):
                await engine.decide(partial(_beyond, service, part))
        for adopted in adoption.most([write for write in writes if isinstance(write, Adopted)]):
            await engine.decide(partial(_adopt, service, adopted))
        by_agent: dict[str | None, list[Foreign]] = {}
        for other in writes:
            if isinstance(other, Foreign) and self._is_to_be_told(other):
                by_agent.setdefault(other.agent, []).append(other)
        for agent, foreign in by_agent.items():
            if agent is None:
                for other in foreign:
                    since = other.since
                    busy = () if since is None else self._calls.busy_since(from_iso(since))
                    await engine.decide(partial(_tell_of, service, other, busy))
            else:
                await engine.decide(partial(_tell_foreign, service, agent, foreign))


def _of_files(changes: Sequence[Change]) -> list[Change]:
    """The changes of files; of one that was moved, that it is gone from where it was, too."""
    files = [change for change in changes if not change.is_dir and change.kind != "overflow"]
    named = {change.to or change.path for change in files}
    return files + [Change("deleted", change.path, heard_ms=change.heard_ms) for change in files
                    if change.to is not None and change.path not in named]


def _beyond(service: Service, divided: seen_writes.Divided, tx: Tx) -> None:
    seen_writes.beyond(service, tx, divided)


def _adopt(service: Service, found_adoption: Adopted, tx: Tx) -> None:
    adoption.adopt(service, tx, found_adoption)


def _tell_of(service: Service, foreign: Foreign, busy: Collection[str], tx: Tx) -> None:
    unleased_writes.tell_of(service, tx, foreign, busy)


def _tell_foreign(service: Service, agent: str, foreign: list[Foreign], tx: Tx) -> None:
    broken = [shell_commands.Broken(other_foreign.change.path, other_foreign.holder,
                                    other_foreign.before) for other_foreign in foreign]
    for text in shell_commands.violation(service, tx, agent, broken):
        notices.post(tx, agent, "violation", text.removeprefix("[coord] "))
