"""`coord report` as it is typed: charts that fit, pipes without colour, one file for itself."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from coordinator.cli import report as saved_report
from coordinator.cli.report import DATA, Saved, fill_template
from coordinator.resources import page_folder
from coordinator.words import requests as rq
from coordinator.words.clock import iso
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo

PATH = "src/main/java/org/springframework/boot/autoconfigure/jdbc/DataSourceProperties.java"


@pytest.fixture
def worked(repo: Repo) -> Repo:
    with repo.client("ann") as ann, repo.client("claude-code-1f3a9c2b.sub-agent-12") as sub:
        ann.task_add("one", resources=[PATH])
        ann.claim("T-1")
        ann.acquire("<script>alert(1)</script>.py")
        assert repo.coord("lock", PATH, "--agent", str(sub.name())).returncode == 3
        ann.done("T-1")
    return repo


def test_charts_fit_the_terminal_and_a_pipe_has_no_colour(worked: Repo) -> None:
    for columns in ("60", "80", "120", None):
        shown = worked.coord("report", env={"COLUMNS": columns} if columns else None).stdout
        assert "\x1b" not in shown and "Who waited for whom" in shown and "LOCKED" in shown
        assert max(cell_len(line) for line in shown.splitlines()) <= int(columns or 80)
        assert "DataSourceProperties.java" in shown or columns == "60", "the file's own name is not cut"
        assert re.search(r"ann +█+ +1 done, 0 failed", shown), shown


def test_json_is_the_answer_itself(worked: Repo) -> None:
    told = json.loads(worked.coord("report", "--json").stdout)
    assert told["waited"][0]["holder"] == "ann" and told["refusals"] == [{"code": "LOCKED", "count": 1}]
    assert worked.coord("report", "-n", "0").returncode == 2
    assert "No launch is called 'R-99'." in worked.coord("report", "R-99").stderr


def test_what_was_done_in_all_is_counted_though_only_some_are_listed(repo: Repo) -> None:
    with repo.client() as person:
        for n in range(12):
            person.task_add(f"{n}")
            with repo.client(f"agent-{n:02}") as agent:
                agent.done(agent.claim().task.task)
    for words in ([], ["-n", "3"]):
        said = repo.coord("report", *words).stdout
        assert ", 12 tasks done" in said.splitlines()[0], said


class Page(HTMLParser):
    """The elements of a page, and the text of each."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.texts.append([tag, ""])

    def handle_data(self, data: str) -> None:
        self.texts[-1][1] += data


@given(st.text(st.sampled_from("<>&/!-\\\"\u2028 scriptSCRIPT")))
def test_nothing_that_others_chose_ends_the_data_of_a_saved_report(name: str) -> None:
    report = rq.ReportReply(since=None, until=iso(0), span_s=0, events=0, waited=[], files=[], agents=[], refusals=[], waited_s=0, stood_s=0)
    span = rq.Span(agent=name, kind="task", since=iso(0), until=iso(0), event=1, subject="T-1", text=name, holders=[], open=False, count=1)
    timeline = rq.TimelineReply(since=iso(0), until=iso(1), spans=[span], together=False, left_out=0, demand=[], report=report)
    page = Page()
    page.feed(fill_template(f"<head></head><body>{DATA}<script>run()</script></body>", name, timeline))
    assert [tag for tag, _ in page.texts] == ["head", "body", "script", "script"]
    assert msgspec.json.decode(page.texts[2][1], type=Saved) == Saved(name, timeline)


def test_a_checkout_that_has_not_built_its_page_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_report, "page_folder", lambda: tmp_path)
    for text in (None, "<html>of an older build</html>"):
        if text is not None:
            (tmp_path / "report.html").write_text(text)
        with pytest.raises(Refusal) as met:
            saved_report.read_template()
        assert met.value.code is Code.INVALID and "`make web`" in met.value.next and "Nothing was written" in met.value.message


def test_a_report_is_saved_or_the_reason_why_not_is_said(worked: Repo, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    done = worked.coord("report", "--html", str(file))
    if not (page_folder() / "report.html").is_file():
        assert done.returncode == 2 and "`make web`" in done.stderr and not file.exists()
        return
    assert done.returncode == 0 and str(file) in done.stdout
    text = file.read_text("utf-8")
    assert "<script>alert(1)" not in text and PATH in text and "sub-agent-12" in text
    refused = worked.coord("report", "--html", str(tmp_path / "no" / "folder.html"))
    assert refused.returncode != 0 and "cannot be written" in refused.stderr and "Traceback" not in refused.stderr


def test_a_launch_is_reported_by_its_name(worked: Repo) -> None:
    begun, ended = iso(0), iso(1000)
    for name, since, until in (("20200101T000000-1", begun, ended), ("20990101T000000-2", "2020-01-01T00:00:00.000Z", None)):
        folder = worked.state.runs / name
        folder.mkdir(parents=True)
        (folder / "record").write_text(json.dumps({
            "run": name, "launcher": 1, "launcher_mark": None, "started_at": since, "profile": "shell", "ended_at": until}))
    assert worked.coord("report").stdout.startswith("Launch 20990101T000000-2: ")
    assert "1 task done" in worked.coord("report", "2099").stdout
    first = worked.coord("report", "20200101T000000-1").stdout
    assert "0 tasks done" in first and "nothing" in first
    assert worked.coord("report", "--all").stdout.startswith("All of the log: ")
    for name in ("1999", "20"):
        missed = worked.coord("report", name)
        assert missed.returncode == 2 and "coord report --all" in missed.stderr, missed.stderr
