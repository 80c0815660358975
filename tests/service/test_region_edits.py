"""What edit tools are about to change is leased by region, and a file is written by one at a time."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from coordinator.kernel.leasing import waiting_line
from coordinator.looking.region_looker import RegionLooker
from coordinator.settings import Leases, Settings
from coordinator.slices.guard.tool_calls import Heeded
from coordinator.store.rows import VersionRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.sessions import Session, holders
from tests.world import World

TEXT = "import os\n\n\ndef f():\n    return 1\n\n\nclass C:\n    x = 1\n\n    def m(self):\n        return 2\n\n\ndef g():\n    return 3\n"


@pytest.fixture
def world(world: World) -> World:
    world.write("a.py", TEXT)
    return world


@pytest.fixture
def ann(world: World) -> Session:
    return Session(world, "ann")


@pytest.fixture
def bob(world: World) -> Session:
    return Session(world, "bob")


def given(session: Session, old: str, new: str, path: str = "a.py") -> dict[str, object]:
    return {"file_path": str(session.world.root / path), "old_string": old, "new_string": new}


def proposes(session: Session, old: str, new: str, path: str = "a.py") -> Heeded:
    return session.call("Edit", given(session, old, new, path))


def does(session: Session, old: str, new: str, path: str = "a.py") -> Heeded:
    file = session.world.root / path
    file.write_text(file.read_text().replace(old, new))
    return session.call("Edit", given(session, old, new, path), "PostToolUse", tool_response={})


def edits(session: Session, old: str, new: str, path: str = "a.py") -> Heeded:
    before = proposes(session, old, new, path)
    assert not before.deny, before.deny
    return does(session, old, new, path)


def test_two_agents_edit_two_functions_of_one_file(world: World, ann: Session, bob: Session) -> None:
    edits(ann, "return 1", "return 10")
    edits(bob, "return 3", "return 30")
    edits(ann, "return 10", "return 100")
    assert holders(world) == {"a.py::f": ann.name, "a.py::g": bob.name}
    assert (world.root / "a.py").read_text() == TEXT.replace("return 1", "return 100").replace("return 3", "return 30")
    denied = proposes(bob, "return 100", "return 0").deny
    assert "a.py::f is leased by claude-code-ann" in denied
    assert world.replay_differs() == []


@pytest.mark.parametrize(("old", "new", "held"), [
    ("return 2", "return 4", ["a.py::C.m"]),
    ("x = 1", "x = 2", ["a.py::C"]),
    ("def g():\n    return 3\n", "def g():\n    return 3\n\n\ndef h():\n    return 4\n", ["a.py::h"]),
    ("def g():", "def gg():", ["a.py::g", "a.py::gg"]),
    ("import os", "import sys", ["a.py"]),
    ("return", "yield", ["a.py"]),  # which of them is not told
    ("nothing like it", "x", ["a.py"]),
    ("def g():", "def g(:", ["a.py"]),  # nobody can tell what that would be
])
def test_what_an_edit_leases(world: World, ann: Session, old: str, new: str, held: list[str]) -> None:
    assert not proposes(ann, old, new).deny
    assert {name for name in holders(world) if not name.startswith("edit:")} == set(held)


def test_a_comma_of_json_is_no_change_of_the_member_before_it(world: World, ann: Session, bob: Session) -> None:
    world.write("p.json", '{\n  "a": 1,\n  "b": 2\n}\n')
    edits(bob, '"b": 2', '"b": 20', "p.json")
    edits(ann, '"b": 20', '"b": 20,\n  "c": 3', "p.json")
    assert holders(world) == {"p.json::b": bob.name, "p.json::c": ann.name}
    for agent in (bob, ann):
        world.ask(rq.Leave(agent=agent.name, clean=False))
    for one in world.ask(rq.Reviews()).items:
        world.ask(rq.ReviewDecide(review=one.review, verdict="revert"))
    assert (world.root / "p.json").read_text() == '{\n  "a": 1,\n  "b": 2\n}\n'


def test_a_whole_files_write_leases_what_it_changes(world: World, ann: Session, bob: Session) -> None:
    edits(bob, "return 3", "return 30")
    text = (world.root / "a.py").read_text()
    assert ann.edit("a.py", text.replace("return 1", "return 10")) == ""
    assert set(holders(world)) == {"a.py::f", "a.py::g"}
    ann.world.write("new.py", "")
    (world.root / "new.py").unlink()
    assert ann.edit("new.py", "def f(): pass\n") == ""
    assert holders(world)["new.py"] == ann.name


def test_one_writes_a_file_at_a_time(world: World, ann: Session, bob: Session) -> None:
    """A tool reads and writes the whole file: between its permission and its end nobody else's may."""
    assert not proposes(ann, "return 1", "return 10").deny
    waits = bob.hook("PreToolUse", tool_name="Edit", tool_input=given(bob, "return 3", "return 30"), tool_use_id="b1")
    assert "claude-code-ann is writing a.py just now" in waits.deny
    does(ann, "return 1", "return 10")
    edits(bob, "return 3", "return 30")
    assert "return 10" in (world.root / "a.py").read_text()


