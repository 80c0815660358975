"""What the daemon's threads read with, where a process is forked for a command."""

from __future__ import annotations

import asyncio
import os
from types import SimpleNamespace
from typing import Any, cast

import apsw

from coordinator.daemon.loop_engine import LoopEngine, Parts
from coordinator.kernel.use_cases import OnDisk, Steps
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
        runner = LoopEngine(Parts(loop, nothing, cast(Any, SimpleNamespace()), nothing, nothing,
                                  lambda: Reader(":memory:"), SystemClock(), nothing, nothing))
        over = loop.create_future()

        def read() -> Steps:
            yield OnDisk(lambda worker: worker.view.db.execute("SELECT 1").get)

        runner.run(read(), over.set_result)
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
