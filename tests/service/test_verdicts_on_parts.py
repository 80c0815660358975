"""A verdict on some files of a review, or some hunks of one: the rest stays open, and nothing is lost.

The checker of `tests/world.py` replays the log after every commit of these, too.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.in_process import Worker
from coordinator.kernel.use_cases import OnDisk, Write
from coordinator.settings import Settings, Verifying
from coordinator.slices.review import verdicts
from coordinator.slices.verify import verifications
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.effort import EFFORT
from tests.files.faults import Crash, FaultyKernel
from tests.world import World

LINES = [f"line {n}\n" for n in range(60)]
#: Three changes far from each other: three hunks.
CHANGED = {5: "FIVE\n", 30: "THIRTY\n", 55: "FIFTY-FIVE\n"}


def text(*numbers: int, more: str = "") -> str:
    """The file with these of its changes."""
    places = dict(zip((1, 2, 3), CHANGED, strict=True))
    made = {places[n] for n in numbers}
    return "".join(CHANGED[at] if at in made else line for at, line in enumerate(LINES)) + more


def flagged(world: World, *, task: str = "") -> None:
    """R-1 of four files: one of three hunks, one small, one new, one removed."""
    world.write("a.py", text())
    world.write("b.py", "one\n")
    world.write("gone.py", "bye\n")
    if task:
        world.ask(rq.TaskAdd(title="t", resources=["a.py", "b.py", "gone.py", "new.py"]))
        world.ask(rq.TaskClaim(agent="ann", task=task, ttl_s=5))
    else:
        world.acquire("ann", "a.py", "b.py", "gone.py", "new.py", ttl_s=5)
    world.write("a.py", text(1, 2, 3))
    world.write("b.py", "two\n")
    (world.root / "gone.py").unlink()
    world.write("new.py", "new\n")
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())


def decide(verdict: str, *files: str, hunks: Iterable[int] = (), review: str = "R-1") -> rq.ReviewDecide:
    return rq.ReviewDecide(review=review, verdict=verdict, by="eve", files=list(files),  # type: ignore[arg-type]
                           hunks=list(hunks))


def read(world: World, path: str) -> str | None:
    place = world.root / path
    return place.read_text() if place.exists() else None


def shown(world: World, review: str) -> rq.Review:
    found = world.ask(rq.ReviewShow(review=review, content=True))
    assert isinstance(found, rq.Review)
    return found


def sides(world: World, review: str, path: str = "a.py") -> tuple[str, str]:
    (file,) = [one for one in shown(world, review).files if one.path == path]
    return tuple(base64.b64decode(str(one)).decode() for one in (file.baseline, file.flagged))  # type: ignore[return-value]


def test_files_are_decided_by_themselves(world: World) -> None:
    flagged(world)
    part = world.ask(decide("revert", "b.py", "new.py"))
    assert (part.review, part.part_of, part.state) == ("R-2", "R-1", "reverted")
    assert [one.path for one in part.files] == ["b.py", "new.py"]
    assert read(world, "b.py") == "one\n" and read(world, "new.py") is None
    rest = shown(world, "R-1")
    assert rest.state == "open" and [one.path for one in rest.files] == ["a.py", "gone.py"]
    kept = world.ask(decide("keep", "gone.py"))
    assert (kept.review, kept.state) == ("R-3", "kept")
    # What is left is decided as ever, and so is what is named if it is all that is left
    assert world.ask(decide("revert", "a.py")).review == "R-1"
    assert read(world, "a.py") == text()
    # Each is taken back by itself
    world.ask(rq.ReviewUndo(review="R-2"))
    assert read(world, "b.py") == "two\n" and read(world, "new.py") == "new\n"
    world.ask(rq.ReviewUndo(review="R-1"))
    assert read(world, "a.py") == text(1, 2, 3)
    assert {one.review for one in world.ask(rq.Reviews()).items} == {"R-1", "R-2"}
    world.ask(decide("revert", review="R-2"))
    assert read(world, "b.py") == "one\n" and read(world, "new.py") is None
    assert world.replay_differs() == []


@pytest.mark.parametrize(("below", "typed", "meant"), [
    ("", "./a.py", "a.py"), ("", ":/a.py", "a.py"), ("", "{root}/a.py", "a.py"), ("", "d/../a.py", "a.py"), ("d", "a.py", "d/a.py"), ("d", "./a.py", "d/a.py"),
    ("d", "../a.py", "a.py"), ("d", ":/a.py", "a.py"), ("d", "d/a.py", "d/a.py"), ("d/e", "b.py", "b.py"), ("d/e", "../a.py", "d/a.py"), (None, "./b.py", "b.py"),
    ("d", "{root}/d/./a.py", "d/a.py"), ("d/e", "d/../b.py", "b.py"),
])
def test_a_file_is_named_as_it_is_typed_elsewhere(world: World, below: str | None, typed: str, meant: str) -> None:
    world.acquire("ann", "a.py", "b.py", "d/a.py", ttl_s=5)
    for name in ("a.py", "b.py", "d/a.py"):
        world.write(name, "made\n")
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())
    asked = decide("keep", typed.format(root=world.root))
    asked.cwd = None if below is None else str(world.root / below)
    assert [one.path for one in world.ask(asked).files] == [meant]
    for text in ("../a.py", "/a.py", ":/", ".", "", "./c.py", ":/e/b.py"):
        asked = decide("keep", text)
        asked.cwd = str(world.root)
        assert "has no file" in world.refused(asked).message, text


@pytest.mark.parametrize("verdict", ["revert", "keep"])
@pytest.mark.parametrize("hunks", [[1], [2], [3], [1, 3], [2, 1]])
def test_hunks_are_decided_by_themselves(world: World, verdict: str, hunks: list[int]) -> None:
    flagged(world)
    part = world.ask(decide(verdict, "a.py", hunks=hunks))
    others = [n for n in (1, 2, 3) if n not in hunks]
    assert part.part_of == "R-1" and [one.path for one in part.files] == ["a.py"]
    now = text(1, 2, 3) if verdict == "keep" else text(*others)
    assert read(world, "a.py") == now
    # What is left of the file is shown as what is left, and its revert takes only that out
    assert sides(world, "R-1") == ((text(*hunks), text(1, 2, 3)) if verdict == "keep"
                                   else (text(), text(*others)))
    assert len(shown(world, "R-1").files) == 4
    world.ask(decide("revert"))
    assert read(world, "a.py") == (text(*hunks) if verdict == "keep" else text())
    world.ask(rq.ReviewUndo(review="R-1"))
    assert read(world, "a.py") == now
    world.ask(rq.ReviewUndo(review="R-2"))
    assert read(world, "a.py") == text(1, 2, 3)
    assert shown(world, "R-2").state == "open"
    assert world.replay_differs() == []


def test_every_order_of_hunks_comes_to_the_same(tmp_path: Path) -> None:
    for n, (order, decided) in enumerate(itertools.product(
            itertools.permutations((5, 30, 55)), itertools.product(("keep", "revert"), repeat=3))):
        world = World(tmp_path / str(n))
        world.write("a.py", text())
        world.acquire("ann", "a.py", ttl_s=5)
        world.write("a.py", text(1, 2, 3))
        world.clock.advance(3_600_000)
        world.ask(rq.Sweep())
        for line, verdict in zip(order, decided, strict=True):
            left = [at for at in sorted(order) if at in order[order.index(line):]]
            world.ask(decide(verdict, hunks=[left.index(line) + 1]))
        kept = [list(CHANGED).index(at) + 1 for at, v in zip(order, decided, strict=True) if v == "keep"]
        assert read(world, "a.py") == text(*kept), (order, decided)
        assert world.ask(rq.Reviews()).items == []


def test_who_undoes_the_rest_is_told_of_the_parts_that_were_decided(world: World) -> None:
    flagged(world)
    assert "no verdict to undo." in world.refused(rq.ReviewUndo(review="R-1")).message
    world.ask(decide("keep", "b.py"))
    world.ask(decide("revert", "a.py"))
    refusal = world.refused(rq.ReviewUndo(review="R-1"))
    assert "R-3 (reverted) and R-2 (kept) are parts of it" in refusal.message
    assert refusal.next == "`coord review undo R-3` takes that one back."


@pytest.mark.parametrize("back", list(itertools.permutations(["R-1", "R-2", "R-3"])))
def test_verdicts_on_hunks_are_undone_in_any_order(world: World, back: tuple[str, ...]) -> None:
    flagged(world)
    hunk = {world.ask(decide("revert", "a.py", hunks=[2])).review: 2, world.ask(decide("revert", "a.py", hunks=[1])).review: 1, "R-1": 3}
    world.ask(decide("revert"))
    assert read(world, "a.py") == text() and set(hunk) == set(back)
    world.write("a.py", text(more="after\n"))
    there: list[int] = []
    for review in back:
        world.ask(rq.ReviewUndo(review=review))
        there.append(hunk[review])
        assert read(world, "a.py") == text(*there, more="after\n")
    assert read(world, "b.py") == "two\n" and world.replay_differs() == []


def test_an_undo_destroys_nothing_that_was_written_in_the_same_lines(world: World) -> None:
    flagged(world)
    world.ask(decide("revert"))
    world.write("a.py", text().replace("line 30\n", "line 30, later\n"))
    refusal = world.refused(rq.ReviewUndo(review="R-1"))
    assert refusal.code is Code.VERSION_CHANGED and "does not fit" in refusal.message and "coord explain :/a.py" in refusal.next
    assert read(world, "a.py") == text().replace("line 30\n", "line 30, later\n") and read(world, "b.py") == "one\n"


def test_a_hunk_goes_out_of_a_file_that_went_on(world: World) -> None:
    flagged(world)
    world.write("a.py", text(1, 2, 3, more="after\n"))
    world.ask(decide("revert", "a.py", hunks=[2]))
    assert read(world, "a.py") == text(1, 3, more="after\n")
    world.ask(rq.ReviewUndo(review="R-2"))
    assert read(world, "a.py") == text(1, 2, 3, more="after\n")


def test_what_cannot_be_done_changes_nothing(world: World) -> None:
    flagged(world)
    world.write("b.py", "three\n")
    for request, code, said in (
        (decide("revert", "b.py"), Code.VERSION_CHANGED, "b.py"),
        (decide("revert", "no.py"), Code.INVALID, "no.py"),
        (decide("keep", "a.py", hunks=[4]), Code.INVALID, "3 hunks"),
        (decide("keep", "a.py", hunks=[0]), Code.INVALID, "hunk 0"),
        (decide("keep", "b.py", hunks=[2]), Code.INVALID, "Leave `--hunk` out"),
        (decide("keep", hunks=[1]), Code.INVALID, "R-1 has several"),
        (decide("keep", "a.py", "b.py", hunks=[1]), Code.INVALID, "several files are named"),
        (decide("reassign", "a.py"), Code.BAD_TRANSITION, "reassign"),
    ):
        refusal = world.refused(request)
        assert refusal.code is code and said in f"{refusal.message} {refusal.next}", refusal
        assert [one.path for one in shown(world, "R-1").files] == ["a.py", "b.py", "gone.py", "new.py"]
        assert [one.review for one in world.ask(rq.Reviews(state="all")).items] == ["R-1"]
    world.acquire("bob", "a.py")
    assert world.refused(decide("revert", "a.py", hunks=[1])).code is Code.LOCKED
    assert read(world, "a.py") == text(1, 2, 3)
    assert world.ask(decide("keep", "new.py")).part_of == "R-1", "what nobody holds can be decided"


def test_hunks_that_were_counted_in_other_contents_are_not_decided_on(world: World) -> None:
    flagged(world)
    (file,) = [one for one in shown(world, "R-1").files if one.path == "a.py"]
    request = decide("revert", "a.py", hunks=[2])
    request.seen = f"{file.baseline_hash}..{file.flagged_hash}"
    world.ask(decide("keep", "a.py", hunks=[1]))
    refusal = world.refused(request)
    assert refusal.code is Code.VERSION_CHANGED and read(world, "a.py") == text(1, 2, 3)
    (file,) = [one for one in shown(world, "R-1").files if one.path == "a.py"]
    request.seen = f"{file.baseline_hash}..{file.flagged_hash}"
    world.ask(request)
    assert read(world, "a.py") == text(1, 2)


def test_the_task_waits_for_the_rest(world: World) -> None:
    flagged(world, task="T-1")
    world.ask(decide("revert", "b.py"))
    assert world.ask(rq.TaskShow(task="T-1")).state == "review"
    world.ask(decide("keep", "gone.py"))
    assert world.ask(rq.TaskShow(task="T-1")).state == "review"
    world.ask(decide("keep"))
    assert world.ask(rq.TaskShow(task="T-1")).state == "done"
    # What was taken out moves it no more
    world.ask(rq.ReviewUndo(review="R-2"))
    assert world.ask(rq.TaskShow(task="T-1")).state == "done"


def test_what_was_kept_by_itself_counts_as_the_tasks_work(tmp_path: Path) -> None:
    world = World(tmp_path / "repo", Settings(verify=Verifying(command="true")), git=True)
    world.decide(lambda tx: verifications.begin_with(tx, "0" * 40))
    flagged(world, task="T-1")
    world.ask(decide("keep", "b.py"))
    world.ask(decide("keep", "a.py", hunks=[1]))
    world.ask(decide("revert", "a.py", hunks=[1]))
    world.ask(decide("keep"))
    rows = dict(world.db.execute("SELECT path, hash FROM finished_files").fetchall())
    assert set(rows) == {"a.py", "b.py", "gone.py", "new.py"}
    assert world.view().blob(str(rows["a.py"])) == text(1, 3).encode() and read(world, "a.py") == text(1, 3)
    world.close()


def crash() -> None:
    raise Crash


@pytest.mark.parametrize("asked", [decide("revert", "a.py", hunks=[2]), decide("revert", "a.py", "b.py", "new.py")],
                         ids=["hunk", "files"])
def test_a_crash_at_any_moment_is_gone_on_from(tmp_path: Path, asked: rq.ReviewDecide) -> None:
    first = World(tmp_path / "first")
    flagged(first)
    now = first.clock.now_ms()
    first.close()
    ends = set()
    for nth in range(1, 2000, max(1, round(7 / EFFORT))):
        shutil.copytree(first.root, tmp_path / str(nth), symlinks=True)
        world = World(tmp_path / str(nth))
        world.clock.at_ms = now
        with FaultyKernel(nth, crash) as faults, contextlib.suppress(Crash):
            world.ask(asked)
        if not faults.struck:
            world.close()
            break
        world.restart()
        done = [one.review for one in world.ask(rq.Reviews(state="reverted")).items]
        ends.add(bool(done))
        whole = "a.py" if asked.hunks else None
        assert read(world, "a.py") == (text(1, 2, 3) if not done else text(1, 3) if whole else text()), faults.said
        assert read(world, "b.py") == ("one\n" if done and not whole else "two\n"), faults.said
        rest = ["a.py", "b.py", "gone.py", "new.py"] if whole or not done else ["gone.py"]
        assert [one.path for one in shown(world, "R-1").files] == rest, faults.said
        assert [row for row in world.live() if row.locked_by.startswith("coord/")] == []
        assert world.db.execute("SELECT count(*) FROM verdict_parts").get == 0
        # Asked again it is done, once
        if not done:
            world.ask(asked)
        world.ask(rq.ReviewUndo(review="R-2"))
        assert read(world, "a.py") == text(1, 2, 3) and read(world, "b.py") == "two\n"
        assert world.replay_differs() == []
        world.close()
        shutil.rmtree(world.root)
    assert ends == {True, False}


def test_a_plan_for_files_that_left_meanwhile_is_made_anew(world: World) -> None:
    """Two people at one review: what the second one's plan was made from is not there any more."""
    flagged(world)
    course = verdicts.carry_out(world.service, decide("revert"))
    part = next(course)
    assert isinstance(part, OnDisk)
    plan = part.work(Worker(world.engine))
    world.ask(decide("keep", "b.py"))
    part = course.send(plan)
    assert isinstance(part, Write)
    begun = world.part(part)
    assert begun is None
    part = course.send(begun)
    assert isinstance(part, OnDisk)
    assert [step.path for step in part.work(Worker(world.engine)).steps] == ["new.py", "a.py", "gone.py"]
    course.close()
    assert read(world, "b.py") == "two\n"
