"""Plans: every edit in exactly one task, contention on purpose, and a bound that is one."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.replay.best_possible import best_possible_wall, serial_s
from benchmarks.replay.changes import Change, Entry, Hunk, Kind
from benchmarks.replay.plan import Plan, Task
from benchmarks.replay.plan_making import plan, title
from benchmarks.replay.think_time import parse

QUIET = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@QUIET
@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 6))
def test_every_edit_belongs_to_exactly_one_task(
    releases: tuple[Path, Path], seed: int, agents: int, per_agent: int
) -> None:
    drawn = plan(*releases, seed=seed, agents=agents, tasks_per_agent=per_agent)
    carried = Counter[tuple[str, int | None]]()
    for task in drawn.tasks:
        for path, hunks in task.edits.items():
            carried.update((path, n) for n in hunks or (None,))
    expected = {
        (path, n)
        for path, change in drawn.changes.items()
        for n in (range(len(change.hunks)) if change.kind is Kind.EDIT else (None,))
    }
    assert set(carried) == expected
    assert set(carried.values()) == {1}
    for task in drawn.tasks:
        touched = {p for path in task.edits for p in drawn.changes[path].paths}
        assert {*task.files, *task.discovered} == touched
        assert not set(task.files) & set(task.discovered)
        assert task.files
        assert task.think_s > 0
    # Nobody edits what another moves, makes or removes.
    whole = {p for c in drawn.changes.values() if c.kind is not Kind.EDIT for p in c.paths}
    assert not whole & drawn.shared_files().keys()


def test_a_plan_is_the_same_for_the_same_seed_and_survives_its_file(
    releases: tuple[Path, Path], tmp_path: Path
) -> None:
    drawn = plan(*releases, seed=11)
    assert plan(*releases, seed=11) == drawn
    assert plan(*releases, seed=12) != drawn
    drawn.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == drawn
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(ValueError, match="no replay plan"):
        Plan.load(tmp_path / "other.json")
    with pytest.raises(KeyError):
        drawn.task("R-999")


def test_hot_files_are_shared_and_some_files_discovered(releases: tuple[Path, Path]) -> None:
    drawn = plan(*releases, seed=5, agents=6, tasks_per_agent=4)
    assert 18 <= len(drawn.tasks) <= 24
    shared = drawn.shared_files()
    assert shared["pack/core.py"] == max(shared.values())
    assert max(shared.values()) <= 6
    assert len(shared) >= 3
    assert any(task.discovered for seed in range(5) for task in plan(*releases, seed=seed).tasks)
    assert len({task.priority for task in drawn.tasks}) > 1


def test_a_path_that_turns_into_a_directory_is_one_tasks_business(
    releases: tuple[Path, Path],
) -> None:
    for seed in range(5):
        for task in plan(*releases, seed=seed).tasks:
            if "pack/shape" in task.edits:
                assert "pack/shape/__init__.py" in task.edits
            if "docs" in task.edits:
                assert "docs/index.txt" in task.edits


def test_trees_without_difference_give_no_tasks(releases: tuple[Path, Path]) -> None:
    drawn = plan(releases[0], releases[0], seed=1)
    assert drawn.tasks == ()
    assert best_possible_wall(drawn.tasks, 6) == serial_s(drawn.tasks) == 0.0
    with pytest.raises(ValueError, match="at least 1"):
        plan(*releases, seed=1, agents=0)


def test_titles_read_like_a_task() -> None:
    def change(kind: Kind, path: str, source: str = "") -> Change:
        return Change(kind, path, source, Entry(b""), Entry(b""), (Hunk(0, b"", b"x"),))

    core, types = change(Kind.EDIT, "click/core.py"), change(Kind.EDIT, "click/types.py")
    assert title([(core, (0, 1)), (types, (4,))]) == (
        "Carry 3 edits to click/core.py and click/types.py"
    )
    assert title([(core, (0,)), (change(Kind.DELETE, "a.py"), ())]) == (
        "Carry 1 edit to click/core.py; delete a.py"
    )
    assert title([(change(Kind.RENAME, "b.py", "a.py"), ())]) == "Rename a.py to b.py"


@pytest.mark.parametrize(
    ("text", "low_s", "high_s"),
    [
        ("lognormal:2s", 2, 2),
        ("fixed:0.1s", 0.1, 0.1),
        ("uniform:0.5s-2s", 0.5, 2),
        ("fixed:250ms", 0.25, 0.25),
        ("fixed:2m", 120, 120),
        ("fixed:0", 0, 0),
    ],
)
def test_think_times_are_parsed(text: str, low_s: float, high_s: float) -> None:
    assert parse(text)[1:] == pytest.approx((low_s, high_s))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "expected fixed"),
        ("2s", "expected fixed"),
        ("normal:2s", "expected fixed"),
        ("fixed:", "'' is no duration"),
        ("fixed:two", "'two' is no duration"),
        ("fixed:-1s", "takes one time"),
        ("uniform:2s", "takes two times"),
        ("uniform:2s-1s", "1s is less than 2s"),
        ("lognormal:1s-2s", "takes one time"),
    ],
)
def test_what_is_no_think_time_is_explained(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse(text)


PATHS = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3, unique=True)
TASKS = st.lists(st.tuples(PATHS, st.floats(0.1, 9), st.booleans()), min_size=1, max_size=9)


def tasks_of(drawn: list[tuple[list[str], float, bool]]) -> list[Task]:
    return [
        Task(f"R-{n}", "", tuple(p[late:]), tuple(p[:late]), {}, think_s, 0)
        for n, (p, think_s, last) in enumerate(drawn)
        for late in [int(last and len(p) > 1)]
    ]


@given(TASKS, st.integers(1, 4))
def test_no_schedule_beats_the_bound(
    drawn: list[tuple[list[str], float, bool]], agents: int
) -> None:
    # Given a greedy schedule in which a task starts as soon as an agent and its files are free,
    tasks = tasks_of(drawn)
    file_free: dict[str, float] = {}
    agent_free = [0.0] * agents
    for task in tasks:
        agent = agent_free.index(min(agent_free))
        early = max((file_free.get(p, 0.0) for p in task.files), default=0.0)
        late = max((file_free.get(p, 0.0) for p in task.discovered), default=0.0)
        end = max(agent_free[agent], early, late - task.think_s / 2) + task.think_s
        agent_free[agent] = end
        file_free.update(dict.fromkeys((*task.files, *task.discovered), end))
    # I expect the bound to be no more than it took, nor more than one agent alone would take.
    bound = best_possible_wall(tasks, agents)
    assert bound <= max(agent_free) + 1e-6
    assert bound <= serial_s(tasks) + 1e-6
    assert bound >= serial_s(tasks) / agents - 1e-6
    bounds = [best_possible_wall(tasks, n) for n in (1, 2, 3)]
    assert all(a >= b for a, b in pairwise(bounds))


def test_the_bound_sees_tasks_that_exclude_each_other_pairwise() -> None:
    pairs = [(["a", "b"], 1.0, False), (["b", "c"], 1.0, False), (["c", "a"], 1.0, False)]
    assert best_possible_wall(tasks_of(pairs), 3) == 3.0
