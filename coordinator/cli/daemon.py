"""`coord up`, `serve`, `compact`: the coordinator itself. (`ps`, `down`: coordinators.py.)"""

from __future__ import annotations

from typing import Annotated, Literal

from coordinator.cli.app import ask, complain, print_json, say
from coordinator.client.locating import connect, locate_root
from coordinator.client.starting import start
from coordinator.commands.signatures import AsJson, Option, command
from coordinator.files.state import StateDir
from coordinator.words import requests as rq
from coordinator.words.exit_codes import Exit
from coordinator.words.texts import counted

HttpPort = Annotated[int | None, Option(
    "Also open the HTTP door on this port (0: any).", least=0, most=65_535)]
LogForm = Annotated[Literal["text", "json"] | None, Option(
    "Of .coord/daemon.log: lines, or JSON lines.")]


@command("up")
def up(http: HttpPort = None, log_format: LogForm = None, as_json: AsJson = False) -> int:
    """Start the coordinator in the background (any command does that by itself)."""
    state = StateDir(locate_root())
    sock = connect(state)
    made = not state.path.is_dir()
    if sock is not None:
        sock.close()
        already = True
    else:
        already = False
        start(state, http, log_format=log_format)
    health = ask(rq.Health())
    lacks = bool(already and http is not None and (
        health.http is None or (http and not health.http.endswith(f":{http}"))))
    if as_json:
        print_json(health)
    else:
        word = "was running already" if already else "runs"
        say(f"The coordinator for {health.root} {word} (pid {health.pid})"
            + (f"; it keeps its files in {state.path}, which it has made." if made else "."))
        if health.http:
            say(f"HTTP at {health.http}; bearer token in {state.bearer}")
    if lacks:
        complain("coord: it was started without the HTTP door; `coord down` first."
                 if health.http is None else
                 f"coord: its HTTP door is not at port {http}; `coord down` first.")
    return Exit.INCOMPLETE if lacks else Exit.OK


@command("serve")
def serve(http: HttpPort = None, log_format: LogForm = None) -> int:
    """Run the coordinator in the foreground, for supervisors."""
    from coordinator.daemon.__main__ import serve as run

    root = locate_root()
    state = StateDir(root)
    if not state.path.is_dir():
        complain(f"coord: making {state.path}/ …")
    return run(root, http, stays=True, log_format=log_format)


@command("compact")
def compact(
    keep_days: Annotated[float | None, Option("Default: database.keep_days.")] = None,
    as_json: AsJson = False,
) -> None:
    """Cut the old part of the log and drop bytes that nothing needs."""
    done = ask(rq.Compact(keep_days=keep_days))
    if as_json:
        print_json(done)
    else:
        say(f"{counted(done.events_removed, 'event')} and "
            f"{counted(done.blobs_removed, 'blob')} were removed; "
            f"{done.bytes_freed / 1e6:.1f} MB were given back to the disk")
