"""The desk, the writer and the archive's index belong to the loop's thread, the schedule included.

A connection of SQLite that two threads use at a time ends in `cannot start a transaction within a
transaction`; a job handed to the writer from elsewhere can be lost.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from coordinator.archive.index import ArchiveIndex
from coordinator.daemon.compose import Daemon
from coordinator.daemon.loop_engine import LoopEngine
from coordinator.daemon.request_router import RequestRouter
from coordinator.daemon.writer import Writer


def test_whatever_is_scheduled_runs_in_the_loops_own_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "coord.toml").write_text(
        "[sweep]\ninterval_s = 1\n[leases]\nretry_s = 1\n", "utf-8"
    )
    used: list[tuple[str, bool]] = []
    heard: list[Callable[[], None]] = []
    home = threading.get_ident()

    def noting(owner: type, name: str) -> None:
        real: Callable[..., Any] = getattr(owner, name)

        def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
            used.append((f"{owner.__name__}.{name}", threading.get_ident() == home))
            for tell in heard:
                tell()
            return real(self, *args, **kwargs)

        monkeypatch.setattr(owner, name, noted)

    for owner, name in ((LoopEngine, "look"), (RequestRouter, "tend"), (Writer, "submit"),
                        (ArchiveIndex, "refresh"), (ArchiveIndex, "living")):
        noting(owner, name)

    async def for_a_while() -> None:
        daemon = Daemon(tmp_path)
        serving = asyncio.create_task(daemon.run())
        again = asyncio.Event()
        heard.append(partial(asyncio.get_running_loop().call_soon_threadsafe, again.set))
        names = ("RequestRouter.tend", "LoopEngine.look", "Writer.submit")
        async with asyncio.timeout(20):
            # three times: the schedule has come round, with all that is due each second
            while min(sum(what == name for what, _ in used) for name in names) < 3:
                await again.wait()
                again.clear()
        heard.clear()
        daemon._stop.set()
        await serving

    asyncio.run(for_a_while())
    assert not [what for what, at_home in used if not at_home]
