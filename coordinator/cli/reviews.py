"""`coord review …`: flagged work, and a human's verdict on it; `coord sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.columns import Columns
from rich.table import Table
from rich.text import Text

from coordinator.cli.app import (
    AsJson,
    app,
    ask,
    carry_out,
    out,
    person,
    print_json,
    say,
    width,
)
from coordinator.cli.render import diff, in_line, path, printable
from coordinator.commands import reviews as bodies
from coordinator.files.git import Git
from coordinator.words import requests as rq

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
    carry_out(bodies.listing, **locals())


@review_app.command("show")
def show(
    review: ReviewId,
    side_by_side: Annotated[
        bool, typer.Option("--side-by-side", "-y", help="Before and after in two columns.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """One review: what happened, the differences, the agent's last words."""
    row = ask(rq.ReviewShow(review=review, content=side_by_side))
    if as_json:
        print_json(row)
        return
    console = out()
    say(f"{row.review}  {row.state}  {row.reason}")
    console.print(Text(in_line(row.summary)))
    if row.under_way:
        say(f"its {row.under_way} is being carried out: nobody is given these files meanwhile")
    if row.decided_at:
        say(f"{row.state} by {row.decided_by} at {row.decided_at}"
            + (f": {row.note}" if row.note else ""))
    if row.timeline:
        say("\ntimeline")
        for line in row.timeline:
            console.print(Text("  " + in_line(line)), soft_wrap=True)
    for place in dict.fromkeys(file.worktree for file in row.files if file.worktree):
        say(f"\nit lies in {in_line(place)}")
    for line in row.saved:
        say(in_line(line))
    for file in row.files:
        say(f"\n{file.change} {path(file.path)}" + (f"  ({file.note})" if file.note else ""))
        if side_by_side and file.kept:
            _beside(file)
        else:
            console.print(diff(printable(file.diff)), soft_wrap=True)
    if row.log_tail:
        say("last lines of its output")
        for line in printable(row.log_tail).splitlines()[-15:]:
            console.print(Text("  | " + line), soft_wrap=True)
    if row.state == "open":
        verbs = "keep, revert" + (", reassign" if row.task else "")
        say(f"\nnext: coord review keep|revert|reassign {row.review}   ({verbs})")


def _beside(file: rq.ReviewFile) -> None:
    import base64

    halves = []
    for data, at in ((file.baseline, file.baseline_at), (file.flagged, file.flagged_at)):
        absent = f"(large: {at})" if at is not None else "(absent)"
        text = base64.b64decode(data).decode("utf-8", "replace") if data is not None else absent
        halves.append(Text(printable(text)))
    table = Table(box=None, pad_edge=False, expand=True, header_style="bold")
    table.add_column("at the lease", ratio=1, overflow="fold")
    table.add_column("when flagged", ratio=1, overflow="fold")
    table.add_row(*halves)
    # Two halves need a middle: a pipe has no width, so that of a plain terminal is taken.
    out().print(Columns([table], expand=True), width=width() or 80)


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
