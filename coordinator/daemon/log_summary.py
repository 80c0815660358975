"""`python -P -m coordinator.daemon.log_summary snapshot|waypoint DATABASE SEQ`: what the log comes
to after an event.

A process of its own, for it computes for seconds where the log is long. Reads the database and
writes the summary's bytes to standard output; changes nothing.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from coordinator.slices.story.report import carry
from coordinator.slices.story.waypoints import pack
from coordinator.store.database import open_reader
from coordinator.store.ledger import View
from coordinator.store.rebuild import snapshot
from coordinator.words.refusals import Code, Refusal

#: Whoever is at work goes before.
NICE = 10


async def summarize_log(what: Literal["snapshot", "waypoint"], database: Path, upto: int) -> bytes:
    """The state after event `upto`, as another process makes it from the log; of a waypoint also
    what had begun and not ended (`read_waypoint`).

    Raises:
        Refusal: STORAGE.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", __name__, what, str(database), str(upto),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE, cwd="/",
    )
    try:
        body, data = await process.communicate()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.kill()
        raise
    if process.returncode:
        last = data.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise Refusal(Code.STORAGE, f"The log could not be summed up ({last}); nothing was "
                      "removed.", next="`coord doctor` checks the database.")
    return body


def make_waypoint(view: View, upto: int) -> tuple[bytes, bytes]:
    """The waypoint after event `upto`: the state, and what had begun and not ended."""
    return snapshot(view.db, upto, by_waypoint=True), pack(carry(view, upto))


def read_waypoint(body: bytes) -> tuple[bytes, bytes]:
    """A waypoint as its process writes it."""
    return msgspec.msgpack.decode(body, type=tuple[bytes, bytes])


def main(arguments: Sequence[str]) -> int:
    """0, or 1 with words on standard error."""
    with suppress(OSError):
        os.nice(NICE)
    what, database, upto = arguments
    try:
        db = open_reader(Path(database))
        if what == "snapshot":
            body = snapshot(db, int(upto))
        else:
            body = msgspec.msgpack.encode(make_waypoint(View(db, 0), int(upto)))
    except Refusal as refusal:
        sys.stderr.write(f"{refusal.message}\n")
        return 1
    sys.stdout.buffer.write(body)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
