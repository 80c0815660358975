"""`coord web`: the browser page over the coordinator."""

from __future__ import annotations

from typing import Annotated

import msgspec

from coordinator.cli.app import ask, complain, print_json, say
from coordinator.commands.signatures import AsJson, Option, command
from coordinator.resources import page_folder
from coordinator.words import requests as rq
from coordinator.words.exit_codes import Exit
from coordinator.words.refusals import Code, Refusal


class PageAddress(msgspec.Struct):
    """What `--json` prints.

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
    """Whether a browser was told to open the page."""
    import webbrowser  # few commands need it

    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False