def test_an_edit_whose_end_nobody_told_holds_up_nobody_for_long(world: World, ann: Session, bob: Session) -> None:
    assert not proposes(ann, "return 1", "return 10").deny
    ann.shell("true")  # its next call: that edit is over
    edits(bob, "return 3", "return 30")
    assert not proposes(ann, "return 1", "return 10").deny
    world.clock.advance(61_000)
    edits(bob, "return 30", "return 31")


def test_what_is_changed_of_others_with_it_is_flagged(world: World, ann: Session, bob: Session) -> None:
    """A tool that wrote what it had read long before."""
    edits(bob, "return 3", "return 30")
    assert not proposes(ann, "return 1", "return 10").deny
    world.write("a.py", TEXT.replace("return 1", "return 10"))
    said = ann.call("Edit", given(ann, "return 1", "return 10"), "PostToolUse", tool_response={})
    assert "a.py::g" in said.context and "held by claude-code-bob" in said.context
    (review,) = world.ask(rq.Reviews()).items
    shown = world.ask(rq.ReviewShow(review=review.review, content=True)).files[0]
    assert shown.kept and "-    return 30" in shown.diff
    bob.shell("true")
    assert "a.py::g, which you hold, changed while claude-code-ann edited a.py: by its edit, or by somebody" in bob.before.context


def test_what_others_changed_elsewhere_in_the_file_is_no_reason(world: World, ann: Session, bob: Session) -> None:
    ann.read("a.py")
    bob.read("a.py")
    edits(bob, "return 3", "return 30")
    before = proposes(ann, "return 1", "return 10")
    assert not before.deny and "g changed (claude-code-bob wrote last)" in before.context
    does(ann, "return 1", "return 10")
    world.ask(rq.Release(agent=ann.name, resources=["a.py::f"]))
    world.clock.advance(1_000)
    denied = proposes(bob, "return 10", "return 11").deny
    assert "a.py was changed since you read it, last by claude-code-ann" in denied


def test_a_stale_write_of_the_whole_file_undoes_nothing(world: World, ann: Session, bob: Session) -> None:
    ann.read("a.py")
    edits(bob, "return 3", "return 30")
    world.ask(rq.Release(agent=bob.name, resources=["a.py::g"]))
    world.clock.advance(1_000)
    assert "was changed since you read it, last by claude-code-bob" in ann.edit("a.py", TEXT.replace("return 1", "return 10"))


def test_the_watcher_knows_whose_edit_it_was(world: World, ann: Session, bob: Session) -> None:
    from coordinator.files.content import digest
    from coordinator.kernel.repository_files import Bytes
    from coordinator.slices.guard.seen_writes import Seen
    from coordinator.slices.guard.unleased_writes import Foreign

    edits(bob, "return 3", "return 30")
    world.clock.advance(60_000)
    assert not proposes(ann, "return 1", "return 10").deny
    world.clock.advance(100)
    text = TEXT.replace("return 1", "return 10").replace("return 3", "return 30")
    stamp = (0, 0, 0, 0, world.clock.now_ms() * 1_000_000, world.clock.now_ms() * 1_000_000)
    seen = Seen("a.py", Bytes(digest(text.encode()), text.encode(), stamp=stamp))
    for _ in range(2):
        found: list[Any] = []
        world.decide(lambda tx, found=found: found.extend(  # type: ignore[misc]
            __import__("coordinator.slices.guard.seen_writes", fromlist=["seen"]).seen(world.service, tx, [seen])))
        assert not [one for one in found if isinstance(one, Foreign)]
        does(ann, "return 1", "return 10")
    assert world.view().first(VersionRow, "version_get", "a.py").agent == ann.name  # type: ignore[union-attr]
    assert world.ask(rq.Reviews()).items == []


