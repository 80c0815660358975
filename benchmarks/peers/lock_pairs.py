"""Pairs of lock and unlock by lock servers for agents from PyPI.

`coord-mcp-server` (its console script is also called `coord`) is asked over HTTP;
`agent-lease-mcp` through its command, one process a request, which is how its hook uses it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchmarks.measuring.load import Pair, pairs
from benchmarks.measuring.samples import Slice
from benchmarks.peers.installed import LEASES, SERVER, is_installed, program, serve_http

Turn = Callable[[int], Awaitable[Slice]]
SLICE_S = 2.0


def open_peers(stack: contextlib.ExitStack, folder: Path) -> dict[str, Turn]:
    """Start what is installed; a turn for each."""
    turns: dict[str, Turn] = {}
    if is_installed(SERVER):
        port = stack.enter_context(serve_http(folder))
        turns[f"{SERVER}, HTTP"] = _turn(lambda number: _over_http(port, number))
    if is_installed(LEASES):
        turns[f"{LEASES}, command"] = _turn(lambda number: _by_command(folder, number))
    return turns


def _turn(client: Callable[[int], Pair]) -> Turn:
    async def turn(count: int) -> Slice:
        return await pairs([client(number) for number in range(count)], SLICE_S)

    return turn


async def _http(port: int, method: str, path: str, body: object) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = json.dumps(body).encode() if body is not None else b""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer t\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        "Connection: close\r\n\r\n"
    )
    writer.write(head.encode() + data)
    answer = await reader.read()
    writer.close()
    status, _, rest = answer.partition(b"\r\n")
    if b" 20" not in status:
        raise RuntimeError(f"{method} {path}: {answer[:400].decode('utf-8', 'replace')}")
    return rest.partition(b"\r\n\r\n")[2]


def _over_http(port: int, number: int) -> Pair:
    claim = {
        "engineer": f"e{number}", "branch": f"b{number}", "description": "bench",
        "claims": [{"type": "file", "pattern": f"src/pkg/m{number}.py"}], "ttl_hours": 1,
        "repo": "o/r", "session_id": f"s{number}",
    }

    async def pair() -> tuple[float, ...]:
        before = time.perf_counter()
        made = json.loads(await _http(port, "POST", "/claims", claim))
        between = time.perf_counter()
        for claim_id in made["claim_ids"]:
            await _http(port, "DELETE", f"/claims/{claim_id}", None)
        return between - before, time.perf_counter() - between

    return pair


def _by_command(place: Path, number: int) -> Pair:
    environment = {
        "PATH": os.environ.get("PATH", ""), "HOME": str(place), "AGENT_NAME": f"a{number}",
        "AGENT_LEASE_DB": str(place / "lease.db"),
    }
    command, file = program(LEASES, "agent-lease"), f"src/pkg/m{number}.py"

    async def ask(*arguments: str) -> None:
        process = await asyncio.create_subprocess_exec(
            command, *arguments, env=environment, cwd=place, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        if process.returncode:
            raise RuntimeError(f"agent-lease {arguments}: {said[-400:].decode('utf-8', 'replace')}")

    async def pair() -> tuple[float, ...]:
        before = time.perf_counter()
        await ask("claim", file, "--purpose", "bench")
        between = time.perf_counter()
        await ask("release", file)
        return between - before, time.perf_counter() - between

    return pair
