"""What each kind of event does to each table. A log that was written once must give the same state
in each later version."""

from __future__ import annotations

from typing import Any

import msgspec

from coordinator.daemon.openapi import example_of
from coordinator.slices.backlog.events import ClaimWaits, TaskAdded, TaskAvoids, TaskEdited
from coordinator.slices.guard.events import UnleasedWrite
from coordinator.slices.landing.events import LandingBegun, LandingQueued, TargetMoved
from coordinator.slices.messages.events import MessageSent, MessagesForgotten, MessagesSeen
from coordinator.slices.signals.events import SignalLeft, SignalsFaded
from coordinator.slices.state.events import ChangeAsked, ChangeMoved, ChangesForgotten, KeyWritten
from coordinator.slices.verify.events import (
    VerificationBegun,
    VerificationEnded,
    VerifiedFrom,
    WorkFinished,
)
from coordinator.store import events as ev
from coordinator.store.database import in_memory
from coordinator.store.parking import at_review, park
from coordinator.store.rebuild import state
from tests.golden import assert_golden

TASK = {"verb": "v", "attempts": 2}
PARTS = [ev.ReviewPart(path="a", hunks=[2, 3], part_before="h4", part_after="h2", rest_before="h1", rest_after="h4"),
         ev.ReviewPart(path="n", part_after="h3")]
