"""Unlock requests: asked of the holder, answered by it or by a person, granted in one transaction."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.kernel.holders.settled_notices import NoticeRow
from coordinator.kernel.leasing import grant
from coordinator.settings import Leases, Reviewing, Settings
from coordinator.store.rows import LeaseRow
from coordinator.words import requests as rq
from coordinator.words.clock import from_iso
from coordinator.words.refusals import Code, Refusal
from tests.world import Sabotage, World


@pytest.fixture(autouse=True)
def the_log_gives_the_state(world: World) -> Iterator[None]:
    yield
    assert world.replay_differs() == []


def ask(world: World, agent: str, resource: str = "a.py", **more: Any) -> rq.Unlock:
    made = world.ask(rq.RequestFile(agent=agent, resource=resource, reason="it blocks me", **more))
    assert isinstance(made, rq.Unlock)
    return made


def answer(world: World, agent: str, request: str, verdict: Any = "approve", **more: Any) -> Any:
    return world.ask(rq.RequestAnswer(agent=agent, request=request, verdict=verdict, **more))


def test_who_was_told_no_leaves_the_line_as_who_was_not_answered(world: World) -> None:
    world.acquire("ann", "a.py")
    ask(world, "bob")
    answer(world, "ann", "U-1", "reject", answer="later")
    assert line(world) == [("bob", "U-1")]
    advice = world.refused(rq.Release(agent="bob", resources=["a.py"])).next
    assert "`coord request withdraw U-1 --agent bob` leaves the line." in str(advice)
    left = world.ask(rq.RequestWithdraw(agent="bob", request="U-1"))
    assert left.status == "rejected" and line(world) == []
    assert world.refused(rq.RequestWithdraw(agent="bob", request="U-1")).code is Code.REQUEST_CLOSED
    assert world.replay_differs() == []


def holders(world: World) -> dict[str, str]:
    return {row.file_path: row.locked_by for row in world.live()}


def told(world: World, agent: str) -> list[str]:
    return [row.text for row in world.view().each(NoticeRow, "notices_of", agent, 0)]


def line(world: World) -> list[tuple[str, str]]:
    return [(w.agent, w.acquisition_id) for w in world.ask(rq.Locks()).waiters]


def state(world: World, request: str) -> tuple[str, str | None, str | None]:
    (row,) = [r for r in world.ask(rq.Requests(state="all")).items if r.request == request]
    return row.status, row.responded_by, row.answer


def test_the_holder_is_asked_once_and_says_yes(world: World) -> None:
    world.acquire("ann", "a.py")
    made = ask(world, "bob")
    again = ask(world, "bob")
    assert (made.request, made.status, made.holder, made.releases) == ("U-1", "pending", "ann", ["a.py"])
    assert again.request == "U-1" and line(world) == [("bob", "U-1")]
    (question,) = told(world, "ann")
    assert 'bob asks you to release a.py: "it blocks me".' in question
    assert "coord request approve U-1 --agent ann" in question and "reject U-1" in question
    done = answer(world, "ann", "u-1", answer="all yours")
    assert done.granted and [one.resource for one in done.released] == ["a.py"]
    assert all(one.lease_token is None for one in done.released)
    assert holders(world) == {"a.py": "bob"} and line(world) == []
    assert state(world, "U-1") == ("approved", "ann", "all yours")
    (grant,) = told(world, "bob")
    assert 'ann gave up a.py, as you asked (U-1): "all yours".' in grant and "Read it afresh" in grant


def test_release_and_grant_are_one_transaction(world: World) -> None:
    world.acquire("ann", "a.py")
    ask(world, "bob")
    before = world.rows()
    for nth in range(1, 30):
        with Sabotage(world.db, nth) as sabotage:
            try:
                answer(world, "ann", "U-1")
            except Refusal:
                assert world.rows() == before, f"half an approval, at statement {nth}"
                continue
        assert sabotage.left > 0
        break
    else:
        raise AssertionError("it never went through")
    assert holders(world) == {"a.py": "bob"}


def test_what_the_holder_had_changed_is_where_the_asker_starts(world: World) -> None:
    world.write("a.py", "one\n")
    first = world.acquire("ann", "a.py").leases[0]
    ask(world, "bob")
    world.write("a.py", "half\n")
    answer(world, "ann", "U-1")
    (lease,) = world.live()
    assert lease.content_hash != first.content_hash
    assert "ann had changed a.py: what is there now is what you start from" in told(world, "bob")[0]
    # If the asker leaves it as it found it and vanishes, nothing of it is partial work
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())
    assert world.ask(rq.Reviews()).items == []


def test_no_is_told_with_its_reason_and_the_place_in_line_stays(world: World) -> None:
    world.acquire("ann", "a.py")
    ask(world, "bob")
    done = answer(world, "ann", "U-1", "reject", answer="in the middle of it")
    assert not done.granted and holders(world) == {"a.py": "ann"}
    assert "in the middle of it" in told(world, "bob")[0] and line(world) == [("bob", "U-1")]
    # It may ask again, with its age; and it is served when the lease ends
    asked_at = world.ask(rq.Locks()).waiters[0].asked_at
    world.clock.advance(5_000)
    assert ask(world, "bob").request == "U-2"
    (waiter,) = world.ask(rq.Locks()).waiters
    assert (waiter.acquisition_id, waiter.asked_at) == ("U-2", asked_at)
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    assert holders(world) == {"a.py": "bob"}
    assert state(world, "U-2")[:2] == ("withdrawn", "coord")


def test_only_the_holder_or_a_person_answers(world: World) -> None:
    tokens = {name: world.ask(rq.Register(agent=name)).token for name in ("ann", "bob", "cyd")}
    world.acquire("ann", "a.py")
    ask(world, "bob")
    request = rq.RequestAnswer(agent="cyd", request="U-1", verdict="approve")
    assert world.refused(request).code is Code.NOT_HOLDER
    assert world.refused(request, tokens["cyd"]).code is Code.NOT_HOLDER
    asked = rq.RequestAnswer(agent="bob", request="U-1", verdict="approve")
    assert world.refused(asked, tokens["bob"]).code is Code.NOT_HOLDER
    posed = rq.RequestAnswer(agent="ann", request="U-1", verdict="approve")
    assert world.refused(posed, tokens["bob"]).code is Code.UNAUTHORIZED
    forced = rq.RequestAnswer(agent="bob", request="U-1", verdict="approve", force=True)
    assert world.refused(forced, tokens["bob"]).code is Code.UNAUTHORIZED
    foreign = rq.RequestWithdraw(agent="ann", request="U-1")
    assert world.refused(foreign, tokens["ann"]).code is Code.NOT_HOLDER
    assert holders(world) == {"a.py": "ann"} and state(world, "U-1")[0] == "pending"
    assert world.ask(posed, tokens["ann"]).granted


def test_a_person_overrides_and_it_is_marked(world: World) -> None:
    world.write("a.py", "one\n")
    world.acquire("ann", "a.py")
    ask(world, "bob")
    world.write("a.py", "half\n")
    done = answer(world, "eve", "U-1", force=True, answer="release day")
    assert done.granted and done.unlock.override and done.unlock.responded_by == "eve"
    assert "released by eve (override)" in told(world, "ann")[-1]
    assert "eve (override) took a.py from ann" in told(world, "bob")[0]
    assert "in the middle of its work" in told(world, "bob")[0]
    story = world.ask(rq.Explain(subject="U-1")).sentences
    assert any('approved by eve (override): "release day"' in one for one in story)
    assert [a.agent for a in world.ask(rq.Agents()).items] == ["ann", "bob"]


def test_a_person_may_say_no_for_the_holder(world: World) -> None:
    world.acquire("ann", "a.py")
    ask(world, "bob")
    answer(world, "eve", "U-1", "reject", force=True)
    assert holders(world) == {"a.py": "ann"}
    assert "in your place" in told(world, "ann")[-1] and "eve says no" in told(world, "bob")[0]


def test_what_is_closed_stays_closed(world: World) -> None:
    world.acquire("ann", "a.py")
    ask(world, "bob")
    answer(world, "ann", "U-1", "reject")
    for request in (
        rq.RequestAnswer(agent="ann", request="U-1", verdict="approve"),
        rq.RequestAnswer(agent="eve", request="U-1", verdict="approve", force=True),
        rq.RequestWithdraw(agent="bob", request="U-1"),
    ):
        if isinstance(request, rq.RequestWithdraw):  # the line it leaves, once
            assert world.ask(request).status == "rejected"
        no = world.refused(request)
        assert no.code is Code.REQUEST_CLOSED and "rejected by ann" in no.message
    assert holders(world) == {"a.py": "ann"}
    assert world.refused(rq.RequestWithdraw(agent="bob", request="9")).code is Code.UNKNOWN_REQUEST


def test_the_asker_takes_it_back(world: World) -> None:
    world.acquire("ann", "a.py")
    ask(world, "bob")
    assert world.ask(rq.RequestWithdraw(agent="bob", request="1")).status == "withdrawn"
    assert line(world) == [] and "needs no answer" in told(world, "ann")[-1]
    ask(world, "bob")
    world.ask(rq.Withdraw(agent="bob", acquisition_id="U-2"))  # leaving the line is the same
    assert state(world, "U-2") == ("withdrawn", "coord", "withdrawn")


def test_malformed_questions_are_refused(world: World) -> None:
    world.acquire("ann", "a.py")
    for reason, code in ((" \n", Code.INVALID), ("x" * 501, Code.LIMIT)):
        no = world.refused(rq.RequestFile(agent="bob", resource="a.py", reason=reason))
        assert no.code is code
    free = world.refused(rq.RequestFile(agent="bob", resource="b.py", reason="x"))
    assert free.code is Code.UNKNOWN_LEASE and "coord lock b.py" in free.next
    own = world.refused(rq.RequestFile(agent="ann", resource="a.py", reason="x"))
    assert own.code is Code.UNKNOWN_LEASE
    other = world.refused(rq.RequestFile(agent="bob", resource="a.py", reason="x", holder="cyd"))
    assert other.code is Code.UNKNOWN_LEASE and "ann does" in other.message
    assert world.ask(rq.Requests(state="all")).items == [] and line(world) == []


def test_an_agent_cannot_ask_without_end(world: World) -> None:
    names = [f"f{i}.py" for i in range(21)]
    world.acquire("ann", *names)
    for name in names[:20]:
        ask(world, "bob", name)
    no = world.refused(rq.RequestFile(agent="bob", resource=names[20], reason="x"))
    assert no.code is Code.LIMIT and len(line(world)) == 20


def test_a_larger_lease_is_released_whole_and_that_is_said_before(world: World) -> None:
    world.write("src/a.py", "1\n")
    world.acquire("ann", "src/")
    made = ask(world, "bob", "src/a.py")
    assert made.releases == ["src/"]
    assert "approving releases src/ as a whole" in told(world, "ann")[0]
    done = answer(world, "ann", "U-1")
    assert done.granted and "Released src/" in done.message
    assert holders(world) == {"src/a.py": "bob"}


def test_several_leases_below_one_directory(world: World) -> None:
    world.acquire("ann", "src/a.py", "src/b.py", "c.py")
    ask(world, "bob", "src/")
    answer(world, "ann", "U-1")
    assert holders(world) == {"c.py": "ann", "src/": "bob"}


def test_where_several_hold_it_one_is_asked_at_a_time(world: World) -> None:
    world.acquire("ann", "a.py", mode="shared")
    world.acquire("cyd", "a.py", mode="shared")
    no = world.refused(rq.RequestFile(agent="bob", resource="a.py", reason="x"))
    assert no.code is Code.INVALID and no.facts["holders"] == ["ann", "cyd"]
    ask(world, "bob", holder="ann")
    second = rq.RequestFile(agent="bob", resource="a.py", reason="x", holder="cyd")
    assert world.refused(second).code is Code.LIMIT
    done = answer(world, "ann", "U-1")
    assert not done.granted and "stays in line" in done.message
    assert "not free for you yet" in told(world, "bob")[0] and line(world) == [("bob", "U-1")]
    ask(world, "bob")
    assert answer(world, "cyd", "U-2").granted
    assert [(r.locked_by, r.mode) for r in world.live()] == [("bob", "exclusive")]


def test_an_approval_passes_others_in_line_for_no_longer_than_the_holder_had(world: World) -> None:
    # Given one that has waited longest, and two that hand the file to and fro
    limits = Settings(leases=Leases(ttl_s=600, max_hold_s=900, line_s=1800))
    world.service.settings = limits
    world.acquire("ann", "a.py")
    until = world.live()[0].max_until
    world.refused(rq.Acquire(agent="cyd", resources=["a.py"], priority=5))
    givers = ("ann", "bob")
    for number in range(1, 7):
        world.clock.advance(100_000)
        holder = holders(world)["a.py"]
        asker = next(one for one in givers if one != holder)
        ask(world, asker)
        assert answer(world, holder, f"U-{number}").granted
        world.ask(rq.Renew(agent=asker, ttl_s=600))
        assert holders(world) == {"a.py": asker}
        assert world.live()[0].max_until <= until, "the third waits longer than for one holder"
    # I expect the third to be served at the latest when the first holder's right would have ended
    world.clock.at_ms = from_iso(until)
    world.ask(rq.Sweep())
    assert holders(world) == {"a.py": "cyd"}


def test_nobody_is_passed_on_what_the_holder_did_not_have(world: World) -> None:
    # Given one in line for another file of the directory that is asked for
    world.acquire("ann", "d/a.py")
    world.acquire("dan", "z.py")
    world.refused(rq.Acquire(agent="cyd", resources=["d/b.py", "z.py"]))
    world.clock.advance(1)
    ask(world, "bob", "d/")
    done = answer(world, "ann", "U-1")
    assert not done.granted and holders(world) == {"z.py": "dan"}
    world.ask(rq.Release(agent="dan", resources=["z.py"]))
    assert holders(world) == {"z.py": "cyd", "d/b.py": "cyd"}
    world.ask(rq.Release(agent="cyd", resources=["z.py", "d/b.py"]))
    assert holders(world) == {"d/": "bob"}


def test_without_others_in_line_it_is_an_ordinary_grant(world: World) -> None:
    world.acquire("ann", "a.py", ttl_s=600)
    world.clock.advance(599_000)
    before = world.live()[0].max_until
    ask(world, "bob")
    answer(world, "ann", "U-1")
    assert world.live()[0].max_until > before


def test_others_who_asked_the_same_holder_are_told_and_wait(world: World) -> None:
    world.acquire("ann", "a.py")
    ask(world, "bob")
    ask(world, "cyd")
    answer(world, "ann", "U-2")
    assert holders(world) == {"a.py": "cyd"}
    assert state(world, "U-1") == ("withdrawn", "coord", "ann does not hold it any more")
    assert "ann, whom you asked" in told(world, "bob")[0] and line(world) == [("bob", "U-1")]
    ask(world, "bob")  # of the one who has it now
    answer(world, "cyd", "U-3")
    assert holders(world) == {"a.py": "bob"}


@pytest.mark.parametrize("how", ["expires", "leaves", "force"])
def test_a_lease_that_ends_unanswered_closes_the_question(world: World, how: str) -> None:
    world.acquire("ann", "a.py", ttl_s=60)
    ask(world, "bob")
    if how == "expires":
        world.clock.advance(61_000)
        stale = world.refused(rq.RequestAnswer(agent="ann", request="U-1", verdict="approve"))
        assert stale.code is Code.STALE_TOKEN and state(world, "U-1")[0] == "pending"
        world.ask(rq.Sweep())
    elif how == "leaves":
        world.ask(rq.Leave(agent="ann"))
    else:
        world.ask(rq.Release(agent="eve", resources=["a.py"], force=True))
    assert holders(world) == {"a.py": "bob"}
    assert state(world, "U-1")[:2] == ("withdrawn", "coord")
    assert "You waited for a.py" in told(world, "bob")[0]


def test_a_question_lasts_as_long_as_the_place_in_line(world: World) -> None:
    world.acquire("ann", "a.py", ttl_s=3000)
    ask(world, "bob")
    world.clock.advance(601_000)
    world.ask(rq.Sweep())
    assert state(world, "U-1") == ("withdrawn", "coord", "timed out")
    assert "You do not stand in line for a.py any more" in told(world, "bob")[-1]
    ask(world, "bob")
    world.ask(rq.Leave(agent="bob"))
    assert state(world, "U-2")[:2] == ("withdrawn", "coord") and line(world) == []


def test_asking_for_the_lease_again_keeps_the_question_open(world: World) -> None:
    world.acquire("ann", "a.py")
    world.refused(rq.Acquire(agent="bob", resources=["a.py"], description="the first try"))
    ask(world, "bob")
    no = world.refused(rq.Acquire(agent="bob", resources=["a.py"]))  # its hook, on its next write
    assert no.facts["acquisition_id"] == "U-1" and line(world) == [("bob", "U-1")]
    assert state(world, "U-1")[0] == "pending"
    assert answer(world, "ann", "U-1").granted


def test_who_waits_with_an_open_request_is_granted_there_and_told_the_answer(world: World) -> None:
    world.acquire("ann", "a.py")
    ask(world, "bob")
    world.refused(rq.Acquire(agent="bob", resources=["a.py"], wait_s=30))  # held open by the router
    granted: list[Any] = []
    world.ledger.on_commit = lambda effects: granted.extend(effects.granted)
    answer(world, "ann", "U-1", answer="take it")
    ((place, reply),) = granted
    assert place == "U-1" and reply.leases[0].lease_token and "take it" in reply.warnings[0]
    assert "take it" in told(world, "bob")[0]


def test_what_comes_of_it_belongs_to_the_task(world: World) -> None:
    world.acquire("ann", "a.py")
    task = world.task("mine", "b.py")
    world.ask(rq.TaskClaim(agent="bob"))
    ask(world, "bob")
    answer(world, "ann", "U-1")
    assert {row.file_path: row.task_id for row in world.live()} == {"a.py": task, "b.py": task}
    world.ask(rq.TaskDone(agent="bob", task=task))
    assert world.live() == []


def test_a_question_for_a_task_ends_with_it(world: World) -> None:
    world.acquire("ann", "a.py")
    task = world.task("mine", "b.py")
    world.ask(rq.TaskClaim(agent="bob"))
    ask(world, "bob")
    world.ask(rq.TaskDone(agent="bob", task=task))
    assert state(world, "U-1") == ("withdrawn", "coord", "its task is over") and line(world) == []


def test_the_question_follows_the_lease_to_a_sub_agent(world: World) -> None:
    world.ask(rq.Register(agent="ann"))
    world.ask(rq.Register(agent="ann.s1", parent="ann"))
    world.acquire("ann", "a.py")
    ask(world, "bob")

    def down(tx: Any) -> None:
        (lease,) = tx.each(LeaseRow, "leases_of_holder", "ann")
        grant.hand_over(tx, lease, "ann.s1")

    world.ledger.run(down, world.clock.now_ms())
    (row,) = world.ask(rq.Requests()).items
    assert row.holder == "ann.s1" and "bob asks you to release a.py" in told(world, "ann.s1")[0]
    assert answer(world, "ann", "U-1").granted  # a session speaks for its sub-agents
    assert holders(world) == {"a.py": "bob"}


def test_the_same_file_under_another_name(world: World) -> None:
    world.write("a.py", "1\n")
    os.link(world.root / "a.py", world.root / "b.py")
    world.acquire("ann", "a.py")
    assert ask(world, "bob", "b.py").releases == ["a.py"]
    assert answer(world, "ann", "U-1").granted
    assert holders(world) == {"b.py": "bob"}


def test_quarantined_work_is_not_granted_by_an_approval(tmp_path: Path) -> None:
    world = World(tmp_path, Settings(review=Reviewing(quarantine=True)))
    world.acquire("old", "a.py", ttl_s=5)
    world.write("a.py", "half\n")
    world.clock.advance(6_000)
    world.ask(rq.Sweep())
    world.ask(rq.ReviewDecide(review="R-1", verdict="keep"))
    world.acquire("ann", "a.py")
    ask(world, "bob")
    world.ask(rq.ReviewUndo(review="R-1"))
    assert not answer(world, "ann", "U-1").granted
    assert holders(world) == {} and line(world) == [("bob", "U-1")]
    world.ask(rq.ReviewDecide(review="R-1", verdict="keep"))
    world.ask(rq.Sweep())
    assert holders(world) == {"a.py": "bob"}
    assert world.replay_differs() == []
    world.close()


def test_work_in_a_launch_worktree_is_not_given_up_half_way(tmp_path: Path) -> None:
    world = World(tmp_path / "r", git=True)
    world.write("a.py", "1\n")
    git = ["git", "-c", "user.name=T", "-c", "user.email=t@localhost"]
    for words in (["add", "a.py"], ["commit", "-qm", "x"],
                  ["worktree", "add", "-q", ".coord/worktrees/w", "-b", "w"]):
        subprocess.run([*git, *words], cwd=world.root, check=True)
    task = world.task("mine", "a.py")
    world.ask(rq.TaskClaim(agent="ann"))
    there = world.root / ".coord/worktrees/w"
    world.ask(rq.TaskWorktree(agent="ann", task=task, worktree=str(there)))
    ask(world, "bob")
    (there / "a.py").write_text("half\n")
    no = world.refused(rq.RequestAnswer(agent="ann", request="U-1", verdict="approve"))
    assert no.code is Code.BAD_TRANSITION and holders(world) == {"a.py": "ann"}
    assert state(world, "U-1")[0] == "pending"
    (there / "a.py").write_text("1\n")
    assert answer(world, "ann", "U-1").granted
    assert world.replay_differs() == []
    world.close()


def test_both_are_shown_what_concerns_them(world: World) -> None:
    world.acquire("ann", "a.py")
    ask(world, "bob")
    assert [r.request for r in world.ask(rq.Status()).requests] == ["U-1"]
    for agent, seen in (("ann", 1), ("bob", 1), ("cyd", 0)):
        assert len(world.ask(rq.Requests(agent=agent)).items) == seen
    story = "\n".join(world.ask(rq.Explain(subject="a.py")).sentences)
    assert 'bob asked ann to release a.py (U-1): "it blocks me"' in story
    answer(world, "ann", "U-1")
    assert world.ask(rq.Status()).requests == [] and world.ask(rq.Requests()).items == []


def test_nothing_is_lost_in_a_crash(world: World) -> None:
    world.acquire("ann", "a.py")
    ask(world, "bob")
    world.restart()
    assert answer(world, "ann", "U-1").granted
    world.acquire("cyd", "c.py")
    assert ask(world, "bob", "c.py").request == "U-2"


def test_leases_cost_nothing_more_where_nobody_asked(world: World) -> None:
    """Not a statement looks for questions: neither alone nor with others in line."""
    world.checked = False  # which asks for everything
    said: list[str] = []
    world.db.exec_trace = lambda cursor, statement, bindings: bool(said.append(statement)) or True
    world.acquire("ann", "a.py")
    world.refused(rq.Acquire(agent="bob", resources=["a.py"]))
    world.refused(rq.Acquire(agent="cyd", resources=["a.py"]))
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    world.ask(rq.Sweep())
    world.db.exec_trace = None
    assert holders(world) == {"a.py": "bob"} and len(said) > 20
    assert not [one for one in said if "unlock" in one]


def test_who_gives_up_one_part_of_a_file_keeps_the_others(world: World) -> None:
    """They are parts of one file, which is no other name of it."""
    world.write("a.py", "def f():\n    return 1\n\n\ndef g():\n    return 2\n")
    world.acquire("ann", "a.py::f")
    world.acquire("ann", "a.py::g")
    request = world.ask(rq.RequestFile(agent="bob", resource="a.py::f", reason="a bug")).request
    assert world.ask(rq.RequestAnswer(agent="ann", request=request, verdict="approve")).granted
    assert {(row.file_path, row.locked_by) for row in world.live()} == {("a.py::f", "bob"), ("a.py::g", "ann")}


def test_what_is_kept_of_two_leases_stays_exclusive(world: World) -> None:
    world.write("d/a.py", "def f():\n    return 1\n\n\ndef g():\n    return 2\n")
    world.acquire("ann", "d/a.py")
    world.acquire("ann", "d/", mode="shared")
    request = world.ask(rq.RequestFile(agent="bob", resource="d/a.py::f", reason="a bug")).request
    world.ask(rq.RequestAnswer(agent="ann", request=request, verdict="narrow", keep=["d/a.py::g"]))
    assert {(row.file_path, row.locked_by, row.mode) for row in world.live()} == {
        ("d/a.py::f", "bob", "exclusive"), ("d/a.py::g", "ann", "exclusive")}


def test_a_held_name_that_became_a_link_is_asked_about_by_its_name(world: World) -> None:
    """What the link leads to is nobody's. Who is given it has the link itself."""
    world.write("other.md", "o\n")
    world.write("guide.md", "g\n")
    world.acquire("ann", "guide.md")
    (world.root / "guide.md").unlink()
    (world.root / "guide.md").symlink_to("other.md")
    asked = world.ask(rq.RequestFile(agent="bob", resource="guide.md", reason="x"))
    assert asked.resource == "guide.md" and asked.holder == "ann"
    told = world.ask(rq.Explain(subject="guide.md"))
    assert told.subject == "guide.md" and any("ann got guide.md" in one for one in told.sentences)
    assert world.ask(rq.RequestAnswer(agent="ann", request=asked.request, verdict="approve")).granted
    assert {(row.file_path, row.locked_by) for row in world.live()} == {("guide.md", "bob")}
    world.ask(rq.Release(agent="eve", resources=["guide.md"], force=True))
    assert world.live() == []
    assert "other.md" in world.refused(rq.RequestFile(agent="bob", resource="guide.md", reason="x")).message


