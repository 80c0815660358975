"""The mutex for business code: whose it is, what its key is, and what becomes of a step that finds it held."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest

from coordinator import Client, Code, LeaseLost, Refusal
from coordinator.frameworks.branches import branches_of, current
from coordinator.frameworks.mutex import acquire_agent_lock, lock_key
from coordinator.frameworks.postponing import StepPostponed
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.waiting import until


@pytest.fixture
def client(repo: Repo) -> Client:
    return repo.client("service")


def held(client: Client) -> dict[str, str]:
    return {one.resource: one.locked_by for one in client.call(rq.Locks()).items}


def test_the_subject_is_held_while_the_body_runs(client: Client) -> None:
    with acquire_agent_lock("u-42", lock_timeout=0.6, client=client) as lock:
        first = client.call(rq.Locks()).items[0].expires_at
        until(lambda: client.call(rq.Locks()).items[0].expires_at > first)  # renewed meanwhile
        assert list(held(client)) == ["key:agent-lock:u-42"]
        assert current() is lock and lock.fencing_token == 1
    assert held(client) == {}
    with pytest.raises(LookupError):
        current()


def test_two_threads_with_one_client_exclude_each_other(client: Client) -> None:
    inside, most, refused = [], [], []

    def work() -> None:
        for _ in range(5):
            try:
                with acquire_agent_lock(7, client=client, wait=30):
                    inside.append(1)
                    most.append(len(inside))
                    inside.pop()
            except Refusal as bad:
                refused.append(bad)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (refused, most) == ([], [1] * 20)
    agents = [one.agent for one in client.call(rq.Agents()).items]
    assert len(agents) <= 5, "a holder for each call at once, used again"


def test_a_step_that_finds_it_held_is_postponed_with_all_that_it_takes_to_run_it(client: Client, repo: Repo) -> None:
    kept: list[StepPostponed] = []
    with (repo.client("other").lease("key:agent-lock:u", description="closing the month"),
          pytest.raises(StepPostponed) as met,
          acquire_agent_lock("u", client=client, step="pay", arguments={"user": "u", "cents": 5},
                             on_blocked=kept.append)):
        raise AssertionError("entered")
    step = met.value
    assert kept == [step] and step.holder == "other.1" and step.retry_after_s > 0
    assert step.resources == ("key:agent-lock:u",) and step.refusal.code is Code.LOCKED
    assert "closing the month" in str(step)
    body = step.body()
    assert (body["step"], body["arguments"]) == ("pay", {"user": "u", "cents": 5})
    assert client.call(rq.Locks()).waiters == []
    with acquire_agent_lock("u", client=client):  # the same holder has nothing left of it
        pass


def test_arguments_that_are_no_json_are_told_so(client: Client, repo: Repo) -> None:
    repo.client("other").acquire("key:agent-lock:u")
    with pytest.raises(StepPostponed) as met, acquire_agent_lock("u", client=client, arguments={"f": object()}):
        raise AssertionError("entered")
    assert met.value.arguments is None


def test_a_queue_that_cannot_keep_a_step_is_heard(client: Client, repo: Repo) -> None:
    def full(step: StepPostponed) -> None:
        raise OSError("the queue is full")

    repo.client("other").acquire("key:agent-lock:u")
    with pytest.raises(OSError, match="the queue is full"), acquire_agent_lock("u", client=client, on_blocked=full):
        raise AssertionError("entered")


def test_a_call_within_a_call_is_the_same_holder(client: Client) -> None:
    with acquire_agent_lock("u", client=client):
        with acquire_agent_lock("u", client=client), acquire_agent_lock("v", client=client):
            assert len(set(held(client).values())) == 1
        assert list(held(client)) == ["key:agent-lock:u"], "the outermost releases"
        blocked: list[BaseException] = []

        def thread() -> None:
            try:
                with acquire_agent_lock("u", client=client):
                    pass
            except StepPostponed as bad:
                blocked.append(bad)

        one = threading.Thread(target=thread)
        one.start()
        one.join()
        assert len(blocked) == 1, "a thread that is started within is another"


def test_a_lost_lock_is_told_and_its_holder_is_not_used_again(client: Client, repo: Repo) -> None:
    with pytest.raises(LeaseLost), acquire_agent_lock("u", lock_timeout=0.3, client=client) as lock:
        repo.coord("unlock", "key:agent-lock:u", "--agent", "eve", "--force")
        until(lambda: lock.lost)
    names = {one.agent for one in client.call(rq.Agents()).items}
    assert "service.1" not in names


def test_an_error_in_the_body_goes_through_and_releases(client: Client) -> None:
    with pytest.raises(ZeroDivisionError), acquire_agent_lock("u", client=client):
        _ = 1 // 0
    assert held(client) == {}


def test_without_a_client_the_process_has_one_that_leaves_at_its_end(repo: Repo) -> None:
    code = ("from coordinator import Client\n"
            "from coordinator.frameworks.mutex import acquire_agent_lock\n"
            "with acquire_agent_lock('u'):\n"
            "    print([one.resource for one in Client('.', agent='looks').locks().items])\n")
    done = subprocess.run([sys.executable, "-c", code], cwd=repo.root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "['key:agent-lock:u']\n", "")
    assert repo.client().call(rq.Agents()).items == []


def test_a_fork_is_another_holder(client: Client, repo: Repo) -> None:
    with acquire_agent_lock("a", client=client):
        pass
    idle = branches_of(client)
    child = os.fork()
    if child == 0:
        taken = idle.take()
        os._exit(0 if taken.agent != "service.1" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_fork_within_a_call_is_another_holder(client: Client) -> None:
    with acquire_agent_lock("a", client=client):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with acquire_agent_lock("a", client=client):
                    code = 2
            except StepPostponed:
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert list(held(client)) == ["key:agent-lock:a"]


@pytest.mark.parametrize(("subject", "key"), [
    ("42", "key:agent-lock:42"), (42, "key:agent-lock:42"), ("auth0|7", "key:agent-lock:auth0|7"),
    ("a:b", "key:agent-lock:a%3Ab"), ("a%3Ab", "key:agent-lock:a%253Ab"), ("key:account:1", "key:account:1"),
    (uuid.UUID(int=5), f"key:agent-lock:{uuid.UUID(int=5)}"), ("*", "key:agent-lock:%2A"), ("ü/x y", "key:agent-lock:ü/x y"),
])
def test_which_key_an_id_becomes(client: Client, subject: str, key: str) -> None:
    assert lock_key(subject) == key
    with acquire_agent_lock(subject, client=client):
        assert list(held(client)) == [key]


@pytest.mark.parametrize("subject", ["", "  ", " 42", "4\n2", "4\u200b2", "key:", "key:a::b", "x" * 5000, None, True, 1.5, b"4", ["4"], "\ud800"])
def test_what_is_no_id_is_refused(client: Client, subject: object) -> None:
    with pytest.raises(Refusal) as met, acquire_agent_lock(subject, client=client):  # type: ignore[arg-type]
        raise AssertionError("entered")
    assert met.value.code is Code.INVALID and met.value.next


def test_one_id_within_another_is_another_lock(client: Client, repo: Repo) -> None:
    """A colon would make `a:b` a part of `a`."""
    repo.client("other").acquire(lock_key("a"))
    with acquire_agent_lock("a:b", client=client):
        pass


def test_a_crash_frees_the_lock_when_its_time_is_over(client: Client, repo: Repo, tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        with acquire_agent_lock("u", lock_timeout=1, client=Client(repo.root, agent="crashes")):
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    with acquire_agent_lock("u", client=client, wait=30):
        pass
