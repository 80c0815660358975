"""A person edits a file's text and keeps that: journal, comparison, refusals and undo as of any verdict.

The checker of `tests/world.py` replays the log after every commit of these, too.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
from pathlib import Path
from typing import Any

import pytest

from coordinator.settings import Settings, Verifying
from coordinator.slices.verify import verifications
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.effort import EFFORT
from tests.files.faults import Crash, FaultyKernel
from tests.world import World

LINES = [f"line {n}\n" for n in range(40)]


def text(changes: dict[int, str]) -> str:
    return "".join(changes.get(n, line) for n, line in enumerate(LINES))


LEFT, EDITED = {5: "FIVE\n"}, {5: "five, rounded\n"}


def flagged(world: World, *, task: bool = False) -> None:
    """R-1: two files that ann had leased and left changed."""
    world.write("a.py", text({}))
    world.write("b.py", "one\n")
    if task:
        world.ask(rq.TaskAdd(title="t", resources=["a.py", "b.py"]))
        world.ask(rq.TaskClaim(agent="ann", task="T-1", ttl_s=5))
    else:
        world.acquire("ann", "a.py", "b.py", ttl_s=5)
    world.write("a.py", text(LEFT))
    world.write("b.py", "two\n")
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())


def keep(**more: Any) -> rq.ReviewDecide:
    asked = {"review": "R-1", "verdict": "keep", "by": "eve", "files": ["a.py"], "edited": text(EDITED), **more}
    return rq.ReviewDecide(**asked)


def seen(world: World, path: str = "a.py") -> str:
    (file,) = [one for one in world.ask(rq.ReviewShow(review="R-1")).files if one.path == path]
    return f"{file.baseline_hash}..{file.flagged_hash}"


def refused(world: World, request: rq.ReviewDecide) -> Refusal:
    before = (world.root / "a.py").read_bytes()
    no = world.refused(request)
    assert (world.root / "a.py").read_bytes() == before
    return no


def test_an_edited_text_is_kept_and_taken_back(world: World) -> None:
    flagged(world)
    part = world.ask(keep(seen=seen(world)))
    assert part.warnings == []
    assert (part.review, part.part_of, part.state, part.decided_by) == ("R-2", "R-1", "kept", "eve")
    assert (world.root / "a.py").read_text() == text(EDITED)
    rest = world.ask(rq.ReviewShow(review="R-1"))
    assert rest.state == "open" and [file.path for file in rest.files] == ["b.py"]
    told = world.ask(rq.Events(kind="review_decided")).items[-1].text
    assert told.endswith("with an edited text of a.py")
    assert world.ask(rq.ReviewUndo(review="R-2")).state == "open"
    assert (world.root / "a.py").read_text() == text(LEFT)
    # What a verdict wrote that was taken back is not the next one's: it takes back nothing.
    assert world.ask(rq.ReviewDecide(review="R-2", verdict="keep")).state == "kept"
    world.write("a.py", text({9: "later\n"}))
    world.ask(rq.ReviewUndo(review="R-2"))
    assert (world.root / "a.py").read_text() == text({9: "later\n"})


def test_a_text_is_kept_byte_for_byte_and_executable(world: World) -> None:
    world.write("a.sh", "one\r\n")
    (world.root / "a.sh").chmod(0o755)
    world.acquire("ann", "a.sh", ttl_s=5)
    world.write("a.sh", "two\r\n")
    (world.root / "a.sh").chmod(0o755)
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())
    assert world.ask(keep(files=[], edited="\ufeffthree\r\nfour")).state == "kept"
    assert (world.root / "a.sh").read_bytes() == "\ufeffthree\r\nfour".encode()
    assert (world.root / "a.sh").stat().st_mode & 0o777 == 0o755


def test_what_was_saved_meanwhile_in_other_lines_stays(world: World) -> None:
    flagged(world)
    world.write("a.py", text(LEFT | {30: "saved\n"}))
    assert world.ask(keep()).warnings == ["a.py was saved since it was flagged: what was saved stays, beside the edited text."]
    assert (world.root / "a.py").read_text() == text(EDITED | {30: "saved\n"})
    world.ask(rq.ReviewUndo(review="R-2"))
    assert (world.root / "a.py").read_text() == text(LEFT | {30: "saved\n"})


def test_what_was_saved_meanwhile_in_the_same_lines_is_said_and_not_overwritten(world: World) -> None:
    flagged(world)
    world.write("a.py", text({5: "saved\n"}))
    no = refused(world, keep())
    assert no.code is Code.VERSION_CHANGED
    assert "a.py was changed after it was flagged" in no.message and "Nothing was written" in no.message
    assert world.ask(rq.ReviewShow(review="R-1")).state == "open"


def test_an_edit_of_other_contents_than_those_that_were_seen_is_refused(world: World) -> None:
    flagged(world)
    no = refused(world, keep(seen="sha256:0f3c..sha256:0f3d"))
    assert no.code is Code.VERSION_CHANGED and "other contents" in no.message


def test_a_leased_file_is_not_overwritten(world: World) -> None:
    flagged(world)
    world.acquire("bob", "a.py", ttl_s=5)
    no = refused(world, keep())
    assert no.code is Code.LOCKED and "leased by bob" in no.message and "nothing was written" in no.message


@pytest.mark.parametrize("more", [{"verdict": "revert"}, {"verdict": "reassign"}, {"hunks": [1]}, {"files": []},
                                  {"files": ["a.py", "b.py"]}])
def test_only_one_whole_file_is_kept_as_edited(world: World, more: dict[str, Any]) -> None:
    flagged(world)
    no = refused(world, keep(**more))
    assert no.code in (Code.INVALID, Code.BAD_TRANSITION) and no.message
    assert world.ask(rq.ReviewShow(review="R-1")).state == "open"


def test_a_symlink_has_no_text(world: World) -> None:
    flagged(world)
    world.acquire("ann", "link", ttl_s=5)
    (world.root / "link").symlink_to("b.py")
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())
    no = refused(world, keep(review="R-2", files=["link"]))
    assert no.code is Code.INVALID and "symlink" in no.message
    assert (world.root / "link").is_symlink()


def test_the_edited_text_is_the_tasks_work_and_the_task_waits_again_after_undo(tmp_path: Path) -> None:
    world = World(tmp_path / "repo", Settings(verify=Verifying(command="true")), git=True)
    world.decide(lambda tx: verifications.begin_with(tx, "0" * 40))
    flagged(world, task=True)
    world.ask(keep())
    assert world.ask(keep(files=[], edited="edited\n")).review == "R-1"
    assert world.ask(rq.TaskShow(task="T-1")).state == "done"
    rows = dict(world.db.execute("SELECT path, hash FROM finished_files").fetchall())
    assert [world.view().blob(str(rows[path])) for path in ("a.py", "b.py")] == [text(EDITED).encode(), b"edited\n"]
    world.ask(rq.ReviewUndo(review="R-1"))
    assert world.ask(rq.TaskShow(task="T-1")).state == "review"
    assert (world.root / "b.py").read_text() == "two\n"
    world.close()


def full() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_an_undo_that_meets_a_full_disk_leaves_the_task_done(tmp_path: Path) -> None:
    first = World(tmp_path / "first")
    flagged(first, task=True)
    first.ask(keep())
    first.ask(keep(files=[], edited="edited\n"))
    now = first.clock.now_ms()
    first.close()
    ends = set()
    for nth in range(1, 2000, max(1, round(3 / EFFORT))):
        shutil.copytree(first.root, tmp_path / str(nth), symlinks=True)
        world = World(tmp_path / str(nth))
        world.clock.at_ms = now
        with FaultyKernel(nth, full) as faults, contextlib.suppress(Refusal):
            world.ask(rq.ReviewUndo(review="R-1"))
        state = world.ask(rq.TaskShow(task="T-1")).state
        assert state == ("review" if (world.root / "b.py").read_text() == "two\n" else "done"), faults.said
        ends.add(state)
        world.close()
        if not faults.struck:
            break
    assert ends == {"review", "done"}


def crash() -> None:
    raise Crash


def test_a_crash_at_any_moment_is_gone_on_from(tmp_path: Path) -> None:
    first = World(tmp_path / "first")
    flagged(first)
    now = first.clock.now_ms()
    first.close()
    ends = set()
    for nth in range(1, 2000, max(1, round(5 / EFFORT))):
        shutil.copytree(first.root, tmp_path / str(nth), symlinks=True)
        world = World(tmp_path / str(nth))
        world.clock.at_ms = now
        with FaultyKernel(nth, crash) as faults, contextlib.suppress(Crash):
            world.ask(keep())
        if not faults.struck:
            world.close()
            break
        world.restart()
        kept = [review.review for review in world.ask(rq.Reviews(state="kept")).items]
        ends.add(bool(kept))
        assert (world.root / "a.py").read_text() == text(EDITED if kept else LEFT), faults.said
        assert [row for row in world.live() if row.locked_by.startswith("coord/")] == []
        if not kept:
            kept = [world.ask(keep()).review]
        world.ask(rq.ReviewUndo(review=kept[0]))
        assert (world.root / "a.py").read_text() == text(LEFT), faults.said
        world.close()
    assert ends == {False, True}
