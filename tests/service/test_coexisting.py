"""Two write one file, as they agreed: one after the other, on what is there, and told of each write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.daemon.namespaces import Right, _writers
from coordinator.kernel.holders import notice_delivery
from coordinator.settings import Reviewing, Settings
from coordinator.slices.guard import shell_commands, write_windows
from coordinator.store.ledger import Tx
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.service.test_narrowed import b64
from tests.service.test_negotiation import answer, state
from tests.sessions import Session
from tests.world import World

TWO = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"


@pytest.fixture(autouse=True)
def the_log_gives_the_state(world: World) -> Iterator[None]:
    yield
    assert world.replay_differs() == []


def told(world: World, agent: str) -> list[str]:
    """What its next hook prints, and confirms."""
    def job(tx: Tx) -> list[str]:
        receipt: list[Any] = []
        said = notice_delivery.deliver(world.service, tx, agent, receipt)
        for event in receipt:
            tx.record(event)
        return said

    got: list[str] = world.decide(job)
    return got


@pytest.fixture
def ann(world: World) -> Session:
    return Session(world, "ann")


@pytest.fixture
def bob(world: World) -> Session:
    return Session(world, "bob")


def shared(world: World, ann: Session, bob: Session, path: str = "notes.txt", text: str = "one\ntwo\n") -> None:
    """Ann holds a file, bob asks for it, and she shares it."""
    world.write(path, text)
    ann.read(path)
    bob.read(path)
    world.acquire(ann.name, path)
    world.ask(rq.RequestFile(agent=bob.name, resource=path, reason="me too"))
    assert answer(world, ann.name, "U-1", "coexist").granted


def modes(world: World) -> dict[tuple[str, str], tuple[str, str | None]]:
    return {(row.locked_by, row.file_path): (row.mode, row.agreed_as) for row in world.live()}


def test_both_hold_it_and_nobody_else_gets_it(world: World, ann: Session, bob: Session) -> None:
    world.write("a.py", TWO)
    old = world.acquire(ann.name, "a.py").leases[0]
    world.ask(rq.RequestFile(agent=bob.name, resource="a.py", reason="me too"))
    assert any(f"`coord request coexist U-1 --agent {ann.name}`" in one for one in told(world, ann.name))
    done = answer(world, ann.name, "U-1", "coexist", answer="you take g")
    assert done.granted and done.released == [] and [one.resource for one in done.kept] == ["a.py"]
    assert modes(world) == {(ann.name, "a.py"): ("shared", "U-1"), (bob.name, "a.py"): ("shared", "U-1")}
    mine, theirs = world.live()
    assert mine.fencing_token == old.fencing_token and theirs.content_hash == old.content_hash
    assert state(world, "U-1") == ("coexisting", ann.name, "you take g")
    (said,) = told(world, bob.name)
    assert f'{ann.name} shares a.py with you (U-1): "you take g"' in said
    for request in (rq.Acquire(agent="cyd", resources=["a.py"]), rq.Acquire(agent="cyd", resources=["a.py"], mode="shared"),
                    rq.Acquire(agent="cyd", resources=["a.py::f"])):
        refusal = world.refused(request)
        assert refusal.code is Code.LOCKED
        assert {one["holder"] for one in refusal.facts["conflicts"]} == {ann.name, bob.name}
    held = world.ask(rq.GuardCheck(agent="cyd", paths=["a.py"])).items
    assert {one.holder for one in held} == {ann.name, bob.name}
    assert world.ask(rq.GuardCheck(agent=ann.name, paths=["a.py"])).items == []


@pytest.mark.parametrize("path,text", [("notes.txt", "one\ntwo\n"), ("a.py", TWO)])
def test_they_write_by_turns_on_what_is_there_and_hear_of_each_other(
    world: World, ann: Session, bob: Session, path: str, text: str,
) -> None:
    shared(world, ann, bob, path, text)
    told(world, bob.name)
    assert ann.edit(path, text.replace("one", "ONE").replace("return 1", "return 10")) == ""
    ann.hook("Stop")
    (said,) = told(world, bob.name)
    assert f"{ann.name} has written {path}" in said and "which you share (U-1). Read it again" in said
    assert ("(f)" in said) is (path == "a.py"), "its regions are told where it has some"
    assert told(world, ann.name) == []
    denied = bob.edit(path, text.replace("two", "TWO").replace("return 2", "return 20"))
    assert "Your environment changed" in denied and f"by {ann.name}" in denied and "+" in denied
    now = (world.root / path).read_text()
    assert "TWO" not in now and "20" not in now, "what she wrote is there"
    assert bob.edit(path, now.replace("two", "TWO").replace("return 2", "return 20")) == ""
    bob.hook("Stop")
    assert f"{bob.name} has written {path}" in "".join(told(world, ann.name))
    assert modes(world) == {(ann.name, path): ("shared", "U-1"), (bob.name, path): ("shared", "U-1")}
    assert world.ask(rq.Reviews()).items == []
    third = Session(world, "cyd")
    assert "is leased by" in third.edit(path, "mine\n")


@pytest.mark.parametrize("mode", ["exclusive", "shared"])
def test_who_asks_again_for_what_it_shares_has_it(world: World, ann: Session, bob: Session, mode: str) -> None:
    """Nobody is sent into a line for it, or told of a circle."""
    shared(world, ann, bob)
    before = modes(world)
    for one in (bob, ann, bob):
        (lease,) = world.acquire(one.name, "notes.txt", mode=mode).leases
        assert lease.reentrant and lease.agreed_as
    assert modes(world) == before and world.ask(rq.Locks()).waiters == []
    assert world.refused(rq.Acquire(agent="dan", resources=["notes.txt"], mode=mode)).code is Code.LOCKED
    task = world.task("t", "notes.txt")
    world.ask(rq.TaskClaim(agent=bob.name, task=task))
    assert {who for who, _ in before} <= {row.locked_by for row in world.live()} | {row.file_path for row in world.live()}


def test_one_edit_runs_at_a_time(world: World, ann: Session, bob: Session) -> None:
    shared(world, ann, bob)
    given: dict[str, object] = {"file_path": str(world.root / "notes.txt"), "content": "one\nTWO\n"}
    assert ann.call("Write", given).deny == ""
    (window,) = write_windows.list_windows(world.view(), ann.name)
    assert window.file_path == "edit:notes.txt"
    blocked = bob.call("Write", given | {"content": "ONE\ntwo\n"})
    assert f"{ann.name}" in blocked.deny and write_windows.list_windows(world.view(), bob.name) == []
    world.write("notes.txt", "one\nTWO\n")
    ann.call("Write", given, "PostToolUse", tool_response={})
    assert write_windows.list_windows(world.view(), ann.name) == []
    assert "Your environment changed" in bob.edit("notes.txt", "ONE\ntwo\n")
    assert bob.edit("notes.txt", "ONE\nTWO\n") == ""


def test_who_has_never_read_it_overwrites_nobody(world: World, ann: Session, bob: Session) -> None:
    world.write("notes.txt", "one\n")
    ann.read("notes.txt")
    world.acquire(ann.name, "notes.txt")
    bob.hook("SessionStart", source="startup")
    world.ask(rq.RequestFile(agent=bob.name, resource="notes.txt", reason="me too"))
    answer(world, ann.name, "U-1", "coexist")
    assert ann.edit("notes.txt", "two\n") == ""
    ann.hook("Stop")
    assert "have not read" in bob.edit("notes.txt", "three\n")
    bob.read("notes.txt")
    assert bob.edit("notes.txt", "three\n") == ""


def test_a_command_of_one_is_no_violation_of_the_other(world: World, ann: Session, bob: Session) -> None:
    shared(world, ann, bob)
    world.acquire("cyd", "other.txt")
    met = {row.file_path for row in shell_commands.held_by_others(world.view(), bob.name)}
    assert met == {"other.txt"}
    met = {row.file_path for row in shell_commands.held_by_others(world.view(), "cyd")}
    assert met == {"notes.txt"}
    heeded = bob.call("Bash", {"command": "echo three >> notes.txt"})
    assert heeded.deny == "" and [write_windows.path(row) for row in write_windows.list_windows(world.view(), bob.name)] == ["notes.txt"]
    world.write("notes.txt", "one\ntwo\nthree\n")
    bob.call("Bash", {"command": "echo three >> notes.txt"}, "PostToolUse", tool_response={"stdout": ""})
    assert f"{bob.name} has written notes.txt" in "".join(told(world, ann.name))
    assert "Your environment changed" in ann.edit("notes.txt", "ONE\ntwo\n")


def test_a_command_that_is_refused_keeps_no_turn(world: World, ann: Session, bob: Session) -> None:
    shared(world, ann, bob)
    assert bob.edit("notes.txt", "one\nBOB\n") == ""
    bob.hook("Stop")
    assert "Your environment changed" in ann.call("Bash", {"command": "sed -i s/two/ANN/ notes.txt"}).deny
    assert write_windows.list_windows(world.view(), ann.name) == []
    assert bob.edit("notes.txt", "one\nBOB again\n") == ""


def test_where_one_leaves_the_other_keeps_it_with_what_both_have_begun(world: World, ann: Session, bob: Session) -> None:
    shared(world, ann, bob)
    assert ann.edit("notes.txt", "ANN\ntwo\n") == ""
    ann.hook("Stop")
    world.ask(rq.Leave(agent=ann.name, clean=False, reason="killed"))
    assert modes(world) == {(bob.name, "notes.txt"): ("shared", "U-1")}
    (review,) = world.ask(rq.Reviews()).items
    assert review.agent == ann.name and f"{bob.name} shares notes.txt with it and goes on: what {bob.name} had written" in review.summary
    assert world.refused(rq.Acquire(agent="cyd", resources=["notes.txt"])).code is Code.LOCKED
    bob.read("notes.txt")
    assert bob.edit("notes.txt", "ANN\nBOB\n") == ""
    assert modes(world) == {(bob.name, "notes.txt"): ("exclusive", None)}, "it is alone: as usual"
    world.ask(rq.Leave(agent=bob.name, clean=False, reason="killed"))
    (file,) = world.ask(rq.ReviewShow(review="R-1", content=True)).files
    assert (b64(file.baseline), b64(file.flagged)) == ("one\ntwo\n", "ANN\ntwo\n")
    (file,) = world.ask(rq.ReviewShow(review="R-2", content=True)).files
    assert (b64(file.baseline), b64(file.flagged)) == ("one\ntwo\n", "ANN\nBOB\n")


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_the_review_of_the_last_says_whose_finished_work_is_among_it(world: World, ann: Session, bob: Session, alone: bool, first: bool) -> None:
    shared(world, ann, bob)
    one, two = (ann, bob) if first else (bob, ann)
    assert one.edit("notes.txt", "FIRST\ntwo\n") == ""
    one.hook("Stop")
    world.ask(rq.Leave(agent=one.name, clean=True))
    two.read("notes.txt")
    if alone:
        assert two.edit("notes.txt", "FIRST\nHALF\n") == ""
    else:
        world.write("notes.txt", "FIRST\nHALF\n")
    world.ask(rq.Leave(agent=two.name, clean=False, reason="killed"))
    (review,) = world.ask(rq.Reviews()).items
    assert f"{one.name} shared notes.txt with it and has ended: what {one.name} had written there is among it" in review.summary
    world.acquire("cyd", "notes.txt")
    world.write("notes.txt", "x")
    world.ask(rq.Leave(agent="cyd", clean=False, reason="killed"))
    (later,) = [one for one in world.ask(rq.Reviews()).items if one.agent == "cyd"]
    assert "shared" not in later.summary


@pytest.mark.parametrize("how", ["fail", "kill", "force", "lapse"])
@pytest.mark.parametrize("quarantine", [True, False])
def test_what_one_leaves_half_done_is_looked_at_though_the_other_ends_well(
    tmp_path: Path, how: str, quarantine: bool,
) -> None:
    world = World(tmp_path / "other", Settings(review=Reviewing(quarantine=quarantine)))
    ann, bob = Session(world, "ann"), Session(world, "bob")
    task = world.task("t", "notes.txt")
    world.write("notes.txt", "one\ntwo\nthree\n")
    bob.read("notes.txt")
    ann.read("notes.txt")
    world.ask(rq.TaskClaim(agent=ann.name, task=task))
    world.ask(rq.RequestFile(agent=bob.name, resource="notes.txt", reason="me too"))
    assert answer(world, ann.name, "U-1", "coexist").granted
    assert ann.edit("notes.txt", "HALF\ntwo\nthree\n") == ""
    ann.hook("Stop")
    bob.read("notes.txt")
    if how == "fail":
        world.ask(rq.TaskFail(agent=ann.name, task=task, reason="no"))
    elif how == "kill":
        world.ask(rq.Leave(agent=ann.name, clean=False, reason="killed"))
    elif how == "force":
        world.ask(rq.Release(agent=ann.name, resources=["notes.txt"], force=True))
    else:
        for _ in range(19):
            world.clock.advance(100_000)
            world.ask(rq.Renew(agent=bob.name))
        world.ask(rq.Sweep())
    (review,) = world.ask(rq.Reviews()).items
    assert review.agent == ann.name
    assert bob.edit("notes.txt", "HALF\ntwo\nTHREE\n") == "", "its work goes on"
    bob.hook("Stop")
    world.ask(rq.Release(agent=bob.name, resources=["notes.txt"]))
    world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert (world.root / "notes.txt").read_text() == "one\ntwo\nTHREE\n"


def test_a_third_enters_by_one_of_them_and_the_rest_is_told(world: World, ann: Session, bob: Session) -> None:
    shared(world, ann, bob)
    cyd = Session(world, "cyd")
    cyd.read("notes.txt")
    told(world, bob.name)
    world.ask(rq.RequestFile(agent=cyd.name, resource="notes.txt", reason="me too", holder=ann.name))
    assert answer(world, ann.name, "U-2", "coexist").granted
    assert set(modes(world).values()) == {("shared", "U-1")} and len(modes(world)) == 3
    assert f"{cyd.name} writes notes.txt with you from now on (U-1" in told(world, bob.name)[0]
    assert cyd.edit("notes.txt", "one\nCYD\n") == ""
    cyd.hook("Stop")
    assert "has written" in told(world, ann.name)[-1] and "has written" in told(world, bob.name)[-1]


def test_regions_of_one_file_are_shared_and_the_rest_is_not(world: World, ann: Session, bob: Session) -> None:
    world.write("a.py", TWO)
    ann.read("a.py")
    bob.read("a.py")
    world.acquire(ann.name, "a.py::f")
    world.acquire("cyd", "a.py::g")
    world.ask(rq.RequestFile(agent=bob.name, resource="a.py::f", reason="me too"))
    assert answer(world, ann.name, "U-1", "coexist").granted
    assert bob.edit("a.py", TWO.replace("return 1", "return 10")) == ""
    bob.hook("Stop")
    assert "has written a.py (f)" in "".join(told(world, ann.name)) and told(world, "cyd") == []
    assert "is leased by cyd" in bob.edit("a.py", TWO.replace("return 1", "return 10").replace("return 2", "return 20"))
    ann.read("a.py")
    assert ann.edit("a.py", TWO.replace("return 1", "return 11")) == ""
    assert {path for who, path in modes(world)} == {"a.py::f", "a.py::g", "edit:a.py"} - (
        set() if write_windows.list_windows(world.view(), ann.name) else {"edit:a.py"})
    assert world.ask(rq.Reviews()).items == []


def test_its_regions_are_not_committed_by_one_of_them(world: World, ann: Session, bob: Session) -> None:
    shared(world, ann, bob, "a.py", TWO)
    text = "def f():\n    return 10\n"
    refusal = world.refused(rq.CommitRegion(agent=bob.name, regions=[rq.RegionText(
        resource="a.py::f", text=text, content_hash="sha256:x")]))
    assert refusal.code is Code.NOT_HOLDER and "shares a.py::f with others (U-1)" in refusal.message
    assert (world.root / "a.py").read_text() == TWO


def test_what_cannot_be_shared_stays_as_it_is(world: World) -> None:
    for path in ("d/a.py", "d/b.py", "r.py"):
        world.write(path, TWO)
    world.acquire("ann", "d/")
    world.acquire("ann", "key:x")
    world.acquire("ann", "r.py::f")
    world.acquire("eve", "r.py::g")
    task = world.task("work")
    world.ask(rq.TaskClaim(agent="ann", task=task))
    for resource, words in (("d/a.py", "what two share is the same for both"), ("key:x", "one owner at a time"),
                            (f"task:{task}", "one owner at a time"), ("r.py", "eve holds a part of it, too")):
        made = world.ask(rq.RequestFile(agent="bob", resource=resource, reason="me too", holder="ann"))
        before = world.rows()
        refusal = world.refused(rq.RequestAnswer(agent="ann", request=made.request, verdict="coexist"))
        assert refusal.code is Code.BAD_TRANSITION and words in refusal.message, refusal
        assert world.rows() == before and f"{made.request} stays open" in refusal.message


def test_readers_do_not_share_with_writers(world: World) -> None:
    world.write("a.py", TWO)
    world.acquire("ann", "a.py", mode="shared")
    world.acquire("eve", "a.py", mode="shared")
    world.ask(rq.RequestFile(agent="bob", resource="a.py", reason="me too", holder="ann"))
    refusal = world.refused(rq.RequestAnswer(agent="ann", request="U-1", verdict="coexist"))
    assert refusal.code is Code.BAD_TRANSITION and "eve holds a part of it" in refusal.message
    world.ask(rq.Release(agent="eve", resources=["a.py"]))
    assert answer(world, "ann", "U-1", "coexist").granted


def test_who_reads_more_than_is_shared_gives_that_back_first(world: World) -> None:
    """It would be a reader of what another writes, and only a part of that is agreed."""
    world.write("d/a.py", TWO)
    world.acquire("ann", "d/a.py::f", mode="shared")
    world.acquire("bob", "d/", mode="shared")
    made = world.ask(rq.RequestFile(agent="bob", resource="d/a.py", reason="me too", holder="ann"))
    refusal = world.refused(rq.RequestAnswer(agent="ann", request=made.request, verdict="coexist"))
    assert refusal.code is Code.BAD_TRANSITION and "bob also holds d/ to read" in refusal.message
    world.ask(rq.Release(agent="bob", resources=["d/"]))
    assert answer(world, "ann", made.request, "coexist").granted


def test_a_directory_is_shared_as_a_whole(world: World, ann: Session, bob: Session) -> None:
    world.write("d/a.txt", "one\n")
    world.acquire(ann.name, "d/")
    ann.read("d/a.txt")
    bob.read("d/a.txt")
    world.ask(rq.RequestFile(agent=bob.name, resource="d/", reason="me too"))
    assert answer(world, ann.name, "U-1", "coexist").granted
    assert ann.edit("d/a.txt", "two\n") == ""
    ann.hook("Stop")
    assert "has written d/a.txt" in "".join(told(world, bob.name))
    assert "Your environment changed" in bob.edit("d/a.txt", "three\n")
    assert bob.edit("d/new.txt", "bob\n") == ""
    bob.hook("Stop")
    assert "has written d/new.txt" in "".join(told(world, ann.name))
    assert set(modes(world).values()) == {("shared", "U-1")}


def test_who_may_write_it_in_a_session(world: World) -> None:
    ann, bob = Right("ann", "shared", "file", True), Right("bob", "shared", "region", True)
    window = Right("bob", "exclusive", "key")
    assert _writers({1: ann, 2: bob}) == ["ann", "bob"] and _writers({1: ann}) == ["ann"]
    assert _writers({1: ann, 2: bob, 3: window}) == ["bob"], "one edit at a time"
    assert _writers({1: Right("ann", "shared", "file"), 2: Right("bob", "shared", "file")}) == []
