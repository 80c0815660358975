"""The mount namespace of one session: making it, entering it, keeping it as the plan says.

The module owns its descriptor and knows which mounts in it are coord's own. A caller of `keep` is
in the namespace while it runs. Nothing is mounted through a link, and no foreign mount is removed:
a mount is known by its number and the file that it shows.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator.files.syscalls import has_writer
from coordinator.namespaces import kernel

#: Why a missing path is not covered; it will be once it exists.
ABSENT = "absent"


class Mounted(NamedTuple):
    """A read-only view that was put over a path."""

    number: int
    device: int
    inode: int


@dataclass
class Session:
    """One agent's namespace. `agents`: its name in each of its roots. `own`: directories that stay
    writable in it below what is read-only for everybody."""

    key: str
    agents: dict[str, str]
    own: tuple[str, ...] = ()
    namespace: int = -1
    mounted: dict[str, Mounted] = field(default_factory=dict)

    def make(self) -> None:
        """Make the namespace, with nothing mounted in it.

        Raises:
            OSError: this user may have none.
        """
        self.namespace = _make_namespace()

    @property
    def number(self) -> int:
        """Of its namespace, as `/proc/PID/ns/mnt` has it."""
        return os.fstat(self.namespace).st_ino

    def keep(self, path: str, read_only: bool) -> str:
        """Mount a path, or take its mount away. Returns in words why it could not be covered;
        otherwise empty. The namespace has been entered."""
        try:
            if not read_only:
                self._take_away(path)
                return ""
            return self._put(path)
        except OSError as bad:
            return bad.strerror or str(bad)

    def cover(self, program: str, folder: str) -> None:
        """Put `folder`/ask over a program, which is at `folder`/git then; neither can be changed.
        The namespace has been entered.

        Raises:
            OSError: it stays as it is.
        """
        opened = []
        try:
            def open_path(path: str) -> int:
                opened.append(kernel.open_path(os.fsencode(path)))
                return opened[-1]

            kernel.mount_read_only(open_path(folder))
            kernel.mount_apart(open_path(program), open_path(f"{folder}/git"))
            kernel.mount_read_only(open_path(f"{folder}/ask"), open_path(program))
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def close(self) -> None:
        """Let go of it; it ends with the last process in it."""
        if self.namespace >= 0:
            os.close(self.namespace)
            self.namespace = -1

    def _put(self, path: str) -> str:
        try:
            descriptor = kernel.open_path(os.fsencode(path))
        except (FileNotFoundError, NotADirectoryError):
            return ABSENT  # what was mounted moved along with its directory
        except OSError as bad:
            return "a link" if bad.errno == errno.ELOOP else str(bad.strerror)
        try:
            status = os.fstat(descriptor)
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                return "neither a file nor a directory"
            mounted = self.mounted.get(path)
            if mounted is not None and mounted[1:] == (status.st_dev, status.st_ino) and (
                    kernel.mount_of(descriptor) == mounted.number):
                return ""
            own = self._opened(path)
            kernel.mount_read_only(descriptor)
            self._show(own)
        finally:
            os.close(descriptor)
        made = kernel.open_path(os.fsencode(path))
        try:
            self.mounted[path] = Mounted(kernel.mount_of(made), status.st_dev, status.st_ino)
        finally:
            os.close(made)
        return ""

    def _opened(self, path: str) -> dict[str, int]:
        """The writable places below a path that will be covered."""
        result = {}
        for place in self.own:
            if place.startswith(path + "/"):
                with suppress(OSError):
                    result[place] = kernel.open_path(os.fsencode(place))
        return result

    def _show(self, opened: dict[str, int]) -> None:
        """Show again what was opened before, unchanged."""
        for place, descriptor in opened.items():
            try:
                over = kernel.open_path(os.fsencode(place))
                try:
                    kernel.mount_as_it_is(descriptor, over)
                finally:
                    os.close(over)
            finally:
                os.close(descriptor)

    def _take_away(self, path: str) -> None:
        mounted = self.mounted.pop(path, None)
        if mounted is None:
            return
        if not _unmount(os.fsencode(path), mounted):
            for place in _places(mounted.number):  # it was moved with a directory
                if _unmount(place, mounted):
                    break


def gap(path: str, namespaces: Collection[int]) -> str:
    """A way, in words, by which read-only mounts in these namespaces can be written all the same;
    empty if none is known. Asked outside of the sessions' namespaces."""
    try:
        descriptor = kernel.open_path(os.fsencode(path))
    except OSError:
        return ""
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            return "a program of theirs works in it" if _is_worked_in(path, namespaces) else ""
        if not stat.S_ISREG(status.st_mode):
            return ""
        if status.st_nlink > 1:
            return "it has another name, a hard link"
        with suppress(OSError), open(f"/proc/self/fd/{descriptor}", "rb", buffering=0) as file:
            if has_writer(file.fileno()):
                return "a program has it open for writing"
    finally:
        os.close(descriptor)
    return ""


def _is_worked_in(directory: str, namespaces: Collection[int]) -> bool:
    """Whether a process of these namespaces has its working directory there: names relative to it
    bypass the mount."""
    for pid in kernel.processes():
        if kernel.namespace_of(pid) in namespaces:
            with suppress(OSError):
                place = os.readlink(f"/proc/{pid}/cwd")
                if place == directory or place.startswith(directory + "/"):
                    return True
    return False


def _unmount(path: bytes, mounted: Mounted) -> bool:
    """Take away exactly this mount, if it is there."""
    with suppress(OSError):
        descriptor = kernel.open_path(path)
        try:
            status = os.fstat(descriptor)
            if (kernel.mount_of(descriptor), status.st_dev, status.st_ino) == mounted:
                kernel.unmount(descriptor)
                return True
        finally:
            os.close(descriptor)
    return False


def _places(number: int) -> Iterable[bytes]:
    """The places of the mount with this number in this process's namespace."""
    with open("/proc/self/mountinfo", "rb") as info:
        for line in info:
            words = line.split(b" ")
            if int(words[0]) == number:
                yield words[4].decode("unicode_escape").encode("latin-1")


def _make_namespace() -> int:
    """A descriptor of a new mount namespace; a child makes it, and ends."""
    ready, ready_write = os.pipe()
    held, release = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(release)
            kernel.unshare(kernel.CLONE_NEWNS)
            kernel.make_tree_shared()
            os.write(ready_write, b"+")
            os.read(held, 1)
            code = 0
        except OSError as bad:
            os.write(ready_write, (bad.strerror or "?").encode())
        finally:
            os._exit(code)
    os.close(ready_write)
    os.close(held)
    try:
        data = os.read(ready, 200)
        if data != b"+":
            raise OSError(errno.EPERM, data.decode() or "the namespace could not be made")
        return os.open(f"/proc/{child}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(ready)
        os.close(release)
        os.waitpid(child, 0)
