"""Files of other repositories in a session of this one (`--add-dir`, absolute paths, links).

What lies outside of this repository is none of its coordinator's business; it may be another's. The
hook is told which, and asks there itself, with the same words: so that coordinator sees the
agent's own process, registers the session under its own name, and ends it with that process.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from coordinator.files import ownership
from coordinator.files.roots import STATE_DIR, find_root, is_prepared

#: Sessions whose other repositories are remembered; the oldest are given up. (Their leases there
#: then end with their process.)
SESSIONS_MAX = 1000

#: A profile, and the session as its hooks name it.
Session = tuple[str, str]


class OtherRepositories:
    """Which other roots each session has met. Used from the loop's thread, but for `roots`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._met: dict[Session, list[str]] = {}

    def roots(self, paths: Sequence[str], cwd: str | None) -> list[str]:
        """The roots of this user's that these paths, which lie outside of this one, lie in. Looks
        at the disk."""
        result: list[str] = []
        for path in paths:
            try:
                root = find_root(Path(cwd or self._root, path))
                mine = (root / STATE_DIR).stat().st_uid == ownership.user()
            except (OSError, ValueError):
                continue
            if mine and root != self._root and is_prepared(str(root)) and str(root) not in result:
                result.append(str(root))
        return result

    def meet(self, session: Session, roots: Sequence[str]) -> None:
        """This session is known there from now on."""
        if not roots:
            return
        met = self._met.setdefault(session, [])
        met += [root for root in roots if root not in met]
        if len(self._met) > SESSIONS_MAX:
            del self._met[next(iter(self._met))]

    def met(self, session: Session) -> list[str]:
        """Where it is known."""
        return [root for root in self._met.get(session, ()) if os.access(root, os.F_OK)]

    def over(self, session: Session) -> list[str]:
        """Where it was known: it has ended."""
        met = self.met(session)
        self._met.pop(session, None)
        return met
