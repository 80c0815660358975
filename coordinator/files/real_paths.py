"""Asking the kernel where a path really leads, and wording its errors.

On Linux one descriptor that opens nothing (`O_PATH`) tells the true name of what it reached.
Elsewhere `realpath` walks. The module knows nothing of repositories.
"""

# Paths are plain strings here: this runs before every write of an agent, and Path is slow.
# ruff: noqa: PTH112, PTH115, PTH116

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import NoReturn

from coordinator.words.refusals import Code, Refusal
from coordinator.words.resource_names import NAME_PARTS_MAX, Link

#: The limit of file systems for one part of a path, in bytes.
PART_BYTES_MAX = 255
#: How often to look again at a path whose links change meanwhile.
SWAPPED_AT_MOST = 3

_O_PATH = getattr(os, "O_PATH", 0)
_KERNEL_NAMES = bool(_O_PATH) and os.path.isdir("/proc/self/fd")


def real_path(path: str, text: str,
              link: Link = "followed") -> tuple[str, os.stat_result | None]:
    """The target of a path, and what is there (None: nothing). `link`: the meaning of a path that
    ends in a symlink.

    Raises:
        Refusal: INVALID, STORAGE.
    """
    try:
        if link != "followed" and (there := _link_at(path, link)) is not None:
            above, name = os.path.split(path)
            real, _ = real_path(above, text)
            return f"{real.rstrip('/')}/{name}", there
        try:
            return _real_existing(path)
        except FileNotFoundError:
            # Follows what exists (a dangling link, too) and takes the rest by its letters.
            real = _realpath(path)
            try:
                return real, os.stat(real)
            except FileNotFoundError:
                return real, None
    except OSError as no:
        _refuse(no, text)


def _link_at(path: str, link: Link) -> os.stat_result | None:
    """The symlink that a path ends in, if the path means the link itself."""
    with suppress(OSError):
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode) and not (link == "entered" and os.path.isdir(path)):
            return status
    return None


def _real_existing(path: str) -> tuple[str, os.stat_result]:
    if _KERNEL_NAMES:
        fd = os.open(path, _O_PATH | os.O_CLOEXEC)
        try:
            real, status = os.readlink(f"/proc/self/fd/{fd}"), os.fstat(fd)
        finally:
            os.close(fd)
        # A file deleted meanwhile, or one outside of this mount namespace, has no true name here.
        if status.st_nlink and real.startswith("/"):
            return real, status
    status = os.stat(path)
    return _realpath(path), status


def _realpath(path: str) -> str:
    """`os.path.realpath`, which raises EINVAL when a link becomes something else while it looks."""
    for _ in range(SWAPPED_AT_MOST):
        try:
            return os.path.realpath(path)
        except OSError as no:
            if no.errno != errno.EINVAL:
                raise
    return os.path.realpath(path)


def _refuse(no: OSError, text: str) -> NoReturn:
    why = {
        errno.ELOOP: "it runs in a circle of symlinks",
        errno.ENOTDIR: "it goes through a file as if that were a directory",
        errno.ENAMETOOLONG: f"a part of it is longer than {PART_BYTES_MAX} bytes",
    }.get(no.errno or 0)
    if why:
        raise Refusal(
            Code.INVALID, f"{shown(text)} names no file: {why}. Nothing was done.",
            resource=printable(text),
        ) from None
    reason = os.strerror(no.errno) if no.errno else str(no)
    raise Refusal(
        Code.STORAGE,
        f"{shown(text)} cannot be looked at: {reason.lower()}. Nothing was done.",
        resource=printable(text),
    ) from no


def check_parts(name: str) -> None:
    """Refuse a path with a part that no file system would take, or with too many parts.

    Raises:
        Refusal: INVALID, LIMIT.
    """
    if name.count("/") >= NAME_PARTS_MAX:
        raise Refusal(
            Code.LIMIT, f"{shown(name[:80] + '…')} has more than {NAME_PARTS_MAX} parts. "
            "Nothing was done.", next="Name a directory above it.", limit=NAME_PARTS_MAX,
        )
    if len(name) * 4 <= PART_BYTES_MAX:
        return
    for part in name.split("/"):
        if len(os.fsencode(part)) > PART_BYTES_MAX:
            raise Refusal(
                Code.INVALID,
                f"{shown(part[:40] + '…')} is longer than the {PART_BYTES_MAX} bytes that a name "
                "may have. Nothing was done.",
                resource=printable(name),
            )


def printable(text: str) -> str:
    """Text that can be sent and shown, whatever bytes a name is made of."""
    return text.encode("utf-8", "backslashreplace").decode()


def shown(text: str) -> str:
    """The form of a name in a sentence."""
    return f"`{printable(text)}`"
