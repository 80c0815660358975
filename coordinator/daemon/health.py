"""How this coordinator is: what `GET /v1/health` and `coord doctor` tell of it. Looks, and changes
nothing."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import msgspec

from coordinator.files import disk_room
from coordinator.files.state import StateDir
from coordinator.resources import program_version
from coordinator.settings import Loaded
from coordinator.store.database import integrity
from coordinator.store.migrations import SCHEMA_VERSION
from coordinator.words import requests as rq


class Running(NamedTuple):
    """A coordinator as it runs. `warnings`: those of its parts, beside what is seen here."""

    state: StateDir
    reader: apsw.Connection
    loaded: Loaded
    started_at: str
    watcher: Mapping[str, Any]
    http: str | None
    heard: Mapping[str, str]
    warnings: Sequence[str]


def reply(request: rq.Health, running: Running) -> rq.HealthReply:
    """The answer to `requests.Health`."""
    state, reader, loaded = running.state, running.reader, running.loaded
    sentences = [*loaded.warnings(), *running.warnings]
    if running.watcher.get("mode") == "polling":
        sentences.append(str(running.watcher.get("detail")))
    if (full := disk_room.little(state.path)) is not None:
        sentences.append(full)
    wal = state.database.with_name(state.database.name + "-wal")
    return rq.HealthReply(
        version=program_version(), sqlite=apsw.sqlite_lib_version(), root=str(state.root),
        pid=os.getpid(), started_at=running.started_at, schema_version=SCHEMA_VERSION,
        db_bytes=_size(state.database), wal_bytes=_size(wal), resident_bytes=_resident_bytes(),
        events=int(str(reader.execute("SELECT coalesce(max(seq), 0) FROM events").get)),
        watcher=dict(running.watcher), http=running.http, warnings=sentences,
        config={"settings": msgspec.to_builtins(loaded.settings), "sources": loaded.sources},
        heard=dict(running.heard), integrity=integrity(reader) if request.integrity else None,
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _resident_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return pages * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
