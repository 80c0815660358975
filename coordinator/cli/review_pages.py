"""One review on a page: what happened, the differences, the agent's last words, what to type next.

Owns the order and the words of that page. How a difference looks is in `cli/difference_views.py`;
nobody is asked here, and nothing printed.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from coordinator.cli import difference_views as views
from coordinator.cli.render import in_line, path, printable
from coordinator.words import requests as rq

#: Of the agent's last lines, so many are shown.
LOG_LINES = 15
CUT = "… the difference goes on; both sides are kept whole (over HTTP: `content=true`)"


def page(row: rq.Review, *, beside: int | None) -> Iterator[Text]:
    """The lines of the page. `beside`: the width for differences in two columns; None: below each
    other."""
    yield Text(f"{row.review}  {row.state}  {row.reason}")
    yield Text(in_line(row.summary))
    if row.part_of:
        yield Text(f"a part of {row.part_of}, decided by itself")
    if row.under_way:
        yield Text(f"its {row.under_way} is being carried out: nobody is given these files "
                   "meanwhile")
    if row.decided_at:
        yield Text(f"{row.state} by {row.decided_by} at {row.decided_at}"
                   + (f": {in_line(row.note)}" if row.note else ""))
    if row.timeline:
        yield Text("\ntimeline")
        yield from (Text("  " + in_line(line)) for line in row.timeline)
    for place in dict.fromkeys(file.worktree for file in row.files if file.worktree):
        yield Text(f"\nit lies in {in_line(place)}")
    yield from (Text(in_line(line)) for line in row.saved)
    for file in row.files:
        yield Text()
        yield from of_file(file, beside=beside)
    if row.log_tail:
        yield Text("\nlast lines of its output")
        for line in printable(row.log_tail).splitlines()[-LOG_LINES:]:
            yield Text("  | " + line)
    if row.state == "open":
        verbs = "keep, revert" + (", reassign" if row.task else "")
        yield Text(f"\nnext: coord review keep|revert|reassign {row.review}   ({verbs})")
        if len(row.files) > 1 or any((file.hunks or 0) > 1 for file in row.files):
            yield Text("      or a part of it: --file PATH, and of one file --hunk 1,3")


def of_file(file: rq.ReviewFile, *, beside: int | None) -> Iterator[Text]:
    """The lines about one file of it."""
    yield Text(f"{file.change} {path(file.path)}" + (f"  ({file.note})" if file.note else ""))
    if beside is None:
        yield from views.unified(file.diff, file.hunks or 0)
    else:
        yield from views.beside(file.diff, file.hunks or 0, beside)
    if file.cut:
        yield Text(CUT)
