"""A holder keeps a part of what it holds, and what it has begun there stays what it has begun."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.service.test_negotiation import answer, ask, holders, state, told
from tests.world import Sabotage, World

TWO = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
NEW = "def f():\n    return 10\n\n\ndef g():\n    return 20\n"


@pytest.fixture(autouse=True)
def the_log_gives_the_state(world: World) -> Iterator[None]:
    yield
    assert world.replay_differs() == []


def narrow(world: World, *keep: str, agent: str = "ann", request: str = "U-1", **more: Any) -> rq.UnlockAnswered:
    done = answer(world, agent, request, "narrow", keep=list(keep), **more)
    assert isinstance(done, rq.UnlockAnswered)
    return done


def b64(text: str | None) -> str:
    return base64.b64decode(text or "").decode()


def baselines(world: World, review: str) -> dict[str, str]:
    shown = world.ask(rq.ReviewShow(review=review))
    return {one.path: one.change for one in shown.files}


def test_of_a_directory_files_are_kept_and_the_rest_goes_to_who_asked(world: World) -> None:
    for name in ("a.py", "b.py", "sub/c.py"):
        world.write(f"d/{name}", "one\n")
    task = world.task("work", "d/")
    world.ask(rq.TaskClaim(agent="ann", task=task))
    old = world.live()[0]
    ask(world, "bob", "d/a.py")
    assert "`coord request narrow U-1 --agent ann --keep PART`" in told(world, "ann")[0]
    world.write("d/b.py", "half\n")
    world.write("d/new.py", "made\n")
    world.write("d/sub/c.py", "half\n")
    done = narrow(world, "d/b.py", "d/sub/", "d/new.py", answer="I need the rest")
    assert done.granted and {one.resource for one in done.kept} == {"d/b.py", "d/sub/", "d/new.py"}
    assert holders(world) == {"d/b.py": "ann", "d/sub/": "ann", "d/new.py": "ann", "d/a.py": "bob"}
    assert state(world, "U-1") == ("narrowed", "ann", "I need the rest")
    for row in world.live():
        if row.locked_by == "ann":
            assert (row.task_id, row.expires_at, row.max_until, row.mode) == (task, old.expires_at, old.max_until, "exclusive")
            assert row.fencing_token > old.fencing_token
    assert "ann keeps d/b.py, d/sub/ and d/new.py" in done.message
    assert 'ann gave up d/a.py, as you asked (U-1): "I need the rest".' in told(world, "bob")[0]
    assert "had changed" not in told(world, "bob")[0], "what it has not touched is as it was"
    world.acquire("cyd", "d/free.py")  # nobody has the rest
    assert world.refused(rq.Acquire(agent="cyd", resources=["d/sub/x.py"])).code is Code.LOCKED
    world.ask(rq.TaskFail(agent="ann", task=task, reason="cannot"))
    assert baselines(world, "R-1") == {"d/b.py": "modified", "d/new.py": "created", "d/sub/c.py": "modified"}


def test_of_a_file_regions_are_kept_as_they_were_at_its_lease(world: World) -> None:
    world.write("a.py", TWO)
    world.acquire("ann", "a.py")
    ask(world, "bob", "a.py::f")
    world.write("a.py", NEW)
    done = narrow(world, "a.py::g")
    assert done.granted and holders(world) == {"a.py::g": "ann", "a.py::f": "bob"}
    assert "ann had changed a.py: what is there now" in told(world, "bob")[0]
    world.ask(rq.Leave(agent="ann", clean=False, reason="killed"))
    (file,) = world.ask(rq.ReviewShow(review="R-1", content=True)).files
    assert b64(file.baseline) == NEW.replace("20", "2") and b64(file.flagged) == NEW, "of what it kept alone"
    assert holders(world) == {"a.py::f": "bob"}


def test_what_may_be_kept_is_beside_what_is_asked_and_within_what_is_held(world: World) -> None:
    world.write("d/a.py", TWO)
    world.write("d/b.py", TWO)
    world.write("e.py", TWO)
    (world.root / "d/link.py").hardlink_to(world.root / "d/a.py")
    world.acquire("ann", "d/")
    world.acquire("ann", "e.py")
    ask(world, "bob", "d/a.py")
    before = world.rows()
    for keep, code, words in (
        ([], Code.INVALID, "none is named"),
        (["d/a.py"], Code.INVALID, "is what bob asks for"),
        (["d/"], Code.INVALID, "is what bob asks for"),
        (["d/b.py", "d/a.py::f"], Code.INVALID, "is what bob asks for"),
        (["d/link.py"], Code.INVALID, "is what bob asks for"),
        (["e.py"], Code.INVALID, "is no part of d/"),
        (["../x"], Code.OUTSIDE_REPO, ""),
        (["d/b.py::nothing"], Code.REGION_UNKNOWN, "no region"),
        (["key:a"], Code.INVALID, "is no part of d/"),
    ):
        refusal = world.refused(rq.RequestAnswer(agent="ann", request="U-1", verdict="narrow", keep=keep))
        assert refusal.code is code and words in refusal.message, (keep, refusal)
        assert world.rows() == before, keep
    for verdict in ("approve", "coexist", "reject"):
        refusal = world.refused(rq.RequestAnswer(agent="ann", request="U-1", verdict=verdict, keep=["d/b.py"]))  # type: ignore[arg-type]
        assert refusal.code is Code.INVALID and "Only `narrow`" in refusal.message
    no = world.refused(rq.RequestAnswer(agent="bob", request="U-1", verdict="narrow", keep=["d/b.py"]))
    assert no.code is Code.NOT_HOLDER and world.rows() == before
    narrow(world, "b.py", agent="eve", force=True, cwd=str(world.root / "d"))
    assert holders(world) == {"d/b.py": "ann", "d/a.py": "bob", "e.py": "ann"}
    assert "released by eve (override)" in told(world, "ann")[-1] and "You keep d/b.py." in told(world, "ann")[-1]


def test_a_region_that_was_changed_is_not_divided(world: World) -> None:
    world.write("a.py", "class C:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n")
    world.acquire("ann", "a.py::C")
    ask(world, "bob", "a.py::C.f")
    text = (world.root / "a.py").read_text()
    world.write("a.py", text.replace("return 2", "return 20"))
    refusal = world.refused(rq.RequestAnswer(agent="ann", request="U-1", verdict="narrow", keep=["a.py::C.g"]))
    assert refusal.code is Code.BAD_TRANSITION and "was changed since it was leased" in refusal.message
    world.write("a.py", text)
    narrow(world, "a.py::C.g")
    assert holders(world) == {"a.py::C.g": "ann", "a.py::C.f": "bob"}


def test_it_is_one_transaction_and_nobody_in_line_gets_what_is_kept(world: World) -> None:
    for name in "ab":
        world.write(f"d/{name}.py", "one\n")
    world.acquire("ann", "d/")
    world.refused(rq.Acquire(agent="cyd", resources=["d/b.py"]))
    ask(world, "bob", "d/a.py")
    before = world.rows()
    for nth in range(1, 40):
        with Sabotage(world.db, nth) as sabotage:
            try:
                narrow(world, "d/b.py")
            except Refusal:
                assert world.rows() == before, f"half an answer, at statement {nth}"
                continue
        assert sabotage.left > 0
        break
    else:
        raise AssertionError("it never went through")
    assert holders(world) == {"d/b.py": "ann", "d/a.py": "bob"}
    world.ask(rq.Release(agent="ann", resources=["d/b.py"]))
    assert holders(world) == {"d/b.py": "cyd", "d/a.py": "bob"}
