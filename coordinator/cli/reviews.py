"""`coord review …`: flagged work, and a person's verdict on it.

A long answer on a terminal goes through a pager. The order is `$GIT_PAGER`, git's `core.pager`,
`$PAGER`, `less`. There is no pager in a pipe or on a dumb terminal. If the pager cannot be started,
the answer is printed without it.
"""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from coordinator.cli import opening, review_pages
from coordinator.cli.app import (
    as_text,
    as_typed,
    ask,
    carry_out,
    client,
    fail,
    out,
    person,
    print_json,
    run_command,
    say,
    width,
)
from coordinator.cli.text_files import read_text
from coordinator.client.locating import locate_root
from coordinator.commands.lists import in_line, path
from coordinator.commands.signatures import (
    COMMANDS,
    Argument,
    AsJson,
    Option,
    command,
    in_program,
)
from coordinator.files.git import Git
from coordinator.files.state import StateDir
from coordinator.slices.review import commands as bodies
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: The environment that git gives to its pager, unless the person has set it.
FOR_PAGERS = {"LESS": "FRX", "LV": "-c"}


def pager() -> str | None:
    """Return the pager's command (for `sh -c`); None if output is not paged."""
    if not (sys.stdout.isatty() and sys.stdin.isatty()) or os.environ.get("TERM") == "dumb":
        return None
    try:
        completed = subprocess.run(["git", "var", "GIT_PAGER"], capture_output=True, text=True,
                                   check=False)
        command = completed.stdout.strip() if completed.returncode == 0 else None
    except OSError:
        command = None
    if command is None:
        command = os.environ.get("GIT_PAGER") or os.environ.get("PAGER") or "less"
    return None if command in ("", "cat") else command


def page(text: str) -> None:
    """Show this on the terminal, paged if it can be. The colours are in it already."""
    command = pager()
    if command is not None and _through(command, text):
        return
    sys.stdout.write(text)
    sys.stdout.flush()


def _through(command: str, text: str) -> bool:
    """Whether the pager took it."""
    env = {**FOR_PAGERS, **os.environ}
    sys.stdout.flush()
    try:
        process = subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, env=env)
    except OSError:
        return False
    assert process.stdin is not None
    try:
        process.stdin.write(text.encode("utf-8", "backslashreplace"))
        process.stdin.close()
    except BrokenPipeError:  # the person has seen enough, or there is no such program
        pass
    while True:
        try:
            return process.wait() not in (126, 127)
        except KeyboardInterrupt:  # for the pager, not for us: as with git
            continue


#: A hunk of a higher number than this is a slip.
HUNKS_MAX = 100_000
#: Files of the rest of a review that are named.
REST_MAX = 20

ReviewIds = Annotated[list[str], Argument("R-3, or 3; several.", metavar="REVIEW…")]
Files = Annotated[list[str] | None, Option(
    "Only this file of it; several times for several. The rest stays open.", "-f")]
Hunks = Annotated[list[str] | None, Option(
    "Only these changes of the one file: 2, or 1,3, or 2-4, as `show` has them.")]
Note = Annotated[str, Option("Why, for the record.", "-m")]
ForTheNext = Annotated[str, Option("Words for the agent that goes on with it.", "-m")]


@command("review")
def work_through() -> None:
    """Alone on a terminal: a screen to work through it by keys; anywhere else the list."""
    if not opening.opened("review_queue"):
        run_command("review list", {
            p.name: p.default for p in COMMANDS["review list"].parameters})


@in_program("review show")
def show(**values: Any) -> None:
    """One review; a person gets it in colours and by pages."""
    beside = values["side_by_side"]
    if values["as_json"] or values["short"] or not (beside or sys.stdout.isatty()):
        carry_out(bodies.show, **values)
        return
    row = ask(rq.ReviewShow(review=values["review"]))
    # Two halves need a middle: a pipe has no width, so that of a plain terminal is taken.
    lines = review_pages.page(row, beside=(width() or 80) if beside else None)
    shown = io.StringIO()
    console = out(shown)
    for line in lines:
        console.print(line, soft_wrap=True)
    page(as_typed(shown.getvalue()))


@command("review keep")
def keep(
    reviews: ReviewIds, file: Files = None, hunk: Hunks = None,
    edited: Annotated[str | None, Option(
        "Keep the text in this file (`-`: standard input) in place of what was left.",
        "--from")] = None,
    note: Note = "", as_json: AsJson = False,
) -> int:
    """Keep the work as it is, or as you have edited it; its task is done."""
    return _decide("keep", reviews, file, hunk, note, as_json, edited)


@command("review revert")
def revert(
    reviews: ReviewIds, file: Files = None, hunk: Hunks = None, note: Note = "",
    as_json: AsJson = False,
) -> int:
    """Put the bytes back that were there at the lease; its task starts over."""
    return _decide("revert", reviews, file, hunk, note, as_json)


@command("review reassign")
def reassign(reviews: ReviewIds, note: ForTheNext = "", as_json: AsJson = False) -> int:
    """Give the task back: the next agent starts from the partial work, and reads what was being
    done."""
    return _decide("reassign", reviews, None, None, note, as_json)


