"""`python -m benchmarks state`: values stored by many clients, and a file proposed by one.

*Values*: clients that store one small value after the other, each under a key of its own, through
the real daemon with synchronous=FULL; beside SQLite in process, a durable transaction each: once
with the rows that coord writes (the version, the content, the event), once with one row of a plain
table and nothing kept of what was before. Everybody takes turns in one run.

*A file*: `propose` of a small file by one client, beside what it does away with: acquire, write,
release. The plain write is not flushed to the disk, a proposal is; so it is compared with a write
that is flushed, too.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated

import msgspec
import typer

from benchmarks.command_line import AsJson, Folder, show_report
from benchmarks.locks import SLICE_S, rounds
from benchmarks.measuring import load
from benchmarks.measuring.own_daemon import OwnDaemon, own_daemon
from benchmarks.measuring.samples import Slice, paired, percentile
from coordinator.client.client import Client
from coordinator.slices.state.events import KeyWritten
from coordinator.store.database import open_writer
from coordinator.store.statements import STATEMENTS as Q
from coordinator.words import requests as rq

KEYED, BARE = "coord, with idempotency keys", "coord, without"
SQLITE, PLAIN = "sqlite, coord's rows", "sqlite, one row of a table"
PROPOSE, LEASED, FLUSHED = "propose", "acquire + write + release", "the same, flushed"
_NOW = "2026-01-01T00:00:00.000Z"
_encode = msgspec.json.Encoder().encode


class Figure(msgspec.Struct):
    """One contender. Times in ms of one request (a file: of the whole); `ratio`: of values our
    throughput (with idempotency keys) over this one's, of files our time over this one's."""

    contender: str
    rate: float
    p50_ms: float
    p99_ms: float
    ratio: float


class Report(msgspec.Struct):
    """Both halves."""

    clients: int
    values: list[Figure]
    file: list[Figure]


class SqlitePuts:
    """A database with coord's schema, settings and warmed log, written to in process."""

    def __init__(self, folder: Path) -> None:
        self._db = open_writer(folder / "values.sqlite3", synchronous="FULL")
        self._db.execute("PRAGMA wal_autocheckpoint = 1000")  # SQLite's own default
        self._db.execute("CREATE TABLE plain (key TEXT PRIMARY KEY, value TEXT, version INTEGER)")
        self._versions: dict[int, int] = {}
        self._n = 0

    def slice(self, seconds: float, clients: int, put: Callable[[int, int, bytes], None]) -> Slice:
        """Values until `seconds` are over, of as many keys as there are clients, in turns."""
        mine = Slice(0, seconds, [])
        started = time.perf_counter()
        while (before := time.perf_counter()) - started < seconds:
            self._n += 1
            key = self._n % clients
            version = self._versions.get(key, 0) + 1
            self._versions[key] = version
            put(key, version, _encode(load.value(version, f"c{key}")))
            mine.took.append(time.perf_counter() - before)
            mine.done += 1
        mine.seconds = time.perf_counter() - started
        return mine

    def as_coord(self, key: int, version: int, text: bytes) -> None:
        """What the daemon looks up and writes for a value: with rows of the same size."""
        run, name = self._db.execute, f"bench:{key}"
        scope = f"k/{name.replace(':', '/')}/"
        content = f"state:{self._n:064x}"
        run("BEGIN IMMEDIATE")
        run(Q["presence"]).fetchone()
        run(Q["state_now"], (scope,)).fetchone()
        run(Q["blob_put"], (content, len(text), text, None))
        run(Q["state_put"], (scope, version, name, content, len(text), "c1", _NOW, None))
        if version > 100:
            run(Q["state_trim"], (scope, version - 100))
        event = _encode(KeyWritten(
            resource=name, scope=scope, version=version, content=content, size=len(text),
            agent="c1", fencing_token=None, change=None)).decode()
        run(Q["event_append"], (self._n, _NOW, "key_written", "c1", None, name, event))
        run("COMMIT")

    def plain(self, key: int, version: int, text: bytes) -> None:
        """One row, if it is still at the version before."""
        self._db.execute("BEGIN IMMEDIATE")
        self._db.execute(
            "INSERT INTO plain VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
            "value = excluded.value, version = excluded.version "
            "WHERE version = excluded.version - 1", (f"bench:{key}", text, version))
        self._db.execute("COMMIT")

    def close(self) -> None:
        """Close the database."""
        self._db.close()


