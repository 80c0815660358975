"""`python -m benchmarks stall`: what a neighbour feels while a request works on the disk.

A neighbour takes and gives back one small lease over and over. Beside it, another client asks for
what is large, one thing after the other. Its p99 meanwhile is compared with its p99 at rest, just
before and after, in the same run. A real daemon on a real disk.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from benchmarks.command_line import AsJson, Folder, show_report
from benchmarks.measuring.own_daemon import OwnDaemon, own_daemon
from benchmarks.measuring.samples import percentile
from coordinator.cli.app import one_of
from coordinator.client.client import Client
from coordinator.client.locating import connect
from coordinator.files.state import StateDir, database_seal
from coordinator.store.database import open_writer
from coordinator.words import requests as rq
from coordinator.words.clock import iso
from coordinator.words.refusals import Refusal

#: How long the neighbour is watched at rest, before and after each act (seconds).
REST_S = 3.0
#: An act is repeated until it took so long together (seconds).
ACT_S = 3.0
#: For so long (seconds) nothing more must have been seen of what was changed: then it is all.
QUIET_S = 1.0
#: What is done once only: the second time there would be less, or nothing, to do.
ONCE = ("checkout", "unseen", "files", "bytes", "revert", "compact")
#: Bytes of one of the large files.
LARGE_BYTES = 4_500_000


class Sizes(msgspec.Struct):
    """How large what is asked for is."""

    files: int = 20_000
    large_bytes: int = 350_000_000
    parts: int = 1_990
    unread: int = 20_000
    reverted: int = 400
    events: int = 1_000_000


class Felt(msgspec.Struct):
    """One act. Times of the neighbour's lock + unlock in milliseconds."""

    act: str
    took_s: float
    """How long the act took, once."""
    rest_p50_ms: float
    rest_p99_ms: float
    p50_ms: float
    p99_ms: float
    most_ms: float
    pairs: int
    """How many pairs the neighbour had done meanwhile."""
    ratio: float
    """p99 meanwhile over p99 at rest."""
    outcome: str = "done"


class Neighbour(threading.Thread):
    """Takes and gives back one lease, without pause, and notes when each pair began and ended."""

    def __init__(self, root: Path) -> None:
        super().__init__(name="neighbour", daemon=True)
        self._client = Client(root, agent="neighbour", profile="bench")
        self._client.register()
        self._over = threading.Event()
        self.pairs: list[tuple[float, float]] = []

    def run(self) -> None:
        while not self._over.is_set():
            began = time.perf_counter()
            self._client.acquire("neighbour.txt")
            self._client.release("neighbour.txt")
            self.pairs.append((began, time.perf_counter()))

    def between(self, since: float, until: float) -> list[float]:
        """How long the pairs took (seconds) that overlap this span."""
        return [end - begin for begin, end in list(self.pairs) if end > since and begin < until]

    def stop(self) -> None:
        """Let it end."""
        self._over.set()
        self.join()
        self._client.close()


def run(sizes: Sizes, acts: Sequence[str], folder: Path | None = None) -> list[Felt]:
    """Measure each of these acts (all, if none is named)."""
    out: list[Felt] = []
    with own_daemon(folder, before=lambda root: _old_events(root, sizes.events)) as daemon:
        client = Client(daemon.root, agent="large", profile="bench")
        client.register()
        operator = Client(daemon.root)
        neighbour = Neighbour(daemon.root)
        neighbour.start()
        try:
            for name, act in _acts(daemon, client, operator, sizes).items():
                if not acts or name in acts:
                    out.append(_felt(name, neighbour, act))
        finally:
            neighbour.stop()
            client.close()
            operator.close()
    return out


def names() -> list[str]:
    """The acts, in their order."""
    return ["checkout", "unseen", "files", "bytes", "disk", "paths", "unread", "revert", "rewrite",
            "compact"]


