"""Count the walk of a request: which functions of which modules it meets until it is answered.

`python -P scripts/walk.py` runs a coordinator in this process, in a new repository, and traces
three walks: an `acquire` of one free file, an agent's hook before an edit, and the end of a lease
that has expired. `--list` prints each call.

A stay is a run of calls in one module. A room is a folder of the program. Comprehensions do not
count, and a generator counts once. Calls in workers and other threads are not seen.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
PACKAGE = "coordinator."
GENERATOR = 0x20
WAIT_S = 0.5


class Walk(NamedTuple):
    """Where a walk begins, which function is the first rule, and where it ends: with the first
    return of `last` after `mark` was called."""

    first: str
    rule: str
    mark: str
    last: str


WALKS = {
    "acquire": Walk("Conversation.data_received", "acquire", "acquire", "Conversation._reply"),
    "hook": Walk("Conversation.data_received", "serve", "serve", "Conversation._print"),
    "lapse": Walk("RequestRouter.tend", "close_group", "LeaseLapsed.apply", "Writer._tell"),
}


class Call(NamedTuple):
    """One call."""

    module: str
    function: str


class Tracer:
    """Notes the calls of this thread that belong to one walk."""

    def __init__(self) -> None:
        self.walks: dict[str, list[Call]] = {}
        self._name = ""
        self._calls: list[Call] = []
        self._generators: list[FrameType] = []
        self._marked = False

    def begin(self, name: str) -> None:
        """Note the next walk of this kind."""
        self._calls, self._generators, self._marked = [], [], False
        self._name = name

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        """What `sys.setprofile` calls."""
        module = frame.f_globals.get("__name__", "")
        if not self._name or not module.startswith(PACKAGE):
            return
        walk, function = WALKS[self._name], frame.f_code.co_qualname
        if event == "return" and self._marked and function == walk.last:
            self.walks[self._name], self._name = self._calls, ""
        elif event == "call" and (self._calls or function == walk.first) and self._counts(frame):
            self._marked = self._marked or function == walk.mark
            self._calls.append(Call(module.removeprefix(PACKAGE), function))

    def _counts(self, frame: FrameType) -> bool:
        """Whether this is a call of the walk's own."""
        if frame.f_code.co_name.endswith(("comp>", "genexpr>")) or is_tick(frame):
            return False
        if frame.f_code.co_flags & GENERATOR:
            if frame in self._generators:
                return False
            self._generators.append(frame)
        return True


def is_tick(frame: FrameType) -> bool:
    """Whether the daemon does something else that is due each second."""
    above: FrameType | None = frame
    while above is not None and above.f_code.co_qualname != "RequestRouter.tend":
        if above.f_code.co_qualname == "Daemon._tend":
            return True
        above = above.f_back
    return False


def describe(name: str, calls: list[Call]) -> str:
    """The figures of one walk."""
    names = [call.function.rpartition(".")[2] for call in calls]
    rule = names.index(WALKS[name].rule)
    return (f"{name}: {count(calls)}\n    before {WALKS[name].rule}: {count(calls[:rule])}\n"
            f"    from it on: {count(calls[rule:])}")


def count(calls: list[Call]) -> str:
    """Calls, stays, modules and rooms."""
    modules = [call.module for call in calls]
    stays = 1 + sum(before != after for before, after in pairwise(modules))
    rooms = {module.rpartition(".")[0] or module for module in modules}
    return f"{len(calls)} calls, {stays} stays in {len(set(modules))} modules of {len(rooms)} rooms"


def ask(path: Path, request: bytes) -> None:
    """Send a request, and read its answer."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(path))
        link.sendall(request)
        link.recv(1 << 20)
        time.sleep(WAIT_S)  # what follows from it is no part of the next


def make_acquire(root: Path, name: str, ttl_s: float = 60.0) -> bytes:
    """A request line."""
    params = {"agent": "ann", "resources": [name], "cwd": str(root), "ttl_s": ttl_s}
    return json.dumps({"id": 1, "op": "acquire", "params": params}).encode() + b"\n"


def make_hook(root: Path, name: str) -> bytes:
    """What a hook of Claude Code sends before an edit."""
    payload = json.dumps({
        "hook_event_name": "PreToolUse", "session_id": "walk-session-00000001", "cwd": str(root),
        "tool_name": "Edit", "tool_use_id": f"toolu_{name}", "tool_input": {
            "file_path": str(root / name), "old_string": "1", "new_string": "2"}}).encode()
    return b"hook claude-code - %d\n" % len(payload) + payload


def go(tracer: Tracer, root: Path, path: Path) -> None:
    """Ask what is traced; something like it comes before, so that nothing is the first."""
    while not path.exists():
        time.sleep(0.1)
    ask(path, make_acquire(root, "a.py"))
    tracer.begin("acquire")
    ask(path, make_acquire(root, "b.py"))
    ask(path, make_hook(root, "c.py"))
    tracer.begin("hook")
    ask(path, make_hook(root, "d.py"))
    ask(path, make_acquire(root, "e.py", ttl_s=1.0))
    (root / "e.py").write_text("x = 2\n")
    tracer.begin("lapse")
    for _ in range(40):
        time.sleep(0.1 if "lapse" not in tracer.walks else 0)


async def serve(tracer: Tracer, root: Path) -> None:
    """A coordinator, until all is traced."""
    from coordinator.daemon.compose import Daemon

    daemon = Daemon(root)
    sys.setprofile(tracer.note)
    serving = asyncio.create_task(daemon.run())
    await asyncio.sleep(WAIT_S)
    await asyncio.to_thread(go, tracer, daemon.state.root, daemon.state.socket())
    daemon._stop.set()
    await serving
    sys.setprofile(None)


def main() -> None:
    """Trace, and print the figures."""
    parser = argparse.ArgumentParser(description="Count the walk of a request.")
    parser.add_argument("--list", action="store_true", help="print each call")
    is_listed = parser.parse_args().list
    tracer = Tracer()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = os.environ["XDG_STATE_HOME"] = folder
        root = Path(folder) / "shop"
        root.mkdir()
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        for name in "abcde":
            (root / f"{name}.py").write_text("x = 1\n")
        asyncio.run(serve(tracer, root))
    for name, calls in tracer.walks.items():
        print(describe(name, calls))
        for call in calls if is_listed else ():
            print(f"        {call.module} {call.function}")


if __name__ == "__main__":
    main()