@pytest.mark.parametrize("glob", ["gen/a.py", "gen/*.py", "**/gen/a.py", "gen/**"])
def test_the_policy_says_which_files_are_taken_whole(tmp_path: Path, glob: str) -> None:
    world = World(tmp_path / "repo", Settings(leases=Leases(granularity={"**": "region", glob: "file"})))
    ann = Session(world, "ann")
    for name in ("gen/a.py", "src/gen/b.py", "b.js"):
        world.write(name, "function f() { return 1 }\n" if name == "b.js" else TEXT)
        edits(ann, "return 1", "return 10", name)
    assert set(holders(world)) == {"gen/a.py", "src/gen/b.py::f", "b.js::f"}
    world.close()


def test_a_sub_agent_writes_what_its_parent_holds(world: World, ann: Session) -> None:
    sub = Session(world, "ann", "sub1")
    edits(ann, "return 1", "return 10")
    edits(sub, "return 10", "return 11")
    assert holders(world) == {"a.py::f": sub.name}
    sub.hook("SubagentStop")
    edits(ann, "return 11", "return 12")
    ann.world.acquire(ann.name, "a.py")
    edits(sub, "return 12", "return 13")


PATCH = """*** Begin Patch
*** Update File: a.py
@@ class C:
     def m(self):
-        return 2
+        return 22
*** End Patch
"""


def test_a_patch_leases_what_its_hunks_change(world: World) -> None:
    codex = Session(world, "cy", profile="codex")
    call = codex.call("apply_patch", {"command": PATCH})
    assert not call.deny
    assert [name for name in holders(world) if not name.startswith("edit:")] == ["a.py::C.m"]


def test_its_own_second_edit_of_the_file_does_not_close_the_first(world: World, ann: Session, bob: Session) -> None:
    assert not proposes(ann, "return 1", "return 10").deny
    assert not proposes(ann, "return 2", "return 20").deny
    waits = bob.hook("PreToolUse", tool_name="Edit", tool_input=given(bob, "return 3", "return 30"), tool_use_id="b1")
    assert "is writing a.py just now" in waits.deny


def test_an_edit_of_a_large_file_takes_it_whole(world: World, ann: Session) -> None:
    """Nobody waits for it to be divided."""
    world.write("a.py", TEXT + "# a line\n" * 120_000)
    assert not proposes(ann, "return 1", "return 10").deny
    assert list(holders(world)) == ["a.py"]


def test_what_an_agent_has_not_seen_it_does_not_undo(world: World, ann: Session, bob: Session) -> None:
    """An edit of one region is no reading of the others: what the agent knows of them is as old as before."""
    ann.read("a.py")
    edits(bob, "return 3", "return 30")
    edits(ann, "return 1", "return 10")
    edits(ann, "return 10", "return 11")
    world.ask(rq.Release(agent=bob.name, resources=["a.py::g"]))
    world.clock.advance(1_000)
    denied = ann.edit("a.py", TEXT.replace("return 1", "return 11"))
    assert "since you read it" in denied and "+    return 30" in denied
    assert ann.edit("a.py", TEXT.replace("return 1", "return 11").replace("return 3", "return 30").replace("return 2", "return 20")) == ""


