"""Lock servers for agents from PyPI, each in a virtual environment of its own.

`coord-mcp-server` (its console script is also called `coord`) is asked over HTTP;
`agent-lease-mcp` through its command, one process a request, which is how its hook uses it.
`claude-agent-sync` is a command only.
Installed only when asked for, into the user's cache; otherwise reported missing in words.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from coordinator.bench.load import Pair, pairs
from coordinator.bench.measure import Slice

Turn = Callable[[int], Awaitable[Slice]]
PEERS = {"coord-mcp-server": "coord-api", "agent-lease-mcp": "agent-lease",
         "claude-agent-sync": "agent-sync"}
SLICE_S = 2.0


def home() -> Path:
    """Where the virtual environments are."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "coord-bench"


def program(name: str) -> Path:
    """The command of a peer, there or not."""
    return home() / name / "bin" / PEERS[name]


def install() -> None:
    """Install them with pip.

    Raises:
        subprocess.CalledProcessError: pip failed.
    """
    for name in PEERS:
        if not program(name).exists():
            subprocess.run([sys.executable, "-P", "-m", "venv", str(home() / name)], check=True)
            subprocess.run([str(home() / name / "bin/pip"), "install", "-q", name], check=True)


def missing(name: str) -> str | None:
    """Why a peer cannot take part; None if it can."""
    if program(name).exists():
        return None
    return f"{name}: not installed (`--install-peers` does)"


async def open_peers(
    stack: contextlib.AsyncExitStack, place: Path, most: int
) -> dict[str, Turn]:
    """Start what is installed; a turn for each."""
    out: dict[str, Turn] = {}
    if missing("coord-mcp-server") is None:
        port = await _serve(stack, place)
        out["coord-mcp-server, HTTP"] = _turn(lambda n: _over_http(port, n))
    if missing("agent-lease-mcp") is None:
        out["agent-lease-mcp, command"] = _turn(lambda n: _by_command(place, n))
    return out


def _turn(client: Callable[[int], Pair]) -> Turn:
    async def turn(count: int) -> Slice:
        return await pairs([client(n) for n in range(count)], SLICE_S)

    return turn


async def _serve(stack: contextlib.AsyncExitStack, place: Path) -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    environment = {
        "PATH": os.environ.get("PATH", ""), "HOME": str(place), "COORD_HOST": "127.0.0.1",
        "COORD_PORT": str(port), "COORD_AUTH_TOKEN": "t",
        "COORD_DATABASE_PATH": str(place / "c.db"), "COORD_NO_UPDATE_CHECK": "1",
        "COORD_REPO_ROOT": str(place), "COORD_MAX_CLAIM_RATIO": "1.0",
    }
    process = subprocess.Popen(
        [str(program("coord-mcp-server"))], env=environment, cwd=place,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    stack.callback(process.wait)
    stack.callback(process.terminate)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return port
        await asyncio.sleep(0.1)
    raise RuntimeError("coord-mcp-server did not start")


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
        for one in made["claim_ids"]:
            await _http(port, "DELETE", f"/claims/{one}", None)
        return between - before, time.perf_counter() - between

    return pair


def _by_command(place: Path, number: int) -> Pair:
    environment = {
        "PATH": os.environ.get("PATH", ""), "HOME": str(place), "AGENT_NAME": f"a{number}",
        "AGENT_LEASE_DB": str(place / "lease.db"),
    }
    command, file = str(program("agent-lease-mcp")), f"src/pkg/m{number}.py"

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
