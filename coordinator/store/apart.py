"""A reading that is too long for a transaction: done outside of it, on a connection of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from coordinator.files.pace import Pace
from coordinator.store.database import DISK_ERRORS, open_reader, storage_refusal
from coordinator.store.ledger import View

T = TypeVar("T")
#: How much longer than it has read a long reading rests: it takes its time from everybody's.
RESTS = 1.0


def apart(view: View, reading: Callable[[View], T]) -> Callable[[], T]:
    """The reading at this view's instant, to be done in a thread: of what is committed when it
    begins.

    Raises:
        Refusal: STORAGE (when it is done).
    """
    path, now_ms = Path(view.db.filename), view.now_ms

    def read() -> T:
        db, pace = open_reader(path), Pace()
        try:
            db.execute("BEGIN")
            own = View(db, now_ms)
            own.rest = lambda: pace.rest(RESTS)
            return reading(own)
        except DISK_ERRORS as bad:
            raise storage_refusal(path, bad) from bad
        finally:
            db.close()

    return read
