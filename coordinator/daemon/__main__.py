"""`python -m coordinator.daemon --root DIR [--http PORT]`: the coordinator in the foreground."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

from coordinator.daemon.compose import Daemon
from coordinator.files.state import StateDir
from coordinator.store.database import make_room
from coordinator.words.refusals import Refusal


def main() -> int:
    """Exit code of the process."""
    parser = argparse.ArgumentParser(prog="coordinator.daemon")
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--http", type=int, default=None)
    given = parser.parse_args()
    return serve(given.root, given.http)


def serve(root: Path, http_port: int | None = None) -> int:
    """Run until stopped; a refusal to start is printed and kept for whoever started us."""
    make_room()
    factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with contextlib.suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop

    async def run() -> None:
        await Daemon(root, http_port=http_port).run()

    try:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(run())
    except Refusal as refusal:
        print(f"coord: {refusal.message}\n  {refusal.next}", file=sys.stderr)  # noqa: T201
        state = StateDir(root)
        if state.path.is_dir() and refusal.code.value != "BAD_TRANSITION":
            with contextlib.suppress(OSError):
                state.failure.write_text(json.dumps(refusal.body()), "utf-8")
        return refusal.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
