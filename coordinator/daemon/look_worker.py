"""A process that looks at the disk for the coordinator.

Started as `python -P -m coordinator.daemon.look_worker` by `daemon.look_workers`.

Reads questions on its standard input and writes blobs and facts on its standard output
(`looking.encoding`), until its input ends. Nobody who talks to the coordinator waits for what
it does; and a look that hangs is ended with it. It changes nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import sys
from pathlib import Path
from typing import BinaryIO

import apsw

from coordinator.files.blobs import BlobFolder
from coordinator.files.canonical import Tree
from coordinator.files.ignore import Ignore
from coordinator.files.pace import Pace
from coordinator.looking import encoding
from coordinator.looking.facts import Looked
from coordinator.looking.looker import Budget, Looker
from coordinator.store.ledger import View
from coordinator.store.statements import STATEMENTS

#: How far it gives way to others that want the processor (`nice`), unless an agent waits for it
#: before each of its edits.
NICENESS = 19
#: After so long without a question (seconds), the next one is prepared.
REST_AFTER_S = 0.02
#: After contents are handed over it rests so many times as long as they took: the daemon writes
#: them between the requests of others.
HANDED_RESTS = 1.0


def serve(
    root: Path, database: Path, blobs: Path, kept_max: int, budget: Budget, source: BinaryIO,
    sink: BinaryIO,
) -> None:
    """Answer questions until there are no more."""
    tree = Tree(root)
    db: apsw.Connection | None = None
    with contextlib.suppress(apsw.Error):
        db = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
        db.set_busy_timeout(1000)

    def kept(digest: str) -> bool:
        if db is None:
            return False
        try:
            return bool(db.execute(STATEMENTS["blob_has"], (digest,)).fetchall())
        except apsw.Error:
            return False

    handed: set[tuple[str, int]] = set()
    gathered: list[encoding.Blob] = []

    def blob(digest: str, size: int, packed: bytes, mode: int) -> None:
        if (digest, mode) not in handed:
            handed.add((digest, mode))
            gathered.append(encoding.Blob(digest, size, packed, mode))
            if (len(gathered) == encoding.SLICE_BLOBS
                    or sum(len(blob.packed) for blob in gathered) >= encoding.SLICE_BYTES):
                hand_over()

    pace = Pace()

    def hand_over() -> None:
        if gathered:
            folder.settle()
            sink.write(encoding.frame(encoding.BLOBS, encoding.encode_blobs(gathered)))
            sink.flush()
            gathered.clear()
            pace.rest(HANDED_RESTS)

    folder = BlobFolder(blobs, lambda: kept_max, pace, at_once=False)

    def content(digest: str) -> bytes | None:
        return View(db, 0).blob(digest) if db is not None else None

    looker = Looker(tree, Ignore(tree), budget, kept, blob, folder, content)
    while True:  # its end closes the input of the looker's own worker
        head = source.read(encoding.HEAD.size)
        if len(head) < encoding.HEAD.size:
            return
        length, _ = encoding.HEAD.unpack(head)
        pace.begin()
        needs = encoding.decode_needs(source.read(length))
        looked = Looked()
        handed.clear()
        looker.look(needs, looked, 0)
        hand_over()
        folder.settle()  # including folders that nobody reported
        sink.write(encoding.frame(encoding.FACTS, encoding.encode_facts(looked)))
        sink.flush()
        if not select.select([source], [], [], REST_AFTER_S)[0]:
            looker.rest()  # one question comes at a time: none is in the buffer


def main() -> None:
    """The program that the daemon starts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--database", type=Path, required=True)
    parser.add_argument("--blobs", type=Path, required=True)
    for name in ("files", "bytes", "file-bytes", "kept"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--soon", action="store_true")
    args = parser.parse_args()
    if not args.soon:
        with contextlib.suppress(OSError):
            os.nice(NICENESS)
    budget = Budget(args.files, args.bytes, args.seconds, args.file_bytes)
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        serve(args.root, args.database, args.blobs, args.kept, budget, sys.stdin.buffer,
              sys.stdout.buffer)


if __name__ == "__main__":
    main()
