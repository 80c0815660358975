"""`coord help`: what the help of no single command tells."""

from __future__ import annotations

from typing import Annotated

import typer

from coordinator.cli.app import AsJson, app, print_json, say, width
from coordinator.commands.lists import wrapped
from coordinator.words.exit_codes import MEANING, Exit, codes
from coordinator.words.refusals import Code, Refusal


@app.command("help")
def help_(topic: Annotated[str, typer.Argument(help="exit-codes")] = "exit-codes",
          as_json: AsJson = False) -> None:
    """Topics: exit-codes."""
    if topic != "exit-codes":
        raise Refusal(Code.INVALID, f"There is no topic {topic!r}.", next="`coord help exit-codes`")
    if as_json:
        print_json({"items": [{"exit": number.value, "name": number.name,
                               "meaning": MEANING[number], "codes": codes(number)}
                              for number in Exit], "next": None})
        return
    for number in Exit:
        say(f"{number.value:>3}  {number.name}")
        for line in wrapped(MEANING[number], width(), 5):
            say(line)
        for line in wrapped(", ".join(codes(number)), width(), 5) if codes(number) else ():
            say(line)
