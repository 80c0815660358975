"""One review as a page of text: what happened, the differences, the agent's last words, what to
type.

The module decides the order and the words of that page. `coordinator/cli/difference_views.py`
decides how a difference looks on a terminal. No request is sent and nothing is printed here.
"""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.commands.differences import split
from coordinator.commands.lists import Names, in_line, path, printable
from coordinator.words import requests as rq

#: How many of the agent's last lines are shown.
LOG_LINES = 15
CUT = "… the difference goes on; both sides are kept whole (over HTTP: `content=true`)"


def parts(row: rq.Review) -> Iterator[str | rq.ReviewFile]:
    """The lines of the page. A file takes the place of its own lines (`file_head`, its difference).
    """
    yield from _head(row)
    for file in row.files:
        yield ""
        yield file
    if row.log_tail:
        yield from ("", "last lines of its output")
        for line in printable(row.log_tail).splitlines()[-LOG_LINES:]:
            yield "  | " + line
    if row.state == "open":
        others = f"revert; reassign, if {row.task} waits for it" if row.task else "revert"
        yield from ("", f"next: coord review keep {row.review}   (or {others})")
        if len(row.files) > 1 or any((file.hunks or 0) > 1 for file in row.files):
            yield "      or a part of it: --file PATH, and of one file --hunk 1,3"


def _head(row: rq.Review) -> Iterator[str]:
    """The lines above the files."""
    yield f"{row.review}  {row.state}  {row.reason}"
    yield in_line(row.summary)
    if row.part_of:
        yield f"a part of {row.part_of}, decided by itself"
    if row.under_way:
        yield f"its {row.under_way} is being carried out: nobody is given these files meanwhile"
    if row.decided_at:
        yield (f"{row.state} by {row.decided_by} at {row.decided_at}"
               + (f": {in_line(row.note)}" if row.note else ""))
    if row.timeline:
        yield from ("", "timeline", *("  " + in_line(line) for line in row.timeline))
    for place in dict.fromkeys(file.worktree for file in row.files if file.worktree):
        yield from ("", f"it lies in {in_line(place)}")
    yield from (in_line(line) for line in row.saved)


def file_head(file: rq.ReviewFile) -> str:
    """The change of a file, in one line."""
    return f"{file.change} {path(file.path)}" + (f"  ({file.note})" if file.note else "")


def hunk_head(at: str, number: int, total: int) -> str:
    """The place of a hunk, and its number if there are several."""
    return printable(at) + (f" hunk {number} of {total}" if total > 1 else "")


def plain(row: rq.Review) -> Iterator[str]:
    """The whole page without colours: as a pipe gets it."""
    for part in parts(row):
        if isinstance(part, str):
            yield part
            continue
        yield file_head(part)
        head, hunks = split(part.diff)
        yield from (printable(line) for line in head)
        for hunk in hunks:
            yield hunk_head(hunk.at, hunk.number, part.hunks or 0)
            for line in hunk.lines:
                yield line.kind + printable(line.text)
                if not line.ended:
                    yield "\\ No newline at end of file"
        if part.cut:
            yield CUT


def what_happened(row: rq.Review) -> str:
    """Its summary, and the review that it is a part of."""
    return f"a part of {row.part_of}: {row.summary}" if row.part_of else row.summary


def files_in_line(row: rq.Review) -> Names:
    """Its files in one line."""
    return Names([path(file.path) for file in row.files])
