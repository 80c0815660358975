"""The page of one review in colours, as a terminal shows it.

Its words are in `coordinator/commands/review_page.py`. The module sends no request and prints
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from coordinator.cli import difference_views as views
from coordinator.commands.review_page import CUT, file_head, parts
from coordinator.words import requests as rq


def page(row: rq.Review, *, beside: int | None) -> Iterator[Text]:
    """Yield the lines of the page. `beside`: the width for differences in two columns, if any."""
    for part in parts(row):
        if isinstance(part, str):
            yield Text(part)
        else:
            yield from of_file(part, beside=beside)


def of_file(file: rq.ReviewFile, *, beside: int | None) -> Iterator[Text]:
    """Yield the lines about one file of it."""
    yield Text(file_head(file))
    if beside is None:
        yield from views.unified(file.diff, file.hunks or 0)
    else:
        yield from views.beside(file.diff, file.hunks or 0, beside)
    if file.cut:
        yield Text(CUT)
