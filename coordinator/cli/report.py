"""`coord report`: the result of a launch, as charts on the terminal or as one HTML file.

The HTML file needs no network. It is the browser page's own time line, which `make web` builds into
the package, with its data in it. Its policy runs that one script and allows no request. Texts that
agents and files chose are in a block of JSON, which no browser runs, and no text can end that
block.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from coordinator.cli.app import ask, here, print_json, say, tell, width
from coordinator.client.locating import locate_root
from coordinator.commands.lists import cell_len, in_line, middle, span
from coordinator.commands.shell import Shell
from coordinator.commands.signatures import Argument, AsJson, Option, command
from coordinator.files import runs
from coordinator.files.state import StateDir
from coordinator.resources import page_folder
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: The limits of a saved report: spans, and parts of its time for which demand is given. A zoomed
#: report cannot ask for more.
SPANS, PARTS = 5000, 480
#: The place of the data in the template.
DATA = '<script type="application/json" id="saved">{}</script>'


class Saved(msgspec.Struct):
    """The content of a saved report (`web/src/report.tsx`)."""

    title: str
    timeline: rq.TimelineReply


def read_template() -> str:
    """Return the page without its data.

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
    """Return the page with its data."""
    data = json.dumps(msgspec.to_builtins(Saved(title, timeline)), separators=(",", ":"))
    for sign in "<>&":  # no end of a script, no remark: JSON reads its own way of writing them
        data = data.replace(sign, f"\\u{ord(sign):04x}")
    return template.replace(DATA, DATA.replace("{}", data))


#: Columns of a bar; of a name where the terminal is narrow.
BAR, NAME = 20, 16
#: Taken for the width of a pipe.
PIPE_COLUMNS = 80


@command("report")
def report(
    run: Annotated[str | None, Argument(
        "A launch, by its name in `.coord/runs` or the beginning of it; default: the "
        "last.")] = None,
    everything: Annotated[bool, Option("All of the log.", "--all")] = False,
    html: Annotated[
        Path | None, Option("Write its time line as one page that needs no network.")
    ] = None,
    limit: Annotated[int, Option("Lines of a list.", "-n")] = 10,
    as_json: AsJson = False,
) -> None:
    """After a launch: who waited for whom, the files most in demand, refusals, time lost."""
    title, since, until = _find_span(run, everything)
    if html is not None:
        template = read_template()
        timeline = ask(rq.Timeline(since=since, until=until, limit=limit, spans=SPANS, parts=PARTS))
        _write(html, fill_template(template, title, timeline))
        report_reply = timeline.report
    else:
        report_reply = ask(rq.Report(since=since, until=until, limit=limit))
    if as_json:
        print_json(report_reply)
    elif html is not None:
        say(f"Written: {html}")
    else:
        _show(title, report_reply)
        if any(len(item) == limit for item
               in (report_reply.waited, report_reply.files, report_reply.agents,
                                             report_reply.refusals)):
            say(f"… at most {limit} of each are shown; `coord report --limit {limit * 10}`")


def _find_span(run: str | None, everything: bool) -> tuple[str, str | None, str | None]:
    """Return (title, since, until) of the requested span.

    Raises:
        Refusal: INVALID: there is no such launch, or there are several.
    """
    runs_here = [] if everything else list(runs.records(StateDir(locate_root())))
    if run is not None and not everything:
        runs_here = [pair for pair in runs_here if pair[1].run.startswith(run)]
        if len({record.run for _, record in runs_here}) != 1:
            names = ", ".join(record.run for _, record in runs_here[:5])
            several = f"{len(runs_here)} launches are" if runs_here else "No launch is"
            raise Refusal(
                Code.INVALID, f"{several} called {in_line(run)[:60]!r}"
                + (f": {names}." if names else "."),
                next="`coord report --all`, or a name of `ls .coord/runs`.")
    if not runs_here:
        return "All of the log", None, None
    record = runs_here[0][1]
    return f"Launch {record.run}", record.started_at, record.ended_at


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, "utf-8")
    except OSError as bad:
        mistaken = isinstance(bad, IsADirectoryError | FileNotFoundError | NotADirectoryError)
        raise Refusal(Code.INVALID if mistaken else Code.STORAGE,
                      f"{file} cannot be written: {bad.strerror or bad}. "
                      "Nothing was written.", next="Name another file.") from None


def _show(title: str, report_reply: rq.ReportReply) -> None:
    columns = width() or PIPE_COLUMNS
    tasks = report_reply.tasks.get("done", 0)  # of agents only some are listed
    say(f"{title}: {span(report_reply.span_s)}, {tasks} {'task' if tasks == 1 else 'tasks'} done")
    say(f"Lost to waiting: {_spent(report_reply.stood_s)} (waited in all: "
        f"{_spent(report_reply.waited_s)})")
    _chart("Who waited for whom (in all; of that, stood still)", [
        (f"{waited_for.agent} for {waited_for.holder}", waited_for.waited_s,
         f"{_spent(waited_for.waited_s)}; {_spent(waited_for.stood_s)}, {_times(waited_for.times)}")
        for waited_for in report_reply.waited], columns)
    _chart("Files in demand (waited for)", [
        (hot_file.resource, hot_file.waited_s,
         f"{_spent(hot_file.waited_s)}, {hot_file.refused} refused, "
         f"{hot_file.agents} {'agent' if hot_file.agents == 1 else 'agents'}")
        for hot_file in report_reply.files if hot_file.waited_s or hot_file.refused], columns)
    _chart("Refusals",
           [(refused_count.code, float(refused_count.count), _times(refused_count.count))
            for refused_count in report_reply.refusals], columns)
    _chart("Tasks by agent", [
        (agents_part.agent, float(agents_part.done),
         f"{agents_part.done} done, {agents_part.failed} failed, {agents_part.in_review} in "
         "review, "
         f"waited {_spent(agents_part.waited_s)}")
        for agents_part in report_reply.agents], columns)


def _spent(seconds: float) -> str:
    """A duration; none at all is none, and not a short one."""
    return span(seconds) if seconds else "0s"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _chart(title: str, rows: Sequence[tuple[str, float, str]], columns: int) -> None:
    """Print a bar for each row, beside its name and its words. No line is wider than the terminal,
    and no number is cut."""
    shell = here()
    shell.say("")
    shell.say(title, "bold")
    if not rows:
        shell.say("  nothing")
    else:
        _bars(shell, rows, columns)
    tell(shell)


def _bars(shell: Shell, rows: Sequence[tuple[str, float, str]], columns: int) -> None:
    most = max(size for _, size, _ in rows) or 1.0
    width = max(cell_len(text) for _, _, text in rows)
    longest = max(cell_len(in_line(name)) for name, _, _ in rows)
    bar = min(BAR, max(4, columns - width - longest - 6))  # a name is worth more than a long bar
    room = max(NAME // 2, columns - width - bar - 6)
    names = [middle(in_line(name), room) for name, _, _ in rows]
    wide = max(cell_len(name) for name in names)
    for name, (_, size, text) in zip(names, rows, strict=True):
        full = round(bar * size / most)
        shell.say_parts(("  " + name + " " * (wide - cell_len(name)) + "  ", ""),
                        ("█" * full, "cyan"), (" " * (bar - full) + "  " + text, ""))
