"""`coord help`: the help of commands, and what that of no single command tells."""

from __future__ import annotations

from typing import Annotated

from coordinator.cli.app import print_json, say, width
from coordinator.commands.lists import wrapped
from coordinator.commands.signatures import Argument, AsJson, command
from coordinator.words.exit_codes import MEANING, Exit, codes
from coordinator.words.refusals import Code, Refusal


@command("help")
def help_(
    topic: Annotated[
        list[str] | None, Argument("A command, or `exit-codes`; default: all commands.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """The help of a command; `exit-codes`: what a command ends with."""
    topic = topic or (["exit-codes"] if as_json else [])
    if topic != ["exit-codes"]:
        if as_json:
            raise Refusal(Code.INVALID, "The help of a command is text; `--json` goes with "
                          "`exit-codes`.", next=f"coord {' '.join(topic)} --help")
        from coordinator.cli.main import main  # it gathers the commands, this one among them

        return main([*topic, "--help"])
    if as_json:
        print_json({"items": [{"exit": number.value, "name": number.name,
                               "meaning": MEANING[number], "codes": codes(number)}
                              for number in Exit], "next": None})
        return Exit.OK
    for number in Exit:
        say(f"{number.value:>3}  {number.name}")
        for text in filter(None, (MEANING[number], ", ".join(codes(number)))):
            for line in wrapped(text, width(), 5):
                say(line)
    return Exit.OK
