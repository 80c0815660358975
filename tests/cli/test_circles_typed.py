"""Two that wait for each other, as they type it: who gives way is told what to type, and that is enough."""

from __future__ import annotations

import shlex
import threading

from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.conftest import Repo
from tests.waiting import until


def test_who_gives_way_types_what_it_is_told(repo: Repo) -> None:
    repo.there("ann", "bob")
    for agent, name in (("ann", "a.py"), ("bob", "b.py")):
        repo.coord("task", "add", f"change {name}", "--resource", name)
        assert repo.coord("task", "claim", "--agent", agent).returncode == 0
    assert repo.coord("lock", "b.py", "--agent", "ann", "--task", "T-1").returncode == 3
    told = repo.coord("lock", "a.py", "--agent", "bob", "--task", "T-2")
    assert told.returncode == 3 and "it is you who give way" in told.stderr
    (step,) = [row.partition("next: ")[2] for row in told.stderr.splitlines() if "next: " in row]
    assert step == "coord task fail T-2 --blocked a.py --agent bob"
    again = repo.coord("lock", "b.py", "--agent", "ann", "--task", "T-1")
    assert "bob was chosen to give its work back; keep yours" in again.stderr
    done = repo.coord(*shlex.split(step)[1:])
    assert done.returncode == 0, done.stderr
    with repo.client() as client:  # who stands in line is served in the step after that
        until(lambda: {one.resource: one.locked_by for one in client.call(rq.Locks()).items} == {
            "a.py": "ann", "b.py": "ann"})
    story = repo.coord("explain", "T-2").stdout
    assert "ready" in story
    assert "2 agents wait for each other (bob, ann); bob was told to give way" in repo.coord(
        "events").stdout


def test_a_request_that_is_held_open_for_one_that_gives_way_ends_at_once(repo: Repo) -> None:
    """What it waits for cannot come: it would hear of it only when its time is over."""
    with repo.client() as client:
        for agent, name, priority in (("ann", "a.py", 0), ("bob", "b.py", 1)):
            client.call(rq.TaskAdd(title=name, resources=[name], priority=priority))
            client.call(rq.Register(agent=agent))
        for agent, task in (("ann", "T-1"), ("bob", "T-2")):
            client.call(rq.TaskClaim(agent=agent, task=task))
        told: list[Refusal] = []

        def waits() -> None:
            with repo.client() as own:
                try:
                    own.call(rq.Acquire(agent="ann", resources=["b.py"], wait_s=500))
                except Refusal as refusal:
                    told.append(refusal)

        thread = threading.Thread(target=waits)
        thread.start()
        until(lambda: client.call(rq.Locks()).waiters)
        try:
            client.call(rq.Acquire(agent="bob", resources=["a.py"]))
        except Refusal as refusal:
            assert refusal.code is Code.LOCKED and refusal.facts["victim"] == "ann"
        thread.join(30)
        assert told and told[0].facts["give_way"] is True
        # And where it is told in the answer itself, nothing is waited for either
        client.call(rq.Heartbeat(agent="ann"))
        try:
            client.call(rq.Acquire(agent="ann", resources=["b.py"], wait_s=500))
        except Refusal as refusal:
            assert refusal.facts["give_way"] is True
