"""`python -P -m coordinator.daemon --root DIR [--http PORT]`: the coordinator in the foreground."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from coordinator.files import ownership
from coordinator.files.state import StateDir
from coordinator.store.database import make_room
from coordinator.words.refusals import Code, Refusal

#: How long a thread may keep the interpreter while the loop wants it (seconds; Python's own
#: default is fifty times that): what works on files beside the loop must not be felt. A request
#: lets go of the interpreter some twenty times, at each statement and each look at the disk.
SWITCH_S = 0.0001


def main() -> int:
    """Exit code of the process."""
    parser = argparse.ArgumentParser(prog="coordinator.daemon")
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--http", type=int, default=None)
    parser.add_argument("--log-format", choices=["text", "json"], default=None)
    parser.add_argument("--tell", type=int, default=None, help="a descriptor for why not")
    given = parser.parse_args()
    return serve(given.root, given.http, tell=given.tell, log_format=given.log_format)


def serve(root: Path, http_port: int | None = None, *, stays: bool = False,
          tell: int | None = None, log_format: Literal["text", "json"] | None = None) -> int:
    """Run until stopped. A refusal to start is printed and kept for the program that started the
    daemon.

    Args:
        stays: it does not end for want of work: somebody watches over it.
        tell: a descriptor of whoever started us, for the refusal.
        log_format: in place of the setting `daemon.log_format`.
    """
    make_room()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # each wait of a program is a connection
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sys.setswitchinterval(SWITCH_S)
    gc.disable()  # what is loaded stays: looking for rubbish in it takes a tenth of a start
    from coordinator.daemon.compose import Daemon

    gc.enable()
    factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with contextlib.suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop

    async def run() -> None:
        await Daemon(root, http_port=http_port, stays=stays, log_format=log_format).run()

    try:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(run())
    except Refusal as refusal:
        _tell(StateDir(root), refusal, tell)
        return refusal.exit_code
    except PermissionError as bad:
        closed = Refusal(
            Code.STORAGE, f"{bad.filename or StateDir(root).path} cannot be written: "
            f"{bad.strerror}. No coordinator was started.",
            next=f"Give write access to {StateDir(root).path}.")
        _tell(StateDir(root), closed, tell)
        return closed.exit_code
    return 0


def _tell(state: StateDir, refusal: Refusal, descriptor: int | None) -> None:
    """Each way may fail, for what keeps the daemon from starting may be the disk."""
    body = json.dumps(refusal.body())
    with contextlib.suppress(OSError):
        if descriptor is not None:
            os.write(descriptor, body.encode())
    with contextlib.suppress(OSError):
        step = f"\n  next: {refusal.next}" if refusal.next else ""
        print(f"coord: {refusal.code}: {refusal.message}{step}", file=sys.stderr)  # noqa: T201
    if refusal.code not in (Code.BAD_TRANSITION, Code.FOREIGN):
        with contextlib.suppress(OSError, Refusal):
            ownership.write(state.failure, body.encode())


if __name__ == "__main__":
    sys.exit(main())
