"""Reviews that were decided on: listed by parts, the last verdict first, with what can be taken back."""

from __future__ import annotations

from coordinator.words import requests as rq
from tests.world import World


def left(world: World, path: str, agent: str = "ann") -> str:
    """A review of one file."""
    world.acquire(agent, path, ttl_s=5)
    world.write(path, "left\n")
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())
    return str(world.ask(rq.Reviews()).items[-1].review)


def decide(world: World, review: str, verdict: str) -> rq.Review:
    world.clock.advance(1000)
    return world.ask(rq.ReviewDecide(review=review, verdict=verdict, by="eve", note="why"))  # type: ignore[arg-type]


def test_the_last_verdict_comes_first_and_what_is_open_is_left_out(world: World) -> None:
    reviews = [left(world, f"{n}.py") for n in range(5)]
    for review, verdict in zip(reviews, ("keep", "revert", "keep", "keep"), strict=False):
        decide(world, review, verdict)
    world.ask(rq.ReviewUndo(review="R-1"))
    decide(world, "R-1", "keep")
    first = world.ask(rq.Reviews(state="decided", limit=3))
    assert [(row.review, row.state, row.decided_by, row.note) for row in first.items] == [
        ("R-1", "kept", "eve", "why"), ("R-4", "kept", "eve", "why"), ("R-3", "kept", "eve", "why")]
    assert (first.counts, first.next) == ({"kept": 3, "reverted": 1, "open": 1}, 3)
    rest = world.ask(rq.Reviews(state="decided", skip=3, limit=3))
    assert [row.review for row in rest.items] == ["R-2"] and rest.next is None
    assert [row.review for row in world.ask(rq.Reviews(state="all", skip=3)).items] == ["R-4", "R-5"]
    left(world, "other.py", agent="bob")
    assert world.ask(rq.Reviews(state="decided", agent="bob")).counts == {"open": 1}


def test_what_can_be_done_is_told_and_is_not_refused(world: World) -> None:
    left(world, "a.py")
    assert world.ask(rq.ReviewShow(review="R-1")).may == ["keep", "revert"]
    assert decide(world, "R-1", "revert").may == ["undo"]
    assert world.ask(rq.ReviewUndo(review="R-1")).may == ["keep", "revert"]
    world.ask(rq.TaskAdd(title="t", resources=["b.py"]))
    world.ask(rq.TaskAdd(title="next", after=["T-1"]))
    world.ask(rq.TaskClaim(agent="bob", task="T-1", ttl_s=5))
    world.write("b.py", "left\n")
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())
    assert world.ask(rq.ReviewShow(review="R-2")).may == ["keep", "revert", "reassign"]
    assert decide(world, "R-2", "keep").may == ["undo"]
    # What comes after its task has begun since: the verdict stands
    world.ask(rq.TaskClaim(agent="bob", task="T-2"))
    (row,) = [row for row in world.ask(rq.Reviews(state="decided")).items if row.review == "R-2"]
    assert row.may == []
    assert "has begun" in world.refused(rq.ReviewUndo(review="R-2")).message


def test_what_has_no_bytes_to_go_back_to_cannot_be_taken_back(world: World) -> None:
    left(world, "a.py")
    decide(world, "R-1", "revert")
    (left_hash,) = world.db.execute("SELECT verdict_hash FROM review_files").fetchone()
    world.db.execute("DELETE FROM blobs WHERE hash = ?", (left_hash,))
    assert world.ask(rq.ReviewShow(review="R-1")).may == []