def test_nor_after_a_commit_of_a_region(world: World, ann: Session, bob: Session) -> None:
    ann.read("a.py")
    edits(bob, "return 3", "return 30")
    world.ask(rq.Release(agent=bob.name, resources=["a.py::g"]))
    world.acquire(ann.name, "a.py::f")
    for text in ("10", "11"):
        world.ask(rq.CommitRegion(agent=ann.name, regions=[rq.RegionText(resource="a.py::f", text=f"def f():\n    return {text}\n")]))
    world.clock.advance(1_000)
    denied = ann.edit("a.py", TEXT.replace("return 1", "return 11"))
    assert "since you read it" in denied and "+    return 30" in denied
    assert ann.edit("a.py", TEXT.replace("return 1", "return 11").replace("return 3", "return 30").replace("return 2", "return 20")) == ""


def test_its_own_edits_are_no_news_to_an_agent(world: World, ann: Session, bob: Session) -> None:
    """Whoever edits beside it, and wherever it adds something."""
    ann.read("a.py")
    for turn in range(3):
        world.clock.advance(1_000)
        edits(bob, f"return 3{'0' * turn}\n", f"return 3{'0' * (turn + 1)}\n")
        world.clock.advance(1_000)
        edits(ann, f"return 1{'0' * turn}\n", f"return 1{'0' * (turn + 1)}\n")
        edits(ann, "\n\nclass C:", f"\n\ndef new_{turn}():\n    pass\n\n\nclass C:")


def test_a_window_that_was_given_up_is_given_to_nobody(world: World, ann: Session, bob: Session) -> None:
    """Who was refused it after a while does not get it later, when nobody waits for it."""
    assert not proposes(ann, "return 1", "return 10").deny
    waits = bob.hook("PreToolUse", window_wait_s=5, tool_name="Edit", tool_input=given(bob, "return 3", "return 30"), tool_use_id="b1")
    assert waits.waiting is not None
    world.decide(lambda tx: waiting_line.stop_holding(world.service, tx, waits.waiting.facts["acquisition_id"], True) and None)  # type: ignore[union-attr]
    world.clock.advance(5_000)
    does(ann, "return 1", "return 10")
    world.settle()
    assert set(holders(world)) == {"a.py::f"}


def test_who_waited_in_vain_for_a_window_leaves_nothing_for_a_person(world: World, ann: Session, bob: Session) -> None:
    assert not proposes(ann, "return 1", "return 10").deny
    waits = bob.hook("PreToolUse", window_wait_s=5, tool_name="Edit", tool_input=given(bob, "return 3", "return 30"), tool_use_id="b1")
    world.decide(lambda tx: waiting_line.stop_holding(world.service, tx, waits.waiting.facts["acquisition_id"], True) and None)  # type: ignore[union-attr]
    for _ in range(20):
        world.clock.advance(1_000)
        world.tend()
    assert world.ask(rq.Locks()).waiters == [] and world.ask(rq.Dead()).items == []
    assert [one for one in world.ask(rq.Heartbeat(agent=bob.name)).notices if "edit:" in one.text] == []


def test_who_waited_for_a_window_begins_with_what_is_there_then(world: World, ann: Session, bob: Session) -> None:
    """What it is held against afterwards is the file that it wrote, not the one that it had asked about."""
    assert not proposes(ann, "return 1", "return 10").deny
    edit = {"tool_name": "Edit", "tool_input": given(bob, "return 3", "return 30"), "tool_use_id": "b1"}
    waits = bob.hook("PreToolUse", window_wait_s=5, **edit)
    assert waits.waiting is not None and waits.wait_s == 5
    does(ann, "return 1", "return 10")
    world.settle()
    assert holders(world)["edit:a.py"] == bob.name
    assert not bob.hook("PreToolUse", goes_on=True, **edit).deny
    world.write("a.py", TEXT.replace("return 3", "return 30"))  # by a tool that had read it before: f is as it was
    said = bob.hook("PostToolUse", tool_response={}, **edit)
    assert "a.py::f" in said.context and "held by claude-code-ann" in said.context
    (review,) = world.ask(rq.Reviews()).items
    assert "-    return 10" in world.ask(rq.ReviewShow(review=review.review, content=True)).files[0].diff


