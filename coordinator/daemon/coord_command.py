"""`coord` for agents' shells, also where it is on no PATH, and on behalf of whoever types it.

Owns one small program in `.coord/bin/` that runs this very installation. A command that names
`coord` gets that folder at the end of its PATH, and its holder's name as COORD_AGENT: then what
refusals and messages tell an agent to type works as it stands. Other commands are left alone.
"""

from __future__ import annotations

import logging
import shlex
import shutil
import sys
from pathlib import Path

from coordinator.files.content import write_atomic
from coordinator.rules.commands import runs

log = logging.getLogger("coord.hooks")
NAME = "coord"


class CoordCommand:
    """The program and where it lies. `folder` is the repository's `.coord/bin/`."""

    def __init__(self, folder: Path) -> None:
        self._program = folder / NAME
        self._on_path = shutil.which(NAME) is not None
        script = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m coordinator.cli.main "$@"\n'
        try:
            if not self._program.is_file() or self._program.read_text("utf-8") != script:
                folder.mkdir(mode=0o700, exist_ok=True)
                write_atomic(self._program, script.encode(), 0o700)
        except OSError as bad:
            log.error("agents' shells may lack `coord`: %s", bad)

    def before(self, command: str, holder: str, *, supervised: bool) -> str:
        """What is put before a shell command so that its `coord` is found and knows who asks;
        empty where it needs nothing. A person who is asked about each command is spared what it
        can do without."""
        if not runs(command, NAME):
            return ""
        if supervised and self._on_path and "--agent" in command:
            return ""
        return (f"export COORD_AGENT={shlex.quote(holder)} "
                f'PATH="$PATH":{shlex.quote(str(self._program.parent))}; ')

    def named(self, text: str) -> str:
        """A text for an agent whose commands cannot be changed: with the program's whole path,
        where `coord` alone would not be found."""
        if self._on_path:
            return text
        return text.replace(f"`{NAME} ", f"`{shlex.quote(str(self._program))} ")
