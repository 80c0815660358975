"""The backlog in windows: orders, filters, counts, and what one task is about."""

from __future__ import annotations

import pytest

from coordinator.words import requests as rq
from tests.world import World


def names(listed: rq.TaskList) -> list[str]:
    return [task.task for task in listed.items]


@pytest.fixture
def backlog(world: World) -> World:
    """Tasks 1 to 9: priority by number, the last three come after T-1."""
    for n in range(1, 10):
        world.ask(rq.TaskAdd(
            title=f"Do {'Ü' if n == 5 else 'THAT'} {n}", prompt="p" * n, priority=n % 3,
            resources=[f"src/File{n}.py"], after=["T-1"] if n > 6 else []))
    return world


def test_a_window_in_the_order_of_priority_is_told_whole(backlog: World) -> None:
    ready = backlog.ask(rq.Tasks(state="ready", order="priority"))
    assert names(ready) == ["T-2", "T-5", "T-1", "T-4", "T-3", "T-6"]
    parts = [backlog.ask(rq.Tasks(state="ready", order="priority", skip=skip, limit=2)) for skip in (0, 2, 4)]
    assert [name for part in parts for name in names(part)] == names(ready)
    assert [part.next for part in parts] == [2, 4, None]
    every = backlog.ask(rq.Tasks(order="priority", limit=4))
    assert names(every) == ["T-2", "T-5", "T-8", "T-1"] and every.next == 4
    assert names(backlog.ask(rq.Tasks(order="priority", limit=4, skip=4))) == ["T-4", "T-7", "T-3", "T-6"]


def test_a_window_in_the_order_of_arrival_can_begin_anywhere(backlog: World) -> None:
    assert names(backlog.ask(rq.Tasks(skip=3, limit=2))) == ["T-4", "T-5"]
    page = backlog.ask(rq.Tasks(filter="that", limit=3))
    assert names(page) == ["T-1", "T-2", "T-3"] and page.next == 3
    assert names(backlog.ask(rq.Tasks(filter="that", limit=3, after=3))) == ["T-4", "T-6", "T-7"]


@pytest.mark.parametrize("order", ["arrival", "priority"])
def test_a_filter_looks_into_title_id_holder_and_resources_and_counts_what_it_leaves(backlog: World, order: rq.TaskOrder) -> None:
    def search(text: str, **more: object) -> rq.TaskList:
        return backlog.ask(rq.Tasks(filter=text, order=order, **more))  # type: ignore[arg-type]

    assert names(search("t-7")) == names(search("FILE7.py")) == names(search("that 7")) == ["T-7"]
    assert search("FILE").counts == {"ready": 6, "pending": 3} and len(search("file", state="pending").items) == 3
    assert search("file", state="pending").counts == {"ready": 6, "pending": 3}, "a state narrows the window, not the counts"
    backlog.ask(rq.Register(agent="ann"))
    backlog.ask(rq.TaskClaim(agent="ann", task="T-4"))
    assert backlog.ask(rq.Tasks(agent="ann", order=order)).counts == {"claimed": 1}
    assert names(search("ann")) == ["T-4"] and names(search("ann", agent="ann")) == ["T-4"] and names(search("7", agent="ann")) == []
    assert names(search("%")) == [], "it is text, never a pattern"


def test_a_brief_list_leaves_out_what_may_be_long(backlog: World) -> None:
    (task, *_) = backlog.ask(rq.Tasks(brief=True)).items
    assert (task.title, task.prompt, task.result) == ("Do THAT 1", "", None)
    assert backlog.ask(rq.Tasks(limit=1)).items[0].prompt == "p"


def test_a_task_tells_what_a_person_can_do_with_it(backlog: World) -> None:
    def may(task: str) -> list[str]:
        return backlog.ask(rq.TaskShow(task=task)).may

    assert may("T-1") == ["edit", "cancel"]
    backlog.ask(rq.Register(agent="ann"))
    backlog.ask(rq.TaskClaim(agent="ann", task="T-1"))
    assert may("T-1") == ["cancel"]
    backlog.ask(rq.TaskDone(agent="ann", task="T-1"))
    assert may("T-1") == []
    backlog.ask(rq.TaskCancel(task="T-2"))
    assert may("T-2") == ["retry"]
    for task in backlog.ask(rq.Tasks()).items:
        if "edit" not in task.may:
            backlog.refused(rq.TaskEdit(task=task.task, title="another"))
        if "cancel" not in task.may:
            backlog.refused(rq.TaskCancel(task=task.task, force=True))


def test_a_task_tells_what_comes_before_and_after_it(backlog: World) -> None:
    backlog.ask(rq.TaskAdd(title="last", after=["T-7", "T-2"]))
    chain = backlog.ask(rq.TaskShow(task="T-7")).chain
    assert [(link.task, link.after, link.state) for link in chain] == [
        ("T-1", [], "ready"), ("T-7", ["T-1"], "pending"), ("T-10", ["T-7"], "pending")]
    assert backlog.ask(rq.TaskShow(task="T-3")).chain == []
    for _ in range(100):
        backlog.ask(rq.TaskAdd(title="one of many", after=["T-1"]))
    wide = backlog.ask(rq.TaskShow(task="T-1")).chain
    assert 20 < len(wide) <= 60 and wide[0].task == "T-1"


def test_a_task_tells_what_was_leased_for_it_and_what_it_was_seen_to_change(backlog: World) -> None:
    backlog.write("src/File4.py", "a = 1\n")
    backlog.ask(rq.Register(agent="ann"))
    backlog.ask(rq.TaskClaim(agent="ann", task="T-4"))
    backlog.write("src/File4.py", "a = 2\n")
    backlog.ask(rq.TaskFail(agent="ann", task="T-4", reason="it was late"))
    shown = backlog.ask(rq.TaskShow(task="T-4"))
    assert (shown.leased, shown.wrote) == (["src/File4.py"], ["src/File4.py"])
    untouched = backlog.ask(rq.TaskShow(task="T-5"))
    assert (untouched.leased, untouched.wrote) == ([], [])


@pytest.mark.parametrize(("name", "text", "title"), [
    ("plan.md", "- [ ] one\n", "one"), ("PLAN.YML", "- one\n", "one"), ("plan.json", '{"title": "one"}\n', "one"),
    ("", "- one\n", "one"), ("plan.txt", '{"title": "one"}\n{"title": "two"}\n', "one"), ("/a b/c.d/plan.markdown", "- [ ] one\n", "one"),
])
def test_the_format_of_a_file_is_told_by_its_name_or_its_text(world: World, name: str, text: str, title: str) -> None:
    assert world.ask(rq.TaskImport(text=text, name=name)).items[0].title == title
