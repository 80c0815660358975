"""`.coord/`: where the coordinator keeps its state, and how clients find its socket.

Owns the names of the files in it and nothing else. The directory ignores itself in git.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from coordinator.files.roots import STATE_DIR

#: Longest path that a Unix socket address takes, with room for its final NUL.
SOCKET_PATH_MAX = 100


@dataclass(frozen=True, slots=True)
class StateDir:
    """The files of one repository's coordinator."""

    root: Path

    @property
    def path(self) -> Path:
        """The directory itself."""
        return self.root / STATE_DIR

    @property
    def database(self) -> Path:
        """The one truth."""
        return self.path / "coord.sqlite3"

    @property
    def backup(self) -> Path:
        """The newest copy; older ones are `.1`, `.2`."""
        return self.path / "backup.sqlite3"

    @property
    def blobs(self) -> Path:
        """Large contents, one file each, named by the SHA-256 of their bytes."""
        return self.path / "blobs"

    @property
    def archive(self) -> Path:
        """The index of the context archive (derived, may be deleted)."""
        return self.path / "archive.sqlite3"

    @property
    def lock(self) -> Path:
        """Held (flock) by the one daemon; contains its pid."""
        return self.path / "daemon.lock"

    @property
    def log(self) -> Path:
        """The daemon's log, rotated."""
        return self.path / "daemon.log"

    @property
    def failure(self) -> Path:
        """Why the last start failed, as a refusal's JSON; absent after a good one."""
        return self.path / "start-failed.json"

    @property
    def secret(self) -> Path:
        """The key that lease tokens are made with (0600)."""
        return self.path / "secret"

    @property
    def bearer(self) -> Path:
        """The operator's bearer token for the HTTP door (0600)."""
        return self.path / "token"

    @property
    def http(self) -> Path:
        """The HTTP door's address while it is open."""
        return self.path / "http"

    @property
    def runs(self) -> Path:
        """Logs of launched agents."""
        return self.path / "runs"

    @property
    def guarded(self) -> Path:
        """The git hooks that `coord init` has put its guard into."""
        return self.path / "guarded.json"

    @property
    def bin(self) -> Path:
        """Holds one program: `coord`, for agents' shells that have none."""
        return self.path / "bin"

    @property
    def worktrees(self) -> Path:
        """Linked worktrees of launched agents, one folder a run."""
        return self.path / "worktrees"

    def socket(self) -> Path:
        """The local door. A long repository path gets a short one in the user's runtime folder."""
        given = os.environ.get("COORD_SOCKET")
        if given:
            return Path(given)
        inside = self.path / "socket"
        if len(os.fsencode(inside)) <= SOCKET_PATH_MAX:
            return inside
        runtime = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
        name = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        return Path(runtime) / f"coord-{os.getuid()}" / f"{name}.sock"

    def create(self) -> None:
        """Make the directory, ignoring itself.

        Raises:
            OSError: no permission, read-only disk.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        ignore = self.path / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", "utf-8")
        socket = self.socket()
        socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Hooks that serve every repository look here for where the socket is.
        (self.path / "socket.path").write_bytes(os.fsencode(socket))
