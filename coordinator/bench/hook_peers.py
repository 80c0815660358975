"""The hooks of three tools from PyPI, each started as its own installer wires it.

Installed only when asked for (`coord bench hook --install-peers`), into the user's cache.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from coordinator.bench.pypi_peers import home

#: Distribution -> the program its hook runs.
PEERS = {
    "coord-mcp-server": "coord-claude-hook", "agent-lease-mcp": "agent-lease-guard",
    "claude-agent-sync": "agent-sync",
}
START_S = 30.0


class Peer(NamedTuple):
    """One hook as a process: its command and environment."""

    name: str
    command: list[str]
    environment: dict[str, str]


def install() -> None:
    """Install all three with pip.

    Raises:
        subprocess.CalledProcessError: pip failed.
    """
    for name, program in PEERS.items():
        if not (home() / name / "bin" / program).exists():
            subprocess.run([sys.executable, "-P", "-m", "venv", str(home() / name)], check=True)
            subprocess.run([str(home() / name / "bin/pip"), "install", "-q", name], check=True)


def missing() -> list[str]:
    """Those that are not there, in words."""
    return [f"{name}: not installed (`coord bench hook --install-peers` does)"
            for name, program in PEERS.items() if not (home() / name / "bin" / program).exists()]


@contextlib.contextmanager
def open_peers(root: Path) -> Iterator[list[Peer]]:
    """Every installed peer, ready to guard writes in the repository at `root`."""
    base = {"PATH": os.environ.get("PATH", ""), "HOME": str(root)}
    with contextlib.ExitStack() as stack:
        out = []
        for name, program in PEERS.items():
            path = home() / name / "bin" / program
            if not path.exists():
                continue
            if name == "coord-mcp-server":
                port = _serve(stack, root, base)
                out.append(Peer(name, [str(path), "pretool"], base | {
                    "COORD_API_URL": f"http://127.0.0.1:{port}", "COORD_AUTH_TOKEN": "t",
                    "COORD_REPO_ID": "o/r", "COORD_ENGINEER": "bench"}))
            elif name == "agent-lease-mcp":
                out.append(Peer(name, [str(path)], base | {
                    "AGENT_NAME": "bench", "AGENT_LEASE_DB": str(root / "lease.db")}))
            else:
                out.append(Peer(name, [str(path), "hook", "pre-tool-use"], base))
        yield out


def _serve(stack: contextlib.ExitStack, root: Path, base: Mapping[str, str]) -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = subprocess.Popen(
        [str(home() / "coord-mcp-server/bin/coord-api")], cwd=root,
        env={**base, "COORD_HOST": "127.0.0.1", "COORD_PORT": str(port), "COORD_AUTH_TOKEN": "t",
             "COORD_DATABASE_PATH": str(root / "c.db"), "COORD_NO_UPDATE_CHECK": "1",
             "COORD_REPO_ROOT": str(root), "COORD_MAX_CLAIM_RATIO": "1.0"},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    stack.callback(process.wait)
    stack.callback(process.terminate)
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return port
        time.sleep(0.1)
    raise RuntimeError("coord-mcp-server did not start")
