"""The backlog, claims and what becomes of them, told in full (tests/transcripts.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.settings import Backlog, Leases, Reviewing, Settings
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from tests.transcripts import Transcript
from tests.world import World

MARKDOWN = """# Work

- [ ] Ordering (files: src/order.py, `a, b.py`, "c.py") (after: first) (priority: 3) (attempts: 2) (id: o)
  Keep the order.

    indented
- [x] Done before (id: first2)
* [ ] First (id: first) (prio: -1)
\tby a tab
+ [ ] A title \\(id: kept)
- [ ] Odd) title)
- [ ] In a folder (files: app/(auth)/page.tsx) (id: `x (y`)
"""
YAML = """
tasks:
  - plain title
  - {title: numbered, id: 7, files: a.py, after: o}
  - {title: after it, after: [7], resources: ["shared:a.py", d/], prompt: "two\\nlines", priority: 2}
  - {title: gone, state: done}
"""


@pytest.fixture
def told(world: World) -> Transcript:
    return Transcript(world)


def add(title: str, *resources: str, **more: object) -> rq.TaskAdd:
    return rq.TaskAdd(title=title, resources=list(resources), **more)  # type: ignore[arg-type]


def test_tasks_are_added_listed_and_written_out(told: Transcript) -> None:
    told.ask(add("o", "a.py", "shared:a.py", "shared:b.py", "d/", "./d/", prompt="p", priority=5))
    told.ask(rq.TaskImport(text=MARKDOWN, format="markdown"))
    told.ask(rq.TaskImport(text=YAML.replace("after: o", "after: T-1"), format="yaml"))
    told.ask(rq.TaskImport(text='"one"\r\n\n{"title": "two", "files": "x.py", "attempts": 1}\n', format="jsonl"))
    told.ask(rq.TaskClaim(agent="ann", task="1"))
    told.ask(rq.TaskDone(agent="ann", task="t-1", result="r" * 10_000))
    told.ask(rq.Tasks(limit=2))
    told.ask(rq.Tasks(limit=2, after=2, state="pending"))
    told.ask(rq.Tasks(limit=1))
    told.ask(rq.TaskShow(task=" 3 "))
    forms = ("markdown", "yaml", "jsonl")
    for form in forms:
        text = told.ask(rq.TaskExport(format=form)).text  # type: ignore[arg-type]
        told.lines.append(text)
    told.assert_is("tasks")


BAD = [
    ("yaml", "- {title: x, prio: 3}"), ("yaml", "- [a"), ("yaml", "a: b"), ("yaml", "tasks: 3"), ("yaml", "# none"),
    ("yaml", "- 3"), ("yaml", "- {title: x, files: a, resources: b}"), ("yaml", "- {title: 3}"), ("yaml", "- x: &a [*a]"), ("yaml", "a\0b"), ("yaml", "- !!python/x y"),
    ("jsonl", '{"title": "a"}\n{"title": '), ("jsonl", "\n\n[1]"), ("jsonl", "3"),
    ("markdown", "no boxes"), ("markdown", "- [ ] a\n- [ ] b (priority: high)"), ("markdown", "- [ ] a (id: x)\n- [ ] b (id: x)"),
    ("markdown", "- [ ] a (id: x) (after: y)\n- [ ] b (id: y) (after: x)"), ("markdown", "- [ ]  (id: x)"),
    ("markdown", "- [ ] a (after: nobody)"), ("markdown", "- [ ] a (attempts: 0)"),
]


def test_tasks_that_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leases, "wait_max_s", 9.0)
    world = World(tmp_path / "few", Settings(backlog=Backlog(tasks_max=4), leases=Leases(resources_max=2)))
    told = Transcript(world)
    for form, text in BAD:
        told.ask(rq.TaskImport(text=text, format=form))  # type: ignore[arg-type]
    for title in (" ", "x" * 501):
        told.ask(add(title))
    told.ask(add("p", prompt="p" * 200_001))
    for priority in (-1001, 1001):
        told.ask(add("p", priority=priority))
    told.ask(add("a", attempts_max=1001))
    told.ask(add("three", "1", "2", "3"))
    told.ask(add("outside", "/etc/passwd"))
    told.ask(add("after", after=["T-9"]))
    told.ask(add(" " + "x" * 500, "1", "2", priority=1000, attempts_max=1000))
    told.ask(add("p", prompt="p" * 200_000, priority=-1000, attempts_max=1))
    told.ask(rq.TaskImport(text="- a\n- b\n- c\n", format="yaml"))
    told.ask(rq.TaskImport(text="- a\n- b\n", format="yaml"))
    told.ask(add("fifth"))
    for wait_s in (-1.0, 9.0, 9.1):
        told.ask(rq.TaskClaim(agent="ann", wait_s=wait_s))
    told.ask(rq.TaskClaim(agent="ann", ttl_s=0))
    told.ask(rq.TaskClaim(agent="ann", task="T-9"))
    told.ask(rq.TaskShow(task="nothing"))
    told.assert_is("tasks_refused")
    world.close()


def test_claims(told: Transcript) -> None:
    world = told.world
    (world.root / "context_archive").mkdir()
    (world.root / "context_archive/a.md").write_text(
        "# A\n\n`a.py` is what comes before.\n\n## B\n\n`a.py` is the first of all.\n")
    world.service.archive.refresh()
    told.ask(add("first", "a.py", "shared:s.py", priority=1))
    told.ask(add("second", "b.py", after=["T-1"]))
    told.ask(add("third", "a.py"))
    token = told.ask(rq.Register(agent="ann")).token
    told.ask(rq.TaskClaim(agent="ann"), token)
    told.ask(rq.TaskClaim(agent="ann", task="T-1"), token)
    told.ask(add("reads", "shared:s.py", "shared:a.py", priority=-1))
    told.ask(rq.TaskShow(task="T-4"))
    told.ask(rq.TaskClaim(agent="bob", task="T-1"))
    told.ask(rq.TaskClaim(agent="bob", task="T-2"))
    told.ask(rq.TaskClaim(agent="bob", task="T-3"))
    told.ask(rq.TaskClaim(agent="bob"))
    told.ask(rq.TaskShow(task="T-3"))
    told.ask(rq.TaskShow(task="T-2"))
    told.ask(rq.TaskDone(agent="bob", task="T-1"))
    told.ask(rq.TaskDone(agent="ann", task="T-2"))
    told.ask(rq.TaskDone(agent="ann", task="T-1", force=True), token)
    told.ask(rq.TaskCancel(task="T-1"))
    told.ask(rq.Acquire(agent="bob", resources=["x.py"]))
    told.ask(rq.Acquire(agent="ann", resources=["x.py"], task="T-1"))
    told.later(5)
    told.ask(rq.TaskDone(agent="ann", task="T-1", result="good"), token)
    told.ask(rq.TaskClaim(agent="ann", ttl_s=60))
    told.later(60)
    told.ask(rq.TaskDone(agent="ann", task="T-2"))
    told.ask(rq.TaskShow(task="T-2"))
    told.ask(rq.TaskClaim(agent="bob", task="T-2"))
    told.later(10)
    told.ask(rq.TaskClaim(agent="bob", task="T-2"))
    told.ask(rq.TaskDone(agent="eve", task="T-2", force=True))
    told.ask(rq.TaskClaim(agent="bob", ttl_s=1))
    told.later(1)
    told.ask(rq.TaskDone(agent="eve", task="T-3", force=True))
    told.ask(rq.TaskClaim(agent="bob"))
    told.ask(rq.TaskRetry(task="T-3"))
    told.assert_is("claims")


def test_attempts_that_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backlog, "backoff_max_s", 15.0)
    world = World(tmp_path / "few", Settings(backlog=Backlog(attempts_max=2, backoff_s=10)))
    told = Transcript(world)
    world.write("a.py", "one\n")
    told.ask(add("hard", "a.py", attempts_max=3))
    told.ask(add("after it", after=["T-1"]))
    told.ask(add("after that", after=["T-2"]))
    told.ask(rq.Acquire(agent="bob", resources=["b.py"]))
    for more in ({"reason": "no luck"}, {}, {"blocked": ["b.py"]}, {"model_error": True, "reason": "overloaded"},
                 {"reason": "again " + "w" * 2000, "log_tail": "tail"}):
        told.ask(rq.TaskClaim(agent="ann", task="T-1"))
        told.ask(rq.TaskFail(agent="bob", task="T-1"))
        told.ask(rq.TaskFail(agent="ann", task="T-1", **more))  # type: ignore[arg-type]
        told.ask(rq.TaskShow(task="T-1"))
        told.later(15)
        world.tend()
        told.came("tended")
        if "blocked" in more:
            told.ask(rq.Release(agent="bob", resources=["b.py"]))
    told.ask(rq.TaskShow(task="T-2"))
    told.ask(rq.TaskShow(task="T-3"))
    told.ask(rq.TaskClaim(agent="ann"))
    told.ask(rq.TaskRetry(task="T-1"))
    told.ask(rq.TaskClaim(agent="ann"))
    world.write("a.py", "half\n")
    told.ask(rq.TaskFail(agent="ann", task="T-1", reason="gave up", log_tail="the last words"))
    told.ask(rq.TaskShow(task="T-1"))
    told.ask(rq.ReviewDecide(review="R-1", verdict="reassign", by="eve", note="go on"))
    told.ask(rq.TaskClaim(agent="cyd"))
    told.ask(rq.TaskCancel(task="T-1"))
    told.ask(rq.TaskCancel(task="T-1", force=True, reason="not wanted"))
    told.ask(rq.TaskCancel(task="T-3"))
    told.ask(rq.Tasks())
    told.assert_is("attempts")
    world.close()


def test_tasks_that_meet_what_others_hold_and_reviews(tmp_path: Path) -> None:
    world = World(tmp_path / "few", Settings(review=Reviewing(quarantine=True, files_max=3)))
    told = Transcript(world)
    for n in range(4):
        world.write(f"d/{n}", "x\n")
    world.write("a.py", "one\n")
    told.ask(rq.Acquire(agent="ann", resources=["a.py"], ttl_s=5))
    world.write("a.py", "half\n")
    told.later(5)
    told.ask(add("under review", "a.py", priority=3))
    told.ask(add("too large", "d/", priority=2))
    told.ask(add("free", "b.py"))
    told.ask(rq.Acquire(agent="bob", resources=["a.py"]))
    told.ask(rq.TaskClaim(agent="bob", task="T-1"))
    told.ask(rq.TaskClaim(agent="bob"))
    told.ask(rq.TaskClaim(agent="cyd"))
    told.came("aside", world.ask(rq.Status()).aside)
    told.ask(rq.TaskClaim(agent="cyd", task="T-2"))
    told.ask(rq.ReviewDecide(review="R-1", verdict="keep", by="eve"))
    told.ask(rq.TaskClaim(agent="cyd"))
    told.assert_is("under_review")
    world.close()


def test_what_a_decided_review_leaves_to_its_task(told: Transcript) -> None:
    world = told.world
    world.write("a.py", "one\n")
    told.ask(add("t", "a.py", "b.py", attempts_max=2))
    told.ask(rq.TaskClaim(agent="ann", ttl_s=5))
    world.write("a.py", "half\n")
    told.later(5)
    told.ask(rq.Sweep())
    told.ask(rq.ReviewDecide(review="R-1", verdict="reassign", by="eve"))
    told.ask(rq.Acquire(agent="bob", resources=["a.py"], retry=False))
    told.ask(rq.Release(agent="bob", resources=["a.py"]))
    told.ask(rq.TaskClaim(agent="bob"))
    told.ask(rq.TaskFail(agent="bob", task="T-1"))
    told.ask(rq.TaskShow(task="T-1"))
    told.ask(rq.ReviewDecide(review="R-1", verdict="keep", by="eve"))
    told.ask(rq.TaskShow(task="T-1"))
    assert not isinstance(told.ask(rq.Tasks()), Refusal)
    told.assert_is("reassigned")
