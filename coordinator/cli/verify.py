"""`coord verify`: the command of `verify.command` on what tasks have finished, now; or what the
last verifications told.

Asks, waits for the end by asking again (a verification survives the coordinator's end), prints.
"""

from __future__ import annotations

import time
from typing import Annotated

from rich.text import Text

from coordinator.cli.app import ask, complain, out, person, print_json, say, width
from coordinator.commands.lists import ago, in_line, printable, wrapped
from coordinator.commands.signatures import AsJson, Option, command
from coordinator.words import requests as rq
from coordinator.words.clock import SystemClock
from coordinator.words.refusals import Code

#: How often it is asked whether a verification is over (seconds).
ASK_S = 0.3
LINES_MAX = 15


@command("verify")
def verify(
    listing: Annotated[
        bool, Option("Show the last ones and what is not verified.", "--list", "-l")
    ] = False,
    afresh: Annotated[bool, Option(
        "Begin with the commit that is checked out now; what was finished until now counts as "
        "being in it.")] = False,
    wait: Annotated[bool, Option("Wait for its end.")] = True,
    as_json: AsJson = False,
) -> int:
    """Run the verifying command on what tasks have done, in a tree apart; wait for the answer.

    Set it in coord.toml (`[verify]`, `command = "make test"`); it counts once you have trusted it
    (`coord trust`). The tree is made of whole tasks only. A task that breaks the command is opened
    again, with the output.
    """
    if listing:
        found = ask(rq.Verifications())
        if as_json:
            print_json(found)
        else:
            _list(found)
        return 0
    one = ask(rq.Verify(by=person(), afresh=afresh))
    if wait:
        if not as_json:
            complain(f"coord: {one.verification} runs {in_line(one.command)} …")
        one = _ended(one)
    if as_json:
        print_json(one)
    else:
        _show(one)
    return 0 if one.state in ("good", "running") else Code.VERIFY_FAILED.row.exit


def _ended(one: rq.Verification) -> rq.Verification:
    while one.state == "running":
        time.sleep(ASK_S)
        last = ask(rq.Verifications(limit=200)).items  # by whichever coordinator there is by then
        one = next((other for other in last if other.verification == one.verification), one)
    return one


def _show(one: rq.Verification) -> None:
    if one.state == "running":
        say(f"{one.verification} is running: `coord verify --list` shows what it tells")
        return
    runs = "1 run" if one.runs == 1 else f"{one.runs} runs"
    say(f"{one.verification} {one.state} ({runs}): {in_line(one.said)}")
    for line in printable(one.tail).splitlines()[-LINES_MAX:]:
        out().print(Text("  | " + line), soft_wrap=True)
    if one.tasks:
        say(f"next: coord task show {one.tasks[0]}")


def _list(found: rq.VerificationList) -> None:
    if not found.command:
        _told("Nothing is verified: verify.command is not set, or nobody has trusted it "
              "(`coord trust`).")
    else:
        _told(f"command  {in_line(found.command)}")
    now = SystemClock().now_ms()
    for one in found.items:
        said = in_line(one.said) if one.said else "goes on"
        _told(f"{one.verification}  {one.state}  {ago(one.begun_at, now)}  {said}")
    for work in found.left:
        how = (f"is verified with the repair of {work.because}" if work.state == "held" else
               "broke it and is to be done again" if work.state == "broken" else
               "waits for the next verification")
        _told(f"{work.task}  {how}")


def _told(text: str) -> None:
    """A line, folded where a terminal ends."""
    for line in wrapped(text, width(), 0):
        say(line)
