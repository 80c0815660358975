"""`python -m benchmarks locks`: durable acquire + release pairs, ours beside others' in one run.

Every contender is up at once and takes turns in short slices, round after round; a ratio is the
median over rounds of two slices of the same round. Ours goes the whole way: the real daemon, its
local door, each client an agent of its own that shows its token, synchronous=FULL.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated

import msgspec
import typer

from benchmarks.command_line import (
    AsJson,
    Folder,
    InstallPeers,
    Peers,
    parse_numbers,
    show_report,
)
from benchmarks.measuring import load
from benchmarks.measuring.in_process import Floor, SqlitePairs
from benchmarks.measuring.own_daemon import own_daemon
from benchmarks.measuring.samples import Slice, paired, percentile
from benchmarks.peers import installed, lock_pairs, redis_server

SLICE_S = 0.5
OURS, SQLITE, REDIS, FLOOR = "coord", "sqlite, a transaction each", "redis, fsync always", "floor"
Turn = Callable[[int], Awaitable[Slice]]


class Figure(msgspec.Struct):
    """One contender at one number of clients. Rates in pairs (the floor: writes) a second; times
    in milliseconds for one request."""

    contender: str
    clients: int
    rate: float
    p50_ms: float
    p99_ms: float
    ratio: float
    """Our throughput over this contender's: median of paired rounds."""


class Report(msgspec.Struct):
    """What was measured, and what could not be."""

    seconds: float
    figures: list[Figure]
    p50_over_floor: dict[str, float]
    """Clients: our median time for a durable request over one bare fdatasync's."""
    missing: list[str]


async def measure(
    clients: Sequence[int], seconds: float, folder: Path | None = None,
    existing: bool = False, profile: Path | None = None, only_ours: bool = False,
    peers: bool = False,
) -> Report:
    """Run all contenders at each number of clients, `seconds` for each.

    `existing`: the leased files exist (their bytes are kept as baselines). `peers`: other tools
    from PyPI take part, too, those that are installed.
    """
    missing = installed.list_missing(installed.SERVER, installed.LEASES) if peers else []
    report = Report(seconds, [], {}, missing)
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="coord-peers-",
                                                                     dir=folder)))
        daemon = stack.enter_context(own_daemon(folder, profile=profile))
        most = max(clients)
        names = [f"c{i}" for i in range(most)]
        paths = [f"src/pkg/m{i}.py" for i in range(most)]
        if existing:
            (daemon.root / "src/pkg").mkdir(parents=True)
            for path in paths:
                (daemon.root / path).write_text(f"# {path}\n" * 100, "utf-8")
        agents = list(zip(names, daemon.register(names), paths, strict=True))
        turns: dict[str, Turn] = {
            OURS: lambda n: load.lines(daemon.socket, agents[:n], SLICE_S)
        }
        if not only_ours:
            turns |= _in_process(stack, place)
            why = redis_server.missing()
            if why is None:
                turns[REDIS] = _redis(stack.enter_context(redis_server.server(place)))
            else:
                report.missing.append(f"redis: {why}")
            if peers:
                turns |= lock_pairs.open_peers(stack, place)
        for count in clients:
            _tell(report, count, await rounds(turns, count, max(3, round(seconds / SLICE_S))))
    return report


def _in_process(stack: contextlib.ExitStack, place: Path) -> dict[str, Turn]:
    floor, sqlite = Floor(place), SqlitePairs(place)
    stack.callback(floor.close)
    stack.callback(sqlite.close)

    async def bare(n: int) -> Slice:
        return floor.slice(SLICE_S / 2)

    async def alone(n: int) -> Slice:
        return sqlite.slice(SLICE_S)

    return {FLOOR: bare, SQLITE: alone}


def _redis(socket: str) -> Turn:
    async def turn(n: int) -> Slice:
        async with redis_server.clients(socket, n) as made:
            return await load.pairs(made, SLICE_S)

    return turn


async def rounds(turns: Mapping[str, Turn], count: int, number_of: int) -> dict[str, list[Slice]]:
    """Slices of every contender, turn by turn, and the other way round in every other round."""
    out: dict[str, list[Slice]] = {name: [] for name in turns}
    order = list(turns)
    for number in range(-1, number_of):  # the first round warms everybody up and is not counted
        for name in order if number % 2 else reversed(order):
            got = await turns[name](count)
            if number >= 0:
                out[name].append(got)
    return out


def _tell(report: Report, count: int, slices: dict[str, list[Slice]]) -> None:
    ours = [one.rate for one in slices[OURS]]
    for name, rounds in slices.items():
        took = [t * 1000 for one in rounds for t in one.took]
        report.figures.append(
            Figure(
                name, count, median(one.rate for one in rounds), percentile(took, 0.5),
                percentile(took, 0.99), paired(ours, [one.rate for one in rounds]),
            )
        )
    if FLOOR in slices:
        report.p50_over_floor[str(count)] = paired(
            [percentile(one.took, 0.5) for one in slices[OURS]],
            [percentile(one.took, 0.5) for one in slices[FLOOR]],
        )


def run(
    clients: Sequence[int], seconds: float, folder: Path | None = None, existing: bool = False,
    profile: Path | None = None, only_ours: bool = False, peers: bool = False,
) -> Report:
    """`measure`, in an event loop of its own."""
    return load.run_in_loop(
        measure(clients, seconds, folder, existing, profile, only_ours, peers))


def measure_locks(
    clients: Annotated[str, typer.Option(help="Numbers of clients.")] = "1,8,64",
    seconds: Annotated[float, typer.Option(help="For each contender and number.")] = 3.0,
    existing: Annotated[
        bool, typer.Option("--existing", help="Lease files that exist: their bytes are kept.")
    ] = False,
    only_ours: Annotated[bool, typer.Option("--only-ours", help="Nobody else.")] = False,
    profile: Annotated[
        Path | None, typer.Option(help="Run the daemon under cProfile; figures go there.")
    ] = None,
    peers: Peers = False,
    install_peers: InstallPeers = False,
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Durable acquire + release pairs, beside SQLite, Redis and the disk's floor."""
    if install_peers:
        installed.install_peers()
    report = run(parse_numbers(clients), seconds, folder, existing, profile, only_ours,
                 peers or install_peers)
    show_report(report, as_json, describe)


def describe(report: Report) -> Iterator[str]:
    """The figures in lines."""
    yield "Pairs of acquire + release, every request on disk before it is answered."
    yield (f"{'':28} {'clients':>7} {'pairs/s':>9} {'p50 ms':>8} {'p99 ms':>8} "
           f"{'coord is':>9}")
    for figure in report.figures:
        ours = "" if figure.contender == OURS else f"{figure.ratio:8.2f}x"
        yield (f"{figure.contender:28} {figure.clients:7} {figure.rate:9.0f} "
               f"{figure.p50_ms:8.3f} {figure.p99_ms:8.3f} {ours:>9}")
    for count, ratio in report.p50_over_floor.items():
        yield f"{count} clients: the median durable request takes {ratio:.2f} bare fdatasyncs."
    for sentence in report.missing:
        yield f"missing: {sentence}"
