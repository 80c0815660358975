"""The repeated jobs of the daemon, each at its interval. APScheduler keeps the times.

The schedule begins a moment after the daemon serves. Loading APScheduler is a quarter of what a
start loads, and the program that started the daemon waits for its answer. The schedule does not
know what a job does.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from apscheduler.schedulers.asyncio import AsyncIOScheduler

log = logging.getLogger("coord.daemon")
#: When the schedule begins, in seconds after the daemon serves.
BEGINS_AFTER_S = 0.5

Job = Callable[[], None]


class Schedule:
    """Runs jobs in the loop's thread, each every so many seconds, until it is closed.

    Args:
        jobs: each with its interval in seconds. The first runs at the beginning, too. One that
            fails is logged, and runs again.
        failed: called when the schedule cannot begin; without it nothing would be swept.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, jobs: Sequence[tuple[Job, float]],
                 failed: Callable[[], None]) -> None:
        self._loop, self._jobs, self._failed = loop, jobs, failed
        self._scheduler: AsyncIOScheduler | None = None
        self._beginning = loop.create_task(self._begin())

    def close(self) -> None:
        """Begin no more jobs."""
        self._beginning.cancel()
        if self._scheduler is not None:
            self._scheduler.shutdown(wait=False)

    async def _begin(self) -> None:
        await asyncio.sleep(BEGINS_AFTER_S)
        try:
            loaded = await self._loop.run_in_executor(
                None, importlib.import_module, "apscheduler.schedulers.asyncio")
            self._scheduler = loaded.AsyncIOScheduler(event_loop=self._loop, timezone="UTC")
            logging.getLogger("apscheduler").setLevel(logging.WARNING)
            for job, every_s in self._jobs:
                self._scheduler.add_job(
                    _in_the_loop(job), "interval", seconds=every_s, id=job.__name__,
                    coalesce=True, max_instances=1, misfire_grace_time=None)
            self._scheduler.get_job(self._jobs[0][0].__name__).modify(
                next_run_time=datetime.now(UTC))
            self._scheduler.start()
        except Exception:
            log.exception("stopping: the schedule did not begin")
            self._failed()


def _in_the_loop(job: Job) -> Callable[[], Coroutine[Any, Any, None]]:
    """The job as a coroutine: APScheduler gives all else to a thread of a pool, and the router, the
    writer and their connections are the loop's own."""

    async def run() -> None:
        job()

    return run
