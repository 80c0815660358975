"""Finishing landings that a dead launcher left half done, at the daemon's start and at its sweep.

A launcher holds `.coord/landing.lock` while it lands, and the kernel releases it with the process.
So a noted landing without a holder of that lock was cut off. Git's `index.lock` in its working tree
would stop a person's commits until the next launch. `launch.recovery` finishes the landing in a
process of its own, because it runs git and asks the daemon.

The module also makes the archive's sections about what each holder does now, when that changes.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import subprocess
import sys
from collections.abc import Callable

from coordinator.archive.markdown import Section
from coordinator.files.state import StateDir
from coordinator.store.ledger import View
from coordinator.store.rows import LeaseRow
from coordinator.words.texts import quoted

log = logging.getLogger("coord.landings")
#: How long bringing one to its end may take (seconds).
TIMEOUT_S = 1800.0


class LandingRecovery:
    """One per daemon; used from the loop's thread. `tell` gets what was done, in words."""

    def __init__(self, loop: asyncio.AbstractEventLoop, state: StateDir,
                 tell: Callable[[str], None]) -> None:
        self._loop, self._state, self._tell = loop, state, tell
        self._busy = False

    def look(self) -> None:
        """Look for one that was cut off; if there is one, have it brought to its end."""
        if self._busy or not self._state.landing.exists() or not self._cut_off():
            return
        self._busy = True
        self._loop.run_in_executor(None, self._mend).add_done_callback(self._mended)

    def _cut_off(self) -> bool:
        try:
            with (self._state.path / "landing.lock").open("ab") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False  # a launcher is at it
        return True

    def _mend(self) -> str:
        """In a worker."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("COORD_AGENT")}
        done = subprocess.run(
            [sys.executable, "-I", "-m", "coordinator.launch.recovery", str(self._state.root)],
            cwd=self._state.path, env=env, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=TIMEOUT_S, check=False,
        )
        if done.returncode:
            log.warning("a landing that was cut off cannot be brought to its end now: %s",
                        done.stderr.decode("utf-8", "replace").strip()[-500:])
        return done.stdout.decode("utf-8", "replace").strip()

    def _mended(self, done: asyncio.Future[str]) -> None:
        self._busy = False
        bad = done.exception()
        if bad is not None:
            log.error("a landing that was cut off: %s", bad)
        elif done.result():
            log.info("%s", done.result())
            self._tell(done.result())


#: How many leases are listed.
LEASES_MAX = 300


class ActivitySections:
    """The sections that were written last, so that unchanged ones are not written again."""

    def __init__(self) -> None:
        self._told: list[tuple[object, ...]] = []

    def sections(self, view: View) -> list[Section] | None:
        """The sections; None if they are unchanged."""
        leases = view.each(LeaseRow, "leases_live", view.now, 0, None, LEASES_MAX)
        rows = [(lease.fencing_token, lease.file_path, lease.task_description) for lease in leases]
        if rows == self._told:
            return None
        self._told = list(rows)
        holders: dict[str, list[LeaseRow]] = {}
        for lease in leases:
            holders.setdefault(lease.locked_by, []).append(lease)
        return [
            Section(
                source="(living)", number=f"now.{i}", title=f"What {holder} is doing", level=1,
                body=" ".join(
                    f"{holder} holds {lease.file_path} since {lease.locked_at}"
                    + (f" ({quoted(lease.task_description)})." if lease.task_description else ".")
                    for lease in held
                ),
                line=0, paths=tuple(lease.file_path for lease in held),
            )
            for i, (holder, held) in enumerate(sorted(holders.items()), 1)
        ]