def test_what_a_person_hands_over_in_the_middle_is_kept_as_a_review_first(world: World) -> None:
    """As an unlock by force does: the earlier bytes can be had back."""
    world.write("a.py", "old\nnot committed\n")
    world.acquire("ann", "a.py")
    world.write("a.py", "half a sent")
    ask(world, "bob")
    done = answer(world, "eve", "U-1", force=True)
    assert done.granted and "What ann had changed is kept for a human in R-1." in done.message
    (review,) = world.ask(rq.Reviews()).items
    assert (review.agent, review.reason) == ("ann", "overridden")
    assert "in R-1" in told(world, "ann")[-1] and "in R-1" in told(world, "bob")[-1]
    world.ask(rq.Release(agent="bob", resources=["a.py"]))
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    assert (world.root / "a.py").read_text() == "old\nnot committed\n"


def test_what_its_holder_gives_up_itself_is_in_no_review(world: World) -> None:
    world.write("a.py", "old\n")
    world.acquire("ann", "a.py")
    world.write("a.py", "new\n")
    ask(world, "bob")
    assert answer(world, "ann", "U-1").granted
    assert world.ask(rq.Reviews()).items == []


def test_a_part_that_is_kept_is_in_no_review_when_the_rest_is_handed_over(world: World) -> None:
    for name in ("d/a.py", "d/b.py"):
        world.write(name, "old\n")
    world.acquire("ann", "d/")
    for name in ("d/a.py", "d/b.py"):
        world.write(name, "new\n")
    ask(world, "bob", "d/b.py")
    answer(world, "eve", "U-1", "narrow", force=True, keep=["d/a.py"])
    (review,) = world.ask(rq.Reviews()).items
    assert [file.path for file in review.files] == ["d/b.py"]


def test_a_file_that_waits_for_a_verdict_is_handed_over_after_it(tmp_path: Path) -> None:
    """Where such files are closed to all."""
    world = World(tmp_path / "strict", Settings(review=Reviewing(quarantine=True)))
    world.write("a.py", "old\n")
    world.acquire("ann", "a.py")
    world.write("a.py", "half\n")
    ask(world, "bob")
    done = answer(world, "eve", "U-1", force=True)
    assert not done.granted and line(world) == [("bob", "U-1")]
    assert "bob stays in line for a.py, until R-1 is decided" in done.message and "until R-1 is decided" in told(world, "bob")[-1]
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    assert holders(world) == {"a.py": "bob"} and (world.root / "a.py").read_text() == "old\n"
    world.close()
