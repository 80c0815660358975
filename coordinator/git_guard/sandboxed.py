"""What is known of a commit where a sandbox keeps git from asking the coordinator.

In an agent's session what others hold is mounted read-only, also in a sandbox within it, and the
kernel lists these mounts. A sandbox may have read-only files of its own, and git is kept from these
as well. The module reads one file of the kernel's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from coordinator.files.mount_views import mounts
from coordinator.files.roots import STATE_DIR

#: Files that are named in words.
NAMED_MAX = 20


def stopped(top: Path, paths: Sequence[str], name: str) -> str:
    """Why the git command of this name may not take or change these files, which are named from the
    top of their working tree; empty if it may."""
    mounted = read_only(top)
    kept = [path for path in paths
            if any(path == text or path.startswith(f"{text}/") for text in mounted)]
    if not kept:
        return ""
    shown = ", ".join(kept[:NAMED_MAX]) + (" …" if len(kept) > NAMED_MAX else "")
    return (f"coord: git {name} was not run: {shown} is read-only here, as what others hold is, "
            "and the sandbox around this command keeps it from asking the coordinator.\n"
            f"  next: name your own files: git {name} -- FILE…; or run it outside of the sandbox\n")


def read_only(top: Path) -> list[str]:
    """The read-only mounts below the top of a working tree, named from there, except coord's own
    folder and git's."""
    base, result = str(top).rstrip("/") + "/", []
    with contextlib.suppress(OSError):
        for mount in mounts():
            if mount.place.startswith(base) and b"ro" in mount.options:
                name = mount.place.removeprefix(base)
                if name.split("/")[0] not in (STATE_DIR, ".git"):
                    result.append(name)
    return result