LOG: list[ev.Event] = [
    ev.AgentRegistered(agent="ann", parent=None, profile="p", description="d", token_hash="h1", silence_ms=5),
    ev.AgentRegistered(agent="ann-1", parent="ann", profile="p", description="d", token_hash="h2", silence_ms=None),
    ev.AgentSeen(agent="ann", progress="half", moved=True),
    ev.AgentSeen(agent="ann-1"),
    ev.AgentHooked(agent="ann", session="s"),
    ev.AgentRests(agent="ann", until="u", note="n"),
    ev.AgentRests(agent="ann", until=None),
    ev.ContentRead(agent="ann", reads=[("a", "h"), ("b", None)]),
    ev.ContentRead(agent="ann-1", reads=[("a", "h")]),
    ev.ContentRead(agent="ann", reads=[("a", "h2"), ("e", "h")], how="told"),
    ev.ContentRead(agent="ann", reads=[("a", "h3")]),
    ev.ContentRead(agent="ann", reads=[("a", "h3")], how="read"),
    ev.EditsKept(agent="ann", path="a", worktree="/w", edits=[(None, "h"), ("h", None)]),
    ev.EditsKept(agent="ann", path="a", worktree=None, edits=[("h", "h2")]),
    ev.EditsKept(agent="ann", path="a", worktree=None, edits=[]),
    ev.EditsKept(agent="ann-1", path="a", worktree=None, edits=[("h", "h2")]),
    ev.NoticePosted(notice=1, agent="ann", about="verdict", text="t", facts={"x": 1}),
    ev.NoticePosted(notice=2, agent="ann", about="verdict", text="t", facts={}),
    ev.NoticePosted(notice=3, agent="ann-1", about="verdict", text="t", facts={}),
    ev.NoticesDelivered(agent="ann", up_to=1),
    ev.AgentRegistered(agent="ann", parent="z", profile="q", description="e", token_hash="h3", silence_ms=6, anew=True),
    ev.AgentState(agent="ann", state="stale", reason="r"),
    ev.AgentState(agent="ann", state="gone", reason="r"),
    ev.ContentRead(agent="ann", reads=[("c", "h")]),
    ev.AgentRegistered(agent="ann", parent=None, profile="p", description="d", token_hash="h4", silence_ms=None),
    ev.AgentState(agent="ann", state="gone", reason="r"),
    ev.ContentRead(agent="ann", reads=[("d", "h")]),
    ev.AgentRegistered(agent="ann", parent=None, profile="p", description="d", token_hash="h5", silence_ms=None, anew=True),
    # leases
    ev.LeaseGranted(fencing_token=1, resource="a", agent="ann", expires_at="e1", lease_kind="file", mode="exclusive", scope="p/a/",
                    acquisition_id="A-1", ttl_ms=7, max_until="m1", description="d", slot="s", inode="1:2", worktree="/w",
                    content_hash="h", task="T-1"),
    ev.LeaseGranted(fencing_token=2, resource="d/", agent="ann", expires_at="e2", lease_kind="dir", mode="shared", scope="p/d/",
                    acquisition_id="A-2", ttl_ms=8, max_until="m2", baselines=[("d/x", "h1"), ("d/y", "h2")]),
    ev.LeaseGranted(fencing_token=3, resource="g*", agent="ann", expires_at="e3", lease_kind="glob", mode="exclusive", scope="p/",
                    acquisition_id="A-2", ttl_ms=8, max_until="m2", baselines=[("gx", "h1")]),
    ev.LeaseAgreed(fencing_token=1, agent="ann", resource="a", slot="ann", agreed_as="U-1"),
    ev.LeaseGranted(fencing_token=4, resource="a", agent="bob", expires_at="e1", lease_kind="file", mode="shared", scope="p/a/",
                    acquisition_id="A-4", ttl_ms=7, max_until="m1", slot="bob", agreed_as="U-1", began_at="at21"),
    ev.LeaseRenewed(agent="ann", until=[(1, "e11"), (2, "e12")]),
    ev.LeaseWarned(fencing_token=1, agent="ann", resource="a"),
    ev.LeasePlaced(fencing_token=1, agent="ann", resource="a", lease_kind="file", worktree="/v", content_hash=None),
    ev.LeasePlaced(fencing_token=2, agent="ann", resource="d/", lease_kind="dir", worktree="/v", content_hash=None,
                   baselines=[("d/z", "h3")]),
    ev.LeaseMoved(fencing_token=1, agent="ann", resource="b", old_scope="p/a/", scope="p/b/", slot="t", moved_from="a"),
    ev.LeasesShifted(delta_ms=1, tokens=[(1, "e21", "m21"), (3, "e23", "m23")], claims=[], waiters=[]),
    ev.LeaseReleased(fencing_token=2, resource="d/", scope="p/d/", agent="ann", lease_kind="dir"),
    ev.LeaseLapsed(fencing_token=3, resource="g*", scope="p/", agent="ann", task=None, lease_kind="glob", reason="r", expired_at="x"),
    # tasks
    TaskAdded(task="T-1", n=1, title="t", prompt="p", priority=4, state="ready", attempts_max=3,
                 resources=[("a", "file", "p/a/", "exclusive"), ("c", "file", "p/c/", "shared")], after=[]),
    TaskAdded(task="T-2", n=2, title="u", prompt="q", priority=0, state="pending", attempts_max=1, resources=[], after=["T-1", "T-0"]),
    TaskEdited(task="T-1", title="t2", prompt="p2", priority=7, attempts_max=5, resources=[("e", "file", "p/e/", "shared")], after=["T-0"], fields=["title"]),
    ev.TaskResourcesLearned(task="T-2", agent=None, resources=[("b", "file", "p/b/", "exclusive")]),
    ev.TaskChanged(task="T-1", state="claimed", claimed_by="ann", claimed_at="c1", claim_until="c2", claim_max="c3", ttl_ms=9,
                   partial="R-1", **TASK),
    ev.ClaimRenewed(agent="ann", until=[("T-1", "c22")]),
    ev.LeasesShifted(delta_ms=1, tokens=[], claims=[("T-1", "c32", "c33")], waiters=[]),
    ev.TaskChanged(task="T-1", state="failed", not_before="n", result="r", **TASK),
    ev.TaskChanged(task="T-1", state="ready", **TASK),
    ev.TaskChanged(task="T-2", state="ready", **TASK),
    TaskAvoids(task="T-2", agent="ann", profile="p", until="u"),
    ev.CandidateJudged(task="T-2", agent="ann", n=1, outcome="PARSE_INVALID", remedy="correct", regions=[("a::f", "h1", "h2"), ("a::g", None, None)],
                       note="it could not be read"),
    ev.CandidateJudged(task="T-2", agent="ann", n=2, outcome="COMMITTED", remedy="none", regions=[("a::f", None, "h3")]),
    ev.CandidateJudged(task="T-2", agent="ann", n=22, outcome="VERIFY_FAILED", remedy="correct", regions=[]),
    ev.RippleLeft(task="T-1", after=5),
    ev.RippleLeft(task="T-1", after=3),
    ev.RippleLeft(task="T-1", after=None),
    ev.SetAside(what="task", subject="T-1", reason="r", tries=1, retry_at="q"),
    ev.SetAside(what="lapse", subject="ann/", reason="r", tries=1, retry_at="q"),
    ev.SetAside(what="task", subject="T-1", reason="s", tries=2, retry_at="q2"),
    ev.TakenUp(what="task", subject="T-1"),
    ev.TakenUp(what="lapse", subject="ann/"),
    ev.SetAside(what="task", subject="T-1", reason="s", tries=2, retry_at="q2"),
    ev.TaskChanged(task="T-1", state="done", **TASK),
    # hints
    SignalLeft(resource="task:T-1", scope="k/task/T-1/", name="warning", strength=1.0, half_life_ms=1000, agent="ann", note="n"),
    SignalLeft(resource="task:T-1", scope="k/task/T-1/", name="warning", strength=1.5, half_life_ms=2000),
    SignalLeft(resource="a", scope="p/a/", name="warning", strength=2.0, half_life_ms=1000, agent="ann"),
    SignalsFaded(signals=[("p/a/", "warning")]),
    # values of keys
    KeyWritten(resource="key:a", scope="k/key/a/", version=1, content="state:1", size=3, agent="ann"),
    KeyWritten(resource="key:a", scope="k/key/a/", version=2, content=None, size=0, agent="ann", fencing_token=7),
    KeyWritten(resource="key:a", scope="k/key/a/", version=101, content="state:2", size=3, agent="bob", change="K-1"),
    ChangeAsked(change="K-1", n=1, resource="key:a", scope="k/key/a/", agent="bob", content="state:3", attempts_max=3, note="n", during="K-0"),
    ChangeMoved(change="K-1", resource="key:a", state="given", attempts=1, agent="ann", given_to="ann", given_until="u"),
    ChangeMoved(change="K-1", resource="key:a", state="done", attempts=1, agent="ann", version=3),
    ChangeAsked(change="K-2", n=2, resource="key:a", scope="k/key/a/", agent="bob", content="state:4", attempts_max=1),
    ChangeMoved(change="K-2", resource="key:a", state="queued", attempts=1, not_before="b", why="w"),
    ChangesForgotten(changes=["K-1"]),
    # steps
    ev.StepAdded(step="S-1", n=1, step_kind="call", name="f", state="waiting", attempts=0, attempts_max=3, content="state:5", agent="ann", resources=["a"], not_before="b"),
    ev.StepMoved(step="S-1", state="given", attempts=1, agent="bob", given_to="bob", given_until="u"),
    ev.StepMoved(step="S-1", state="done", attempts=1, agent="bob"),
    ev.StepAdded(step="S-2", n=2, step_kind="acquire", name="a", state="dead", attempts=1, attempts_max=1, content="state:6", why="w", event=3),
    ev.StepsForgotten(steps=["S-1"]),
    # writes without a lease
    ev.WriteLost(agent="ann", resource="a", scope="p/a/", wasted_ms=5),
    ev.WriteLost(agent="ann", resource="a", scope="p/a/", wasted_ms=6),
    ev.WriteLost(agent="bob", resource="a", scope="p/a/"),
    ev.WriteStood(agent="ann", resource="a", scope="p/a/"),
    # what was said
    MessageSent(message="M-1", n=1, agent="ann", to="bob", text="t", thread="M-1", task="T-1"),
    MessageSent(message="M-2", n=2, agent="bob", to="human", text="u", thread="M-1", reply_to="M-1"),
    MessageSent(message="M-3", n=3, agent="bob", to="human", text="v", thread="M-3"),
    MessagesSeen(by="op", up_to=2),
    MessagesForgotten(messages=["M-1"]),
    # the line
    ev.WaiterQueued(acquisition_id="W-1", agent="ann", mode="exclusive", priority=2, asked_at="a", until="u", held=True, ttl_ms=3,
                    task="T-1", description="d", resources=[("b", "file", "p/b/"), ("d", "file", "p/d/")], met="p/m/"),
    ev.WaiterQueued(acquisition_id="W-2", agent="ann", mode="shared", priority=2, asked_at="a", until="u", held=False, ttl_ms=3,
                    task=None, description="", resources=[("c", "file", "p/c/")]),
    ev.WaiterChanged(acquisition_id="W-1", agent="ann", held=False),
    ev.WaiterChanged(acquisition_id="W-2", agent="ann", held=True),
    ev.GivesWay(agent="ann", acquisition_id="W-2", to="bob", circle=["ann", "bob"], size=2),
    ev.WaiterQueued(acquisition_id="W-3", agent="ann", mode="shared", priority=2, asked_at="a", until="u", held=False, ttl_ms=3,
                    task=None, description="", resources=[("c", "file", "p/c/")], gives_way_to="bob"),
    ev.LeasesShifted(delta_ms=1, tokens=[], claims=[], waiters=[("W-1", "u2")]),
    ev.SetAside(what="waiter", subject="W-1", reason="r", tries=1, retry_at="q"),
    ev.WaiterLeft(acquisition_id="W-1", agent="ann", reason="granted"),
    ev.UnlockAsked(request="U-1", n=1, agent="bob", holder="ann", resource="b", resource_kind="file", scope="p/b/", mode="shared", reason="r"),
    ev.UnlockAsked(request="U-2", n=2, agent="bob", holder="ann", resource="c", resource_kind="file", scope="p/c/", mode="exclusive", reason="r"),
    ev.UnlockPassed(request="U-1", agent="bob", holder="ann-1", resource="b"),
    ev.UnlockAnswered(request="U-1", agent="bob", resource="b", status="approved", by="op", override=True, answer="yes"),
    ev.UnlockAsked(request="U-3", n=3, agent="bob", holder="ann", resource="d", resource_kind="file", scope="p/d/", mode="exclusive", reason="r"),
    ev.UnlockAnswered(request="U-3", agent="bob", resource="d", status="coexisting", by="ann", override=False, answer=""),
    ev.UnlockAnswered(request="U-2", agent="bob", resource="c", status="rejected", by="ann", override=False, answer=""),
    # reviews
    ev.ReviewOpened(review="R-1", n=1, reason="left", agent="ann", task="T-1", summary="s", log_tail="l", leased_at="x", events_from=7, files=[
        ev.FlaggedFile(path="a", scope="p/a/", change="modified", kept=True, worktree="/w", baseline_hash="h1", flagged_hash="h2", inode="1:2"),
        ev.FlaggedFile(path="n", scope="p/n/", change="created", kept=False, baseline_hash=None, flagged_hash="h3")]),
    ev.VerdictBegun(review="R-1", agent="ann", task="T-1", what="revert", by="eve", note="n", steps=[
        ev.VerdictStep(path="n", scope="p/n/", old="h3", old_mode=420, aside=".x", in_place=True),
        ev.VerdictStep(path="a", scope="p/a/", worktree="/w", old="h2", old_mode=384, new="h1", new_mode=493, aside=".y")]),
    ev.VerdictStepped(review="R-1", steps=[0, 1]),
    ev.VerdictStepped(review="R-1", steps=[1], back=True),
    ev.VerdictEnded(review="R-1", agent="ann", task="T-1", what="revert", outcome="done", saved=[("a", "h9")]),
    ev.ReviewDecided(review="R-1", agent="ann", task="T-1", state="reverted", by="eve", note="n", task_before="review",
                     files=[("n", "h3", None), ("a", "h2", "h1")], modes={"n": 420}),
    ev.ReviewUndone(review="R-1", agent="ann", task="T-1", by="eve"),
    ev.VerdictBegun(review="R-1", agent="ann", task="T-1", what="revert", by="eve", note="", steps=[
        ev.VerdictStep(path="n", scope="p/n/", old="h3", old_mode=420, aside=".z")], parts=PARTS),
    ev.VerdictEnded(review="R-1", agent="ann", task="T-1", what="revert", outcome="done"),
    ev.ReviewSplit(review="R-1", part="R-2", n=2, agent="ann", task="T-1", files=PARTS),
    ev.VersionsSeen(versions=[("a", "h", "ann"), ("b", None, None)]),
    ev.VersionsSeen(versions=[("a", "h2", None)]),
    # landing
    LandingQueued(agent="ann", task="T-1", target="main"),
    LandingQueued(agent="bob", task="T-2", target="main"),
    LandingBegun(agent="ann", task="T-1", target="main"),
    LandingBegun(agent="eve", task="T-3", target="main"),
    # verification
    VerifiedFrom(base="c0", since=0),
    WorkFinished(n=1, task="T-1", agent="ann", files=[("a", "h1"), ("b", None)], head="c0"),
    WorkFinished(n=2, task="T-2", agent="bob", files=[("a", "h2")], head="c0"),
    WorkFinished(n=3, task="T-3", agent="eve", files=[], head="c1", before="c0", after="c1"),
    WorkFinished(n=4, task="T-4", agent="eve", files=[("d", "h4")]),
    VerificationBegun(verification="V-1", n=1, by="coord", command="make test", upto=3),
    VerificationEnded(verification="V-1", n=1, outcome="broken", runs=5, works=[(1, "broken", "T-1"), (2, "held", "T-1"), (3, "good", None)],
                         tasks=["T-1"], task="T-1", said="s", tail="t", base="c2", head="c1", since=2),
    VerificationBegun(verification="V-2", n=2, by="eve", command="make test", upto=4),
    VerificationEnded(verification="V-2", n=2, outcome="base", runs=3, said="s", tail="t"),
    VerificationBegun(verification="V-3", n=3, by="eve", command="make test", upto=4),
    VerificationEnded(verification="V-3", n=3, outcome="good", runs=1, works=[(4, "good", None)], base="c3", head="c1", since=4),
    VerificationBegun(verification="V-202", n=202, by="eve", command="make test", upto=4),
    VerifiedFrom(base="c4", since=4),
    WorkFinished(n=5, task="T-5", agent="ann", files=[("a", "h1")], head="c4"),
    VerifiedFrom(base="", since=5),
    # what only the story needs
    ev.AcquisitionRefused(agent="bob", resources=["a", "b"], holders=["ann"]),
    ev.AcquisitionRefused(agent="ann", resources=["a"], holders=["bob"], explained="1@a.md 12"),
    ev.AcquisitionRefused(agent="ann", resources=["a"], holders=["bob"], explained="2@a.md 34"),
    ev.AcquisitionRefused(agent="bob", resources=[], holders=["ann"], task="T-1", redirect="T-2"),
    UnleasedWrite(resource="a", hash=None),
    TargetMoved(agent="ann", task="T-1", target="t", before="b", after="c", why="w", paths=["a"], fencing_tokens=[1]),
    ev.Noted(what="w", facts={"x": 1}),
    ev.CountersRaised(above={"task": 5}),
    ClaimWaits(agent="bob", until="u"),
]