@pytest.mark.parametrize("whole", ["a.py", "./", "*.py"])
def test_who_holds_more_than_the_file_leases_no_region_of_it(world: World, ann: Session, whole: str) -> None:
    world.acquire(ann.name, whole)
    edits(ann, "return 1", "return 10")
    assert set(holders(world)) <= {whole, "a.py"}


def test_a_region_that_was_replaced_before_it_was_leased_is_not_written_over(world: World, ann: Session, bob: Session) -> None:
    ann.read("a.py")
    world.clock.advance(1_000)
    edits(ann, "return 2", "return 20")
    edits(bob, "return 3", "return 30")
    world.ask(rq.Release(agent=bob.name, resources=["a.py::g"]))
    world.clock.advance(1_000)
    told = proposes(ann, "def g():", "# mine\ndef g():").deny
    assert "a.py was changed since you read it, last by claude-code-bob" in told and "+    return 30" in told
    assert not proposes(ann, "def g():", "# mine\ndef g():").deny


def test_what_cannot_be_compared_after_an_edit_stops_nobody(world: World, ann: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not proposes(ann, "return 1", "return 10").deny

    def refuses(*_: object) -> None:
        raise Refusal(Code.LIMIT, "Looking at the files took longer than 1 s.")

    monkeypatch.setattr(RegionLooker, "fact", refuses)
    does(ann, "return 1", "return 10")
    assert "edit:a.py" not in holders(world)
    (noted,) = world.ask(rq.Events(kind="noted")).items
    assert noted.data["facts"] == {"path": "a.py", "why": "Looking at the files took longer than 1 s."}
    assert not ann.shell("true").deny


def test_a_revert_beside_an_edit_waits_for_its_end(world: World, ann: Session) -> None:
    """The tool has read the file before, and writes all of it."""
    world.acquire("eve", "a.py::g")
    world.write("a.py", TEXT.replace("return 3", "return 30"))
    world.ask(rq.Release(agent="eve", resources=["a.py::g"], force=True))
    assert not proposes(ann, "return 1", "return 10").deny
    revert = rq.ReviewDecide(review="R-1", verdict="revert")
    refused = world.refused(revert)
    assert refused.code is Code.LOCKED and refused.message == "claude-code-ann writes a.py just now, and goes on doing so. Nothing was reverted."
    does(ann, "return 1", "return 10")
    assert world.ask(revert).state == "reverted"
    assert (world.root / "a.py").read_text() == TEXT.replace("return 1", "return 10")
    edits(ann, "return 10", "return 11")


def test_write_windows_are_nobody_elses_to_take(world: World, ann: Session) -> None:
    for refused in (rq.Acquire(agent="eve", resources=["edit:a.py"]), rq.TaskAdd(title="x", resources=["edit:a.py"])):
        assert world.refused(refused).code is Code.INVALID


def test_in_a_launchs_worktree_an_edit_leases_regions_and_waits_for_nobody(tmp_path: Path) -> None:
    """Each has the file for itself there: what they did is merged when it lands."""
    world = World(tmp_path / "repo", git=True)
    world.write("a.py", TEXT)
    for words in (("add", "a.py"), ("-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x")):
        subprocess.run(["git", *words], cwd=world.root, check=True)
    ann, bob, eve = (Session(world, name) for name in ("ann", "bob", "eve"))
    for one in (ann, bob):
        place = f".coord/worktrees/{one.name}"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", place], cwd=world.root, check=True, capture_output=True)
        old, new = ("return 1", "return 10") if one is ann else ("return 3", "return 30")
        assert not proposes(one, old, new, f"{place}/a.py").deny
    assert sorted(holders(world)) == ["a.py::f", "a.py::g"]
    again = proposes(ann, "return 3", "return 31", f".coord/worktrees/{ann.name}/a.py")
    assert not again.deny and f"{bob.name} edits a.py::g" in again.context
    assert not proposes(eve, "return 2", "return 20").deny, "beside them, in the main one"
    elsewhere = tmp_path / "mine"
    subprocess.run(["git", "worktree", "add", "-q", "--detach", str(elsewhere)], cwd=world.root, check=True, capture_output=True)
    assert not proposes(Session(world, "pat"), "return 4", "return 40", str(elsewhere / "a.py")).deny
    assert "a.py" in holders(world), "in a person's own tree the file is leased whole"
    world.close()


@pytest.mark.parametrize("old", ["nothing like it", "return"])
def test_an_edit_that_nobody_can_place_stands_in_nobodys_way(world: World, ann: Session, bob: Session, old: str) -> None:
    edits(ann, "return 1", "return 10")
    refused = proposes(bob, old, "yield")
    assert "the text that this edit replaces is not in a.py, or not only once" in refused.deny
    assert "a.py::f is leased by claude-code-ann" in refused.deny and refused.waiting is None
    edits(bob, "return 3", "return 30")
    edits(Session(world, "cy"), "return 2", "return 20")
    assert world.ask(rq.Locks()).waiters == []
    world.ask(rq.Leave(agent=ann.name))
    assert holders(world)["a.py::g"] == bob.name and "a.py" not in holders(world)


def test_an_edit_that_nobody_can_place_closes_no_circle(world: World, ann: Session, bob: Session) -> None:
    """Who waits for nobody is not told to give back what it has."""
    edits(ann, "return 1", "return 10")
    edits(bob, "return 3", "return 30")
    assert proposes(ann, "import os", "import sys").deny
    refused = proposes(bob, "nothing like it", "yield")
    assert "wait for each other" not in refused.deny and "give" not in refused.deny, refused.deny
    assert [one.agent for one in world.ask(rq.Locks()).waiters] == [ann.name]


def test_a_place_that_an_agent_has_is_kept_over_an_edit_that_nobody_can_place(
        world: World, ann: Session, bob: Session) -> None:
    edits(ann, "return 1", "return 10")
    proposes(bob, "import os", "import sys")
    (before,) = world.ask(rq.Locks()).waiters
    world.clock.advance(1000)
    proposes(bob, "nothing like it", "yield")
    (after,) = world.ask(rq.Locks()).waiters
    assert after.asked_at == before.asked_at


JAVA = "class Order {\n    int sum(int p) {\n        total += p;\n    }\n\n    boolean tooMany(int n) {\n        return n > 9;\n    }\n\n    String label() {\n        return x;\n    }\n}\n"
JSON = '{\n  "scripts": {\n    "build": "make",\n    "test": "pytest"\n  },\n  "private": true\n}\n'


@pytest.mark.parametrize(("path", "text", "first", "added", "own"), [
    ("Order.java", JAVA, ("total += p;", "total = total + p;"), ("    boolean tooMany(", "    int n1() {\n        return 1;\n    }\n\n    boolean tooMany("), ("return 1;", "return 11;")),
    ("package.json", JSON, ('"private": true', '"private": false'), ('    "test": "pytest"', '    "lint": "eslint",\n    "test": "pytest"'), ('"eslint"', '"eslint ."')),
    ("package.json", JSON, ('"make"', '"make all"'), ('    "test": "pytest"\n', '    "test": "pytest",\n    "lint": "eslint"\n'), ('"eslint"', '"eslint ."')),
    ("a.py", TEXT, ("return 1", "return 10"), ("    def m(self)", "    def new(self):\n        return 5\n\n    def m(self)"), ("return 5", "return 55")),
    ("a.py", TEXT, ("return 1", "return 10"), ("def g()", "def new():\n    return 5\n\n\ndef g()"), ("return 5", "return 55"))])
def test_what_one_has_added_beside_anothers_edit_is_no_news_to_it(world: World, ann: Session, bob: Session, path: str, text: str, first: tuple[str, str],
                                                                   added: tuple[str, str], own: tuple[str, str]) -> None:
    """What it knows has the new part where it put that."""
    world.write(path, text)
    for one in (ann, bob):
        one.read(path)
    edits(ann, *first, path)
    edits(bob, *added, path)
    edits(bob, *own, path)
    edits(bob, own[1], own[0], path)
    edits(ann, first[1], first[0], path)
    edits(bob, *own, path)
    assert (world.root / path).read_text() == text.replace(*added).replace(*own)
    ann.read(path)
    denied = proposes(ann, own[1], own[0], path).deny
    assert f"is leased by {bob.name}" in denied
