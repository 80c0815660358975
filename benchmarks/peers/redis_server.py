"""Redis as a lock server: `SET key owner NX PX`, released by a script that checks the owner.

Started by the benchmark on a Unix socket in a temporary directory with `appendfsync always`, so
that an acknowledged lock is on disk as ours is; through redis-py's asyncio client with hiredis,
which is what a Python program would use. Asks for nothing if Redis or redis-py is not there: it
says so instead.
"""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from benchmarks.measuring.load import Pair

_RELEASE = (
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
)


def missing() -> str | None:
    """Why Redis cannot take part, in words; None if it can."""
    if shutil.which("redis-server") is None:
        return "redis-server is not on PATH"
    if importlib.util.find_spec("redis") is None:
        return "the Python package redis is not installed (pip install 'redis[hiredis]')"
    if importlib.util.find_spec("hiredis") is None:
        return "hiredis is not installed, and without it redis-py would be held back"
    return None


@contextlib.contextmanager
def server(folder: Path) -> Iterator[str]:
    """A Redis of our own; the path of its socket."""
    home = folder / "redis"
    home.mkdir()
    socket = home / "s"
    process = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", str(socket), "--dir", str(home),
         "--appendonly", "yes", "--appendfsync", "always", "--save", "", "--daemonize", "no"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 10
        while not socket.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("redis-server did not start")
            time.sleep(0.02)
        yield str(socket)
    finally:
        process.terminate()
        process.wait(10)


@contextlib.asynccontextmanager
async def clients(socket: str, count: int) -> AsyncIterator[list[Pair]]:
    """`count` clients, each with its own connection, key and owner."""
    import redis.asyncio as redis

    made: list[Any] = [
        redis.Redis(unix_socket_path=socket, single_connection_client=True) for _ in range(count)
    ]
    for one in made:
        await one.initialize()

    def client(number: int, link: Any) -> Pair:
        key, owner = f"lock:src/pkg/m{number}.py", f"agent-{number}"
        script = link.register_script(_RELEASE)

        async def pair() -> tuple[float, ...]:
            before = time.perf_counter()
            if not await link.set(key, owner, nx=True, px=1_800_000):
                raise RuntimeError(f"redis: {key} was not free")
            between = time.perf_counter()
            await script(keys=[key], args=[owner])
            return between - before, time.perf_counter() - between

        return pair

    try:
        yield [client(i, link) for i, link in enumerate(made)]
    finally:
        for one in made:
            await one.aclose()
