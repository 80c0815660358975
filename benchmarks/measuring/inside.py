"""The coordinator's inside without a process: the real service on a real SQLite file.

For benchmarks of decisions, not of durability: synchronous is OFF, so that what is measured is how
the work grows and not how the disk fares.
"""

from __future__ import annotations

import contextlib
import gc
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from benchmarks.in_process import InProcess
from coordinator.archive.index import ArchiveIndex
from coordinator.files.canonical import Tree
from coordinator.files.ignore import Ignore
from coordinator.files.state import StateDir
from coordinator.kernel.core import Service
from coordinator.operations.listing import OPERATIONS, SLICES
from coordinator.settings import Settings
from coordinator.store.database import open_writer
from coordinator.store.ledger import Ledger, Tx
from coordinator.words import requests as rq

T = TypeVar("T")
START_MS = 1_790_000_000_000


class Inside:
    """A repository, its service and its ledger."""

    def __init__(self, root: Path, settings: Settings | None = None) -> None:
        state = StateDir(root)
        state.create()
        tree = Tree(root)
        self.service = Service(
            settings or Settings(), tree, Ignore(tree), ArchiveIndex(state.archive, root),
            b"b" * 32, slices=SLICES,
        )
        self.db = open_writer(state.database, synchronous="OFF")
        self.ledger = Ledger(self.db, state.database)
        self.now_ms = START_MS
        self.engine = InProcess(self.service, self.ledger, START_MS)

    def run(self, job: Callable[[Tx], T]) -> T:
        """A job in a transaction of its own; a refusal is raised."""
        self.now_ms += 1
        return self.ledger.run(job, self.now_ms)

    def serve(self, request: rq.Request[T]) -> T:
        """A request as the daemon serves it, for a person; a refusal is raised."""
        self.now_ms += 1
        self.engine.now_ms = self.now_ms
        served: T = self.engine.ask(OPERATIONS[request.op], request)
        return served

    def settle(self) -> None:
        """Leave nothing behind of what was prepared that would be paid for while measuring."""
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        gc.collect()


@contextlib.contextmanager
def inside(folder: Path | None = None, settings: Settings | None = None) -> Iterator[Inside]:
    """An `Inside` in a directory that goes when it is left; `settings`: the defaults if none."""
    with tempfile.TemporaryDirectory(prefix="coord-inside-", dir=folder) as root:
        made = Inside(Path(root), settings)
        try:
            yield made
        finally:
            made.engine.close()
            made.service.regions.close()
            made.db.close()
            made.service.archive.close()