async def _values(daemon: OwnDaemon, clients: int, seconds: float,
                  place: Path) -> dict[str, list[Slice]]:
    names = [f"c{i}" for i in range(clients)]
    tokens = daemon.register(names)
    agents = [(name, token, f"key:bench:{name}")
              for name, token in zip(names, tokens, strict=True)]
    versions: dict[str, int] = {}

    async def ours(n: int, *, keyed: bool) -> Slice:
        make = partial(load.PutClient, versions=versions, keyed=keyed)
        return await load.lines(daemon.socket, agents[:n], SLICE_S, make)

    with contextlib.closing(SqlitePuts(place)) as rows, contextlib.ExitStack() as stack:
        beside = place / "plain"
        beside.mkdir()
        alone = stack.enter_context(contextlib.closing(SqlitePuts(beside)))

        async def as_coord(n: int) -> Slice:
            return rows.slice(SLICE_S, n, rows.as_coord)

        async def plain(n: int) -> Slice:
            return alone.slice(SLICE_S, n, alone.plain)

        turns: dict[str, Callable[[int], Awaitable[Slice]]] = {
            KEYED: partial(ours, keyed=True), BARE: partial(ours, keyed=False),
            SQLITE: as_coord, PLAIN: plain,
        }
        return await rounds(turns, clients, max(3, round(seconds / SLICE_S)))


def _file(daemon: OwnDaemon, count: int) -> dict[str, list[float]]:
    """Seconds of each way to write a small file, in turns."""
    took: dict[str, list[float]] = {PROPOSE: [], LEASED: [], FLUSHED: []}
    files = {way: daemon.root / f"small-{n}.txt" for n, way in enumerate(took)}
    text = "a line of a small file, of which there are twenty\n" * 20
    for file in files.values():
        file.write_text(text)
    with Client(daemon.root, agent="writer") as client:
        name = client.name()
        version: str | None = None
        for turn in range(-3, count):
            for way, file in files.items():
                new = f"{turn}\n{text}"
                if version is None:
                    version = _version(client, files[PROPOSE].name)
                before = time.perf_counter()
                if way == PROPOSE:
                    made = client.call(rq.Propose(agent=name, changes=[
                        rq.ProposedChange(resource=file.name, version=version, content=new)]))
                else:
                    client.acquire(file.name)
                    _write(file, new, flushed=way == FLUSHED)
                    client.release(file.name)
                spent = time.perf_counter() - before
                if way == PROPOSE:
                    version = made.changes[0].version
                if file.read_text() != new:
                    raise RuntimeError(f"{way} did not write {file.name}")
                if turn >= 0:  # the first ones start what has to be started
                    took[way].append(spent)
    return took


def _version(client: Client, name: str) -> str:
    """Of a file as it is: what its lease says."""
    found = client.acquire(name).leases[0].content_hash
    client.release(name)
    assert found is not None
    return found


def _write(file: Path, text: str, *, flushed: bool) -> None:
    with file.open("w", encoding="utf-8") as out:
        out.write(text)
        if flushed:
            out.flush()
            os.fsync(out.fileno())


def run(clients: int, seconds: float, count: int, folder: Path | None = None) -> Report:
    """Measure both: values for `seconds` by each contender, `count` writes of a file each way.

    Raises:
        RuntimeError: the daemon did not start, or did not do what it was asked.
    """
    with own_daemon(folder) as daemon, tempfile.TemporaryDirectory(
            prefix="coord-peers-", dir=folder) as place:
        slices = load.run_in_loop(_values(daemon, clients, seconds, Path(place)))
        took = _file(daemon, count)
    ours = [one.rate for one in slices[KEYED]]
    values = [
        Figure(name, median(one.rate for one in turns), *_percentiles(
            [t for one in turns for t in one.took]), paired(ours, [one.rate for one in turns]))
        for name, turns in slices.items()
    ]
    file = [
        Figure(way, len(spent) / sum(spent), *_percentiles(spent), paired(took[PROPOSE], spent))
        for way, spent in took.items()
    ]
    return Report(clients, values, file)


def _percentiles(took: list[float]) -> tuple[float, float]:
    return percentile(took, 0.5) * 1000, percentile(took, 0.99) * 1000


def measure_state(
    clients: Annotated[int, typer.Option(min=1, max=500, help="At once.")] = 64,
    seconds: Annotated[float, typer.Option(min=0.1, help="For each contender.")] = 5.0,
    writes: Annotated[int, typer.Option(min=3, max=100_000, help="Of a file, each way.")] = 200,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Values that many clients store, beside SQLite; and a proposed file beside a leased one."""
    show_report(run(clients, seconds, writes, folder), as_json, describe)


def describe(report: Report) -> Iterator[str]:
    """The figures in lines."""
    yield (f"{report.clients} clients store one value after the other, each on disk before it is "
           "answered.")
    yield f"{'':28} {'values/s':>9} {'p50 ms':>8} {'p99 ms':>8} {'coord is':>9}"
    yield from map(_line, report.values)
    yield "One client writes a small file."
    yield f"{'':28} {'files/s':>9} {'p50 ms':>8} {'p99 ms':>8} {'propose':>9}"
    yield from map(_line, report.file)


def _line(figure: Figure) -> str:
    return (f"{figure.contender:28} {figure.rate:9.0f} {figure.p50_ms:8.3f} "
            f"{figure.p99_ms:8.3f} {figure.ratio:8.2f}x")
