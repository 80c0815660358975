"""Every no about a review, whole: what happened, what was left unharmed, what to do next, the facts.
And one story of a review from its beginning, with all that is answered and noted."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks.in_process import Worker
from coordinator.settings import Reviewing, Settings
from coordinator.slices.review import verdicts
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from tests.files.faults import FaultyKernel
from tests.golden import assert_golden, said
from tests.world import World

REVERT = rq.ReviewDecide(review="R-1", verdict="revert", by="eve", note="no good")
UNDO = rq.ReviewUndo(review="R-1", by="eve")


def decide(verdict: str, review: str = "R-1") -> rq.ReviewDecide:
    return rq.ReviewDecide(review=review, verdict=verdict)  # type: ignore[arg-type]


def lapse(world: World) -> None:
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())


def partial(world: World, *names: str, task: str | None = None, before: str = "one\n", after: str = "half\n") -> None:
    """Work of ann's on these files that she leaves half done."""
    for name in names:
        world.write(name, before)
        (world.root / name).chmod(0o644)
    world.acquire("ann", *names, ttl_s=5, task=task)
    for name in names:
        world.write(name, after)
    lapse(world)


class Said:
    """What was said, without what differs from run to run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.text = folder, ""

    def world(self, name: str, git: bool = False) -> World:
        return World(self.folder / name, git=git)

    def refused(self, case: str, world: World, request: Any) -> Refusal:
        refusal = world.refused(request)
        self.add(case, world, refusal)
        return refusal

    def add(self, case: str, world: World, refusal: Any) -> None:
        assert isinstance(refusal, Refusal), refusal
        text = said(case, refusal).replace(str(world.root), "ROOT").replace(str(self.folder), "FOLDER")
        self.text += re.sub(r"-inum \d+", "-inum N", text)


@pytest.fixture
def words(tmp_path: Path) -> Said:
    return Said(tmp_path)


def test_what_may_not_be_decided(words: Said) -> None:
    world = words.world("one")
    words.refused("no such review", world, decide("keep", " " + "x" * 70))
    partial(world, "a")
    story = world.ask(rq.Explain(subject="r-1")).sentences
    assert [line.partition(" ")[2].partition(" (")[0] for line in story[:2]] == ["ann registered", "ann got a"]
    words.refused("no task to reassign", world, decide("reassign"))
    words.refused("nothing to undo", world, UNDO)
    for spelling in ("r-1", " 1 ", "R-1\n"):
        assert world.ask(rq.ReviewShow(review=spelling)).review == "R-1"
    world.ask(decide("keep"))
    words.refused("decided already", world, REVERT)
    world.close()
    world = words.world("two")
    task = world.task("first", "t")
    world.ask(rq.TaskClaim(agent="ann", ttl_s=5))
    world.write("t", "half\n")
    lapse(world)
    after = [world.task(f"then {n}", f"then{n}", after=[task]) for n in range(7)]
    world.ask(decide("keep"))
    for name in after[:6]:
        world.ask(rq.TaskClaim(agent=f"b-{name}", task=name))
    words.refused("what comes after has begun", world, UNDO)
    for name in after[1:6]:
        world.ask(rq.TaskCancel(task=name, force=True))
    words.refused("one of it has begun", world, UNDO)
    world.ask(rq.TaskCancel(task=after[0], force=True))
    assert world.ask(UNDO).state == "open"
    world.ask(decide("reassign"))
    world.ask(rq.TaskClaim(agent="bob", task=task))
    words.refused("its task went on", world, UNDO)
    world.close()
    assert_golden("reviews_not_decided.txt", words.text)


def test_what_cannot_be_written(words: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    world = words.world("one")
    names = [f"d/{n:02}" for n in range(12)]
    partial(world, *names)
    world.acquire("bob", "d/03")
    words.refused("somebody holds one", world, REVERT)
    world.ask(rq.Release(agent="bob", resources=["d/03"]))
    world.ask(REVERT)
    world.acquire("bob", "d/")
    words.refused("somebody holds the directory", world, UNDO)
    world.ask(rq.Release(agent="bob", resources=["d/"]))
    world.write("d/05", "later\n")
    words.refused("one was changed since", world, UNDO)
    for name in names:
        world.write(name, "later\n")
    words.refused("all were changed since", world, UNDO)
    world.close()

    world = words.world("two")
    partial(world, "a")
    world.write("a", "theirs\n")
    words.refused("changed in the same lines", world, REVERT)
    world.ask(decide("keep"))
    partial(world, "dd/f")
    shutil.rmtree(world.root / "dd")
    (world.root / "dd").symlink_to(words.folder)
    words.refused("behind a link", world, rq.ReviewDecide(review="R-2", verdict="revert"))
    world.close()

    world = words.world("of a worktree", git=True)
    world.write("a", "one\n")
    there = words.folder / "there"
    for git in (["add", "a"], ["-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "-qm", "x"], ["worktree", "add", "-q", "--detach", str(there)]):
        subprocess.run(["git", *git], cwd=world.root, check=True)
    for turn in (1, 2):
        world.ask(rq.Acquire(agent="ann", resources=["a"], cwd=str(there), ttl_s=5))
        (there / "a").write_text(f"half {turn}\n")
        lapse(world)
        if turn == 1:
            world.ask(REVERT)
    shutil.rmtree(there)
    words.refused("its working tree is gone", world, rq.ReviewDecide(review="R-2", verdict="revert"))
    words.refused("its working tree is gone since the revert", world, UNDO)
    world.close()

    world = words.world("three")
    partial(world, "a")

    def unreadable(*args: object, **more: object) -> None:
        raise OSError(errno.EIO, "no")

    from coordinator.kernel import repository_files

    with monkeypatch.context() as patch:
        patch.setattr(repository_files, "_snapshot", unreadable)
        words.refused("cannot be read", world, REVERT)
    world.close()
    assert_golden("reviews_not_written.txt", words.text)


def test_what_is_not_kept(words: Said) -> None:
    world = words.world("one")
    world.service.settings = Settings(review=Reviewing(file_bytes_max=1000, kept_bytes_max=150_000))
    (world.root / "f").write_bytes(b"1" * 100_000)
    world.acquire("ann", "f", ttl_s=5)
    (world.root / "f").write_bytes(b"2" * 100_000)
    lapse(world)
    assert world.ask(rq.ReviewShow(review="R-1", content=True)).files[0].note == (
        "over the budget (review.kept_bytes_max): hashes are kept, not the bytes")
    words.refused("what is there cannot be kept", world, REVERT)
    world.service.settings = Settings(review=Reviewing(file_bytes_max=1000))
    world.ask(REVERT)
    world.service.settings = Settings(review=Reviewing(file_bytes_max=1000, kept_bytes_max=100_000))
    for path in world.service.blobs.path.iterdir():
        path.unlink()
    words.refused("what was there before the revert is gone", world, UNDO)
    world.close()
    world = words.world("two")
    world.service.settings = Settings(review=Reviewing(file_bytes_max=1000, kept_bytes_max=50_000))
    (world.root / "f").write_bytes(b"1" * 90_000)
    world.acquire("ann", "f", ttl_s=5)
    world.write("f", "half\n")
    lapse(world)
    assert world.ask(rq.ReviewShow(review="R-1")).files[0].note == "its bytes before the change are not known to coord"
    words.refused("what was there at the lease is not kept", world, REVERT)
    world.close()
    assert_golden("reviews_not_kept.txt", words.text)


def test_how_a_verdict_fails_half_way(words: Said) -> None:
    def struck(world: World, when: Callable[[], bool], act: Callable[[], object], request: Any, before: str = "") -> Refusal:
        """What is said when `act` is done, once, before an operation on the disk of this name."""
        met: list[bool] = []

        def look() -> None:
            if not met and kernel.said.startswith(before) and when():
                met.append(True)
                act()

        with FaultyKernel(1, look, for_good=True) as kernel:
            return world.refused(request)

    def fails() -> None:
        raise OSError(errno.EIO, "Input/output ERROR")

    def half(world: World, name: str, text: str = "one\n") -> Callable[[], bool]:
        return lambda: (world.root / name).read_text() == text

    world = words.world("one")
    world.checked = False
    partial(world, "a", "b", "c")
    words.add("one was changed", world, struck(world, half(world, "a"), lambda: world.write("c", "theirs\n"), REVERT))
    world.write("c", "half\n")
    words.add("one cannot be written", world, struck(world, half(world, "a"), fails, REVERT, "exchange"))

    def two() -> None:
        world.write("a", "theirs\n")
        world.write("c", "theirs\n")

    words.add("and one that was written was changed", world, struck(world, half(world, "b"), two, REVERT))
    world.write("a", "half\n")
    world.write("c", "half\n")
    world.ask(REVERT)
    words.add("an undo that failed", world, struck(world, half(world, "a", "half\n"), lambda: world.write("c", "theirs\n"), UNDO))
    world.write("c", "one\n")
    words.add("an undo that cannot write", world, struck(world, half(world, "a", "half\n"), fails, UNDO, "exchange"))
    assert world.ask(rq.ReviewShow(review="R-1")).state == "reverted"
    world.close()

    world = words.world("two")
    world.checked = False
    partial(world, "a/f", "b/f", "c/f")

    def swap() -> None:
        (world.root / "a").rename(world.root / "moved")
        (world.root / "a").symlink_to(words.folder)
        world.write("c/f", "theirs\n")

    words.add("stuck", world, struck(world, half(world, "b/f"), swap, REVERT))
    shown = world.ask(rq.ReviewShow(review="R-1"))
    assert (shown.under_way, shown.state) == ("revert", "open")
    row = verdicts.reviews.find(world.view(), "R-1")
    words.text += f"under way: {verdicts.describe(world.view(), row)}\n"
    (world.root / "a").unlink()
    (world.root / "moved").rename(world.root / "a")
    words.refused("gone on from", world, decide("keep"))
    assert verdicts.describe(world.view(), row) == ""
    world.close()
    assert_golden("reviews_half_way.txt", words.text)


def test_a_verdict_is_asked_for_twice_or_cut_off(words: Said) -> None:
    class Stopping(Worker):
        def halted(self) -> bool:
            return True

    world = words.world("one")
    partial(world, "a")
    course = verdicts.carry_out(world.service, REVERT)
    plan: Any = next(course)
    begin: Any = course.send(plan.work(Worker(world.engine)))
    journal = world.part(begin)
    second = verdicts.carry_out(world.service, UNDO)
    step: Any = course.send(journal)
    plan = next(second)
    with pytest.raises(StopIteration) as end:
        second.send(plan.work(Worker(world.engine)))
    words.add("it is carried out", world, end.value.value)
    with pytest.raises(StopIteration) as end:
        course.send(step.work(Stopping(world.engine)))
    words.add("the coordinator stops", world, end.value.value)
    assert (world.root / "a").read_text() == "half\n"
    kept = world.db.execute("SELECT hash, size, data, mode FROM blobs").fetchall()
    world.db.execute("DELETE FROM blobs")
    world.checked = False
    (lost,) = world.resume()
    words.add("a content was lost meanwhile", world, lost)
    world.db.executemany("INSERT INTO blobs VALUES (?, ?, ?, ?)", kept)
    assert (world.root / "a").read_text() == "half\n"
    course = verdicts.carry_out(world.service, REVERT)
    begin = course.send((next(course)).work(Worker(world.engine)))  # type: ignore[union-attr]
    world.part(begin)
    (reply,) = world.resume()
    assert reply.state == "reverted" and (world.root / "a").read_text() == "one\n"
    world.close()
    assert_golden("reviews_cut_off.txt", words.text)


def full(value: Any) -> Any:
    """Without fields that are empty."""
    if isinstance(value, dict):
        return {name: full(one) for name, one in value.items() if one not in (None, "", [], {})}
    return [full(one) for one in value] if isinstance(value, list) else value


def test_the_story_of_a_review(words: Said) -> None:
    """All answers and all that is noted, from the lease to an undo."""
    world = words.world("repo")
    told: list[Any] = []

    def ask(request: rq.Request[Any]) -> Any:
        answer = world.ask(request)
        told.append((type(request).__name__, msgspec.to_builtins(answer)))
        return answer

    task = world.task("first", "d/", "e")
    for name, mode in (("d/a", 0o600), ("d/gone", 0o640), ("d/run", 0o755), ("e", 0o644)):
        world.write(name, f"{name} one\n")
        (world.root / name).chmod(mode)
    os.link(world.root / "e", world.root / "also e")
    ask(rq.TaskClaim(agent="ann", ttl_s=5))
    world.write("d/a", "half\n")
    (world.root / "d/gone").unlink()
    (world.root / "d/run").chmod(0o644)
    (world.root / "d/link").symlink_to("a")
    (world.root / "e").write_text("e half\n")
    (world.root / "d/odd").write_bytes(b"\0\1")
    for name in ("d/a", "d/run", "d/odd"):
        (world.root / name).chmod(0o600)
    lapse(world)
    ask(rq.ReviewShow(review="R-1", content=True))
    ask(REVERT)
    ask(rq.Reviews(state="all"))
    ask(rq.ReviewShow(review="R-1"))
    world.clock.advance(1000)
    ask(UNDO)
    ask(rq.ReviewDecide(review="R-1", verdict="reassign", note="x" * 2001))
    ask(rq.ReviewUndo(review="R-1"))
    ask(decide("keep"))
    ask(rq.TaskShow(task=task))
    ask(rq.Explain(subject="r-1"))
    ask(rq.Explain(subject=task))
    ask(rq.Explain(subject="ann"))
    ask(rq.Explain(subject="d/"))
    ask(rq.Explain(subject="nothing"))
    ask(rq.Status(events=3))
    ask(rq.Events(limit=2))
    ask(rq.Events(limit=2, tail=True, agent="ann"))
    ask(rq.Events(limit=2, after=3, kind="lease_granted"))
    ask(rq.Events(limit=500))
    text = "\n\n".join(f"{name}\n{msgspec.json.encode(full(body)).decode()}" for name, body in told).replace("},{", "},\n{")
    for varying, put in ((r'"(inode|token)":"[^"]*"', r'"\1":"…"'), (r"-[0-9a-f]{8}\.tmp", "-….tmp"), ("([0-9a-f]{8})[0-9a-f]{56}", r"\1…")):
        text = re.sub(varying, put, text)
    text = text.replace(str(world.root), "ROOT").replace(str(words.folder), "FOLDER")
    world.close()
    assert_golden("review_story.txt", text)


def test_odd_permission_bits_stay_as_they_were(words: Said) -> None:
    world = words.world("one")

    def mode(name: str) -> int:
        return (world.root / name).stat().st_mode & 0o7777

    for name, bits in (("odd", 0o744), ("gone", 0o640), ("run", 0o755), ("became", 0o640)):
        world.write(name, f"{name} one\n")
        (world.root / name).chmod(bits)
    world.acquire("ann", "odd", "gone", "run", "became", ttl_s=5)
    world.write("odd", "half\n")
    (world.root / "gone").unlink()
    (world.root / "run").unlink()
    (world.root / "became").chmod(0o751)
    lapse(world)
    world.db.execute("UPDATE blobs SET mode = NULL")  # of a file that was kept before bits were
    world.ask(REVERT)
    assert [mode(name) for name in ("odd", "gone", "run", "became")] == [0o744, 0o644, 0o755, 0o640]
    world.ask(UNDO)
    assert [mode(name) for name in ("odd", "became")] == [0o744, 0o751]
    assert not (world.root / "gone").exists()
    world.close()


def test_an_attempt_that_is_gone_on_from_is_counted_once(words: Said) -> None:
    world = words.world("one")
    task = world.task("t", "a")
    world.ask(rq.TaskClaim(agent="ann"))
    world.ask(rq.TaskFail(agent="ann", task=task, reason="no"))
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())
    world.ask(rq.TaskClaim(agent="ann", ttl_s=5))
    world.write("a", "half\n")
    lapse(world)
    counts = [world.ask(rq.TaskShow(task=task)).attempts]
    for request in (decide("reassign"), UNDO, decide("revert"), UNDO):
        world.ask(request)
        counts.append(world.ask(rq.TaskShow(task=task)).attempts)
    assert counts == [2, 1, 2, 2, 2]
    world.close()
