"""Faults at the n-th operation on the disk: each call of the system that touches a file is counted,
and just before the n-th something happens: a crash, an error, a person who saves."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from coordinator.files import syscalls

#: What touches a file. (Closing and `fstat` do not fail in a way that anybody could act on.)
CALLS = ("open", "read", "pread", "write", "fsync", "rename", "link", "unlink", "symlink", "mkdir",
         "rmdir", "ftruncate", "fchmod", "stat", "readlink", "scandir", "lstat", "replace")
KERNEL = ("open_beneath", "open_real", "exchange", "rename_new", "has_writer")


class Crash(BaseException):
    """As if the process were killed here: nothing that would tidy up catches it."""


class FaultyKernel:
    """While it is entered, `act` is called before the `nth` operation, once; or (`for_good`) before
    each from then on.

    After a `Crash` every other operation fails alike: a dead process does nothing more.
    """

    def __init__(self, nth: int, act: Callable[[], None], *, for_good: bool = False) -> None:
        self.left, self.act, self.for_good = nth, act, for_good
        self.struck = False
        self.said = ""
        self._dead = False
        self._busy = False
        self._real: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> FaultyKernel:
        for module, names in ((os, CALLS), (syscalls, KERNEL)):
            for name in names:
                real = getattr(module, name)
                self._real.append((module, name, real))
                setattr(module, name, self._counted(name, real))
        return self

    def __exit__(self, *_: object) -> None:
        for module, name, real in self._real:
            setattr(module, name, real)

    def _counted(self, name: str, real: Any) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            if self._dead:
                raise Crash
            if self._busy:
                return real(*args, **more)
            self.left -= 1
            if self.left == 0 or (self.for_good and self.left < 0):
                self.struck, self.said, self._busy = True, f"{name}{args}", True
                try:
                    self.act()
                except Crash:
                    self._dead = True
                    raise
                finally:
                    self._busy = False
            return real(*args, **more)

        return call
