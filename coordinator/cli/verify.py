"""`coord verify`: runs `verify.command` on finished tasks now, or shows what the last runs found.

The command asks for a verification and then asks again until it has ended. A verification survives
a restart of the coordinator.
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

#: How often to ask whether a verification is over (seconds).
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
        verification_list = ask(rq.Verifications())
        if as_json:
            print_json(verification_list)
        else:
            _list(verification_list)
        return 0
    verification = ask(rq.Verify(by=person(), afresh=afresh))
    if wait:
        if not as_json:
            complain(f"coord: {verification.verification} runs {in_line(verification.command)} …")
        verification = _ended(verification)
    if as_json:
        print_json(verification)
    else:
        _show(verification)
    return 0 if verification.state in ("good", "running") else Code.VERIFY_FAILED.row.exit


def _ended(verification: rq.Verification) -> rq.Verification:
    while verification.state == "running":
        time.sleep(ASK_S)
        last = ask(rq.Verifications(limit=200)).items  # by whichever coordinator there is by then
        verification = next((other for other in last if other.verification
                             == verification.verification), verification)
    return verification


def _show(verification: rq.Verification) -> None:
    if verification.state == "running":
        say(f"{verification.verification} is running: `coord verify --list` shows what it tells")
        return
    runs = "1 run" if verification.runs == 1 else f"{verification.runs} runs"
    say(f"{verification.verification} {verification.state} ({runs}): {in_line(verification.said)}")
    for line in printable(verification.tail).splitlines()[-LINES_MAX:]:
        out().print(Text("  | " + line), soft_wrap=True)
    if verification.tasks:
        say(f"next: coord task show {verification.tasks[0]}")


def _list(verification_list: rq.VerificationList) -> None:
    if not verification_list.command:
        _print_folded("Nothing is verified: verify.command is not set, or nobody has trusted it "
                      "(`coord trust`).")
    else:
        _print_folded(f"command  {in_line(verification_list.command)}")
    now = SystemClock().now_ms()
    for verification in verification_list.items:
        text = in_line(verification.said) if verification.said else "goes on"
        _print_folded(f"{verification.verification}  {verification.state}  "
                      f"{ago(verification.begun_at, now)}  {text}")
    for work in verification_list.left:
        how = (f"is verified with the repair of {work.because}" if work.state == "held" else
               "broke it and is to be done again" if work.state == "broken" else
               "waits for the next verification")
        _print_folded(f"{work.task}  {how}")


def _print_folded(text: str) -> None:
    """Print a line, folded at the terminal's width."""
    for line in wrapped(text, width(), 0):
        say(line)
