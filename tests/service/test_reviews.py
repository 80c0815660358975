"""Partial work: captured whole, shown, and settled by a human without losing anything."""

from __future__ import annotations

import base64
import contextlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordinator.settings import Reviewing, Settings
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.world import World


def open_review(world: World) -> rq.Review:
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())
    (review,) = world.ask(rq.Reviews()).items
    shown = world.ask(rq.ReviewShow(review=review.review, content=True))
    assert isinstance(shown, rq.Review)
    return shown


def content(data: str | None) -> bytes | None:
    return None if data is None else base64.b64decode(data)


def test_everything_below_a_leased_directory_is_captured(tmp_path: Path) -> None:
    # Given a leased directory with text, binary, large, linked and deleted files
    world = World(tmp_path, Settings(review=Reviewing(file_bytes_max=1000)))
    world.write("d/changed.py", "one\n")
    world.write("d/gone.py", "bye\n")
    world.write("d/same.py", "same\n")
    (world.root / "d/pic.bin").write_bytes(b"\0\1\2")
    (world.root / "d/large.bin").write_bytes(b"x" * 2000)
    os.symlink("same.py", world.root / "d/link")
    world.acquire("ann", "d/", ttl_s=5, description="a big change")
    # If all of it changes and the holder vanishes
    world.write("d/changed.py", "two\n")
    (world.root / "d/gone.py").unlink()
    world.write("d/sub/new.py", "new\n")
    (world.root / "d/pic.bin").write_bytes(b"\0\1\3")
    (world.root / "d/large.bin").write_bytes(b"y" * 2000)
    (world.root / "d/link").unlink()
    os.symlink("changed.py", world.root / "d/link")
    review = open_review(world)
    # I expect every change, with both sides; those of the large one as files
    found = {f.path: f for f in review.files}
    assert {p: f.change for p, f in found.items()} == {
        "d/changed.py": "modified", "d/gone.py": "deleted", "d/sub/new.py": "created",
        "d/pic.bin": "modified", "d/large.bin": "modified", "d/link": "modified",
    }
    assert content(found["d/gone.py"].baseline) == b"bye\n"
    assert content(found["d/sub/new.py"].flagged) == b"new\n"
    assert content(found["d/pic.bin"].baseline) == b"\0\1\2"
    assert "-one" in found["d/changed.py"].diff and "+two" in found["d/changed.py"].diff
    large = found["d/large.bin"]
    assert large.kept and large.baseline is None and "Large files" in large.diff
    assert Path(str(large.baseline_at)).read_bytes() == b"x" * 2000
    assert Path(str(large.flagged_at)).read_bytes() == b"y" * 2000
    assert (world.root / "d/changed.py").read_text() == "two\n", "coord reverted by itself"


def test_revert_and_undo_give_every_byte_back(world: World) -> None:
    world.write("a.py", "one\n")
    world.write("gone.py", "bye\n")
    os.symlink("a.py", world.root / "link")
    world.acquire("ann", "a.py", "gone.py", "new.py", "link", ttl_s=5)
    world.write("a.py", "two\n")
    (world.root / "gone.py").unlink()
    world.write("new.py", "new\n")
    review = open_review(world).review
    world.ask(rq.ReviewDecide(review=review, verdict="revert", by="eve"))
    assert (world.root / "a.py").read_text() == "one\n"
    assert (world.root / "gone.py").read_text() == "bye\n"
    assert not (world.root / "new.py").exists()
    world.ask(rq.ReviewUndo(review=review))
    assert (world.root / "a.py").read_text() == "two\n"
    assert not (world.root / "gone.py").exists()
    assert (world.root / "new.py").read_text() == "new\n"
    assert world.ask(rq.ReviewShow(review=review)).state == "open"
    assert world.replay_differs() == []


def test_revert_takes_only_the_partial_work_out(world: World) -> None:
    lines = [f"line {i}\n" for i in range(20)]
    world.write("a.py", "".join(lines))
    world.acquire("ann", "a.py", ttl_s=5)
    world.write("a.py", "".join(["HALF\n", *lines[1:]]))
    review = open_review(world).review
    world.write("a.py", "".join(["HALF\n", *lines[1:19], "after\n"]))
    world.ask(rq.ReviewDecide(review=review, verdict="revert"))
    assert (world.root / "a.py").read_text() == "".join([*lines[:19], "after\n"])


