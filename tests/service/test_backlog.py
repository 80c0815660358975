"""The backlog through the service: dependencies, attempts, dead letters, dispatch, exchange."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.rules import backlog as rule
from coordinator.settings import Backlog, Settings
from coordinator.slices.backlog import text_formats
from coordinator.slices.backlog.task_fields import Item
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.world import World


def claim(world: World, agent: str, task: str | None = None) -> Any:
    return world.ask(rq.TaskClaim(agent=agent, task=task)).task.task


def test_dependencies_open_the_way(world: World) -> None:
    first = world.task("first")
    second = world.task("second", after=[first])
    assert world.ask(rq.TaskShow(task=second)).state == "pending"
    assert claim(world, "ann") == first
    refusal = world.refused(rq.TaskClaim(agent="bob", task=second))
    assert refusal.code is Code.TASK_NOT_READY and first in refusal.message
    world.ask(rq.TaskDone(agent="ann", task=first))
    assert claim(world, "bob") == second


def test_attempts_backoff_dead_letter_retry(tmp_path: Path) -> None:
    world = World(tmp_path, Settings(backlog=Backlog(attempts_max=2, backoff_s=10)))
    task = world.task("hard")
    after = world.task("later", after=[task])
    claim(world, "ann")
    failed = world.ask(rq.TaskFail(agent="ann", task=task, reason="no luck"))
    assert failed.state == "failed" and failed.not_before is not None
    assert world.refused(rq.TaskClaim(agent="ann")).code is Code.NOTHING_TO_DO
    world.clock.advance(10_000)
    claim(world, "ann")
    assert world.ask(rq.TaskFail(agent="ann", task=task, reason="again")).state == "dead"
    assert world.ask(rq.TaskShow(task=after)).state == "blocked"
    assert world.ask(rq.TaskRetry(task=task)).state == "ready"
    assert world.ask(rq.TaskShow(task=after)).state == "pending"
    assert world.replay_differs() == []
    world.close()


def test_whoever_waits_for_a_task_looks_again_when_one_may_be_offered(world: World) -> None:
    """What the daemon goes by (`Effects.offers`): a claim that waits costs nothing in between."""
    offered: list[bool] = []
    world.engine.on_commit.append(lambda effects: offered.append(effects.offers))

    def offers(request: rq.Request[Any]) -> bool:
        offered.clear()
        world.ask(request)
        return any(offered)

    assert offers(rq.TaskAdd(title="first", resources=["a.py"]))
    assert offers(rq.TaskAdd(title="second", after=["T-1"]))
    assert not offers(rq.TaskClaim(agent="ann"))
    assert not offers(rq.Acquire(agent="ann", resources=["b.py", "c.py"]))
    assert not offers(rq.Register(agent="bob"))
    assert offers(rq.Release(agent="ann", resources=["b.py"]))
    world.refused(rq.Acquire(agent="bob", resources=["c.py"]))
    assert offers(rq.Withdraw(agent="bob", acquisition_id="W-1"))
    assert offers(rq.TaskDone(agent="ann", task="T-1"))
    assert not offers(rq.TaskCancel(task="T-2"))
    assert offers(rq.TaskRetry(task="T-2"))


def test_a_task_that_is_put_back_waits_for_what_it_comes_after(world: World) -> None:
    first = world.task("first")
    second = world.task("second", after=[first])
    third = world.task("third", after=[second])
    world.ask(rq.TaskCancel(task=second))
    assert world.ask(rq.TaskRetry(task=second)).state == "pending"
    assert world.ask(rq.TaskShow(task=third)).state == "pending"
    assert claim(world, "ann") == first
    assert world.refused(rq.TaskClaim(agent="bob")).code is Code.NOTHING_TO_DO
    world.ask(rq.TaskDone(agent="ann", task=first))
    assert claim(world, "bob") == second
    # and where that was given up, it is blocked
    other = world.task("other")
    last = world.task("last", after=[other])
    for task in (last, other):
        world.ask(rq.TaskCancel(task=task))
    assert world.ask(rq.TaskRetry(task=last)).state == "blocked"
    assert world.ask(rq.TaskRetry(task=other)).state == "ready"
    assert world.ask(rq.TaskShow(task=last)).state == "pending"
    assert world.replay_differs() == []


def test_a_task_learns_what_it_needs(world: World) -> None:
    # Given a task that turns out to need a file which another holds
    task = world.task("t", "a.py")
    world.acquire("bob", "b.py")
    claim(world, "ann")
    # If it is given back as blocked
    back = world.ask(rq.TaskFail(agent="ann", task=task, blocked=["b.py"]))
    # I expect no attempt counted, the file among its resources, and no offer before it is free
    assert back.state == "ready" and back.attempts == 0 and back.resources == ["a.py", "b.py"]
    assert world.refused(rq.TaskClaim(agent="ann")).code is Code.NOTHING_TO_DO
    world.ask(rq.Release(agent="bob", resources=["b.py"]))
    assert claim(world, "ann") == task


def test_priority_then_age_and_own_leases_do_not_block(world: World) -> None:
    low = world.task("low", "a.py")
    high = world.task("high", "b.py", priority=3)
    assert claim(world, "ann") == high
    world.acquire("bob", "a.py")
    assert world.refused(rq.TaskClaim(agent="cyd")).code is Code.NOTHING_TO_DO
    assert claim(world, "bob") == low


def test_parked_tasks_come_back_one_after_the_other(world: World) -> None:
    tasks = [world.task(f"t{i}", f"d/{i}.py", priority=-i) for i in range(5)]
    world.acquire("ann", "d/")
    assert world.refused(rq.TaskClaim(agent="bob")).code is Code.NOTHING_TO_DO
    world.ask(rq.Release(agent="ann", resources=["d/"]))
    assert [claim(world, f"w{i}") for i in range(5)] == tasks


def test_a_reader_goes_on_when_a_writer_leaves_the_line_that_other_readers_hold(world: World) -> None:
    world.acquire("ann", "a.py", mode="shared")
    asked = world.ask(rq.RequestFile(agent="bob", resource="a.py", reason="r"))
    task = world.task("t", "shared:a.py")
    assert world.refused(rq.TaskClaim(agent="cyd")).code is Code.NOTHING_TO_DO, "a writer stands before it"
    world.ask(rq.RequestWithdraw(agent="bob", request=asked.request))
    assert claim(world, "cyd") == task


def test_the_same_claim_again_is_the_same(world: World) -> None:
    task = world.task("t", "a.py")
    claim(world, "ann")
    assert world.refused(rq.TaskClaim(agent="ann", task=task)).code is Code.TASK_TAKEN, "another may be at it in its name"
    again = world.ask(rq.TaskClaim(agent="ann", task=task, reentrant=True))
    assert again.leases[0].reentrant and again.task.attempts == 1
    assert world.refused(rq.TaskClaim(agent="bob", task=task)).code is Code.TASK_TAKEN


def test_a_lapsed_claim_cannot_be_finished(world: World) -> None:
    task = world.task("t", "a.py")
    world.ask(rq.TaskClaim(agent="ann", ttl_s=5))
    world.clock.advance(5_000)
    assert world.refused(rq.TaskDone(agent="ann", task=task)).code is Code.STALE_TOKEN
    world.ask(rq.Sweep())
    assert world.ask(rq.TaskShow(task=task)).state == "failed"


def test_cancel_needs_force_while_claimed(world: World) -> None:
    task = world.task("t", "a.py")
    claim(world, "ann")
    assert world.refused(rq.TaskCancel(task=task)).code is Code.BAD_TRANSITION
    world.write("a.py", "half")
    assert world.ask(rq.TaskCancel(task=task, force=True)).state == "cancelled"
    assert not world.live() and len(world.ask(rq.Reviews()).items) == 1


def test_a_cycle_is_named_and_nothing_is_added(world: World) -> None:
    text = "- {id: a, title: A, after: [c]}\n- {id: b, title: B, after: a}\n- {id: c, title: C, after: [b]}\n"
    refusal = world.refused(rq.TaskImport(text=text, format="yaml"))
    assert refusal.code is Code.INVALID and "a -> c -> b -> a" in refusal.message
    assert world.ask(rq.Tasks()).items == []


@pytest.mark.parametrize(
    ("form", "text", "where"),
    [
        ("yaml", "- title: [unclosed\n- x", "line 2, column"),
        ("yaml", "a: b", "list of tasks"),
        ("yaml", "- titel: x", "task 1"),
        ("yaml", "- {title: x, priority: high}", "task 1"),
        ("jsonl", '{"title": "x"}\n{"title": ', "Line 2, column"),
        ("jsonl", '{"title": 5}', "line 1"),
        ("markdown", "# no boxes", "No task"),
        ("markdown", "- [ ] x (priority: high)", "Line 1"),
        ("yaml", "- {title: x, after: T-99}", "T-99"),
        ("yaml", "- {title: x, files: [../out]}", "not inside"),
        ("yaml", "- {title: ''}", "title"),
    ],
)
def test_malformed_text_is_refused_with_its_place(
    world: World, form: Any, text: str, where: str
) -> None:
    refusal = world.refused(rq.TaskImport(text=text, format=form))
    assert refusal.code in (Code.INVALID, Code.UNKNOWN_TASK, Code.OUTSIDE_REPO)
    assert where in refusal.message, refusal.message
    assert world.ask(rq.Tasks()).items == []


_words = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8)
_titles = st.lists(_words, min_size=1, max_size=4).map(" ".join).filter(
    lambda t: "(" not in t and ")" not in t
)


@given(
    items=st.lists(
        st.builds(
            Item, title=_titles, prompt=st.lists(_words, max_size=3).map("\n".join),
            resources=st.lists(st.sampled_from(["a.py", "b/", "c/*.py", "key:x"]), unique=True),
            priority=st.integers(-5, 5), done=st.booleans(),
        ),
        min_size=1, max_size=5,
    ),
    form=st.sampled_from(["yaml", "jsonl", "markdown"]),
)
def test_what_is_written_is_read_back(items: list[Item], form: Any) -> None:
    assert text_formats.read(text_formats.write(items, form), form) == (items, [])


@given(st.text(max_size=300), st.sampled_from(["yaml", "jsonl", "markdown"]))
def test_no_text_gives_a_traceback(text: str, form: Any) -> None:
    try:
        text_formats.read(text, form)
    except Refusal as refusal:
        assert refusal.code is Code.INVALID


@given(st.dictionaries(st.integers(0, 8), st.lists(st.integers(0, 8), max_size=3)))
def test_cycles_are_found_exactly_when_there_are_any(edges: dict[int, list[int]]) -> None:
    named = {str(k): [str(x) for x in v] for k, v in edges.items()}
    found = rule.cycle(named)
    # by taking away tasks that wait for nothing, again and again: what stays is in or behind a cycle
    left = dict(named)
    while True:
        free = [k for k, v in left.items() if not any(x in left for x in v)]
        if not free:
            break
        for k in free:
            del left[k]
    assert (found is not None) == bool(left)
    if found:
        assert found[0] == found[-1]
        assert all(b in named[a] for a, b in pairwise(found))


def test_every_transition_leads_to_a_known_state() -> None:
    states = {s for s, _ in rule.TRANSITIONS} | set(rule.TRANSITIONS.values())
    assert states == {"pending", "ready", "claimed", "done", "failed", "dead", "blocked",
                      "cancelled", "review"}


# ------------------------------------------------------------------- the backlog as text, and back

FORMATS: list[text_formats.Format] = ["yaml", "jsonl", "markdown"]
SIGNS = st.sampled_from("ab Z.é(),:-[]{}#*`\"'\\&|>%@!?=~/\u2028\x85\x0c\U0001f600")
titles = st.text(SIGNS, min_size=1, max_size=30).map(lambda text: " ".join(text.split())).filter(bool)
shown = titles | st.builds("{} ({}: {})".format, titles, st.sampled_from(["files", "resources", "after", "id", "x", "Prio"]), titles)
lines = st.text(SIGNS, max_size=20).map(str.rstrip) | st.builds("{}{}".format, st.sampled_from(["  ", "\t", "    - [ ] "]), titles)
prompts = st.lists(lines, max_size=6).map(lambda some: "\n".join(some).strip("\n"))
files = st.text(st.sampled_from("ab(),'\"` :[]*é"), min_size=1, max_size=12).map(str.strip).filter(bool) | st.sampled_from(
    ["app/(auth)/page.tsx", "src/**/*.sql", "key:account:1", "shared:a, b.py", "a(b", ")", "d/"])
items = st.builds(
    Item, id=st.none() | st.sampled_from(["T-1", "a.b-c"]), title=shown, prompt=prompts,
    resources=st.lists(files, max_size=3), after=st.lists(st.sampled_from(["T-1", "x", "y_2"]), max_size=2),
    priority=st.integers(-1000, 1000), attempts_max=st.none() | st.integers(1, 9), done=st.booleans())


@given(st.lists(items, min_size=1, max_size=4), st.sampled_from(FORMATS))
def test_what_is_written_is_read_again(some: list[Item], form: text_formats.Format) -> None:
    assert text_formats.read(text_formats.write(some, form), form) == (some, [])


@pytest.mark.parametrize("form", FORMATS)
def test_an_export_is_imported_as_the_same_tasks(tmp_path: Path, form: text_formats.Format) -> None:
    one, other = World(tmp_path / "one"), World(tmp_path / "other")
    first = one.task("Fix login (files: as it says)", "app/(auth)/page.tsx", "a, b.py", prompt="Do:\n\n    indented\n\n  * this\n")
    one.task("Use it\u2028", "shared:main.py", after=[first], priority=3, attempts_max=7)
    text = one.ask(rq.TaskExport(format=form)).text
    other.ask(rq.TaskImport(text=text, format=form))
    told = [[(task.title.strip(), task.prompt.strip(), task.resources, task.priority, task.after, task.attempts_max)
             for task in world.ask(rq.Tasks()).items] for world in (one, other)]
    assert told[0] == told[1]
    assert world_leases(other, first) == {"app/(auth)/page.tsx", "a, b.py"}
    one.close()
    other.close()


def world_leases(world: World, task: str) -> set[str]:
    return {lease.resource for lease in world.ask(rq.TaskClaim(agent="ann", task=task)).leases}


def test_resources_is_taken_for_files(world: World) -> None:
    for form, text in (("yaml", "- {title: a, resources: [x.py]}"), ("jsonl", '{"title": "a", "resources": "x.py"}'),
                       ("markdown", "- [ ] a (resources: x.py)")):
        (made,) = world.ask(rq.TaskImport(text=text, format=form)).items  # type: ignore[arg-type]
        assert made.resources == ["x.py"], form


def test_the_task_files_in_the_documents_are_some(tmp_path: Path) -> None:
    """All that are shown; those of one page say the same."""
    root = Path(__file__).parents[2]
    for page, count in (("README.md", 1), ("docs/task-file.md", 4)):
        some = []
        for form, text in re.findall(r"^```(yaml|markdown|jsonl)\n(.*?)^```", (root / page).read_text("utf-8"), re.M | re.S):
            world = World(tmp_path / page / str(len(some)))
            told = world.ask(rq.TaskImport(text=text, format=form))
            assert [one for one in told.warnings if "done" not in one] == []
            some.append([(task.title, "parsers/report.py" in task.resources, task.after, task.priority) for task in told.items])
            world.close()
        assert len(some) == count
        if page == "README.md":
            assert [(title, after) for title, _, after, _ in some[0]] == [
                ("Add the report parser", []), ("Give the constants names", []), ("Use the parser in main.py", ["T-1"])]
        else:
            assert some[0] == some[2] == some[3] and some[1][0][0] == "Write the release notes"


@pytest.mark.parametrize(("needs", "holds", "counts"), [("b.py", False, False), ("b.py", True, False), ("a.py", False, True), ("d/x.py", False, True), ("d/", False, True), ("./", True, False), ("./", False, True)])
def test_who_says_that_it_needs_what_it_has_itself_has_failed(world: World, needs: str, holds: bool, counts: bool) -> None:
    """It would say so again at once, and for ever."""
    task = world.task("t", "a.py", "d/")
    if holds:
        world.acquire("bob", "b.py")
    world.ask(rq.TaskClaim(agent="ann", task=task))
    failed = world.ask(rq.TaskFail(agent="ann", task=task, blocked=[needs], reason="my own words"))
    assert (failed.state, failed.attempts) == (("failed", 1) if counts else ("ready", 0)), failed
    who = "which it has itself" if counts else "which others hold" if holds else "which is free by now"
    said = world.db.execute("SELECT data FROM events ORDER BY seq DESC LIMIT 5").fetchall()
    assert any(f"{who}: my own words" in str(row) for row in said), said
    assert world.replay_differs() == []


def test_parts_of_a_kind_of_file_without_regions_are_the_whole_file(world: World) -> None:
    """Two tasks about it come one after the other, and what they did can land."""
    for name in ("Cart.kt", "app.properties", "m.py", "run"):
        world.write(name, "x = 1\n")
    first = world.task("one", "Cart.kt::Cart.total", "app.properties::a", "m.py::f", "run::f", "new.kt::A")
    world.task("two", "Cart.kt::Cart.count")
    claimed = world.ask(rq.TaskClaim(agent="ann", task=first))
    assert [one.resource for one in claimed.leases] == ["Cart.kt", "app.properties", "m.py::f", "new.kt", "run::f"]
    assert "Cart.kt, app.properties and new.kt have no regions, and are leased as a whole." in claimed.warnings
    assert world.refused(rq.TaskClaim(agent="bob", task="T-2")).code is Code.LOCKED
    assert world.refused(rq.TaskClaim(agent="bob")).code is Code.NOTHING_TO_DO
    world.ask(rq.TaskDone(agent="ann", task=first))
    assert [one.resource for one in world.ask(rq.TaskClaim(agent="bob")).leases] == ["Cart.kt"]


@pytest.mark.parametrize(("form", "text"), [
    ("markdown", "- [ ] First (resources: a.json)\n- [ ] Second\n"), ("yaml", "- title: First\n- title: Second\n"), ("jsonl", '{"title": "First"}\n{"title": "Second"}\n')])
def test_a_byte_order_mark_hides_no_task(world: World, form: str, text: str) -> None:
    made = world.ask(rq.TaskImport(text="\ufeff" + text, format=form))  # type: ignore[arg-type]
    assert [one.title for one in made.items] == ["First", "Second"]
