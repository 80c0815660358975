"""An agent whose provider's limit is reached rests, and its task goes to one of another profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.launch.test_launch import Start
from tests.waiting import until

pytestmark = pytest.mark.slow


def other_profile(repo: Repo, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A second stand-in, called `other`."""
    folder = repo.root.parent / "config"
    (folder / "coord/agents").mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    (repo.root.parent / "other.sh").write_text(script)
    (folder / "coord/agents/other.toml").write_text(
        f'name = "other"\nprompt = "stdin"\ncommand = ["sh", "{repo.root.parent}/other.sh"]\n'
        "[limits]\npatterns = ['no fuel for (?P<seconds>[0-9.]+)s']\n")


def test_its_task_goes_to_another_profile_without_an_attempt(
    repo: Repo, launch: Start, monkeypatch: pytest.MonkeyPatch,
) -> None:
    other_profile(repo, monkeypatch, 'while ! test -e go; do sleep 0.05; done; echo $COORD_AGENT > $COORD_TASK.by')
    going = launch("echo 'API error 429: usage limit reached, try again in 2 hours' >&2; exit 1",
                   ("one", ["T-1.by"]), ("two", ["T-2.by"]), n=2, options=("--agent", "other:1"))

    def rests() -> bool:
        with repo.client() as person:
            return any(row.rests_until for row in person.call(rq.Agents()).items if row.profile == "shell")

    until(rests)
    assert "shell-1" in repo.coord("agents").stdout and "rests until" in repo.coord("agents").stdout
    (repo.root / "go").touch()
    report = going.report()
    assert report["tasks"] == {"done": 2}
    assert Path(repo.root / "T-1.by").read_text() == Path(repo.root / "T-2.by").read_text() == "other-1\n"
    how = [(one["agent"], one["outcome"]) for one in report["attempts"]]
    assert how.count(("shell-1", "limit reached")) == 1 and how.count(("other-1", "done")) == 2 and len(how) == 3, how
    with repo.client() as person:
        assert [task.attempts for task in person.call(rq.Tasks()).items] == [1, 1], "none was lost"
    assert "shell-1 rests until" in going.said()


def test_alone_it_goes_on_when_the_limit_is_over(repo: Repo, launch: Start) -> None:
    report = launch("if test -e tried; then echo ok > out.txt; else touch tried; echo half > out2.txt\n"
                    "echo 'rate limit: try again in 2 seconds'; exit 3; fi", ("one", ["out.txt"]), n=1).report()
    assert [one["outcome"] for one in report["attempts"]] == ["limit reached", "done"]
    assert report["tasks"] == {"done": 1} and report["wall_s"] >= 2
    with repo.client() as person:
        assert [task.attempts for task in person.call(rq.Tasks()).items] == [1]


def test_what_an_agent_says_of_limits_while_it_succeeds_is_its_work(repo: Repo, launch: Start) -> None:
    report = launch("echo 'rate limit exceeded is now an error of its own' | tee out.txt", ("one", ["out.txt"]), n=1).report()
    assert [one["outcome"] for one in report["attempts"]] == ["done"]
    with repo.client() as person:
        assert all(row.rests_until is None for row in person.call(rq.Agents(all=True)).items)
