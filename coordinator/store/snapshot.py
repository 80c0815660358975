"""`python -P -m coordinator.store.snapshot DATABASE SEQ`: the state after an event.

A process of its own, for it computes for seconds where the log is long. Reads the database and
writes the snapshot's bytes to standard output; changes nothing.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from coordinator.store.database import open_reader
from coordinator.store.rebuild import snapshot
from coordinator.words.refusals import Refusal

#: Whoever is at work goes before.
NICE = 10


def main(arguments: list[str]) -> int:
    """0, or 1 with words on standard error."""
    with suppress(OSError):
        os.nice(NICE)
    try:
        body = snapshot(open_reader(Path(arguments[0])), int(arguments[1]))
    except Refusal as refusal:
        sys.stderr.write(f"{refusal.message}\n")
        return 1
    sys.stdout.buffer.write(body)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
