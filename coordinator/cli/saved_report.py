"""`coord report --html`: a time of work as one file that needs no network.

The file is the browser page's own time line, built into the package by `make web`, with its data in
it. Its policy runs that one script and asks nobody. What agents and files chose stands in a block
of JSON, which no browser runs, and nothing in it can end that block.
"""

from __future__ import annotations

import json

import msgspec

from coordinator.resources import page_folder
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: Spans that a saved report has, and parts of its time that demand is told for: it cannot ask for
#: more when it is zoomed.
SPANS, PARTS = 5000, 480
#: Where the template takes its data.
DATA = '<script type="application/json" id="saved">{}</script>'


class Saved(msgspec.Struct):
    """What a saved report shows (`web/src/report.tsx`)."""

    title: str
    timeline: rq.TimelineReply


def read_template() -> str:
    """The page without its data.

    Raises:
        Refusal: INVALID: this checkout has not built it.
    """
    try:
        template = (page_folder() / "report.html").read_text("utf-8")
    except OSError:
        template = ""
    if DATA not in template:
        raise Refusal(
            Code.INVALID, "This checkout of coord has not built its page, which a report is made "
            "of. Nothing was written.",
            next="`make web` in the checkout builds it (it needs npm); `coord report` tells the "
            "same in the terminal.")
    return template


def fill_template(template: str, title: str, timeline: rq.TimelineReply) -> str:
    """The whole file, UTF-8."""
    data = json.dumps(msgspec.to_builtins(Saved(title, timeline)), separators=(",", ":"))
    for sign in "<>&":  # no end of a script, no remark: JSON reads its own way of writing them
        data = data.replace(sign, f"\\u{ord(sign):04x}")
    return template.replace(DATA, DATA.replace("{}", data))