def _felt(name: str, neighbour: Neighbour, act: Callable[[], tuple[float, float, str]]) -> Felt:
    os.sync()  # what was made for this, and left by the act before, is on the disk by now
    began = time.perf_counter()
    time.sleep(REST_S)
    rest = neighbour.between(began, time.perf_counter())
    spans: list[tuple[float, float]] = []
    outcome = "done"
    while sum(until - since for since, until in spans) < ACT_S:
        since, until, outcome = act()
        spans.append((since, until))
        if name in ONCE:
            break
    began = time.perf_counter()
    time.sleep(REST_S)
    rest += neighbour.between(began, time.perf_counter())
    during = [took for since, until in spans for took in neighbour.between(since, until)]
    at_rest, meanwhile = percentile(rest, 0.99), percentile(during, 0.99)
    return Felt(
        act=name, took_s=spans[0][1] - spans[0][0], rest_p50_ms=percentile(rest, 0.5) * 1e3,
        rest_p99_ms=at_rest * 1e3, p50_ms=percentile(during, 0.5) * 1e3, p99_ms=meanwhile * 1e3,
        most_ms=max(during, default=0.0) * 1e3, pairs=len(during),
        ratio=meanwhile / at_rest if at_rest else 0.0, outcome=outcome,
    )


def _acts(
    daemon: OwnDaemon, client: Client, operator: Client, sizes: Sizes
) -> dict[str, Callable[[], tuple[float, float, str]]]:
    root = daemon.root
    prepared: set[str] = set()

    def timed(ask: Callable[[], object]) -> tuple[float, float, str]:
        began, outcome = time.perf_counter(), "done"
        try:
            ask()
        except Refusal as refusal:
            outcome = f"refused: {refusal.code.value}"
        return began, time.perf_counter(), outcome

    def once(name: str, prepare: Callable[[], None]) -> None:
        if name not in prepared:
            prepared.add(name)
            prepare()
            os.sync()

    def leased(name: str) -> tuple[float, float, str]:
        span = timed(lambda: client.acquire(name))
        with suppress(Refusal):
            client.release(name)
        return span

    def checkout() -> tuple[float, float, str]:
        """A process that knows nothing of coord makes as many files, and the watcher sees them."""
        began = time.perf_counter()
        _made(root / "seen", sizes.files)
        ended, after = time.perf_counter(), 0
        while time.perf_counter() < ended + QUIET_S:
            time.sleep(QUIET_S / 10)
            seen = operator.call(rq.Events(kind="versions_seen", after=after, limit=500)).items
            if seen:
                ended, after = time.perf_counter(), seen[-1].seq
        return began, ended, "done"

    def unseen() -> tuple[float, float, str]:
        """The same where nobody looks: git ignores it."""
        (root / ".gitignore").write_text("unseen/\n", "utf-8")
        time.sleep(QUIET_S)  # the watcher reads it
        return timed(lambda: _made(root / "unseen", sizes.files))

    def files() -> tuple[float, float, str]:
        once("files", lambda: _many(root / "many", sizes.files))
        return leased("many/")

    def large() -> tuple[float, float, str]:
        once("bytes", lambda: _large(root / "large", sizes.large_bytes))
        return leased("large/")

    def disk() -> tuple[float, float, str]:
        """As many bytes, written to the same disk by a process that knows nothing of coord."""
        size = min(sizes.large_bytes, LARGE_BYTES)
        return timed(lambda: _written(root / "bare", max(1, sizes.large_bytes // size), size))

    def rewrite() -> tuple[float, float, str]:
        """As many small files as a revert writes, by such a process."""
        return timed(lambda: _written(root / "rewritten", sizes.reverted, 180))

    def paths() -> tuple[float, float, str]:
        deep = "/".join("d" for _ in range(sizes.parts))
        return timed(lambda: client.acquire(*(f"{deep}/{n}" for n in range(10))))

    def unread() -> tuple[float, float, str]:
        """Somebody asks for much, reads no answer, and hangs up."""
        link = connect(StateDir(root))
        assert link is not None
        began = time.perf_counter()
        with link:
            link.settimeout(0.5)
            with suppress(TimeoutError):
                link.sendall(b'{"op":"status","id":1}\n' * sizes.unread)
        time.sleep(0.5)
        return began, time.perf_counter(), "done"

    def revert() -> tuple[float, float, str]:
        _many(root / "undone", sizes.reverted)
        with Client(root, agent="torn", profile="bench") as torn:
            torn.register()
            torn.acquire("undone/")
            for path in (root / "undone").rglob("*.txt"):
                path.write_text("half of it\n", "utf-8")
            torn.call(rq.Leave(agent="torn", clean=False))
        review = operator.call(rq.Reviews()).items[-1].review
        return timed(lambda: operator.call(rq.ReviewDecide(review=review, verdict="revert")))

    def compact() -> tuple[float, float, str]:
        return timed(lambda: operator.call(rq.Compact(keep_days=1.0)))

    return {"checkout": checkout, "unseen": unseen, "files": files, "bytes": large, "disk": disk,
            "paths": paths, "unread": unread, "revert": revert, "rewrite": rewrite,
            "compact": compact}


def _written(place: Path, count: int, size: int) -> None:
    """Files written, made durable and put in their places, one by one, in a process of its own:
    what the disk itself makes a neighbour feel."""
    place.mkdir(exist_ok=True)
    words = [sys.executable, "-P", "-c", _WRITER, str(place), str(count), str(size)]
    subprocess.run(words, check=True)


_WRITER = """
import os, sys
place, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
data = os.urandom(size)
for n in range(count):
    name = os.path.join(place, f"f{n}")
    file = os.open(name + ".new", os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    os.write(file, data)
    os.fsync(file)
    os.close(file)
    os.replace(name + ".new", name)
"""


def _made(place: Path, count: int) -> None:
    """So many small files, made by a process of its own that knows nothing of coord."""
    subprocess.run([sys.executable, "-P", "-c", _MAKER, str(place), str(count)], check=True)


_MAKER = """
import os, sys
place, count = sys.argv[1], int(sys.argv[2])
for n in range(count):
    folder = os.path.join(place, f"d{n // 200}")
    if n % 200 == 0:
        os.makedirs(folder)
    with open(os.path.join(folder, f"f{n}.txt"), "w") as file:
        file.write(f"this is number {n}\\n" * 10)
"""


def _many(place: Path, count: int) -> None:
    for n in range(count):
        folder = place / f"d{n // 200}"
        if n % 200 == 0:
            folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{n}.txt").write_text(f"this is number {n}\n" * 10, "utf-8")


def _large(place: Path, size: int) -> None:
    place.mkdir(parents=True)
    for n in range(max(1, size // LARGE_BYTES)):
        (place / f"asset{n}.bin").write_bytes(os.urandom(min(size, LARGE_BYTES)))


def _old_events(root: Path, count: int) -> None:
    """Fill the log, before the daemon starts, with what happened long ago."""
    state = StateDir(root)
    state.create()
    db = open_writer(state.database, synchronous="OFF", seal=database_seal(state.secret_key()))
    began = int(time.time() * 1000) - 90 * 86_400_000
    body = json.dumps({"kind": "noted", "what": "long ago", "facts": {}})
    with db:
        db.executemany(
            "INSERT INTO events VALUES (?, ?, 'noted', NULL, NULL, NULL, ?)",
            ((n, iso(began + n), body) for n in range(1, count + 1)),
        )
    db.close()


def measure_stall(
    acts: Annotated[
        list[str] | None, typer.Argument(help=f"Which: {', '.join(names())}.")
    ] = None,
    scale: Annotated[
        float, typer.Option(min=0.001, max=10.0, help="Of the sizes (1: as documented).")
    ] = 1.0,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """What a neighbour's lock + unlock feels while others lease, revert and compact much."""
    for act in acts or []:
        one_of(act, names(), f"{act!r} is not measured. These are")
    documented = msgspec.structs.astuple(Sizes())
    sizes = Sizes(*(max(1, round(size * scale)) for size in documented))
    show_report(run(sizes, acts or [], folder), as_json, describe)


def describe(figures: list[Felt]) -> Iterator[str]:
    """The figures in lines."""
    yield "A neighbour's lock + unlock while another client asks for this, and at rest."
    yield (f"{'':8} {'took s':>8} {'pairs':>7} {'p50 ms':>8} {'p99 ms':>8} {'most ms':>8} "
           f"{'rest p99':>9} {'ratio':>6}")
    for felt in figures:
        yield (f"{felt.act:8} {felt.took_s:8.2f} {felt.pairs:7} {felt.p50_ms:8.2f} "
               f"{felt.p99_ms:8.2f} {felt.most_ms:8.1f} {felt.rest_p99_ms:9.2f} {felt.ratio:6.2f}"
               + ("" if felt.outcome == "done" else f"  ({felt.outcome})"))
