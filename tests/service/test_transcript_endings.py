"""How rights end, and questions about them, told in full (tests/transcripts.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.kernel.leasing import unlock_requests
from coordinator.settings import Reviewing, Settings
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.transcripts import Transcript
from tests.world import Sabotage, World


@pytest.fixture
def told(world: World) -> Transcript:
    return Transcript(world)


def acquire(agent: str, *resources: str, **more: object) -> rq.Acquire:
    return rq.Acquire(agent=agent, resources=list(resources), **more)  # type: ignore[arg-type]


def ask(agent: str, resource: str, reason: str = "it blocks me", **more: object) -> rq.RequestFile:
    return rq.RequestFile(agent=agent, resource=resource, reason=reason, **more)  # type: ignore[arg-type]


def answer(agent: str, request: str, verdict: str, **more: object) -> rq.RequestAnswer:
    return rq.RequestAnswer(agent=agent, request=request, verdict=verdict, **more)  # type: ignore[arg-type]


# ------------------------------------------------------------ questions

def test_a_question_is_asked_and_answered(told: Transcript) -> None:
    world = told.world
    world.write("a.py", "one\n")
    token = told.ask(rq.Register(agent="bob")).token
    told.ask(acquire("ann", "a.py", "d/"))
    task = told.ask(rq.TaskAdd(title="t", resources=["key:t"])).task
    told.ask(rq.TaskClaim(agent="bob", task=task))
    told.later(20)
    told.ask(ask("bob", "a.py", "  it blocks \n me "), token)
    told.ask(ask("bob", "a.py", holder="ann"))
    told.ask(ask("bob", "a.py", holder="cyd"))
    told.ask(ask("cyd", "a.py", mode="shared"))
    told.ask(rq.Requests())
    told.ask(rq.Requests(limit=1))
    told.ask(rq.Requests(limit=1, after=1))
    told.ask(rq.Requests(state="approved", agent="bob"))
    told.ask(rq.Requests(limit=1))
    world.write("a.py", "two\n")
    told.later(1)
    told.ask(answer("cyd", "U-1", "approve"))
    told.ask(answer("ann", "U-1", "reject", answer="not yet,\nI am in the middle"))
    told.ask(answer("ann", "1", "approve"))
    told.ask(answer("ann", "U-9", "approve"))
    told.ask(ask("bob", "a.py", "again"))
    told.ask(answer("ann", "u-3", "approve", answer="done with it"))
    told.ask(rq.Heartbeat(agent="bob", progress="goes on"))
    told.ask(answer("ann", "U-2", "approve"))
    told.ask(answer("bob", "U-2", "approve", answer="x"))
    told.ask(rq.Requests(state="all"))
    told.assert_is("questions")


def test_a_person_answers_in_the_holders_place(told: Transcript) -> None:
    world = told.world
    for name in ("a.py", "d/x.py"):
        world.write(name, "one\n")
    token = told.ask(rq.Register(agent="ann")).token
    told.ask(acquire("ann", "a.py", "d/"))
    told.ask(ask("bob", "a.py"))
    told.ask(ask("cyd", "d/x.py"))
    told.ask(ask("dan", "d/x.py", "me too"))
    told.later(2)
    world.write("a.py", "two\n")
    world.write("d/x.py", "two\n")
    told.ask(answer("ann", "U-1", "approve", force=True), token)
    told.ask(answer("eve", "U-2", "reject", force=True, answer="no"))
    told.ask(answer("eve", "U-1", "approve", force=True, answer="release day"))
    told.ask(answer("eve", "U-3", "approve", force=True))
    told.ask(rq.Locks())
    told.assert_is("questions_by_force")


def test_questions_that_are_refused_withdrawn_or_over(told: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unlock_requests, "PENDING_MAX", 2)
    told.ask(acquire("ann", "a.py", "b.py", "c.py", "d/1.py", ttl_s=60))
    told.ask(acquire("bob", "d/2.py", ttl_s=30))
    told.ask(ask("cyd", "free.py"))
    told.ask(ask("cyd", "a.py", holder="bob"))
    told.ask(ask("cyd", "d/"))
    told.ask(ask("cyd", "a.py", " "))
    told.ask(ask("cyd", "a.py", "x" * 501))
    told.ask(ask("cyd", "a.py", "x" * 500))
    told.ask(ask("cyd", "d/", holder="bob"))
    told.ask(ask("cyd", "b.py"))
    told.ask(rq.RequestWithdraw(agent="ann", request="U-1"))
    told.ask(rq.RequestWithdraw(agent="cyd", request="U-1"))
    told.ask(rq.RequestWithdraw(agent="cyd", request="U-1"))
    told.ask(ask("cyd", "c.py"))
    told.ask(answer("ann", "U-3", "reject", answer="y" * 501))
    told.ask(acquire("dan", "c.py", priority=3, ttl_s=40, description="dan's"))
    told.ask(ask("dan", "c.py"))
    told.ask(rq.Release(agent="ann", resources=["c.py"]))
    told.later(30)
    told.ask(rq.Sweep())
    told.ask(rq.Requests(state="all"))
    told.later(30)
    told.ask(answer("ann", "U-4", "approve"))
    told.ask(acquire("gus", "g.py", ttl_s=10))
    told.ask(ask("hal", "g.py"))
    told.later(10)
    told.ask(answer("gus", "U-5", "approve"))
    told.assert_is("questions_refused")


def test_an_approval_passes_the_line_only_for_as_long_as_it_may(told: Transcript) -> None:
    told.ask(acquire("ann", "a.py", "b.py", "d/"))
    told.ask(acquire("bob", "a.py", "z.py", priority=9))
    told.ask(acquire("eve", "z.py", retry=False))
    told.ask(ask("cyd", "a.py"))
    told.ask(ask("dan", "d/x.py"))
    told.ask(acquire("fay", "d/x.py", "b.py", priority=9))
    told.ask(answer("ann", "U-2", "approve"))
    told.ask(answer("ann", "U-1", "approve"))
    told.ask(rq.Locks())
    told.ask(acquire("ann", *(f"m/{n}" for n in range(7))))
    told.ask(acquire("bob", "m/x"))
    told.ask(ask("dan", "m/", holder="ann"))
    told.ask(answer("ann", "U-3", "approve"))
    told.assert_is("questions_in_line")


# ------------------------------------------------------------ ends

def test_leases_and_claims_that_lapse(told: Transcript) -> None:
    world = told.world
    for name in ("a.py", "d/x.py", "d/gone.py", "s.py", "other.py"):
        world.write(name, "one\n")
    task = told.ask(rq.TaskAdd(title="the task", resources=["a.py", "d/", "a2.py::C"])).task
    told.ask(rq.TaskClaim(agent="ann", task=task, ttl_s=60))
    told.ask(acquire("ann", "other.py", "key:k", ttl_s=60))
    told.ask(acquire("ann", "side.py", ttl_s=20))
    told.ask(acquire("ann", "s.py", mode="shared", ttl_s=20))
    told.ask(acquire("bob", "a.py"))
    told.ask(acquire("ann", "t.py", task=task, ttl_s=10))
    told.ask(acquire("cyd", "t2.py"))
    told.ask(acquire("ann", "t2.py", task=task))
    world.write("a.py", "two\n")
    world.write("d/y.py", "new\n")
    world.write("a2.py", "new\n")
    world.write("s.py", "whoever\n")
    (world.root / "d/gone.py").unlink()
    for seconds in (19.999, 0.001, 39.999, 0.001):
        told.later(seconds)
        told.ask(rq.Sweep())
    told.ask(rq.Heartbeat(agent="ann"))
    told.ask(rq.Heartbeat(agent="ann", ack=1))
    told.ask(rq.Heartbeat(agent="ann", ack=2))
    told.ask(rq.Reviews())
    told.assert_is("lapsed")


def test_agents_fall_silent_leave_and_fail(told: Transcript) -> None:
    world = told.world
    world.write("a.py", "one\n")
    world.write("c.py", "one\n")
    told.ask(rq.Register(agent="ann", silence_s=30, profile="codex", description="ann's"))
    told.ask(rq.Register(agent="bob", silence_s=60))
    told.ask(acquire("ann", "a.py"))
    one = told.ask(rq.TaskAdd(title="one", resources=["b.py"])).task
    two = told.ask(rq.TaskAdd(title="two", resources=["c.py"])).task
    told.ask(rq.TaskClaim(agent="ann", task=one))
    told.ask(acquire("bob", "a.py"))
    world.write("a.py", "two\n")
    told.later(29.999)
    told.ask(rq.Sweep())
    told.later(0.001)
    told.ask(rq.Sweep())
    told.ask(rq.Agents())
    told.ask(rq.Heartbeat(agent="ann", progress="back"))
    told.ask(rq.TaskClaim(agent="bob", task=two))
    told.ask(acquire("bob", "x.py"))
    told.ask(acquire("cyd", "key:1"))
    told.ask(acquire("bob", "key:1"))
    world.write("c.py", "half\n")
    told.ask(rq.Leave(agent="bob", clean=False, reason="killed", log_tail="x" * 4001 + "last"))
    told.ask(rq.Leave(agent="bob"))
    told.ask(rq.Agents())
    told.ask(rq.Agents(all=True))
    told.ask(rq.ReviewShow(review="R-2"))
    told.assert_is("silent_left")


def test_what_cannot_be_looked_at_ends_all_the_same(tmp_path: Path) -> None:
    world = World(tmp_path / "few", Settings(review=Reviewing(files_max=2)))
    told = Transcript(world)
    world.write("d/1", "x\n")
    told.ask(acquire("ann", "d/", ttl_s=5))
    told.ask(acquire("bob", "e.py", ttl_s=5))
    for n in range(9):
        world.write(f"d/{n}", "y\n")
    told.later(5)
    told.ask(rq.Sweep())
    told.assert_is("unseen")
    world.close()


def test_what_cannot_be_kept(tmp_path: Path) -> None:
    world = World(tmp_path / "full", Settings(review=Reviewing(file_bytes_max=70_000, kept_bytes_max=250_000)))
    told = Transcript(world)
    for name in ("a.py", "d/ü.py", "e.py"):
        world.write(name, name * 20_000)
    told.ask(rq.TaskAdd(title="t", resources=["a.py"]))
    told.ask(acquire("ann", "e.py", ttl_s=5))
    told.ask(acquire("ann", "a.py", "d/", ttl_s=5))
    world.write("a.py", "y" * 100_000)
    world.write("e.py", "z" * 100_000)
    told.later(5)
    told.ask(acquire("bob", "a.py"))
    told.ask(acquire("bob", "e.py", "a.py"))
    told.ask(rq.TaskClaim(agent="bob", task="T-1"))
    told.ask(rq.TaskClaim(agent="bob"))
    told.ask(rq.ReviewDecide(review="R-1", verdict="keep", by="eve"))
    told.ask(rq.TaskClaim(agent="bob"))
    told.assert_is("not_kept")
    world.close()


def test_files_that_nobody_can_look_at(told: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    world = told.world
    told.ask(rq.TaskAdd(title="t", resources=["t.py"]))
    told.ask(rq.TaskClaim(agent="ann", task="T-1", ttl_s=5))
    told.ask(acquire("bob", "d/", "b.py", "key:k", "r.py::C", ttl_s=5))
    told.ask(acquire("cyd", "s.py", mode="shared", ttl_s=5))
    told.ask(rq.Register(agent="dan", silence_s=5))
    told.ask(acquire("dan", "dans.py"))
    told.later(5)

    def refused(needs: object, looked: object) -> Refusal:
        return Refusal(Code.LIMIT, "It would take too long.")

    with monkeypatch.context() as broken:
        broken.setattr(world.engine, "look", refused)
        told.ask(rq.Sweep())
        told.ask(acquire("eve", "x.py", "y.py"))
    told.ask(rq.Reviews())
    told.assert_is("not_looked_at")


def test_a_lapse_that_cannot_be_closed_is_set_aside(told: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    world = told.world
    told.ask(acquire("ann", "a.py", ttl_s=5))
    told.ask(acquire("bob", "b.py", ttl_s=6))
    world.write("a.py", "half\n")
    told.later(5)

    def refused(needs: object, looked: object) -> Refusal:
        return Refusal(Code.LIMIT, "It would take too long.")

    with Sabotage(world.db, 1):
        told.ask(rq.Sweep())
    with monkeypatch.context() as broken, Sabotage(world.db, 1):
        broken.setattr(world.engine, "look", refused)
        told.ask(rq.Sweep())
    told.ask(rq.Heartbeat(agent="ann"))
    for seconds in (29.999, 0.001):
        told.later(seconds)
        told.ask(rq.Sweep())
    told.assert_is("lapse_aside")


def test_a_question_whose_time_in_line_is_over(tmp_path: Path) -> None:
    world = World(tmp_path / "few", Settings(review=Reviewing(files_max=2)))
    told = Transcript(world)
    told.ask(acquire("ann", "d/1"))
    told.ask(acquire("bob", "e/"))
    told.ask(ask("cyd", "d/"))
    told.ask(ask("dan", "e/"))
    for n in range(3):
        world.write(f"d/{n}", "x\n")
    told.later(600)
    told.ask(answer("ann", "U-1", "approve"))
    told.ask(answer("bob", "U-2", "approve"))
    told.ask(rq.Locks())
    told.assert_is("questions_late")
    world.close()


def test_the_log_is_cut(told: Transcript) -> None:
    for n in range(3):
        told.world.write(f"{n}.py", f"{n}\n")
        told.ask(acquire("ann", f"{n}.py"))
    told.ask(rq.Release(agent="ann", resources=["1.py"]))
    told.later(3 * 86_400)
    told.ask(rq.Sweep())
    told.seq = 1_000_000
    compacted = told.ask(rq.Compact(keep_days=1))
    (noted,) = told.world.ask(rq.Events(kind="noted", tail=True, limit=1)).items
    told.came("what the log says of it", [noted.data, compacted])
    told.assert_is("compacted")


def test_the_machine_sleeps(told: Transcript) -> None:
    task = told.ask(rq.TaskAdd(title="t", resources=["a.py"])).task
    told.ask(rq.Register(agent="ann", silence_s=60))
    told.ask(rq.Register(agent="old", silence_s=1))
    told.ask(rq.TaskClaim(agent="ann", task=task, ttl_s=60))
    told.ask(acquire("ann", "b.py", ttl_s=2))
    told.ask(acquire("bob", "a.py", ttl_s=300))
    told.ask(rq.TaskAdd(title="t2", resources=["c.py"]))
    told.ask(rq.TaskClaim(agent="cyd", task="T-2", ttl_s=2))
    told.ask(rq.Register(agent="dan", silence_s=2))
    told.ask(acquire("eve", "a.py", wait_s=2, retry=False))
    told.later(2)
    told.world.sleep_machine(0)
    told.came("it did not sleep")
    told.world.sleep_machine(3_600_000)
    told.came("it slept for an hour")
    told.ask(rq.Locks())
    told.later(58)
    told.ask(rq.Sweep())
    told.assert_is("slept")


# ------------------------------------------------------------ agents

def test_who_may_register_and_act(told: Transcript) -> None:
    for name in ("", "a b", "x" * 101, "a/b", "a\"b", "x" * 100):
        told.ask(rq.Register(agent=name))
    for silence_s in (0.999, 1.0, 86_400.0, 86_400.1, 0.0):
        told.ask(rq.Register(agent=f"s{silence_s}", silence_s=silence_s))
    ann = told.ask(rq.Register(agent="ann", profile="codex")).token
    told.ask(rq.Register(agent="ann"))
    told.ask(rq.Register(agent="ann", unique=True))
    told.ask(rq.Register(agent="ann", unique=True))
    told.ask(rq.Register(agent="sub", parent="ann"), ann)
    told.ask(rq.Register(agent="other"), ann)
    told.ask(acquire("sub", "a.py"), ann)
    told.ask(acquire("ann-2", "a.py"), ann)
    told.ask(rq.Heartbeat(agent="ann-2"), ann)
    told.ask(rq.Heartbeat(agent="nobody"))
    told.ask(rq.Heartbeat(agent="sub", progress="p" * 501), ann)
    told.ask(acquire("eve", "e.py"))
    told.ask(rq.Register(agent="eve", description="now a session"))
    told.later(14.999)
    told.ask(rq.Heartbeat(agent="ann"), ann)
    told.later(0.001)
    told.ask(rq.Heartbeat(agent="ann"), ann)
    told.ask(rq.Heartbeat(agent="ann", progress="one"), ann)
    told.ask(rq.Heartbeat(agent="ann", progress="one"), ann)
    told.ask(rq.Heartbeat(agent="ann", progress="two"), ann)
    told.ask(rq.Leave(agent="ann", reason="done"), ann)
    told.ask(rq.Heartbeat(agent="ann"))
    told.ask(acquire("ann", "a.py"))
    told.assert_is("registered")
