"""Several agents edit one file, each its own function, by tools that read and write all of it."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo
from tests.hook.test_sessions import Claude
from tests.waiting import until

AGENTS, EDITS = 6, 4


@pytest.fixture
def repo(repo: Repo) -> Repo:
    with repo.client() as client:
        client.call(rq.Health())
    return repo


def function(agent: int, turn: int) -> str:
    return f"def work_{agent}():\n    return {turn}\n"


def text_of(turns: list[int]) -> str:
    return "import os\n\n\n" + "\n\n".join(function(agent, turn) for agent, turn in enumerate(turns))


def test_every_edit_of_every_agent_lands(repo: Repo) -> None:
    """Each tool takes a while between reading and writing: without windows most edits would be lost."""
    repo.write("a.py", text_of([0] * AGENTS))
    denied: list[str] = []

    def works(agent: int) -> None:
        claude, dice = Claude(repo, f"s{agent}"), random.Random(agent)
        for turn in range(EDITS):
            given = {"file_path": str(repo.root / "a.py"), "old_string": function(agent, turn), "new_string": function(agent, turn + 1)}
            said = claude._call("Edit", given)
            if said.get("permissionDecision") == "deny":
                denied.append(said["permissionDecisionReason"])
                return
            text = repo.read("a.py")
            time.sleep(dice.random() * 0.05)
            repo.write("a.py", text.replace(given["old_string"], given["new_string"]))
            claude._call("Edit", given, "PostToolUse", tool_response={})

    with ThreadPoolExecutor(AGENTS) as pool:
        for done in [pool.submit(works, agent) for agent in range(AGENTS)]:
            done.result()
    assert denied == []
    assert repo.read("a.py") == text_of([EDITS] * AGENTS)
    with repo.client() as client:
        locks = {one.resource: one.locked_by for one in client.call(rq.Locks()).items}
        assert locks == {f"a.py::work_{agent}": f"claude-code-s{agent}" for agent in range(AGENTS)}
        assert client.call(rq.Reviews()).items == []


def test_a_part_is_reverted_and_put_back_while_others_edit_theirs(repo: Repo) -> None:
    """No edit is lost by it, and none undoes a verdict: they write the file by turns."""
    busy = 3
    repo.write("a.py", text_of([0] * (busy + 1)))
    with repo.client("eve") as eve:
        eve.acquire(f"a.py::work_{busy}")
        repo.write("a.py", text_of([0] * busy + [9]))
    with repo.client() as client:
        client.call(rq.Release(agent="eve", resources=[f"a.py::work_{busy}"], force=True))
    all_hold_some, ended, verdicts = threading.Barrier(busy + 1), threading.Event(), []

    def works(agent: int) -> str:
        claude, dice = Claude(repo, f"s{agent}"), random.Random(agent)
        for turn in range(EDITS):
            given = {"file_path": str(repo.root / "a.py"), "old_string": function(agent, turn), "new_string": function(agent, turn + 1)}
            said = claude._call("Edit", given)
            if said.get("permissionDecision") == "deny":
                return str(said["permissionDecisionReason"])
            text = repo.read("a.py")
            time.sleep(dice.random() * 0.05)
            repo.write("a.py", text.replace(given["old_string"], given["new_string"]))
            claude._call("Edit", given, "PostToolUse", tool_response={})
            time.sleep(dice.random() * 0.2)  # (as agents think)
            if turn == 0:
                all_hold_some.wait(30)
        return ""

    def decides() -> None:
        all_hold_some.wait(30)
        with repo.client() as client:
            while not ended.is_set() or not verdicts:
                undo = bool(verdicts) and verdicts[-1] == "reverted"
                try:
                    done = client.call(rq.ReviewUndo(review="R-1") if undo else rq.ReviewDecide(review="R-1", verdict="revert"))
                except Refusal as refusal:  # (an edit has ended between its look and its write)
                    assert refusal.code in (Code.LOCKED, Code.VERSION_CHANGED), refusal
                else:
                    verdicts.append(done.state)

    with ThreadPoolExecutor(busy + 1) as pool:
        person = pool.submit(decides)
        refused = [done.result() for done in [pool.submit(works, agent) for agent in range(busy)]]
        ended.set()
        person.result()
    assert not any(refused)
    assert repo.read("a.py") == text_of([EDITS] * busy + [0 if verdicts[-1] == "reverted" else 9])
    with repo.client() as client:
        assert {one.resource for one in client.call(rq.Locks()).items} == {f"a.py::work_{agent}" for agent in range(busy)}
        assert [one.review for one in client.call(rq.Reviews(state="all")).items] == ["R-1"], "nobody is accused"
        assert [one.text for one in client.call(rq.Heartbeat(agent="claude-code-s0")).notices] == []


def test_what_breaks_a_caller_that_another_holds_is_refused_with_the_reason(repo: Repo) -> None:
    repo.write("pay.py", "def charge(account):\n    return 1\n")
    repo.write("orders.py", "from pay import charge\n\n\ndef a():\n    return charge(1)\n\n\ndef b():\n    return charge(2)\n")
    eve, ann = repo.client("eve"), Claude(repo, "ann")
    eve.acquire("orders.py::a")
    given = {"file_path": str(repo.root / "pay.py"), "old_string": "def charge(account):", "new_string": "def charge(account, amount):"}

    def proposed() -> str:
        said = ann._call("Edit", given)
        ann._call("Edit", given, "PostToolUse", tool_response={})
        return str(said.get("permissionDecisionReason", ""))

    denied = until(proposed)  # (the first question has the files read, and is not held up by that)
    assert "a() in orders.py calls charge() with one argument; it needs 'amount' now. orders.py::a is leased by eve" in denied
    eve.release("orders.py::a")
    assert proposed() == ""
    with repo.client() as client:
        assert {one.resource for one in client.call(rq.Locks()).items} >= {"pay.py::charge"}


def test_who_edits_while_another_does_waits_for_its_end(repo: Repo) -> None:
    repo.write("a.py", text_of([0, 0]))
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    first = {"file_path": str(repo.root / "a.py"), "old_string": function(0, 0), "new_string": function(0, 1)}
    second = {"file_path": str(repo.root / "a.py"), "old_string": function(1, 0), "new_string": function(1, 1)}
    assert ann._call("Edit", first) == {}
    came: list[dict[str, object]] = []
    waits = threading.Thread(target=lambda: came.append(bob._call("Edit", second)))
    waits.start()
    with repo.client() as client:
        until(lambda: client.call(rq.Locks()).waiters)
    assert not came
    repo.write("a.py", repo.read("a.py").replace(function(0, 0), function(0, 1)))
    ann._call("Edit", first, "PostToolUse", tool_response={})
    waits.join(10)
    assert came == [{}], "it went on as soon as the other was through"
    repo.write("a.py", repo.read("a.py").replace(function(1, 0), function(1, 1)))
    bob._call("Edit", second, "PostToolUse", tool_response={})
    assert repo.read("a.py") == text_of([1, 1])


def edits(repo: Repo, claude: Claude, old: str, new: str) -> None:
    given = {"file_path": str(repo.root / "a.py"), "old_string": old, "new_string": new}
    assert claude._call("Edit", given) == {}
    repo.write("a.py", repo.read("a.py").replace(old, new))
    claude._call("Edit", given, "PostToolUse", tool_response={})


@pytest.mark.parametrize("holders", [1, 2])
def test_what_was_edited_by_region_is_kept_when_a_command_overwrites_it(repo: Repo, holders: int) -> None:
    repo.write("a.py", text_of([0, 0]))
    agents, eve = [Claude(repo, f"s{n}") for n in range(holders)], Claude(repo, "eve")
    for one in (*agents, eve):
        one.hook("SessionStart", source="startup")
    for n, one in enumerate(agents):
        edits(repo, one, function(n, 0), function(n, 1))
    before = repo.read("a.py")
    eve.shell("printf 'gone\\n' > $(echo a).py")
    with repo.client() as client:
        (review,) = client.call(rq.Reviews()).items
        for one in agents:
            told = "".join(notice.text for notice in client.call(rq.Heartbeat(agent=one.name)).notices)
            assert "changed a.py, which you hold. Both contents are kept" in told, (one.name, told)
            assert one.name in review.summary
        for one in agents:
            one.hook("SessionEnd")
        client.call(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert repo.read("a.py") == before
