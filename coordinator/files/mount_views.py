"""One file under two paths: the name here of what a process sees at a path.

A repository may be mounted a second time (a bind mount, a container, a second mount of a network
disk), and a process may see another tree of mounts than this one. The kernel tells for each mount
which part of which file system it shows. The module reads /proc and links; Linux only.
"""

# Paths are plain strings here, of whatever process sees them.
# ruff: noqa: PTH115

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

#: Links one after the other that a path is followed through: as many as Linux follows.
LINKS_MAX = 40
_ESCAPED = re.compile(rb"\\([0-7]{3})")


class Mount(NamedTuple):
    """One mount as a process sees it.

    Attributes:
        device: of its file system, as the kernel numbers it.
        shown: which part of the file system is there: a path within that.
        place: where.
        options: those of the mount alone, as `ro`.
    """

    device: bytes
    shown: str
    place: str
    options: tuple[bytes, ...]


def mounts(pid: int | None = None) -> list[Mount]:
    """The mounts that a process sees, this one by default. A later mount covers an earlier one.

    Raises:
        OSError: it has ended, cannot be seen, or may not be looked at.
    """
    result = []
    process = "self" if pid is None else str(pid)
    for line in Path(f"/proc/{process}/mountinfo").read_bytes().splitlines():
        _, _, device, shown, place, options, *_ = line.split()
        result.append(Mount(device, _plain(shown), _plain(place), tuple(options.split(b","))))
    return result


def as_here(paths: Iterable[str], pid: int, bases: Sequence[str]) -> dict[str, str]:
    """The paths among these (absolute, as the process sees them) that are inside one of the `bases`
    (real paths here, the inner of two first) -> their names here.

    Raises:
        OSError: that process cannot be looked at.
    """
    theirs, mine = mounts(pid), mounts()
    views = [(base, on_disk(base, mine)) for base in bases]
    result = {}
    for path in paths:
        place = on_disk(_real(path, f"/proc/{pid}/root"), theirs)
        for base, itself in views:
            if place is None or itself is None or place[0] != itself[0]:
                continue
            if place[1] == itself[1] or place[1].startswith(itself[1].rstrip("/") + "/"):
                rest = place[1][len(itself[1].rstrip("/")) :]
                result[path] = base + rest
                break
    return result


def on_disk(path: str, seen: Sequence[Mount]) -> tuple[bytes, str] | None:
    """The place of a real path: the device, and the path within its file system."""
    best: Mount | None = None
    for mount in seen:
        inside = path == mount.place or path.startswith(mount.place.rstrip("/") + "/")
        if inside and (best is None or len(mount.place) >= len(best.place)):
            best = mount
    if best is None:
        return None
    rest = path[len(best.place.rstrip("/")) :]
    return best.device, (best.shown.rstrip("/") + rest) or "/"


def _real(path: str, root: str) -> str:
    """The target of an absolute path for a process with this root, as far as it exists."""
    done, links = "/", 0
    rest = [part for part in path.split("/") if part]
    while rest:
        part = rest.pop(0)
        if part in (".", ""):
            continue
        if part == "..":
            done = posixpath.dirname(done)
            continue
        place = posixpath.join(done, part)
        try:
            target = os.readlink(root + place)
        except OSError:
            done = place
            continue
        links += 1
        if links > LINKS_MAX:
            return place
        done = "/" if target.startswith("/") else done
        rest = [*target.split("/"), *rest]
    return done


def _plain(field: bytes) -> str:
    return os.fsdecode(_ESCAPED.sub(lambda match: bytes([int(match[1], 8)]), field))
