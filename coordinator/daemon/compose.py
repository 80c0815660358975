"""Composing the daemon in one place: database, service, writer, doors, watcher, schedule.

A daemon starts only if it gets the repository's lock, so a repository has one. Otherwise it says
why it cannot start. SIGTERM and SIGINT drain it: it answers open requests, tells waiters, and ends.
It also ends when its files are no longer its own, and when it has not been needed for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any

from coordinator.archive.index import ArchiveIndex
from coordinator.client.starting import unwritable
from coordinator.daemon import errands, health
from coordinator.daemon.agent_hooks import AgentHooks
from coordinator.daemon.backups import Backups, check_not_gone
from coordinator.daemon.command_lines import CoordCommand
from coordinator.daemon.compaction import Compaction
from coordinator.daemon.errands import Errands
from coordinator.daemon.git_questions import GitProcesses
from coordinator.daemon.ground import Ground
from coordinator.daemon.health import TaskLogs, list_coordinators
from coordinator.daemon.http_door import HttpDoor
from coordinator.daemon.landing_recovery import ActivitySections, LandingRecovery
from coordinator.daemon.lock import take_lock
from coordinator.daemon.log_summary import LogFormat, form_of, log_to
from coordinator.daemon.look_workers import LookWorkers
from coordinator.daemon.loop_engine import Parts
from coordinator.daemon.namespaces import Listeners, Namespaces
from coordinator.daemon.request_router import RequestRouter
from coordinator.daemon.running_calls import NotedCalls
from coordinator.daemon.schedule import Schedule
from coordinator.daemon.session_processes import AgentsAlive, NotedProcesses, SessionProcesses
from coordinator.daemon.session_records import UnjoinedCommands, check_outside
from coordinator.daemon.unix_server import UnixServer
from coordinator.daemon.verifier import Verifier
from coordinator.daemon.watch_bridge import WatchBridge
from coordinator.daemon.waypoints import Waypoints
from coordinator.daemon.wiring_watch import WiringWatch
from coordinator.daemon.writer import Writer
from coordinator.files import coordinators
from coordinator.files.canonical import Tree
from coordinator.files.ignore import Ignore
from coordinator.files.state import StateDir, database_seal
from coordinator.files.tracked_state import check_untracked
from coordinator.kernel import repository_files, tasks
from coordinator.kernel.core import Service
from coordinator.kernel.holders import notices
from coordinator.kernel.leasing import sweep, waiting_line
from coordinator.kernel.use_cases import UseCase, answer_at_once, await_daemon
from coordinator.kernel.writing import carrying_out
from coordinator.looking.looker import Budget, Looker
from coordinator.operations.listing import SLICES
from coordinator.profiles import program_name
from coordinator.settings import FILE, Loaded, load
from coordinator.slices.impact.impact import Impact
from coordinator.source.meaning import Meaning
from coordinator.store import database
from coordinator.store import events as ev
from coordinator.store.database import DISK_ERRORS, checkpoint, close_writer
from coordinator.store.ledger import Ledger, View
from coordinator.store.statements import STATEMENTS as Q
from coordinator.wiring import intact
from coordinator.words import requests as rq
from coordinator.words.clock import Clock, SystemClock, iso
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.daemon")
#: Fencing tokens that are skipped where a coordinator was before, of which nothing is left but a
#: note that may be a second old.
SKIPPED = 1_000_000


class Daemon:
    """One repository's coordinator. Build, `run`, done.

    `stays`: somebody watches over it, so it does not end by itself for want of work.
    `log_format`: in place of the setting.
    """

    def __init__(
        self, root: Path, clock: Clock | None = None, http_port: int | None = None, *,
        stays: bool = False, log_format: LogFormat | None = None,
    ) -> None:
        self.state = StateDir(Path(os.path.realpath(root)))
        self._log_format = log_format
        self._clock = clock or SystemClock()
        self._http_port = http_port
        self._stays = stays
        self._lock: IO[str] | None = None
        self._stop = asyncio.Event()
        self._warnings: list[str] = []
        self._living = ActivitySections()
        self._note: coordinators.Note | None = None

    async def run(self) -> None:
        """Serve until stopped.

        Raises:
            Refusal: it cannot start; nothing was changed.
        """
        self._loop = asyncio.get_running_loop()
        try:
            self._prepare()
        except OSError as bad:
            raise unwritable(self.state, bad) from None
        try:
            await self._serve()
        finally:
            self._ground.leave()
            if self._lock is not None:
                self._lock.close()

    def _prepare(self) -> None:
        self.state.create()
        check_untracked(self.state.root)
        check_outside(self.state.root)
        self._lock = take_lock(self.state)
        self._ground = Ground(self.state, self._lock.fileno())
        self._ground.on_loss = self._ground_lost
        self.state.note_socket()
        self._loaded: Loaded = load(self.state.root)
        self.settings = self._loaded.settings
        log_to(self.state.log, form_of(self.state, self._log_format,
                                       self.settings.daemon.log_format))
        secret = self.state.secret_key()
        check_not_gone(self.state)
        self._db = database.open_writer(self.state.database, seal=database_seal(secret),
                               synchronous=self.settings.database.synchronous)
        self._ground.watch_database()
        self._reader = database.open_reader(self.state.database)
        self._started_at = iso(self._clock.now_ms())
        tree = Tree(self.state.root)
        self.service = Service(
            settings=self.settings, tree=tree, ignore=Ignore(tree),
            archive=self._open_archive(), secret=secret,
            impact=Impact(Meaning(str(self.state.root), str(self.state.meaning))),
            slices=SLICES, health=self._health,
        )
        self._ledger = Ledger(self._db, self.state.database)
        self._ledger.wake = partial(waiting_line.wake, self.service)
        self._go_on_above(coordinators.find(self.state.root))
        self._writer = Writer(
            self._loop, self._ledger, self._clock, lambda: checkpoint(self.state.database)
        )
        self._writer.stands = self._ground.check
        look, review = self.settings.look, self.settings.review
        budget = Budget(2 * review.files_max, look.bytes_max, look.seconds_max,
                        review.file_bytes_max)
        looker = Looker(tree, self.service.ignore, budget, _not_kept, _not_kept_here,
                        self.service.blobs)
        self._workers = LookWorkers(self.state.root, self.state.database, self.state.blobs,
                                    review.kept_bytes_max, budget, self._writer.run)
        self.router = RequestRouter(Parts(
            self._loop, self.service, self._writer, self._ledger, self._reader,
            lambda: database.open_reader(self.state.database), self._clock, looker, self._workers,
        ), self._own_use_cases(), self._sure_agent_of)
        self._http = HttpDoor(self.router, self.state, self.settings.http, self._http_port)
        self._unjoined = UnjoinedCommands(
            self._tell_holder, lambda: self.service.settings.hooks.confine)
        notes = NotedProcesses(self.state.processes)
        self._alive = AgentsAlive(self.router, notes)
        self.namespaces = Namespaces(self._loop, self.service, self._db, self.router.look,
                                     Listeners(self._alive.ended, self._tell_holder, notes.note),
                                     partial(intact.protected, self.state))
        self._wiring = WiringWatch(
            self._loop, self.state, Path.home(),
            lambda job: self._writer.submit(job, lambda value: None), self.router.look,
            lambda: self.router.engine.task(self.namespaces.protect(), lambda value: None),
            lambda row: (row.profile, row.session) in self._keeping
            or row.agent in self.namespaces.agents())
        self.service.unguarded = self._wiring.unguarded
        self._processes = SessionProcesses(self._loop, self._alive.ended, notes.note, notes.forget,
                                           partial(program_name, root=self.state.root))
        self._gits = GitProcesses(self._loop, self.router, self._agent_of, self.state.commits)
        self._alive.add(self.namespaces.agents)
        self._alive.add(self._processes.agents)
        self._writer.spread = self.namespaces.spread
        self._verifier = Verifier(self._loop, self.service, self.state, self._writer,
                                  self.router.look,
                                  lambda: database.open_reader(self.state.database), self._clock)
        self._compaction = Compaction(self._loop, self.service, self._writer, self._ledger,
                                      self._clock)
        self._waypoints = Waypoints(self._loop, self._writer, self.state.database)

    def _own_use_cases(self) -> dict[str, UseCase]:
        """The use cases of the daemon's own operations."""
        logs = TaskLogs(self.state, self.service, lambda task: self.router.look(
            lambda view: tasks.find(view, task).task_id))
        return {
            "shutdown": answer_at_once(self._shutdown),
            "agent_of_process": answer_at_once(self._process_agent),
            "git_turn": lambda svc, req: self._gits.take(svc, req),
            "compact": await_daemon(lambda req, caller: self._compaction.compact(req)),
            "open_session": await_daemon(lambda req, caller: self.namespaces.open(req)),
            "join_session": await_daemon(lambda req, caller: self._join(req)),
            "coordinators": await_daemon(lambda req, caller: list_coordinators()),
            "task_log": await_daemon(lambda req, caller: logs.answer(req, caller.gone)),
            "page_open": await_daemon(lambda req, caller: self._http.open_page(req, caller.token)),
        }

    def _go_on_above(self, before: coordinators.Note | None) -> None:
        """No fencing token is given twice in one root, also where the database is gone, or an
        older one has been put in its place."""
        given = self._fencing_given()
        if before is not None and (given < before.fencing or not self._last_seq()):
            floor = before.fencing + (0 if before.exact else SKIPPED)
            if floor > given:
                self._write(partial(errands.raised, fencing=floor))

    def _open_archive(self) -> ArchiveIndex:
        folders = tuple(self.settings.archive.folders)
        try:
            index = ArchiveIndex(self.state.archive, self.state.root, folders)
            self._warnings += [str(remark) for remark in index.refresh().warnings]
            return index
        except ValueError as bad:
            raise Refusal(Code.INVALID, f"archive.folders: {bad}.", next="Correct `[archive] "
                          f"folders` in {self.state.root / FILE}.") from None

    async def _serve(self) -> None:
        self._write(errands.started)
        self._write(lambda tx: sweep.begin(tx))
        self._write(lambda tx: carrying_out.hold(self.service, tx))  # before anything expires
        guard = AgentHooks(self.router, CoordCommand(self.state.bin), self._processes,
                           lambda agent: not self._unjoined.is_apart(agent)
                           and self.namespaces.git_asks(agent), self._alive.rests, self._unjoined,
                           partial(intact.unguarded, self.state, Path.home()))
        self._heard = guard.heard
        self._keeping = guard.keeping
        self._gits.on_end = guard.comparison.git_had_its_turn
        guard.git.note_commit = self._gits.note_commit
        guard.git.find_committer = self._gits.find_committer
        guard.git_runs = self._gits.runs
        guard.note_asking = self._wiring.note_asking
        await self.namespaces.resume()
        self.router.resume()  # what that ends may free something, and be granted
        self._wiring.open()
        for noted_process in self._alive.resume():
            if noted_process.profile and noted_process.lives:
                self._processes.again(noted_process.profile, noted_process.session,
                                      noted_process.agent, noted_process.process)
            elif noted_process.profile:
                self._processes.ends(noted_process.profile, noted_process.session,
                                     noted_process.agent)
            elif not noted_process.lives:
                self._alive.ended(noted_process.agent)
        self._watch_bridge = WatchBridge(
            self._loop, self.service, self.router, self._refresh_archive, guard.calls,
            guard.comparison.covers,
        )
        calls = NotedCalls(self._loop, self.state.calls, guard.calls)
        calls.resume(self._clock.now_ms())
        await self._watch_bridge.catch_up()
        # First, because the program that started this coordinator is told as soon as the local door
        # is open.
        await self._http.open_as_before()
        self._door = door = UnixServer(self.router, guard, self.state.socket(), self._ground)
        try:
            await door.open()
        except Refusal:
            await self._http.close()
            raise
        self.state.failure.unlink(missing_ok=True)
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._stop.set)
        guard.comparison.on_late = self._watch_bridge.look_at
        guard.confined = self.namespaces.agents
        self._watch_bridge.open()
        self._errands = Errands(self.router, self.service)
        self._landings = LandingRecovery(self._loop, self.state, self._tell_landing)
        self._landings.look()
        self._verifier.start()
        self._backups = Backups(self._loop, self.state, self.settings.database, self._ground,
                                self._clock, self._last_seq())
        self._needed_at = self._loop.time()
        coordinators.tidy(self._clock.now_ms() / 1000)
        self._note_down()
        self._sweep()
        self.router.tend_now()  # what expired while none ran
        self._waypoints.tend()
        schedule = Schedule(self._loop, self._jobs(), self._stop.set)
        # Present objects stay. Collection then looks at requests only.
        gc.collect()
        gc.freeze()
        gc.set_threshold(100_000, 20, 50)
        log.info("serving %s (pid %d)", self.state.root, os.getpid())
        if self._stays:  # somebody looks on
            door_is = (f"\ncoord: its HTTP door is {self._http.address}" if self._http.address
                       else "")
            print(f"coord: serving {self.state.root}; Ctrl-C stops it{door_is}",  # noqa: T201
                  file=sys.stderr, flush=True)
        try:
            await self._stop.wait()
        finally:
            log.info("draining")
            schedule.close()
            self._watch_bridge.close()
            self._waypoints.close()
            self._verifier.close()
            self.router.close()
            await self._http.close()
            await door.close()
            self._wiring.close()
            await self.namespaces.close()
            self.service.regions.close()  # open requests get an answer now
            if self.service.impact is not None:
                self.service.impact.close()
            self._processes.close()
            calls.close()
            self._gits.close()
            await self._workers.close()
            await self._verifier.closed()
            self._errands.close()
            if self._ground.lost() is None:
                await self._leave_in_order()
            self._note_down(ended=True)
            await asyncio.sleep(0)
            # Once the lock is free, nothing of this daemon touches a file there.
            self.service.archive.close()
            self._reader.close()
            close_writer(self._db)
            log.info("stopped")

    async def _leave_in_order(self) -> None:
        with contextlib.suppress(Refusal):
            self._ledger.run(errands.stopped, self._clock.now_ms())
        with contextlib.suppress(OSError):
            self.state.log_format.unlink(missing_ok=True)
            await self._backups.last(self._last_seq())
        self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _write(self, job: Callable[[Any], Any]) -> None:
        """Run a job of the daemon's own. A refusing disk is reported in the log and the health."""
        try:
            self._ledger.run(job, self._clock.now_ms())
        except Refusal as refusal:
            log.error("%s", refusal.message)

    def _jobs(self) -> list[tuple[Callable[[], None], float]]:
        """The repeated jobs and their intervals (seconds)."""
        return [
            (self._tend, 1), (self._sweep, self.settings.sweep.interval_s),
            (self._retry, self.settings.leases.retry_s), (self._compact, 6 * 3600),
            (self._refresh_archive, 60), (self._tidy_blobs, 3600), (self._alive.beat, 20),
            (self._gits.renew, 20), (self._waypoints.tend, 15),
        ]

    def _agent_of(self, pid: int) -> str | None:
        return self.namespaces.agent_of(pid) or self._processes.agent_of(pid)

    def _process_agent(self, req: rq.AgentOfProcess) -> rq.ProcessesAgent:
        # A process with several agents is certainly an agent's, but nobody knows whose.
        return rq.ProcessesAgent(agent=self._agent_of(req.pid),
                                 surely=self._sure_agent_of(req.pid) is not None)

    def _sure_agent_of(self, pid: int) -> str | None:
        return self.namespaces.agent_of(pid) or self._processes.sure_agent_of(pid)

    def _sweep(self) -> None:
        self.router.resume()
        self._landings.look()
        self.router.sweep()

    def _tell_holder(self, agent: str, text: str) -> None:
        self._writer.submit(lambda tx: notices.post(tx, agent, "uncovered", text),
                            lambda value: None)

    def _tell_landing(self, text: str) -> None:
        event = ev.Noted(what="a landing was cut off", facts={"then": text})
        self._writer.submit(lambda tx: tx.record(event), lambda value: None)

    def _retry(self) -> None:
        """Refused acquisitions are looked at again, whether or not anything was released."""
        if self.router.look(lambda view: view.has("waiters_any")):
            self.router.tend_now()

    def _tend(self) -> None:
        if self._ground.lost() is not None:
            return
        self.router.tend()
        self._errands.tend()
        self._verifier.tick()
        made = self.router.look(self._living.sections)
        if isinstance(made, list):
            self.service.archive.living(made)
        self._backups.tick(self._last_seq())
        self._note_down()
        self._end_if_unneeded()

    def _ground_lost(self, text: str) -> None:
        """From any thread. It stops at once: what still comes is refused (ground.py)."""
        log.error("stopping: %s", text)
        self._loop.call_soon_threadsafe(self._stop.set)

    def _end_if_unneeded(self) -> None:
        """Nothing runs for ever: with nothing held, claimed, waiting or connected for
        `daemon.idle_s`, it ends; the next command starts it again."""
        now = self._loop.time()
        if self._stays or self._is_needed():
            self._needed_at = now
        elif now - self._needed_at >= self.settings.daemon.idle_s:
            log.info("nobody has needed it for %g s (daemon.idle_s)", self.settings.daemon.idle_s)
            self._stop.set()

    def _is_needed(self) -> bool:
        came = self._door.called_since()
        called = self._http.called_since()
        if came or called or self._verifier.busy or self.namespaces.agents():
            return True
        return bool(self.router.look(lambda view: view.has("needed")))

    def _compact(self) -> None:
        self.router.engine.task(self._compaction.compact(rq.Compact()))

    def _tidy_blobs(self) -> None:
        self._loop.run_in_executor(None, self._tidy_blobs_now)

    def _tidy_blobs_now(self) -> None:
        """In a worker: it walks a folder."""
        try:
            source = database.open_reader(self.state.database)
            try:
                repository_files.tidy(self.service, View(source, self._clock.now_ms()))
            finally:
                source.close()
        except (Refusal, OSError, *DISK_ERRORS) as bad:
            log.error("kept contents were not tidied: %s", bad)

    def _last_seq(self) -> int:
        return int(str(self._reader.execute(Q["event_last"]).get))

    def _fencing_given(self) -> int:
        """No fencing token above this was given."""
        return View(self._reader, 0).counts("counters_all").get("fencing", 0)

    def _note_down(self, ended: bool = False) -> None:
        """For `coord ps`, and for a coordinator that has to begin afresh here (coordinators.py)."""
        try:
            note = coordinators.Note(
                root=str(self.state.root), socket=str(self.state.socket()),
                since=self._started_at, pid=None if ended else os.getpid(),
                fencing=self._fencing_given(), exact=ended,
            )
            if note == self._note:
                return
            self._note = note
            before = coordinators.find(self.state.root)
            if ended and before is not None and before.pid not in (None, os.getpid()):
                return  # another daemon is here now
            coordinators.put(note)
        except (OSError, Refusal, *DISK_ERRORS) as bad:
            log.warning("`coord ps` will not know of this coordinator: %s", bad)

    def _refresh_archive(self) -> None:
        done = self.service.archive.refresh()
        for remark in done.warnings:
            if str(remark) not in self._warnings:
                self._warnings.append(str(remark))

    def _health(self, req: rq.Health) -> rq.HealthReply:
        watcher = (
            self._watch_bridge.health() if hasattr(self, "_watch_bridge") else {"mode": "starting"}
        )
        return health.reply(req, health.Running(
            state=self.state, reader=self._reader, loaded=self._loaded,
            started_at=self._started_at, watcher=watcher, http=self._http.address,
            heard=self._heard, warnings=[
                *self._warnings, *self.namespaces.warnings, *self._unjoined.warnings(),
                *self._wiring.warnings()]))

    async def _join(self, req: rq.JoinSession) -> Any:
        agent = self._agent_of(req.pid)
        self._unjoined.joins(agent)
        return await self.namespaces.join(agent, req)

    def _shutdown(self, req: rq.Shutdown) -> rq.Stopping:
        self._http.forget()
        self._loop.call_later(0.01, self._stop.set)
        return rq.Stopping(pid=os.getpid())


def _not_kept(digest: str) -> bool:
    """In passing only small files are looked at, whose bytes come along."""
    return False


def _not_kept_here(digest: str, size: int, packed: bytes, mode: int) -> None:
    raise AssertionError("what has to be kept at once is a worker's business")
