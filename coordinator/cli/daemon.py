"""`coord up`, `serve`, `compact`: the coordinator itself. (`ps`, `down`: coordinators.py.)

`coord mcp`: the tools of coord for an agent CLI, over standard input and output.

`coord web`: the browser page over the coordinator.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from coordinator.cli.app import ask, complain, print_json, say
from coordinator.client.locating import connect, locate_root
from coordinator.client.starting import start
from coordinator.commands.signatures import AsJson, Option, command
from coordinator.files.state import StateDir
from coordinator.resources import page_folder
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Exit, Refusal
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
    if http is not None and health.http is None:
        ask(rq.PageOpen(port=http))
        health = ask(rq.Health())
    lacks = bool(http and not (health.http or "").endswith(f":{http}"))
    if as_json:
        print_json(health)
    else:
        word = "was running already" if already else "runs"
        say(f"The coordinator for {health.root} {word} (pid {health.pid})"
            + (f"; it keeps its files in {state.path}, which it has made." if made else "."))
        if health.http:
            say(f"HTTP at {health.http}; bearer token in {state.bearer}")
    if lacks:
        complain(f"coord: its HTTP door is not at port {http}; `coord down` first.")
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


@command("mcp")
def mcp(
    profile: Annotated[str | None, Option("The agent's profile; `coord init` fills it in.")] = None,
) -> None:
    """Serve coord's tools over MCP; an agent CLI runs this, a person need not.

    Over HTTP the same tools are at `/mcp` of the HTTP door (`coord up --http PORT`).
    """
    from coordinator.mcp.stdio import run  # the SDK takes half a second to load

    run(profile)


class PageAddress(msgspec.Struct):
    """The output of `--json`.

    Attributes:
        url: opens the page once, within `valid_s` seconds.
    """

    url: str
    address: str
    code: str
    valid_s: float


@command("web")
def web(
    no_open: Annotated[bool, Option("Print the page's address, and start no browser.")] = False,
    read_only: Annotated[bool, Option("A page that sees all and changes nothing.")] = False,
    as_json: AsJson = False,
) -> int:
    """Open the coordinator's page in your browser: what waits for you, agents, leases, reviews."""
    if not as_json and not (page_folder() / "index.html").is_file():
        raise Refusal(
            Code.INVALID, "This checkout of coord has not built its page. Nothing was opened.",
            next="`make web` in the checkout builds it (it needs npm); then `coord web`.")
    opened = ask(rq.PageOpen(reads_only=read_only))
    url = f"{opened.address}/#{opened.code}"
    if as_json:
        print_json(PageAddress(url, opened.address, opened.code, opened.valid_s))
        return Exit.OK
    if no_open or not _show(url):
        say(url)
        complain(f"coord: this address opens the page once, within {opened.valid_s:g} seconds.")
    else:
        say(f"The page is at {opened.address}; your browser opens it.")
    return Exit.OK


def _show(url: str) -> bool:
    """Whether a browser was asked to open the page."""
    import webbrowser  # few commands need it

    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False
