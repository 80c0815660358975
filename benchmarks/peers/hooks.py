"""The hooks of three tools from PyPI, each started as its own installer wires it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.installed import LEASES, SERVER, SYNC, is_installed, program, serve_http


class Peer(NamedTuple):
    """One hook as a process: its command and environment."""

    name: str
    command: list[str]
    environment: dict[str, str]


@contextlib.contextmanager
def open_peers(root: Path) -> Iterator[list[Peer]]:
    """Every installed peer, ready to guard writes in the repository at `root`."""
    base = {"PATH": os.environ.get("PATH", ""), "HOME": str(root)}
    peers = []
    with contextlib.ExitStack() as stack:
        if is_installed(SERVER):
            port = stack.enter_context(serve_http(root))
            peers.append(Peer(SERVER, [program(SERVER, "coord-claude-hook"), "pretool"], base | {
                "COORD_API_URL": f"http://127.0.0.1:{port}", "COORD_AUTH_TOKEN": "t",
                "COORD_REPO_ID": "o/r", "COORD_ENGINEER": "bench"}))
        if is_installed(LEASES):
            peers.append(Peer(LEASES, [program(LEASES, "agent-lease-guard")], base | {
                "AGENT_NAME": "bench", "AGENT_LEASE_DB": str(root / "lease.db")}))
        if is_installed(SYNC):
            peers.append(Peer(SYNC, [program(SYNC, "agent-sync"), "hook", "pre-tool-use"], base))
        yield peers
