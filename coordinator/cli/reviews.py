"""`coord review …`: flagged work, and a human's verdict on it; `coord sweep`."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated

import typer

from coordinator.cli import paging, review_pages
from coordinator.cli.app import (
    AsJson,
    app,
    as_typed,
    ask,
    one_of,
    out,
    person,
    print_json,
    say,
    width,
)
from coordinator.cli.render import ago, in_line, path
from coordinator.files.git import Git
from coordinator.words import requests as rq
from coordinator.words.clock import SystemClock

STATES = ("open", "kept", "reverted", "reassigned", "all")

review_app = typer.Typer(
    name="review", help="Flagged work that waits for a human's verdict.", no_args_is_help=True
)
app.add_typer(review_app)
ReviewId = Annotated[str, typer.Argument(help="R-3, or 3.")]
Note = Annotated[str, typer.Option("--note", "-m", help="Why, for the record.")]


@review_app.command("list")
def listing(
    state: Annotated[
        str, typer.Option(help=", ".join(STATES))
    ] = "open",
    as_json: AsJson = False,
) -> None:
    """What waits for a verdict."""
    which = one_of(state, STATES, f"No review is ever {state!r}")
    found = ask(rq.Reviews(state=which))
    if as_json:
        print_json(found)
        return
    if not found.items:
        say("Nothing waits for a verdict." if state == "open" else f"No review is {state}.")
        return
    now = SystemClock().now_ms()
    for row in found.items:
        doing = f"  ({row.under_way} under way)" if row.under_way else ""
        said = in_line(row.summary)
        say(f"{row.review}  {row.state}{doing}  {ago(row.opened_at, now)}  {said}")
        for file in row.files[:10]:
            note = f"  ({file.note})" if file.note else ""
            say(f"    {file.change:<9}{path(file.path)}{note}")
        if len(row.files) > 10:
            say(f"    … and {len(row.files) - 10} more")
    if state == "open":
        say(f"next: coord review show {found.items[0].review}")


@review_app.command("show")
def show(
    review: ReviewId,
    side_by_side: Annotated[
        bool, typer.Option("--side-by-side", "-y", help="Before and after in two columns.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """One review: what happened, the differences, the agent's last words."""
    row = ask(rq.ReviewShow(review=review))
    if as_json:
        print_json(row)
        return
    # Two halves need a middle: a pipe has no width, so that of a plain terminal is taken.
    lines = review_pages.page(row, beside=(width() or 80) if side_by_side else None)
    shown = io.StringIO()
    console = out(shown)
    for line in lines:
        console.print(line, soft_wrap=True)
    paging.page(as_typed(shown.getvalue()))


@review_app.command("keep")
def keep(review: ReviewId, note: Note = "", as_json: AsJson = False) -> None:
    """The work is good as it stands; its task is done."""
    _decide(review, "keep", note, as_json)


@review_app.command("revert")
def revert(review: ReviewId, note: Note = "", as_json: AsJson = False) -> None:
    """Put the bytes back that were there at the lease; its task starts over."""
    _decide(review, "revert", note, as_json)


@review_app.command("reassign")
def reassign(review: ReviewId, note: Note = "", as_json: AsJson = False) -> None:
    """The next agent starts from the partial work, and is told what was being done."""
    _decide(review, "reassign", note, as_json)


def _decide(review: str, verdict: rq.Verdict, note: str, as_json: bool) -> None:
    row = ask(rq.ReviewDecide(review=review, verdict=verdict, note=note, by=person()))
    if as_json:
        print_json(row)
        return
    say(f"{row.review} {row.state}: {', '.join(path(f.path) for f in row.files)}")
    for warning in row.warnings:
        say(f"  {in_line(warning)}")
    place = next((file.worktree for file in row.files if file.worktree), None)
    if verdict == "keep" and place is not None:
        branch = Git(Path(place)).branch() or "refs/heads/ITS-BRANCH"
        say(f"  it lies in {in_line(place)}, not on your branch: commit it there, then "
            f"`git merge {branch.removeprefix('refs/heads/')}`")
    say(f"  `coord review undo {row.review}` takes it back")


@review_app.command("undo")
def undo(review: ReviewId, as_json: AsJson = False) -> None:
    """Take a verdict back."""
    row = ask(rq.ReviewUndo(review=review, by=person()))
    if as_json:
        print_json(row)
        return
    say(f"{row.review} is open again")
    for warning in row.warnings:
        say(f"  {in_line(warning)}")


@app.command("sweep")
def sweep(as_json: AsJson = False) -> None:
    """Tidy now: close what lapsed, flag partial work, serve the line."""
    done = ask(rq.Sweep())
    if as_json:
        print_json(done)
        return
    for lease in done.lapsed:
        say(f"lapsed {lease.resource} ({lease.locked_by})")
    for name in done.stale:
        say(f"stale agent {name}")
    for name in done.reviews:
        say(f"flagged {name}: `coord review show {name}`")
    if not (done.lapsed or done.stale or done.reviews):
        say("Nothing had lapsed.")
