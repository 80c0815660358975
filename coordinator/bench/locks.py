"""`coord bench locks`: durable acquire + release pairs, ours beside others' in one run.

Every contender is up at once and takes turns in short slices, round after round; a ratio is the
median over rounds of two slices of the same round. Ours goes the whole way: the real daemon, its
local door, each client an agent of its own that shows its token, synchronous=FULL.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

import msgspec

from coordinator.bench import load, pypi_peers, redis_peer
from coordinator.bench.in_process import Floor, SqlitePairs
from coordinator.bench.measure import Slice, paired, percentile
from coordinator.bench.own_daemon import own_daemon

SLICE_S = 0.5
OURS, SQLITE, REDIS, FLOOR = "coord", "sqlite, a transaction each", "redis, fsync always", "floor"
Turn = Callable[[int], Awaitable[Slice]]
More = Callable[[contextlib.AsyncExitStack, Path, int], Awaitable[dict[str, Turn]]]


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
    more: More | None = None,
    missing: Sequence[str] = (),
) -> Report:
    """Run all contenders at each number of clients, `seconds` for each.

    `existing`: the leased files exist (their bytes are kept as baselines). `more` opens further
    peers; `missing` says in words which were left out.
    """
    report = Report(seconds, [], {}, list(missing))
    async with contextlib.AsyncExitStack() as stack:
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
            why = redis_peer.missing()
            if why is None:
                turns[REDIS] = _redis(stack.enter_context(redis_peer.server(place)))
            else:
                report.missing.append(f"redis: {why}")
            if more is not None:
                turns |= await more(stack, place, most)
        for count in clients:
            _tell(report, count, await rounds(turns, count, max(3, round(seconds / SLICE_S))))
    return report


def _in_process(stack: contextlib.AsyncExitStack, place: Path) -> dict[str, Turn]:
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
        async with redis_peer.clients(socket, n) as made:
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
    """`measure`, in an event loop of its own (uvloop where there is one)."""
    factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with contextlib.suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(
            measure(
                clients, seconds, folder, existing, profile, only_ours,
                pypi_peers.open_peers if peers else None,
                [why for why in map(pypi_peers.missing, pypi_peers.PEERS) if why and peers],
            )
        )
