"""Confined shell commands: a command rewritten so that what others hold is read-only for it.

Linux with unprivileged user namespaces. Whether this machine allows them is tried once; where it
does not, commands run as they are, and only what they plainly name and what they changed is
looked at (docs: context_archive/enforcement.md).
"""

from __future__ import annotations

import itertools
import logging
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from coordinator.service.enforcement.shell_commands import Held

log = logging.getLogger("coord.confine")
SCRIPT = Path(__file__).resolve().parent.parent / "_confine.sh"
#: Tables of commands are removed when they are this old (seconds).
TABLE_AGE_S = 24 * 3600


class Confinement:
    """Wraps commands; keeps their tables in a folder of its own."""

    def __init__(self, folder: Path, enabled: bool) -> None:
        self._folder = folder
        self._count = itertools.count(1)
        # Inside the repository: some agents let no command name a path outside of it.
        self._script = folder / "run.sh"
        self.possible = enabled and _possible() and self._prepare()

    def wrap(self, protect: Sequence[Held], command: str) -> str:
        """The command with these files read-only; empty where that is not possible."""
        there = [held for held in protect if held.kind != "absent"]
        if not self.possible or not there:
            return ""
        table = self._folder / f"{os.getpid()}-{next(self._count)}.tab"
        lines = [f"{_escaped(held.path)} {_escaped(held.path)} none bind,ro,nofail 0 0"
                 for held in there]
        try:
            table.write_text("\n".join(lines) + "\n", "utf-8", "surrogateescape")
        except OSError as bad:
            log.error("a command could not be confined: %s", bad)
            return "echo 'coord: its disk is full, so this command was not run.' >&2; exit 126"
        return "sh " + " ".join(map(shlex.quote, (str(self._script), str(table), command)))

    def _prepare(self) -> bool:
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._script.write_bytes(SCRIPT.read_bytes())
        except OSError as bad:
            log.error("shell commands cannot be confined: %s", bad)
            return False
        self._tidy()
        return True

    def _tidy(self) -> None:
        for old in self._folder.glob("*.tab"):
            try:
                if time.time() - old.stat().st_mtime > TABLE_AGE_S:
                    old.unlink()
            except OSError:
                continue


def _possible() -> bool:
    if not (shutil.which("unshare") and shutil.which("mount")):
        return False
    try:
        done = subprocess.run(
            ["unshare", "--user", "--map-current-user", "--mount", "--keep-caps", "true"],
            capture_output=True, timeout=10, check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    if done.returncode != 0:
        log.warning("shell commands cannot be confined here: %s",
                    done.stderr.decode("utf-8", "replace").strip()[:200])
    return done.returncode == 0


def _escaped(path: str) -> str:
    """A path as fstab has it: blanks and backslashes as octal."""
    return "".join(f"\\{ord(sign):03o}" if sign in " \t\n\\#" else sign for sign in path)
