"""Verdicts against the real daemon: 401 files, a person who saves, kill -9, SIGTERM; nobody waits."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo
from tests.launch.conftest import alive
from tests.waiting import until

pytestmark = pytest.mark.slow

FILES = 401
CONFIG = "[sweep]\ninterval_s = 300\n[watch]\nenabled = true\nunleased = \"review\"\n"


@pytest.fixture
def flagged(make_repo: Callable[..., Repo]) -> Repo:
    """A repository with a review of 401 files, each of them written to."""
    repo = make_repo("many", config=CONFIG)
    for n in range(FILES):
        repo.write(f"d/{n:03}", "one\n")
    with repo.client("ann") as ann:
        ann.acquire("d/")
        for n in range(FILES):
            repo.write(f"d/{n:03}", "half\n")
        # Not by a lapse: on a busy machine that would come while some are not written yet.
        assert ann.call(rq.Leave(agent="ann", clean=False)).reviews == ["R-1"]
    return repo


def texts(repo: Repo) -> list[str]:
    return [repo.read(f"d/{n:03}") for n in range(FILES)]


def left_beside(repo: Repo) -> list[str]:
    return [name for name in os.listdir(repo.root / "d") if name.startswith(".coord-")]


class Verdict(threading.Thread):
    """A verdict that is asked for beside the test; `starts`: of the next coordinator, too."""

    def __init__(self, repo: Repo, request: rq.Request[Any], *, starts: bool = True) -> None:
        super().__init__(daemon=True)
        self.repo, self.request, self.starts = repo, request, starts
        self.answer: Any = None
        self.start()

    def run(self) -> None:
        try:
            with self.repo.client(autostart=self.starts) as client:
                self.answer = client.call(self.request)
        except Refusal as refusal:
            self.answer = refusal

    def ended(self) -> Any:
        self.join(60)
        return self.answer


REVERT = rq.ReviewDecide(review="R-1", verdict="revert")
UNDO = rq.ReviewUndo(review="R-1")


def some_are_written(repo: Repo) -> bool:
    return repo.read("d/010") == "one\n"


def test_a_person_saves_the_last_file_while_it_runs(flagged: Repo) -> None:
    going = Verdict(flagged, REVERT)
    until(lambda: some_are_written(flagged))
    flagged.write(f"d/{FILES - 1:03}", "saved by a person\n")
    answer = going.ended()
    # I expect their save to stay, and nothing else to be half done
    assert isinstance(answer, Refusal) and answer.code is Code.VERSION_CHANGED, answer
    assert f"d/{FILES - 1:03}" in answer.message
    assert texts(flagged) == ["half\n"] * (FILES - 1) + ["saved by a person\n"]
    with flagged.client() as client:
        assert client.call(rq.ReviewShow(review="R-1")).state == "open"
        assert client.call(rq.Locks()).items == []
    assert left_beside(flagged) == []


def killed_in_the_middle(repo: Repo, request: rq.Request[Any], before: str, after: str) -> Any:
    """What whoever asked is told. (On a quick disk it may be over before it is killed: then it is
    taken back, and tried again.)"""
    for _ in range(20):
        going = Verdict(repo, request)
        until(lambda: repo.read("d/010") == after)
        os.kill(repo.pid(), signal.SIGKILL)
        if set(texts(repo)) == {before, after}:
            return going.ended()
        going.ended()
        with repo.client() as client:
            until(lambda client=client: not client.call(rq.ReviewShow(review="R-1")).under_way)
            client.call(UNDO if request is REVERT else REVERT)
    pytest.fail("it was never in the middle")


@pytest.mark.parametrize("request_", [REVERT, UNDO])
def test_kill_9_in_the_middle(flagged: Repo, request_: rq.Request[Any]) -> None:
    if request_ is UNDO:
        with flagged.client() as client:
            client.call(REVERT)
    before, after = ("half\n", "one\n") if request_ is REVERT else ("one\n", "half\n")
    answer = killed_in_the_middle(flagged, request_, before, after)
    # It asks again as soon as there is a coordinator, under the same key, and is told how it ended.
    assert isinstance(answer, rq.Review), answer
    assert answer.state == ("reverted" if request_ is REVERT else "open")
    # I expect the next start to go on with it, while nobody else is given the files
    with flagged.client("bob") as bob:
        until(lambda: not bob.call(rq.ReviewShow(review="R-1")).under_way)
        assert texts(flagged) == [after] * FILES and left_beside(flagged) == []
        assert bob.call(rq.Locks()).items == []
        boss = flagged.client()
        state = boss.call(rq.ReviewShow(review="R-1")).state
        assert state == ("reverted" if request_ is REVERT else "open")
        # and all of it to be undone
        assert boss.call(UNDO if request_ is REVERT else REVERT).warnings == []
        assert texts(flagged) == [before] * FILES
        assert boss.call(rq.Replay()).equal
        boss.close()


def test_kill_9_again_and_again(flagged: Repo) -> None:
    """Verdicts to and fro, killed at any moment, by somebody who asks again each time."""
    for round_ in range(6):
        request = REVERT if round_ % 2 == 0 else UNDO
        going = Verdict(flagged, request)
        mark = f"d/{60 * round_ + 5:03}"
        until(lambda mark=mark, n=round_: flagged.read(mark) == ("one\n", "half\n")[n % 2])
        os.kill(flagged.pid(), signal.SIGKILL)
        going.ended()
        again = Verdict(flagged, request).ended()  # it may have come to its end by itself
        assert isinstance(again, rq.Review) or again.code in (Code.BAD_TRANSITION, Code.DAEMON_DOWN)
        with flagged.client() as client:
            until(lambda client=client: not client.call(rq.ReviewShow(review="R-1")).under_way)
        assert set(texts(flagged)) == {("one\n", "half\n")[round_ % 2]} and not left_beside(flagged)


def test_a_coordinator_that_is_stopped_goes_on_when_it_is_back(flagged: Repo) -> None:
    going = Verdict(flagged, REVERT, starts=False)
    until(lambda: some_are_written(flagged))
    pid = flagged.pid()
    flagged.down()
    answer = going.ended()
    until(lambda: not alive(pid))
    assert isinstance(answer, Refusal) or answer.state == "reverted"
    assert left_beside(flagged) == [], "it stops between two files"
    with flagged.client() as client:
        until(lambda: client.call(rq.ReviewShow(review="R-1")).state == "reverted")
    assert texts(flagged) == ["one\n"] * FILES


def test_others_are_served_meanwhile_and_kept_off_these_files(flagged: Repo) -> None:
    """Seen in one of several: on a machine whose disk is quick one may be over before it is asked."""
    refused = served = 0
    with flagged.client("bob") as bob:
        for round_ in range(20):
            request, state = (REVERT, "reverted") if round_ % 2 == 0 else (UNDO, "open")
            going = Verdict(flagged, request)
            until(lambda n=round_: flagged.read("d/010") == ("one\n", "half\n")[n % 2])
            try:
                bob.acquire("d/400", retry=False)
                bob.release("d/400")
            except Refusal as locked:
                assert locked.facts["conflicts"][0]["holder"] == "coord/R-1"
                refused += 1
            bob.acquire("elsewhere.py")
            bob.release("elsewhere.py")
            served += going.is_alive()
            assert bob.acquire("d/400", wait=60).leases, "and served when it is over"
            bob.release("d/400")
            assert going.ended().state == state
            if refused and served:
                return
    pytest.fail(f"in twenty verdicts, {refused} refusals and {served} others served")


def test_the_watcher_takes_it_for_what_it_is(flagged: Repo) -> None:
    """No lease follows a name that is exchanged, and no write of a verdict is flagged."""
    with flagged.client() as client:
        client.call(REVERT)
        client.call(UNDO)
        client.call(REVERT)
        flagged.write("other.py", "so that the watcher is heard of after that\n")
        until(lambda: client.call(rq.Events(kind="versions_seen", limit=5000, resource=None)).items
              and "other.py" in str(client.call(rq.Events(kind="versions_seen", limit=5000)).items))
        assert client.call(rq.Events(kind="lease_moved")).items == []
        assert [r.review for r in client.call(rq.Reviews(state="all")).items
                if any(f.path.startswith("d/") for f in r.files)] == ["R-1"]
        assert ".coord-R-1" not in str(client.call(rq.Events(kind="versions_seen", limit=5000)).items)


def test_agents_decide_nothing(flagged: Repo) -> None:
    with flagged.client("bob") as bob:
        bob.register()
        for request in (REVERT, UNDO):
            with pytest.raises(Refusal) as no:
                bob.call(request)
            assert no.value.code is Code.UNAUTHORIZED
    assert set(texts(flagged)) == {"half\n"}


def test_the_cli_says_what_it_did(flagged: Repo) -> None:
    os.link(flagged.root / "d/007", flagged.root / "second name")
    shown = flagged.coord("review", "revert", "R-1")
    assert shown.returncode == 0 and "R-1 reverted: d/000" in shown.stdout
    assert "d/007 also had another name (a hard link)" in shown.stdout
    again = flagged.coord("review", "revert", "R-1")
    assert again.returncode == 8 and "was reverted already" in again.stderr
    flagged.write("d/003", "built on it\n")
    undo = flagged.coord("review", "undo", "R-1")
    assert undo.returncode == 8 and "d/003 was changed since it was reverted" in undo.stderr
    story = flagged.coord("explain", "R-1").stdout
    assert "began to revert R-1" in story