def test_revert_refuses_where_it_would_destroy_later_work(world: World) -> None:
    world.write("a.py", "one\n")
    world.write("b.py", "one\n")
    world.acquire("ann", "a.py", "b.py", ttl_s=5)
    world.write("a.py", "two\n")
    world.write("b.py", "two\n")
    review = open_review(world).review
    world.write("b.py", "three\n")
    refusal = world.refused(rq.ReviewDecide(review=review, verdict="revert"))
    assert refusal.code is Code.VERSION_CHANGED and "b.py" in refusal.message
    assert (world.root / "a.py").read_text() == "two\n", "half a revert"


def test_revert_waits_for_who_holds_the_file(world: World) -> None:
    world.acquire("ann", "a.py", ttl_s=5)
    world.write("a.py", "half")
    review = open_review(world).review
    world.acquire("bob", "a.py")
    refusal = world.refused(rq.ReviewDecide(review=review, verdict="revert"))
    assert refusal.code is Code.LOCKED and (world.root / "a.py").exists()


@pytest.mark.parametrize(
    ("verdict", "state"), [("keep", "done"), ("revert", "ready"), ("reassign", "ready")]
)
def test_the_task_follows_the_verdict_and_its_undo(
    world: World, verdict: str, state: str
) -> None:
    world.write("a.py", "one\n")
    task = world.task("change a", "a.py")
    world.ask(rq.TaskClaim(agent="ann", ttl_s=5))
    world.write("a.py", "half\n")
    review = open_review(world).review
    assert world.ask(rq.TaskShow(task=task)).state == "review"
    world.ask(rq.ReviewDecide(review=review, verdict=verdict))  # type: ignore[arg-type]
    assert world.ask(rq.TaskShow(task=task)).state == state
    world.ask(rq.ReviewUndo(review=review))
    assert world.ask(rq.TaskShow(task=task)).state == "review"
    if verdict == "reassign":
        world.ask(rq.ReviewDecide(review=review, verdict="reassign", note="keep the names"))
        got = world.ask(rq.TaskClaim(agent="bob"))
        assert got.partial.review == review and "+half" in got.partial.diff and got.partial.note == "keep the names"
        assert any('They say: "keep the names"' in one.text for one in world.ask(rq.Heartbeat(agent="ann")).notices)
        late = world.refused(rq.ReviewUndo(review=review))
        assert late.code is Code.BAD_TRANSITION
    assert world.replay_differs() == []


def test_an_agent_that_dies_leaves_its_last_words(world: World) -> None:
    world.task("t", "a.py")
    world.ask(rq.TaskClaim(agent="ann"))
    world.write("a.py", "half")
    left = world.ask(rq.Leave(agent="ann", clean=False, log_tail="Segmentation fault\n"))
    shown = world.ask(rq.ReviewShow(review=left.reviews[0]))
    assert "Segmentation fault" in shown.log_tail and shown.reason == "left"
    assert any("ann got a.py" in line for line in shown.timeline)


def test_a_silent_agent_is_stale_and_its_work_is_flagged(world: World) -> None:
    world.ask(rq.Register(agent="ann", silence_s=60))
    world.acquire("ann", "a.py", ttl_s=7200)
    world.write("a.py", "half")
    world.clock.advance(61_000)
    swept = world.ask(rq.Sweep())
    assert swept.stale == ["ann"] and swept.reviews == ["R-1"]


def test_clean_leave_and_unchanged_files_open_no_review(world: World) -> None:
    world.write("a.py", "same")
    world.acquire("ann", "a.py", "key:x", ttl_s=5)
    world.clock.advance(5_000)
    world.ask(rq.Sweep())
    world.acquire("bob", "a.py")
    world.write("a.py", "finished")
    world.ask(rq.Leave(agent="bob"))
    assert world.ask(rq.Reviews(state="all")).items == []


