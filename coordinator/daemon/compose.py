"""The daemon, composed in one place: database, service, writer, doors, watcher, schedule.

Starts only if it gets the repository's lock (one daemon each), and says why when it cannot start.
SIGTERM and SIGINT drain: what was asked is answered, what waits is told, then it goes.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import logging
import logging.handlers
import os
import resource
import secrets
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import IO, Any

import msgspec
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from coordinator.archive.index import ArchiveIndex
from coordinator.archive.markdown import Section
from coordinator.daemon.confinement import Confinement
from coordinator.daemon.desk import Desk
from coordinator.daemon.eyes import Eyes
from coordinator.daemon.guard import Guard
from coordinator.daemon.landings import Landings
from coordinator.daemon.local_door import LocalDoor
from coordinator.daemon.look_workers import LookWorkers
from coordinator.daemon.own_command import OwnCommand
from coordinator.daemon.writer import Writer
from coordinator.files.canonical import Tree
from coordinator.files.ignore import Ignore
from coordinator.files.state import StateDir
from coordinator.looking.looker import Budget, Looker
from coordinator.resources import program_version
from coordinator.service import disk, sweeping, verdicts
from coordinator.service.core import OPERATOR, Service
from coordinator.settings import Loaded, load
from coordinator.store import events as ev
from coordinator.store.database import (
    DISK_ERRORS,
    SCHEMA_VERSION,
    backup,
    checkpoint,
    integrity,
    open_reader,
    open_writer,
)
from coordinator.store.ledger import Ledger, View
from coordinator.words import requests as rq
from coordinator.words.clock import Clock, SystemClock, iso
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.daemon")
LOG_BYTES_MAX = 1_000_000
LOGS_KEPT = 3


class Daemon:
    """One repository's coordinator. Build, `run`, done."""

    def __init__(
        self, root: Path, clock: Clock | None = None, http_port: int | None = None
    ) -> None:
        self.state = StateDir(root)
        self._clock = clock or SystemClock()
        self._http_port = http_port
        self._lock: IO[str] | None = None
        self._stop = asyncio.Event()
        self._warnings: list[str] = []
        self._http_address: str | None = None
        self._living: list[tuple[Any, ...]] = []

    async def run(self) -> None:
        """Serve until told to stop.

        Raises:
            Refusal: it cannot start; nothing was changed.
        """
        self._loop = asyncio.get_running_loop()
        self._prepare()
        try:
            await self._serve()
        finally:
            if self._lock is not None:
                self._lock.close()

    def _prepare(self) -> None:
        try:
            self.state.create()
        except OSError as bad:
            raise Refusal(
                Code.STORAGE, f"{self.state.path} cannot be made: {bad.strerror}.",
                next=f"Give write access to {self.state.root}.",
            ) from None
        self._lock = take_lock(self.state)
        _log_to(self.state.log)
        self._loaded: Loaded = load(self.state.root)
        self.settings = self._loaded.settings
        self._db = open_writer(self.state.database,
                               synchronous=self.settings.database.synchronous)
        self._reader = open_reader(self.state.database)
        self._started_at = iso(self._clock.now_ms())
        tree = Tree(self.state.root)
        self.service = Service(
            settings=self.settings, tree=tree, ignore=Ignore(tree),
            archive=self._open_archive(), secret=_secret(self.state.secret),
        )
        self._ledger = Ledger(self._db, self.state.database)
        self._writer = Writer(
            self._loop, self._ledger, self._clock, lambda: checkpoint(self.state.database)
        )
        look, review = self.settings.look, self.settings.review
        budget = Budget(2 * review.files_max, look.bytes_max, look.seconds_max,
                        review.file_bytes_max)
        looker = Looker(tree, self.service.ignore, budget, _not_kept, _not_kept_here,
                        self.service.blobs)
        self._workers = LookWorkers(self.state.root, self.state.database, self.state.blobs,
                                    review.kept_bytes_max, budget, self._writer.run)
        self.desk = Desk(
            self._loop, self.service, self._writer, self._ledger, self._reader,
            lambda: open_reader(self.state.database), self._clock,
            {"health": self._health, "shutdown": self._shutdown},
            looker, self._workers,
        )

    def _open_archive(self) -> ArchiveIndex:
        folders = tuple(self.settings.archive.folders)
        try:
            index = ArchiveIndex(self.state.archive, self.state.root, folders)
            self._warnings += [str(remark) for remark in index.refresh().warnings]
            return index
        except ValueError as bad:
            raise Refusal(Code.INVALID, f"archive.folders: {bad}.") from None

    async def _serve(self) -> None:
        self._write(_started(self._started_at))
        self._write(lambda tx: sweeping.begin(self.service, tx))
        self._write(lambda tx: verdicts.hold(self.service, tx))  # before anything lapses
        self.desk.verdicts.resume()
        confinement = Confinement(self.state.path / "confine", self.settings.hooks.confine)
        guard = Guard(self.desk, confinement, OwnCommand(self.state.bin))
        self._heard = guard.heard
        door = LocalDoor(self.desk, guard, self.state.socket())
        await door.open()
        self.state.failure.unlink(missing_ok=True)
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._stop.set)
        self._eyes = Eyes(self._loop, self.service, self.desk, self._refresh_archive)
        self._eyes.open()
        self._landings = Landings(self._loop, self.state, self._tell_landing)
        self._landings.look()
        self._sweep()
        scheduler = self._schedule()
        http = await self._open_http()
        self._backup_if_old()
        # What is there now stays; collecting looks at requests only, and not at every 700 of them.
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)
        log.info("serving %s (pid %d)", self.state.root, os.getpid())
        try:
            await self._stop.wait()
        finally:
            log.info("draining")
            scheduler.shutdown(wait=False)
            self._eyes.close()
            self.desk.close()
            if http is not None:
                await http.close()
            await door.close()
            await self._workers.close()
            with contextlib.suppress(Refusal):
                self._ledger.run(_stopped, self._clock.now_ms())
            await asyncio.sleep(0)
            self._reader.close()
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._db.close()
            log.info("stopped")

    def _write(self, job: Callable[[Any], Any]) -> None:
        """A job of the daemon's own; a disk that refuses is said in the log and the health."""
        try:
            self._ledger.run(job, self._clock.now_ms())
        except Refusal as refusal:
            log.error("%s", refusal.message)

    def _schedule(self) -> AsyncIOScheduler:
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        scheduler = AsyncIOScheduler(event_loop=self._loop, timezone="UTC")
        leases, database = self.settings.leases, self.settings.database
        for job, every_s in (
            (self._sweep, self.settings.sweep.interval_s), (self._tend, 1),
            (self._retry, leases.retry_s), (self._backup, database.backup_every_s),
            (self._compact, 6 * 3600), (self._refresh_archive, 60), (self._tidy_blobs, 3600),
        ):
            scheduler.add_job(_in_the_loop(job), "interval", seconds=every_s, id=job.__name__,
                              coalesce=True, max_instances=1, misfire_grace_time=None)
        scheduler.start()
        return scheduler

    def _sweep(self) -> None:
        self.desk.verdicts.resume()
        self._landings.look()
        self.desk.sweep()

    def _tell_landing(self, said: str) -> None:
        event = ev.Noted(what="a landing was cut off", facts={"then": said})
        self._writer.submit(lambda tx: tx.record(event), lambda value: None)

    def _retry(self) -> None:
        """Refused acquisitions are looked at again, whether or not anything was released."""
        if self.desk.look(lambda view: view.row("waiters_any")):
            self.desk.tend_now()

    def _tend(self) -> None:
        self.desk.tend()
        self._tell_living()

    def _compact(self) -> None:
        self._writer.submit(
            lambda tx: sweeping.compact(self.service, tx, OPERATOR, rq.Compact()),
            lambda value: None,
        )

    def _tidy_blobs(self) -> None:
        self._loop.run_in_executor(None, self._tidy_blobs_now)

    def _tidy_blobs_now(self) -> None:
        """In a worker: it walks a folder."""
        try:
            source = open_reader(self.state.database)
            try:
                disk.tidy(self.service, View(source, self._clock.now_ms()))
            finally:
                source.close()
        except (Refusal, OSError, *DISK_ERRORS) as bad:
            log.error("kept contents were not tidied: %s", bad)

    def _backup(self) -> None:
        self._loop.run_in_executor(None, self._back_up_now)

    def _backup_if_old(self) -> None:
        """At the start: a daemon that is often restarted must not go without a copy."""
        try:
            age_s = self._clock.now_ms() / 1000 - self.state.backup.stat().st_mtime
        except OSError:
            age_s = float("inf")
        if age_s > self.settings.database.backup_every_s:
            self._backup()

    def _back_up_now(self) -> None:
        try:
            source = open_reader(self.state.database)
            try:
                backup(source, self.state.backup, self.settings.database.backups)
            finally:
                source.close()
        except (Refusal, OSError, *DISK_ERRORS) as bad:
            log.error("backup failed: %s", bad)

    def _refresh_archive(self) -> None:
        done = self.service.archive.refresh()
        for remark in done.warnings:
            if str(remark) not in self._warnings:
                self._warnings.append(str(remark))

    def _tell_living(self) -> None:
        """Sections on what each holder is doing now, kept in the archive's index."""
        def reading(view: View) -> list[tuple[Any, ...]]:
            return [tuple(row[:6]) for row in view.rows("leases_live", view.now, 0, None, 300)]

        rows = self.desk.look(reading)
        if isinstance(rows, Refusal) or rows == self._living:
            return
        self._living = rows
        holders: dict[str, list[tuple[Any, ...]]] = {}
        for row in rows:
            holders.setdefault(row[2], []).append(row)
        made = [
            Section(
                source="(living)", number=f"now.{i}", title=f"What {holder} is doing", level=1,
                body=" ".join(
                    f"{holder} holds {row[1]} since {row[3]}"
                    + (f" ({row[4]})." if row[4] else ".") for row in held
                ),
                line=0, paths=tuple(str(row[1]) for row in held),
            )
            for i, (holder, held) in enumerate(sorted(holders.items()), 1)
        ]
        self.service.archive.living(made)

    async def _open_http(self) -> Any:
        if self._http_port is None and not self.settings.http.enabled:
            return None
        from coordinator.daemon.http_door import HttpDoor

        port = self._http_port if self._http_port is not None else self.settings.http.port
        door = HttpDoor(self.desk, self.state, port)
        self._http_address = await door.open()
        return door

    def _health(self, req: rq.Health) -> rq.HealthReply:
        warnings = list(self._warnings)
        eyes = self._eyes.health() if hasattr(self, "_eyes") else {"mode": "starting"}
        if eyes.get("mode") == "polling":
            warnings.append(str(eyes.get("detail")))
        wal = self.state.database.with_name(self.state.database.name + "-wal")
        found = integrity(self._reader) if req.integrity else None
        return rq.HealthReply(
            version=program_version(), root=str(self.state.root), pid=os.getpid(),
            started_at=self._started_at, schema_version=SCHEMA_VERSION,
            db_bytes=_size(self.state.database), wal_bytes=_size(wal),
            resident_bytes=_resident_bytes(),
            events=int(self._reader.execute("SELECT coalesce(max(seq), 0) FROM events").get),
            watcher=eyes, http=self._http_address, warnings=warnings,
            config={
                "settings": msgspec.to_builtins(self.settings), "sources": self._loaded.sources
            },
            heard=dict(self._heard), integrity=found,
        )

    def _shutdown(self, req: rq.Shutdown) -> rq.Stopping:
        self._loop.call_later(0.01, self._stop.set)
        return rq.Stopping(pid=os.getpid())


