"""`coord` for agents' shells, also where it is on no PATH.

Owns one small program in `.coord/bin/` that runs this very installation. What refusals and messages
tell an agent to type names that program, where the agent would not find `coord` otherwise.
"""

from __future__ import annotations

import logging
import shlex
import shutil
import sys
from pathlib import Path

import coordinator
from coordinator.files.content import write_atomic

log = logging.getLogger("coord.hooks")
NAME = "coord"
#: The program, as far as the coordinator does the work for it.
QUICK_PROGRAM = str(Path(coordinator.__file__).with_name("_command.py"))


class CoordCommand:
    """The program and its place. `folder` is the repository's `.coord/bin/`."""

    def __init__(self, folder: Path) -> None:
        self._program = folder / NAME
        words = shlex.join([sys.executable, "-I", "-S", QUICK_PROGRAM])
        script = f'#!/bin/sh\nexport COORD_PROGRAM="$0"\nexec {words} "$@"\n'
        try:
            if not self._program.is_file() or self._program.read_text("utf-8") != script:
                folder.mkdir(mode=0o700, exist_ok=True)
                write_atomic(self._program, script.encode(), 0o700)
        except OSError as bad:
            log.error("agents' shells may lack `coord`: %s", bad)

    def named(self, text: str, path: str | None) -> str:
        """A text for an agent whose shell has this PATH (None: not known): with the program's whole
        path, where `coord` alone would not be found."""
        if path and shutil.which(NAME, path=path):
            return text
        return text.replace(f"`{NAME} ", f"`{shlex.quote(str(self._program))} ")
