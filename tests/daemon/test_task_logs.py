"""What a launched agent says, told over the coordinator's doors as it is said."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from coordinator.daemon import health
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo


def log_of(repo: Repo, attempt: int, text: str) -> Path:
    """The log of an attempt at T-1, as a launch leaves it."""
    folder = repo.state.runs / f"20261128T09150{attempt}-42"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"T-1-{attempt}.log"
    path.write_text(text, "utf-8")
    return path


def ask(repo: Repo, **fields: object) -> rq.TaskLogLines:
    with repo.client() as client:
        return client.call(rq.TaskLog(task="1", **fields))  # type: ignore[arg-type]


@pytest.fixture
def task(repo: Repo) -> None:
    with repo.client() as client:
        client.call(rq.TaskAdd(title="Round the totals"))


@pytest.mark.usefixtures("task")
def test_a_log_is_told_from_its_end_on_and_then_what_comes(repo: Repo) -> None:
    assert ask(repo).log == ""
    path = log_of(repo, 1, "I read the file.\nI wri")
    first = ask(repo)
    assert (first.lines, first.cut) == (["I read the file."], False)
    path.write_text("I read the file.\nI write it.\n", "utf-8")
    assert ask(repo, log=first.log, after=first.next).lines == ["I write it."]
    log_of(repo, 2, "Once more.\n")
    again = ask(repo, log=first.log, after=first.next)
    assert again.lines == ["Once more."] and again.log != first.log


@pytest.mark.usefixtures("task")
def test_who_waits_is_answered_when_the_agent_says_more(repo: Repo) -> None:
    path = log_of(repo, 1, "One.\n")
    first = ask(repo)
    told: list[list[str]] = []
    waiting = threading.Thread(target=lambda: told.append(ask(repo, log=first.log, after=first.next, wait_s=60.0).lines))
    waiting.start()
    with path.open("a", encoding="utf-8") as file:
        file.write("Two.\n")
    waiting.join(30)
    assert told == [["Two."]]
    began = time.monotonic()
    assert ask(repo, log=first.log, after=first.next + 5, wait_s=0.3).lines == [] and time.monotonic() - began >= 0.3


@pytest.mark.usefixtures("task")
def test_of_a_long_log_whole_lines_of_its_end_are_told(repo: Repo) -> None:
    lines = [f"line {n} {'é' * (n % 50)}." for n in range(10_000)]
    log_of(repo, 1, "\n".join(lines) + "\n")
    reply = ask(repo)
    assert reply.cut and reply.lines == lines[-len(reply.lines):] and sum(map(len, reply.lines)) < health.ANSWER_BYTES_MAX
    assert ask(repo, log=reply.log, after=reply.next).lines == []
    assert ask(repo, log=reply.log, after=0).cut, "nor does it tell more of it at once"


def test_it_is_for_people_and_of_tasks_that_are_there(repo: Repo) -> None:
    with pytest.raises(Refusal) as unknown:
        ask(repo)
    assert unknown.value.code is Code.UNKNOWN_TASK
    with repo.client() as client:
        token = client.call(rq.Register(agent="ann")).token
    with repo.client("ann", token=token) as client, pytest.raises(Refusal) as refused:
        client.call(rq.TaskLog(task="T-1"))
    assert refused.value.code is Code.UNAUTHORIZED