def rows(db: Any) -> set[str]:
    every = {**state(db), "ready_tasks": db.execute("SELECT * FROM ready_tasks").fetchall()}
    return {f"{table} {row}" for table, found in every.items() for row in found}


def test_each_event_changes_what_it_always_changed() -> None:
    db, text, before = in_memory(), [], set[str]()
    told = {type(event) for event in LOG}
    others = [ev.ANY.decode(msgspec.json.encode({**example_of(kind), "kind": tag})) for kind, tag in ev.KIND_OF.items() if kind not in told]
    for n, event in enumerate([*LOG, *others]):
        line = msgspec.json.encode(event)
        ev.ANY.decode(line).apply(db, f"at{n}")
        now = rows(db)
        text += [f"{ev.SUBJECT_OF[type(event)](event)} {line.decode()}", *(f"- {row}" for row in sorted(before - now)),
                 *(f"+ {row}" for row in sorted(now - before)), ""]
        before = now
    assert_golden("events_applied.txt", "\n".join(text))
    db.close()


def test_who_is_parked_is_offered_when_nobody_holds_it_any_more() -> None:
    def ready(db: Any) -> list[tuple[Any, ...]]:
        return list(db.execute("SELECT task_id, parked_on, offered_from FROM ready_tasks ORDER BY n"))

    def added(n: int) -> ev.Event:
        return TaskAdded(task=f"T-{n}", n=n, title="t", prompt="", priority=-n, state="ready", attempts_max=1, resources=[], after=[])

    def lease(scope: str) -> ev.Event:
        return ev.LeaseGranted(fencing_token=1, resource="a", agent="ann", expires_at="e", lease_kind="file", mode="exclusive",
                               scope=scope, acquisition_id="A-1", ttl_ms=1, max_until="m")

    def world(*events: ev.Event) -> Any:
        db = in_memory()
        for event in (added(1), added(2), lease("p/a/")):
            event.apply(db, "at")
        for task in ("T-1", "T-2"):
            park(db, task, "p/a/")
        for event in events:
            event.apply(db, "at")
        return db

    waiter = ev.WaiterQueued(acquisition_id="W-1", agent="x", mode="shared", priority=0, asked_at="a", until="u", held=False, ttl_ms=1,
                             task=None, description="", resources=[("a", "file", "p/a/")])
    left = ev.WaiterLeft(acquisition_id="W-1", agent="x", reason="r")
    released = ev.LeaseReleased(fencing_token=1, resource="a", scope="p/a/", agent="ann", lease_kind="file")
    review = ev.ReviewOpened(review="R-1", n=1, reason="left", agent=None, task=None, summary="", log_tail="", leased_at=None, events_from=0,
                             files=[ev.FlaggedFile(path="a", scope="p/a/", change="deleted", kept=True, baseline_hash="h", flagged_hash=None)])
    decided = ev.ReviewDecided(review="R-1", agent=None, task=None, state="kept", by="b", note="", task_before=None, files=[])
    moved = ev.LeaseMoved(fencing_token=1, agent="ann", resource="b", old_scope="p/a/", scope="p/b/", slot="", moved_from="a")
    parked = [("T-1", "p/a/", None), ("T-2", "p/a/", None)]
    offered = [("T-1", None, "p/a/"), ("T-2", "p/a/", None)]
    assert ready(world(waiter, left)) == parked, "it is held still"
    assert ready(world(review, decided)) == parked
    assert ready(world(waiter, released, left)) == offered
    assert ready(world(released, review, decided)) == parked, "a review lets go of those that are parked on it"
    assert ready(world(moved)) == offered
    # What was offered and moves on lets the next one come; so does one that is parked elsewhere
    gone = ev.TaskChanged(task="T-1", verb="v", state="done", attempts=0)
    assert ready(world(moved, gone)) == [("T-2", None, "p/a/")]
    assert ready(world(gone)) == [("T-2", "p/a/", None)]
    # What a review keeps back comes when it is decided, and whenever the task moves that goes on with its work
    gone_on = ev.TaskChanged(task="T-1", verb="v", state="cancelled", attempts=1, partial="R-1")
    given_up = ev.TaskChanged(task="T-1", verb="v", state="done", attempts=1)
    for later in ((decided,), (gone_on,)):
        db = world(review)
        park(db, "T-2", at_review("R-1"))
        for event in later:
            event.apply(db, "at")
        assert ready(db)[-1] == ("T-2", None, at_review("R-1"))
    db = world(review, gone_on)
    park(db, "T-2", at_review("R-1"))
    given_up.apply(db, "at")
    assert ready(db) == [("T-2", None, at_review("R-1"))]
    db = world(moved)
    park(db, "T-1", "p/a/")
    assert ready(db) == parked
    db = world(moved)
    park(db, "T-1", "p/b/")
    assert ready(db) == [("T-1", "p/b/", None), ("T-2", None, "p/a/")]
