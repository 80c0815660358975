"""Stand-in agents on real files: what arrives, what is lost without coordination, and crashes."""

import os
import random
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.replay.changes import Kind
from benchmarks.replay.outcome import Lost, compare
from benchmarks.replay.plan import Plan, Task
from benchmarks.replay.plan_making import plan
from benchmarks.replay.worker import carry, main

QUIET = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


class Killed(BaseException):
    """Stands for SIGKILL: no handler of the worker sees it coming."""


def no_thinking(seconds: float) -> None:
    assert seconds >= 0


def copied(tree: Path) -> Path:
    target = tree.with_name("result")
    shutil.rmtree(target, ignore_errors=True)
    return shutil.copytree(tree, target, symlinks=True)


@QUIET
@given(st.integers(0, 1000), st.randoms(use_true_random=False))
def test_tasks_in_any_order_arrive_at_new(
    releases: tuple[Path, Path], seed: int, chance: random.Random
) -> None:
    drawn = plan(*releases, seed=seed)
    result = copied(releases[0])
    for task in chance.sample(drawn.tasks, len(drawn.tasks)):
        carry(task, drawn, result, think=no_thinking)
    score = compare(result, releases[1], drawn)
    assert score.exact
    assert score.lost_edits == score.torn_files == ()
    assert score.edits == sum(c.edits for c in drawn.changes.values())


@QUIET
@given(st.integers(0, 1000), st.randoms(use_true_random=False))
def test_a_task_killed_anywhere_can_be_repeated(
    releases: tuple[Path, Path], seed: int, chance: random.Random
) -> None:
    drawn = plan(*releases, seed=seed)
    result = copied(releases[0])
    for task in chance.sample(drawn.tasks, len(drawn.tasks)):
        # Given that a coordinator keeps what the task's files were,
        kept = {
            p: (result / p).read_bytes()
            for p in (*task.files, *task.discovered)
            if (result / p).is_file() and not (result / p).is_symlink()
        }
        # if the worker is killed between the two halves of some file, or before one,
        left = chance.randint(0, 5)

        def perhaps_killed(path: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed

        try:
            carry(
                task, drawn, result,
                think=no_thinking, halfway=perhaps_killed, say=perhaps_killed,
            )  # fmt: skip
        except Killed:
            carry(task, drawn, result, think=no_thinking, baseline=kept.get)
    # I expect the repetition to arrive all the same.
    score = compare(result, releases[1], drawn)
    assert score.exact, score


def test_without_coordination_edits_are_lost(releases: tuple[Path, Path]) -> None:
    # Given two tasks that share a file, both of which have read it,
    drawn = plan(*releases, seed=2)
    path = next(iter(drawn.shared_files()))
    first, second = [t for t in drawn.tasks if path in t.edits][:2]
    result = copied(releases[0])
    # if the first writes while the second thinks,
    carry(
        second._replace(discovered=()), drawn, result,
        think=lambda _: carry(first, drawn, result, think=no_thinking),
    )  # fmt: skip
    for task in drawn.tasks:
        if task.id not in (first.id, second.id):
            carry(task, drawn, result, think=no_thinking)
    # I expect the first's edits to be gone, and known to be.
    score = compare(result, releases[1], drawn)
    lost = {n for n in score.lost_edits if n.file == path}
    assert lost == {Lost(first.id, path, n) for n in first.edits[path]}
    assert path in score.differing_files
    assert not score.exact


def task_that(drawn: Plan, discovers: bool) -> Task:
    return next(t for t in drawn.tasks if bool(t.discovered) is discovers)


def test_discovered_files_are_asked_for_before_they_are_read(releases: tuple[Path, Path]) -> None:
    drawn, seed = plan(*releases, seed=0), 0
    while not any(t.discovered for t in drawn.tasks):
        drawn, seed = plan(*releases, seed=seed + 1), seed + 1
    task = task_that(drawn, discovers=True)
    result = copied(releases[0])
    story: list[str] = []
    carry(
        task, drawn, result,
        before_files=lambda files: story.append("asking " + " ".join(files)),
        think=lambda seconds: story.append(f"{seconds / task.think_s:.1f}"),
        say=story.append,
    )  # fmt: skip
    asked = story.index("asking " + " ".join(task.discovered))
    assert story[asked - 1] == story[story.index("0.5", asked)] == "0.5"
    for path in task.discovered:
        assert f"reading {path}" not in story[:asked]
        assert f"writing {path}" not in story[:asked]
    # Refused, it has written nothing.
    untouched = copied(releases[0])

    def refused(files: list[str]) -> None:
        raise PermissionError(files)

    with pytest.raises(PermissionError):
        carry(task, drawn, untouched, before_files=refused, think=no_thinking)
    assert not compare(untouched, releases[0], drawn).differing_files


def test_a_torn_file_is_neither_old_nor_new(releases: tuple[Path, Path]) -> None:
    drawn = plan(*releases, seed=4)
    result = copied(releases[1])
    path = next(p for p, c in drawn.changes.items() if c.kind is Kind.EDIT)
    whole = (result / path).read_bytes()
    (result / path).write_bytes(whole[: len(whole) // 2])
    score = compare(result, releases[1], drawn)
    assert score.torn_files == score.differing_files == (path,)
    count = len(drawn.changes[path].hunks)
    assert 0 < len(score.lost_edits) < count


def test_a_tree_that_was_never_touched_has_lost_everything(releases: tuple[Path, Path]) -> None:
    drawn = plan(*releases, seed=4)
    result = copied(releases[0])
    for own in (".git", ".coord", ".agent"):
        (result / own).mkdir()
        (result / own / "x").write_text("x")
    score = compare(result, releases[1], drawn, ignored=[".agent"])
    assert len(score.lost_edits) == score.edits
    assert set(score.differing_files) == {p for c in drawn.changes.values() for p in c.paths}


def test_directories_that_come_and_go_do_not_race(tmp_path: Path) -> None:
    # Given tasks that create and delete files in one directory, over and over, at once,
    old, new = tmp_path / "old", tmp_path / "new"
    (old / "d").mkdir(parents=True)
    (new / "d").mkdir(parents=True)
    (old / "d" / "gone").write_text("gone\n")
    (new / "d" / "come").write_text("something else altogether\n")
    drawn = plan(old, new, seed=1, agents=2)
    one, two = drawn.tasks
    result = copied(old)
    failures: list[OSError] = []

    def repeat(task: Task) -> None:
        try:
            for _ in range(200):
                carry(task, drawn, result, think=no_thinking)
                for path in task.edits:
                    (result / path).unlink(missing_ok=True)
        except OSError as e:
            failures.append(e)

    workers = [threading.Thread(target=repeat, args=(t,)) for t in (one, two)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []


def test_the_program_carries_one_task(releases: tuple[Path, Path], tmp_path: Path) -> None:
    drawn = plan(*releases, seed=6, think="fixed:0s")
    drawn.save(tmp_path / "plan.json")
    result = copied(releases[0])
    task = drawn.tasks[0]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.replay.worker", str(tmp_path / "plan.json"), task.id],
        cwd=result,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "thinking 0.000s" in done.stdout.splitlines()
    lost = compare(result, releases[1], drawn).lost_edits
    assert task.id not in {n.task for n in lost}
    assert {t.id for t in drawn.tasks} - {n.task for n in lost} == {task.id}


def test_the_program_says_what_it_was_not_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 2
    assert main([str(tmp_path / "none.json"), "R-1"]) == 2
    assert "usage" in capsys.readouterr().err


