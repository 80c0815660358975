"""Whether a disk has room left for what the coordinator writes next, as a sentence. It frees
nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

#: With less than this (bytes) the next transaction may find no room.
LITTLE_BYTES = 2_000_000


def little(folder: Path) -> str | None:
    """The advice for a disk with little room for this folder, in words. None if there is enough, or
    if that cannot be told."""
    try:
        filesystem = os.statvfs(folder)
    except OSError:
        return None
    left = filesystem.f_bavail * filesystem.f_frsize
    if left >= LITTLE_BYTES and (filesystem.f_favail or not filesystem.f_files):
        return None
    what = f"{left // 1000:,} KB" if left < LITTLE_BYTES else "no inode (`df -i`)"
    return (f"the disk of {folder} has {what} left: where there is no room, what is to be written "
            "is refused (STORAGE). Make room; nothing has to be started again")
