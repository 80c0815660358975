"""A file with what a daemon has observed, for the next one.

Owns how such a file is read and written: whole, beside and then in place, not synced. It has no
truth: where it is lost or cannot be read nothing was noted, and a full disk stops nobody.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")
log = logging.getLogger("coord.observations")


class ObservationFile:
    """One file of one daemon.

    Args:
        what: what is noted there, for a warning: "the calls that run".
    """

    def __init__(self, path: Path, what: str) -> None:
        self._path, self._what = path, what
        self._written = b""

    def read(self, shape: type[T]) -> T | None:
        """What the daemon before has noted; None: nothing that can be read."""
        try:
            data = self._path.read_bytes()
            found = msgspec.json.decode(data, type=shape)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
        self._written = data
        return found

    def write(self, value: object) -> None:
        """Note this in its place."""
        text = msgspec.json.encode(value)
        if text == self._written:
            return
        beside = self._path.with_name(f".{self._path.name}.tmp")
        try:
            beside.write_bytes(text)
            beside.replace(self._path)
            self._written = text
        except OSError as bad:
            log.warning("%s could not be noted: %s", self._what, bad)
