"""Verdicts that write files, driven by the daemon: what looks at the disk runs in a worker, what
changes rows in the writer, and the loop serves everybody else meanwhile.

The parts and their order are for `service.review.verdicts` to say. Here each gets what it needs: a
worker a connection of its own, a transaction its turn. What a crash has cut off is taken up again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import apsw

from coordinator.daemon.loop_engine import LoopEngine
from coordinator.daemon.once_only import Later
from coordinator.daemon.writer import Answer, Writer
from coordinator.files.pace import Pace
from coordinator.operations.listing import serve_write
from coordinator.service.core import OPERATOR, Actor, Service
from coordinator.service.course import Aside, AsWho, Course, Look, Pause, Write
from coordinator.service.review import verdicts
from coordinator.store.database import DISK_ERRORS, storage_refusal
from coordinator.store.ledger import Job, Tx, View
from coordinator.words.clock import Clock
from coordinator.words.refusals import Code, Refusal

log = logging.getLogger("coord.verdicts")
#: Verdicts that write files at the same time; others wait.
WORKERS = 2


class VerdictRunner:
    """One per daemon; used from the loop's thread only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, service: Service, writer: Writer,
                 engine: LoopEngine, open_reader: Callable[[], apsw.Connection],
                 clock: Clock) -> None:
        self._loop, self._service, self._writer = loop, service, writer
        self._engine = engine
        self._open_reader, self._clock = open_reader, clock
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="verdict")
        # Not `threading.local`: what a thread owns alone is closed in each process that is forked,
        # which then may wait for a lock that nobody there gives back, and the daemon for it.
        self._readers: dict[int, apsw.Connection] = {}
        self._halted = False

    def drive(self, course: Course, who: Callable[[Tx], Actor], answer: Answer) -> None:
        """Carry out a request of several transactions; `answer` is called once, with its answer.
        `who` tells, in each of its transactions, for whom it is, or refuses."""
        later = answer if isinstance(answer, Later) else None

        def go_on(value: Any) -> None:
            try:
                part = course.send(value)
            except StopIteration as end:
                answer(end.value)
                return
            except Refusal as refusal:
                answer(refusal)
                return
            except Exception as bad:
                answer(_bug(bad))
                return
            if isinstance(part, Aside):
                self._beside(part, go_on)
            elif isinstance(part, Pause):
                self._loop.call_later(part.seconds, go_on, None)
            elif isinstance(part, Look):
                self._engine.look_at(part.needs, go_on)
            else:
                looked = part.looked if isinstance(part, AsWho) else None
                job = self._job(part, who, later)
                self._engine.decide(job, [], go_on, looked)

        go_on(None)

    def resume(self, take_up: Callable[[str], Answer]) -> None:
        """Keep the files of unfinished verdicts held, and go on with those that a crash cut off.
        `take_up`: where to answer those who had asked for one."""
        db = self._open_reader()
        try:
            left = verdicts.unfinished(View(db, self._clock.now_ms()))
        finally:
            db.close()
        if not left:
            return
        self._writer.submit(lambda tx: verdicts.hold(self._service, tx), lambda value: None)
        for review in left:
            if review not in self._service.at_work:
                self.drive(verdicts.resume(self._service, review), lambda tx: OPERATOR,
                           partial(_tell, review, take_up(review)))

    def close(self) -> None:
        """Stop after the file that is being written now: the next start goes on."""
        self._halted = True
        self._workers.shutdown(wait=False)

    # ------------------------------------------------------------ one part

    def _job(self, part: Write | AsWho, who: Callable[[Tx], Actor],
             later: Later | None) -> Job:
        def run(svc: Service, tx: Tx, actor: Actor, request: None) -> Any:
            value = part.job(tx, actor) if isinstance(part, AsWho) else part.job(tx)
            if later is not None and not isinstance(value, Refusal):
                begun = verdicts.begun_by(value)
                if part.last:
                    later.note(tx, value)
                elif begun is not None:
                    later.begun(tx, begun)
            return value

        def served(tx: Tx) -> Any:
            return serve_write(self._service, tx, who(tx), run, None)

        return served

    def _beside(self, part: Aside, answer: Answer) -> None:
        if self._halted:
            answer(Refusal(Code.SHUTTING_DOWN, "The coordinator is shutting down."))
            return
        self._loop.run_in_executor(self._workers, self._work, part).add_done_callback(
            lambda done: answer(done.result())
        )

    def _reader(self) -> apsw.Connection:
        """This worker's own connection: to open one for each part means to read the schema anew."""
        thread = threading.get_ident()
        if thread not in self._readers:
            self._readers[thread] = self._open_reader()
        return self._readers[thread]

    def _work(self, part: Aside) -> Any:
        """In a worker."""
        try:
            return part.run(_Beside(self, View(self._reader(), self._clock.now_ms())))
        except Refusal as refusal:
            return refusal
        except DISK_ERRORS as bad:
            return storage_refusal(self._service.tree.root / ".coord", bad)
        except Exception as bad:
            return _bug(bad)


class _Beside:
    """What a part gets that runs in a worker."""

    def __init__(self, verdicts: VerdictRunner, view: View) -> None:
        self._verdicts = verdicts
        self.view = view
        self.piece = Pace().piece

    def report(self, job: Job) -> None:
        """Have this written down soon; nobody waits for it."""
        own = self._verdicts
        with suppress(RuntimeError):  # the loop has ended: the journal stays as it is
            own._loop.call_soon_threadsafe(own._writer.submit, job, lambda value: None)

    def halted(self) -> bool:
        """Whether the coordinator is about to stop."""
        return self._verdicts._halted


def _tell(review: str, answer: Answer, value: Any) -> None:
    answer(value)
    if isinstance(value, Refusal):
        log.warning("the verdict on %s that was cut off: %s", review, value.message)
    else:
        log.info("the verdict on %s that was cut off has come to its end", review)


def _bug(bad: Exception) -> Refusal:
    log.error("a verdict failed", exc_info=bad)
    return Refusal(Code.INTERNAL, f"coord met a bug ({type(bad).__name__}).")
