"""Three coordination tools for agents from PyPI, each in a virtual environment of its own.

They are installed only when asked for (`--install-peers`), into the user's cache. One that is not
there is reported missing, in words.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

SERVER, LEASES, SYNC = "coord-mcp-server", "agent-lease-mcp", "claude-agent-sync"
#: Each with one of its commands, by which it is known to be there.
PEERS = {SERVER: "coord-api", LEASES: "agent-lease", SYNC: "agent-sync"}
START_S = 30.0


def cache_folder() -> Path:
    """Where the virtual environments are."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "coord-bench"


def program(peer: str, command: str) -> str:
    """The path of a peer's command, there or not."""
    return str(cache_folder() / peer / "bin" / command)


def install_peers() -> None:
    """Install all three with pip.

    Raises:
        subprocess.CalledProcessError: pip failed.
    """
    for peer in PEERS:
        if not is_installed(peer):
            folder = cache_folder() / peer
            subprocess.run([sys.executable, "-P", "-m", "venv", str(folder)], check=True)
            subprocess.run([str(folder / "bin/pip"), "install", "-q", peer], check=True)


def is_installed(peer: str) -> bool:
    """Whether a peer can take part."""
    return Path(program(peer, PEERS[peer])).exists()


def list_missing(*peers: str) -> list[str]:
    """Those of these peers that cannot take part, each in words."""
    return [f"{peer}: not installed (`--install-peers` does)"
            for peer in peers if not is_installed(peer)]


@contextlib.contextmanager
def serve_http(folder: Path) -> Iterator[int]:
    """Run coord-mcp-server for a repository in `folder`; the port that it listens on.

    Raises:
        RuntimeError: it did not start.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    environment = {
        "PATH": os.environ.get("PATH", ""), "HOME": str(folder), "COORD_HOST": "127.0.0.1",
        "COORD_PORT": str(port), "COORD_AUTH_TOKEN": "t",
        "COORD_DATABASE_PATH": str(folder / "c.db"), "COORD_NO_UPDATE_CHECK": "1",
        "COORD_REPO_ROOT": str(folder), "COORD_MAX_CLAIM_RATIO": "1.0",
    }
    process = subprocess.Popen(
        [program(SERVER, "coord-api")], env=environment, cwd=folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    try:
        _await_server(process, port)
        yield port
    finally:
        process.terminate()
        process.wait()


def _await_server(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"{SERVER} did not start")