def _decide(verdict: rq.Verdict, reviews: list[str], files: list[str] | None,
            hunks: list[str] | None, note: str, as_json: bool, edited: str | None = None) -> int:
    if (files or hunks or edited is not None) and len(reviews) > 1:
        raise Refusal(
            Code.INVALID, "--file, --hunk and --from are about one review, and "
            f"{len(reviews)} are named. Nothing was changed.",
            next=f"coord review {verdict} {reviews[0]} --file PATH",
        )
    text = None if edited is None else read_text(edited)
    asked = [rq.ReviewDecide(review=name, verdict=verdict, note=note, by=person(), edited=text,
                             files=list(files or ()), hunks=_numbers(hunks),
                             cwd=as_text(os.getcwd()) if files else None)  # noqa: PTH109
             for name in dict.fromkeys(reviews)]
    return _each(asked, lambda row: _print_verdict(verdict, row, part=bool(files or hunks)),
                 as_json)


def _each(asked: Sequence[rq.Request[rq.Review]], tell: Callable[[rq.Review], None],
          as_json: bool) -> int:
    """Carry each out by itself: one that is refused leaves the others alone. The exit code of the
    first that was refused."""
    done: list[rq.Review] = []
    refused: list[Refusal] = []
    with client() as session:
        for request in asked:
            try:
                done.append(session.call(request))
            except Refusal as refusal:
                if len(asked) == 1:
                    raise
                refused.append(refusal)
                if not as_json:
                    fail(refusal)
                continue
            if not as_json:
                tell(done[-1])
    if as_json:
        print_json(done[0] if len(asked) == 1 else
                   {"items": done, "refused": [refusal.body() for refusal in refused]})
    return refused[0].exit_code if refused else 0


def _print_verdict(verdict: rq.Verdict, row: rq.Review, *, part: bool) -> None:
    say(f"{row.review} {row.state}: {', '.join(path(f.path) for f in row.files)}")
    if row.part_of and part:
        say(f"  a part of {row.part_of}, which stays open for {_rest(row.part_of)}")
    for warning in row.warnings:
        say(f"  {in_line(warning)}")
    place = next((file.worktree for file in row.files if file.worktree), None)
    if verdict == "keep" and place is not None and not Path(place).is_dir():
        say(f"  {in_line(place)}, where it lay, is gone: `coord review show {row.review} --json` "
            "has what was in it")
    elif place is not None and Path(place).is_dir():
        _tell_of_branch(verdict, row, place)
    say(f"  `coord review undo {row.review}` takes it back")


def _rest(review: str) -> str:
    """Return the names that a verdict on a part has left. A renamed file may be in both."""
    try:
        names = [path(file.path) for file in ask(rq.ReviewShow(review=review)).files]
    except Refusal:  # the verdict holds, even if this question fails
        return "the rest"
    more = len(names) - REST_MAX
    return ", ".join(names[:REST_MAX]) + (f" and {more} more" if more > 0 else "")


def _tell_of_branch(verdict: rq.Verdict, row: rq.Review, place: str) -> None:
    """Tell where a linked worktree's branch has the judged work and the person's branch has not."""
    root = locate_root()
    git, own = Git(Path(place)), Git(root)
    branch = (git.branch() or "refs/heads/ITS-BRANCH").removeprefix("refs/heads/")
    if verdict == "keep":
        clean = git.maybe("status", "--porcelain") == ""
        if not clean or not own.contains("HEAD", branch):
            say(f"  it lies in {in_line(place)}, not on your branch: "
                f"{'' if clean else 'commit it there, then '}`git merge {branch}`")
    elif verdict == "revert" and Path(place).is_relative_to(StateDir(root).worktrees) and own.maybe(
            "diff", "--name-only", f"HEAD...{branch}", "--", *(file.path for file in row.files)):
        say(f"  the files in {in_line(place)} are as they were. Its branch still has the work: do "
            f"not merge it; `git worktree remove --force {shlex.quote(place)} && git branch -D "
            f"{branch}` drops it")


def _numbers(hunks: list[str] | None) -> list[int]:
    """Return the numbers in `2`, `1,3` or `2-4`.

    Raises:
        Refusal: INVALID.
    """
    result: list[int] = []
    for text in ",".join(hunks or ()).split(",") if hunks else ():
        first, dash, last = text.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()) or int(last or first) > HUNKS_MAX:
            raise Refusal(Code.INVALID, f"{text!r} is no number of a hunk. Nothing was changed.",
                          next="Write 2, or 1,3, or 2-4, as `coord review show` numbers them.")
        result += range(int(first), int(last or first) + 1)
    return result


@command("review undo")
def undo(reviews: ReviewIds, as_json: AsJson = False) -> int:
    """Take a verdict back."""
    asked = [rq.ReviewUndo(review=name, by=person()) for name in dict.fromkeys(reviews)]
    return _each(asked, _told_undone, as_json)


def _told_undone(row: rq.Review) -> None:
    say(f"{row.review} is open again")
    for warning in row.warnings:
        say(f"  {in_line(warning)}")
