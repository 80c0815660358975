"""What 0.2.0 has left (its database with the log, a launch, leases and waiters; it was killed) is opened, replays equal, and goes on.

The file was made once by that release and does not change.
"""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from coordinator.files.state import StateDir
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso
from coordinator.words.refusals import Code
from tests.world import World

LEFT = Path(__file__).parents[1] / "data/release-0.2.0.sql"
KILLED_MS = from_iso("2026-11-28T19:11:41.000Z")
FILES = {
    "a.py": "def f():\n    return 1\n\n\ndef g():\n    return 2\n\n\ndef h():\n    return 3\n", "b.py": "b = 2\n",
    "d/x.txt": "bob\n", "d/y.txt": "y\n", "notes.md": "# notes\n",
}


@pytest.fixture
def left(tmp_path: Path) -> World:
    root = tmp_path / "repo"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    state = StateDir(root)
    state.create()
    db = apsw.Connection(str(state.database))
    db.execute(LEFT.read_text("utf-8"))
    db.close()
    world = World(root)
    world.clock.at_ms = KILLED_MS
    return world


def test_it_replays_equal(left: World) -> None:
    assert left.replay_differs() == []
    assert left.db.execute("SELECT count(*) FROM events").get == 87
    texts = [event.text.partition("Z ")[2] or event.text for event in left.ask(rq.Events(limit=500)).items]
    assert {"the coordinator started: version 0.2.0", "ann registered"} <= set(texts)


def test_its_leases_waiters_and_reviews_are_as_it_left_them(left: World) -> None:
    locks = left.ask(rq.Locks())
    assert {(lease.resource, lease.locked_by, lease.task) for lease in locks.items} == {
        ("d/", "bob", "T-3"), ("notes.md", "bob", "T-3"), ("a.py::f", "cyd", None), ("a.py::g", "bob", None),
        ("key:account:1", "ann", None), ("notes.md", "cyd", None)}
    assert [(waiter.acquisition_id, waiter.agent) for waiter in locks.waiters] == [("W-1", "ann"), ("U-1", "ann"), ("U-2", "cyd")]
    assert left.ask(rq.StateGet(key="key:account:2")).version == 2
    review = left.ask(rq.ReviewShow(review="R-1"))
    assert (review.state, [file.path for file in review.files]) == ("open", ["b.py"]) and "+b = 2" in str(review.files[0].diff)


def test_it_goes_on(left: World) -> None:
    refused = left.refused(rq.Acquire(agent="eve", resources=["d/x.txt"]))
    assert refused.code is Code.LOCKED and refused.facts["conflicts"][0]["holder"] == "bob"
    left.ask(rq.Release(agent="cyd", resources=["a.py::f"]))
    held = {lease.resource: lease for lease in left.ask(rq.Locks(agent="ann")).items}
    assert held["a.py::f"].fencing_token > 134, "who stood in line is served, under a token that is new"
    assert left.ask(rq.TaskDone(agent="bob", task="T-3")).state == "done"
    assert {lease.resource for lease in left.ask(rq.Locks(agent="ann")).items} >= {"d/"}, "it is hers now who asked for it"
    left.ask(rq.Release(agent="ann", resources=["d/"]))
    left.ask(rq.Release(agent="cyd", resources=["d/y.txt"]))
    assert left.ask(rq.TaskClaim(agent="eve", task="T-4")).task.state == "claimed"
    assert left.ask(rq.DeadRetry(id="T-5")) is not None
    assert left.ask(rq.ReviewDecide(review="R-1", verdict="revert", by="human")).state == "reverted"
    assert (left.root / "b.py").read_text() == "b = 1\n", "the bytes of before are there still"
    left.clock.advance(3_600_000)
    swept = left.ask(rq.Sweep())
    assert swept.lapsed and not left.ask(rq.Locks()).items
    assert left.replay_differs() == []
