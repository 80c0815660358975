"""What the daemon's threads read with, where a process is forked for a command."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import apsw

from coordinator.daemon.verdict_runner import VerdictRunner
from coordinator.service.core import OPERATOR
from coordinator.service.course import Aside
from coordinator.words.clock import SystemClock


def test_no_child_closes_a_connection_of_its_parents_threads() -> None:
    """To close it takes locks that another thread may have had, and in the child nobody gives them back: the parent
    waited for that child for ever, and everybody for the parent."""
    said, tell = os.pipe()
    os.set_blocking(said, False)

    class Reader(apsw.Connection):
        def __del__(self) -> None:
            os.write(tell, b"closed")

    async def verdict() -> bytes:
        loop = asyncio.get_running_loop()
        nothing: Any = None
        runner = VerdictRunner(loop, nothing, nothing, nothing, lambda: Reader(":memory:"), SystemClock())
        over = loop.create_future()

        def course() -> Iterator[Aside]:
            yield Aside(lambda beside: beside.view.db.execute("SELECT 1").get)

        runner.drive(course(), lambda tx: OPERATOR, over.set_result)  # type: ignore[arg-type]
        await over
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        try:
            return os.read(said, 100)
        except BlockingIOError:
            return b""
        finally:
            runner.close()

    assert asyncio.run(verdict()) == b""
