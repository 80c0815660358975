"""A worker process that is a fork of a command: as much of `subprocess.Popen` as its asker needs.

A command that asks a worker once would pay for the start of an interpreter, and for importing all
its own modules again, only so that the fault of a grammar ends another process. Its fork is another
process, too. Only for a command without other threads: the child never gets their locks.
"""

from __future__ import annotations

import os
import sys
from _signal import SIGKILL  # type: ignore[import-not-found]  # (`signal` takes ms to load)
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import BinaryIO, NoReturn


class ForkedProcess:
    """A process that starts when the object is made.

    Args:
        command: the command for a start without a fork: `PYTHON … -m MODULE ARGUMENT…`. The
            module's `main` is called with these arguments in `sys.argv`.

    Attributes:
        stdin, stdout: its input to be written, its output to be read; not buffered.

    Raises:
        OSError: there are too many processes or files.
    """

    def __init__(self, command: Sequence[str]) -> None:
        theirs, ours = os.pipe()
        mine, its = os.pipe()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # waiting output must be written once
        self.pid = os.fork()
        if self.pid == 0:
            _become(command[command.index("-m") + 1:], theirs, its)
        os.close(theirs)
        os.close(its)
        self.stdin: BinaryIO = open(ours, "wb", buffering=0)  # noqa: PTH123, SIM115
        self.stdout: BinaryIO = open(mine, "rb", buffering=0)  # noqa: PTH123, SIM115
        self._ended: int | None = None

    def poll(self) -> int | None:
        """Return its exit code; None while it runs."""
        return self._waited(os.WNOHANG)

    def wait(self) -> int | None:
        """Wait for its end, and return its exit code."""
        return self._waited(0)

    def kill(self) -> None:
        """End it at once, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, SIGKILL)

    def _waited(self, how: int) -> int | None:
        if self._ended is None:
            try:
                ended, status = os.waitpid(self.pid, how)
            except ChildProcessError:  # another waiter has collected it
                ended, status = self.pid, 0
            if ended:
                self._ended = os.waitstatus_to_exitcode(status)
        return self._ended


def _become(words: Sequence[str], source: int, sink: int) -> NoReturn:
    """Become the worker: with its own input and output, and nothing else of the parent's."""
    code = 1
    with suppress(BaseException):
        os.dup2(source, 0)
        os.dup2(sink, 1)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        sys.argv = list(words)
        import_module(words[0]).main()
        code = 0
    os._exit(code)