def with_a_twin(tmp_path: Path) -> tuple[World, Path]:
    """A world with `a.py`, and a linked worktree whose branch has another version of it."""
    world = World(tmp_path / "main", git=True)
    git = ["git", "-C", str(world.root), "-c", "user.name=n", "-c", "user.email=e@x"]
    world.write("a.py", "main\n")
    subprocess.run([*git, "add", "a.py"], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    twin = tmp_path / "twin"
    subprocess.run([*git, "worktree", "add", "-q", "-b", "side", str(twin)], check=True)
    (twin / "a.py").write_text("side\n")
    return world, twin


def test_the_twin_in_a_linked_worktree_is_compared_with_itself(tmp_path: Path) -> None:
    world, twin = with_a_twin(tmp_path)
    # If it is leased there, and lapses there unchanged
    world.acquire("ann", str(twin / "a.py"), ttl_s=5)
    refusal = world.refused(rq.Acquire(agent="bob", resources=["a.py"], retry=False))
    assert refusal.code is Code.LOCKED
    world.clock.advance(5_000)
    world.ask(rq.Sweep())
    # I expect no review; and one over the twin's bytes when it did change
    assert world.ask(rq.Reviews()).items == []
    world.acquire("ann", str(twin / "a.py"), ttl_s=5)
    (twin / "a.py").write_text("half\n")
    review = open_review(world)
    assert content(review.files[0].baseline) == b"side\n"
    world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert (twin / "a.py").read_text() == "side\n"
    assert (world.root / "a.py").read_text() == "main\n"
    world.close()


@pytest.mark.parametrize("ask", [
    lambda twin: rq.Acquire(agent="bob", resources=["a.py"], cwd=twin, retry=True, ttl_s=5),
    lambda twin: rq.RequestFile(agent="bob", resource="a.py", reason="I have to", cwd=twin),
])
def test_who_waited_in_a_linked_worktree_holds_the_file_there(
    tmp_path: Path, ask: Callable[[str], rq.Request[Any]]
) -> None:
    """What it then changes there is its work, and what is half done there is flagged."""
    world, twin = with_a_twin(tmp_path)
    world.acquire("ann", "a.py")
    world.ask(rq.Register(agent="bob"))
    with contextlib.suppress(Refusal):
        world.ask(ask(str(twin)))
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    lease = world.ask(rq.Locks()).items[0]
    assert (lease.locked_by, lease.resource) == ("bob", "a.py")
    (twin / "a.py").write_text("half\n")
    review = open_review(world)
    assert [(f.path, content(f.baseline)) for f in review.files] == [("a.py", b"side\n")]
    world.close()


def test_compaction_keeps_what_a_review_and_an_open_task_need(world: World) -> None:
    world.write("a.py", "one\n")
    world.acquire("ann", "a.py", ttl_s=5)
    world.write("a.py", "two\n")
    review = open_review(world).review
    for i in range(300):
        world.acquire("bob", f"x{i}.py")
        world.ask(rq.Release(agent="bob", resources=[f"x{i}.py"]))
    world.clock.advance(90 * 86_400_000)
    world.ask(rq.Compact(keep_days=1))
    shown = world.ask(rq.ReviewShow(review=review, content=True))
    assert content(shown.files[0].baseline) == b"one\n" and shown.timeline
    world.ask(rq.ReviewDecide(review=review, verdict="keep"))
    world.clock.advance(90 * 86_400_000)
    done = world.ask(rq.Compact(keep_days=1))
    assert done.events_removed > 300
    assert world.replay_differs() == []
    world.restart()
    before = int(world.db.execute("SELECT value FROM counters WHERE name = 'fencing'").get)
    assert world.acquire("cyd", "new.py").leases[0].fencing_token > before
    assert world.replay_differs() == []


def test_a_flood_of_new_files_does_not_stop_the_sweep(world: World) -> None:
    world.service.settings = Settings(review=Reviewing(files_max=3))
    world.write("d/a.py", "one\n")
    world.acquire("ann", "d/", "b.py", ttl_s=5)
    world.write("d/a.py", "two\n")
    for i in range(20):
        world.write(f"d/new{i}.py", "x")
    review = open_review(world)
    assert [f.path for f in review.files] == ["d/a.py"]
    assert any("not compared" in e.text for e in world.ask(rq.Events(limit=500)).items)


def test_reassigned_work_waits_for_its_own_task(tmp_path: Path) -> None:
    # Given partial work in a file that another task, of higher priority, wants too
    world = World(tmp_path, Settings(review=Reviewing(quarantine=True)))
    world.write("a.py", "one\n")
    first = world.task("first", "a.py")
    world.ask(rq.TaskClaim(agent="ann", ttl_s=5))
    second = world.task("second", "a.py", priority=9)
    world.write("a.py", "torn")
    review = open_review(world).review
    assert world.refused(rq.TaskClaim(agent="bob")).code is Code.NOTHING_TO_DO
    # If it is reassigned
    world.ask(rq.ReviewDecide(review=review, verdict="reassign"))
    # I expect its own task to be offered first, and the other one only when that is done
    claimed = world.ask(rq.TaskClaim(agent="bob"))
    assert claimed.task.task == first and claimed.partial.review == review
    assert world.refused(rq.TaskClaim(agent="cyd")).code is Code.NOTHING_TO_DO
    world.ask(rq.TaskDone(agent="bob", task=first))
    assert world.ask(rq.TaskClaim(agent="cyd")).task.task == second
    assert world.replay_differs() == []
    world.close()


def test_work_that_goes_on_is_not_kept_back_by_who_waits_for_it(tmp_path: Path) -> None:
    # Given a task whose partial work goes back to it, one of higher priority that wants that file,
    # and somebody who has the file meanwhile: both wait for that one
    world = World(tmp_path, Settings(review=Reviewing(quarantine=True)))
    world.write("f", "one\n")
    first = world.task("go on", "f")
    world.ask(rq.TaskClaim(agent="ann", task=first))
    world.write("f", "half\n")
    world.ask(rq.Leave(agent="ann", clean=False))
    review = world.ask(rq.Reviews()).items[0].review
    world.ask(rq.ReviewDecide(review=review, verdict="reassign"))
    later = world.task("urgent", "f", priority=5)
    world.acquire("cyd", "f")
    assert world.refused(rq.TaskClaim(agent="bob")).code is Code.NOTHING_TO_DO
    # If the file is free again
    world.ask(rq.Release(agent="cyd", resources=["f"]))
    # I expect that the work goes on, and then the urgent one has its turn
    assert world.ask(rq.TaskClaim(agent="bob")).task.task == first
    assert world.refused(rq.TaskClaim(agent="dan")).code is Code.NOTHING_TO_DO
    world.ask(rq.TaskDone(agent="bob", task=first))
    assert world.ask(rq.TaskClaim(agent="dan")).task.task == later
    world.close()


def test_a_review_keeps_back_what_a_glob_means_and_nothing_else(tmp_path: Path) -> None:
    world = World(tmp_path, Settings(review=Reviewing(quarantine=True)))
    world.write("d/b.py", "one\n")
    world.acquire("ann", "d/b.py")
    world.write("d/b.py", "half\n")
    world.ask(rq.Leave(agent="ann", clean=False))
    assert [one.resource for one in world.acquire("bob", "**/a.py").leases] == ["**/a.py"]
    assert world.refused(rq.Acquire(agent="cyd", resources=["**/b.py"])).code is Code.REVIEW_OPEN
    world.close()


def test_cancelling_reassigned_work_lets_others_go_on(tmp_path: Path) -> None:
    world = World(tmp_path, Settings(review=Reviewing(quarantine=True)))
    world.write("a.py", "one\n")
    first = world.task("first", "a.py")
    world.ask(rq.TaskClaim(agent="ann", ttl_s=5))
    second = world.task("second", "a.py", priority=9)
    world.write("a.py", "torn")
    world.ask(rq.ReviewDecide(review=open_review(world).review, verdict="reassign"))
    world.ask(rq.TaskCancel(task=first))
    assert world.ask(rq.TaskClaim(agent="cyd")).task.task == second
    world.close()


def test_who_holds_what_the_reassigned_task_needs_is_not_held_up_by_it(tmp_path: Path) -> None:
    # Given reassigned work on a file that its task had come upon, and a task file held by another
    world = World(tmp_path, Settings(review=Reviewing(quarantine=True)))
    world.write("found.py", "one\n")
    task = world.task("first", "declared.py")
    world.ask(rq.TaskClaim(agent="ann", ttl_s=5))
    world.acquire("ann", "found.py", task=task, ttl_s=5)
    waiting = world.task("waiting", "found.py")
    world.write("found.py", "torn")
    review = open_review(world).review
    world.acquire("bob", "declared.py")
    assert world.refused(rq.TaskClaim(agent="cyd")).code is Code.NOTHING_TO_DO
    world.ask(rq.ReviewDecide(review=review, verdict="reassign"))
    # If that other one needs the file too
    world.acquire("bob", "found.py")
    world.ask(rq.Release(agent="bob", resources=["found.py", "declared.py"]))
    # I expect neither to wait for the other, and nobody to be forgotten
    assert world.ask(rq.TaskClaim(agent="ann")).task.task == task
    assert world.ask(rq.TaskClaim(agent="cyd")).task.task == waiting
    world.close()


# ------------------------------------------------------------- tasks that follow a verdict


def under_review(world: World, **more: Any) -> tuple[str, str]:
    """A task whose partial work waits for a verdict; and that review."""
    world.write("a.py", "one\n")
    task = world.task("first", "a.py", **more)
    world.ask(rq.TaskClaim(agent="ann", ttl_s=5))
    world.write("a.py", "half\n")
    return task, open_review(world).review


def state_of(world: World, task: str) -> str:
    return str(world.ask(rq.TaskShow(task=task)).state)


def test_undoing_a_keep_takes_what_comes_after_it_back(world: World) -> None:
    # Given a chain of tasks of which the first was kept, so that the next ones may start
    task, review = under_review(world)
    held = world.acquire("eve", "held.py").leases[0].resource
    then = [world.task("second", "b.py", after=[task]), world.task("third", held, after=[task])]
    last = world.task("last", after=then)
    gone = world.task("not wanted", after=[task])
    world.ask(rq.TaskCancel(task=gone))
    world.ask(rq.ReviewDecide(review=review, verdict="keep"))
    assert [state_of(world, name) for name in (*then, last)] == ["ready", "ready", "pending"]
    assert world.refused(rq.TaskClaim(agent="bob", task=then[1])).code is Code.LOCKED
    # If that is undone
    world.ask(rq.ReviewUndo(review=review))
    assert world.ask(rq.TaskShow(task="T-1")).result is None, "it was not kept after all"
    # I expect them to wait for it again
    assert [state_of(world, name) for name in (task, *then, last, gone)] == [
        "review", "pending", "pending", "pending", "cancelled"]
    assert world.refused(rq.TaskClaim(agent="bob")).code is Code.NOTHING_TO_DO
    assert world.replay_differs() == []
    # and to start when it is done after all
    world.ask(rq.ReviewDecide(review=review, verdict="keep"))
    assert world.ask(rq.TaskClaim(agent="bob")).task.task == then[0]


@pytest.mark.parametrize("how", ["claimed", "done", "failed", "review"])
def test_a_keep_that_others_have_built_on_is_not_undone(world: World, how: str) -> None:
    task, review = under_review(world)
    after = world.task("second", "b.py", after=[task])
    world.ask(rq.ReviewDecide(review=review, verdict="keep"))
    world.ask(rq.TaskClaim(agent="bob", task=after))
    if how == "done":
        world.ask(rq.TaskDone(agent="bob", task=after))
    elif how == "failed":
        world.ask(rq.TaskFail(agent="bob", task=after))
    elif how == "review":
        world.write("b.py", "half\n")
        world.ask(rq.TaskFail(agent="bob", task=after))
    assert state_of(world, after) == how
    before = world.rows()
    refusal = world.refused(rq.ReviewUndo(review=review))
    assert refusal.code is Code.BAD_TRANSITION
    assert f"{after} (it is {'in review' if how == 'review' else how})" in refusal.message and world.rows() == before


def test_reassigned_work_gives_its_attempt_back(world: World) -> None:
    """Whoever goes on with it does not use up another; and an undo counts it again."""
    task, review = under_review(world, attempts_max=2)
    assert world.ask(rq.TaskShow(task=task)).attempts == 1
    world.ask(rq.ReviewDecide(review=review, verdict="reassign"))
    assert world.ask(rq.TaskShow(task=task)).attempts == 0
    world.ask(rq.ReviewUndo(review=review))
    assert world.ask(rq.TaskShow(task=task)).attempts == 1
    world.ask(rq.ReviewDecide(review=review, verdict="revert"))
    assert world.ask(rq.TaskShow(task=task)).attempts == 1
    world.ask(rq.ReviewUndo(review=review))
    world.ask(rq.ReviewDecide(review=review, verdict="reassign"))
    assert world.ask(rq.TaskClaim(agent="bob")).task.attempts == 1
    assert world.replay_differs() == []


@pytest.mark.parametrize("lapsed", [False, True])
def test_what_a_forced_release_leaves_half_done_is_flagged(world: World, lapsed: bool) -> None:
    world.write("f.py", "one\n")
    world.acquire("ann", "f.py", ttl_s=5)
    world.write("f.py", "half\n")
    if lapsed:
        world.clock.advance(5_000)
    world.ask(rq.Release(agent="bob", resources=["f.py"], force=True))
    (review,) = world.ask(rq.Reviews()).items
    assert review.agent == "ann" and [f.path for f in review.files] == ["f.py"]
    world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert (world.root / "f.py").read_text() == "one\n"


def test_a_forced_release_of_untouched_work_flags_nothing(world: World) -> None:
    world.write("f.py", "one\n")
    world.acquire("ann", "f.py")
    world.ask(rq.Release(agent="bob", resources=["f.py"], force=True))
    assert world.ask(rq.Reviews(state="all")).items == []


def test_reassigned_work_that_dead_letters_waits_for_a_human_again(world: World) -> None:
    task, review = under_review(world, attempts_max=1)
    world.ask(rq.ReviewDecide(review=review, verdict="reassign"))
    world.ask(rq.TaskClaim(agent="bob"))
    world.ask(rq.TaskFail(agent="bob", task=task, reason="cannot"))
    assert state_of(world, task) in ("dead", "review")
    assert [r.review for r in world.ask(rq.Reviews()).items], "nobody looks at it any more"


def test_the_story_of_a_file_tells_of_its_reviews(world: World) -> None:
    world.write("a.py", "one\n")
    world.write("b.py", "one\n")
    world.acquire("ann", "a.py")
    world.write("a.py", "half\n")
    open_review(world)
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert", by="eve"))
    world.ask(rq.ReviewUndo(review="R-1", by="eve"))
    story = "\n".join(world.ask(rq.Explain(subject="a.py")).sentences)
    for said in ("ann got a.py", "R-1 was opened: ann changed a.py", "the revert of R-1 is done", "the verdict on R-1 was undone by eve"):
        assert said in story, (said, story)
    assert "coord/" not in story
    assert "R-1" not in "\n".join(world.ask(rq.Explain(subject="b.py")).sentences)


@pytest.mark.parametrize("quarantine", [False, True])
def test_a_task_that_a_review_keeps_from_beginning_says_so(tmp_path: Path, quarantine: bool) -> None:
    world = World(tmp_path, Settings(review=Reviewing(quarantine=quarantine)))
    world.write("d/a.py", "one\n")
    world.acquire("ann", "d/a.py")
    world.write("d/a.py", "half\n")
    world.ask(rq.Leave(agent="ann", clean=False))
    tasks = [world.task("t", name) for name in ("d/", "d/*.py", "d/b.py")]
    told = [world.ask(rq.TaskShow(task=task)).explanation for task in tasks]
    why = "ready, but the review R-1 of d/a.py waits for a verdict (`coord review show R-1`)"
    assert told == ([why, why, ""] if quarantine else ["", "", ""])
    world.ask(rq.ReviewDecide(review="R-1", verdict="keep"))
    assert world.ask(rq.TaskShow(task=tasks[0])).explanation == ""
    world.close()


@pytest.mark.parametrize("quarantine", [False, True])
@pytest.mark.parametrize(("verdict", "state"), [("keep", "done"), ("revert", "ready"), ("reassign", "ready"), (None, "ready")])
def test_a_cancelled_task_that_is_put_back_waits_for_its_verdict_again(tmp_path: Path, quarantine: bool, verdict: Any,
                                                                      state: str) -> None:
    """Else it would be ready, and nobody could go on with what waits for a person."""
    world = World(tmp_path, Settings(review=Reviewing(quarantine=quarantine)))
    world.write("a.py", "one\n")
    task = world.task("t", "a.py")
    later = world.task("after it", "b.py", after=[task])
    world.ask(rq.TaskClaim(agent="ann", task=task))
    world.write("a.py", "half\n")
    world.ask(rq.TaskCancel(task=task, force=True))
    review = world.ask(rq.Reviews()).items[0].review
    assert world.ask(rq.TaskShow(task=later)).state == "blocked"
    if verdict is None:  # it was decided before that
        world.ask(rq.ReviewDecide(review=review, verdict="revert"))
    put_back = world.ask(rq.TaskRetry(task=task))
    world.settle()
    assert world.ask(rq.TaskShow(task=later)).state == "pending"
    if verdict is not None:
        assert put_back.state == "review" and world.refused(rq.TaskClaim(agent="bob")).code is Code.NOTHING_TO_DO
        assert review in world.ask(rq.TaskShow(task=task)).explanation
        world.ask(rq.ReviewDecide(review=review, verdict=verdict))
    assert world.ask(rq.TaskShow(task=task)).state == state
    if state == "ready":
        assert world.ask(rq.TaskClaim(agent="bob")).task.task == task
    assert world.replay_differs() == []
    world.close()