def take_lock(state: StateDir) -> IO[str]:
    """The lock that makes this the repository's one daemon.

    Raises:
        Refusal: BAD_TRANSITION: another daemon runs; its pid is among the facts.
    """
    file = state.lock.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        pid = file.read().strip() or "unknown"
        file.close()
        raise Refusal(
            Code.BAD_TRANSITION, f"A coordinator for {state.root} is running already (pid {pid}).",
            next="`coord status` shows it; `coord down` stops it.", pid=pid,
        ) from None
    file.seek(0)
    file.truncate()
    file.write(str(os.getpid()))
    file.flush()
    return file


def _not_kept(digest: str) -> bool:
    """In passing only small files are looked at, whose bytes come along."""
    return False


def _not_kept_here(digest: str, size: int, packed: bytes, mode: int) -> None:
    raise AssertionError("what has to be kept at once is a worker's business")


def _in_the_loop(job: Callable[[], None]) -> Callable[[], Coroutine[Any, Any, None]]:
    """The job as a coroutine: APScheduler gives all else to a thread of a pool, and the desk, the
    writer and their connections are the loop's own."""

    async def run() -> None:
        job()

    return run


def _started(at: str) -> Callable[[Any], None]:
    def job(tx: Any) -> None:
        tx.record(ev.Noted(what="the coordinator started", facts={"version": program_version()}))

    return job


def _stopped(tx: Any) -> None:
    tx.record(ev.Noted(what="the coordinator stopped", facts={}))


def _secret(path: Path) -> bytes:
    if not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(32))
            file.flush()
            os.fsync(file.fileno())
    return path.read_bytes()


def _log_to(path: Path) -> None:
    handler = logging.handlers.RotatingFileHandler(
        path, maxBytes=LOG_BYTES_MAX, backupCount=LOGS_KEPT, encoding="utf-8"
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _resident_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return pages * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
