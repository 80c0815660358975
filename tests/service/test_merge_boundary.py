"""Landing in the coordinator: the branch moves in the transaction that judges the leases."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.files.content import digest
from coordinator.files.git import Git
from coordinator.kernel import branches
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.world import Sabotage, World

TRUNK = "refs/heads/trunk"


def git(place: Path, *args: str) -> str:
    done = subprocess.run(["git", "-c", "user.name=P", "-c", "user.email=p@x", *args], cwd=place,
                          capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "repo", git=True)
    git(made.root, "symbolic-ref", "HEAD", TRUNK)
    for name in ("a", "b"):
        made.write(name, f"{name}\n")
    made.write(".gitignore", ".coord\n")
    git(made.root, "add", ".")
    git(made.root, "commit", "-qm", "first")
    yield made
    made.close()


class Branch:
    """A task that agent `me` has claimed, and a commit in a linked worktree that wants to land."""

    def __init__(self, world: World, *changed: str, leased: tuple[str, ...] = ("a",)) -> None:
        self.world = world
        self.task = world.task("one", *leased)
        self.claim = world.ask(rq.TaskClaim(agent="me", task=self.task))
        self.place = world.root / ".coord/worktrees/run/me"
        self.before = git(world.root, "rev-parse", "HEAD")
        git(world.root, "worktree", "add", "-q", "-b", "work", str(self.place))
        for name in changed:
            (self.place / name).write_text("new\n")
        git(self.place, "add", ".")
        git(self.place, "commit", "-qm", "work", "--allow-empty")
        self.after = git(self.place, "rev-parse", "HEAD")
        self.changed = changed

    def request(self, **more: object) -> rq.Land:
        rights = [rq.LandRight(fencing_token=one.fencing_token, resource=one.resource,
                               kind=one.kind) for one in self.claim.leases]
        fields: dict[str, object] = {
            "agent": "me", "task": self.task, "target": TRUNK, "before": self.before,
            "after": self.after, "began_with": rights,
            "changes": [rq.LandChange(path=name) for name in self.changed],
        }
        return rq.Land(**{**fields, **more})  # type: ignore[arg-type]

    def check(self) -> rq.LandCheck:
        land = self.request()
        return rq.LandCheck(agent="me", task=self.task, changes=land.changes,
                            began_with=land.began_with)

    @property
    def trunk(self) -> str:
        return git(self.world.root, "rev-parse", TRUNK)


def test_a_lawful_branch_lands_under_its_tokens(world: World) -> None:
    work = Branch(world, "a")
    tokens = [lease.fencing_token for lease in work.claim.leases]
    assert world.ask(work.check()).fencing_tokens == tokens
    landed = world.ask(work.request())
    assert landed.fencing_tokens == tokens and work.trunk == work.after
    # the leases stay until the task is done
    assert [lease.file_path for lease in world.live()] == ["a"]
    assert world.replay_differs() == []


@pytest.mark.parametrize(
    ("why", "code"),
    [("unleased", Code.NOT_HOLDER), ("expired", Code.STALE_TOKEN), ("taken", Code.NOT_HOLDER),
     ("moved", Code.VERSION_CHANGED), ("dirty", Code.VERSION_CHANGED), ("given", Code.STALE_TOKEN),
     ("target", Code.VERSION_CHANGED), ("many", Code.LIMIT), ("private", Code.INVALID),
     ("kind", Code.INVALID)],
)
def test_what_is_not_lawful_moves_nothing(world: World, why: str, code: Code) -> None:
    work = Branch(world, "a", "b") if why == "unleased" else Branch(world, "a")
    request = work.request()
    if why == "expired":
        world.clock.advance(3_600_000)
    elif why == "taken":
        world.clock.advance(3_600_000)
        world.ask(rq.Sweep())
        world.clock.advance(60_000)  # its rest after the failure
        world.ask(rq.TaskClaim(agent="you", task=work.task))
    elif why == "moved":
        request.moved = ["a"]
    elif why == "dirty":
        request.dirty = ["a"]
    elif why == "given":
        world.ask(rq.Release(agent="me", resources=["a"]))
    elif why == "target":
        git(world.root, "commit", "-q", "--allow-empty", "-m", "by hand")
    elif why == "many":
        request.changes = [rq.LandChange(path="a")] * 20_001
    elif why == "private":
        request.changes = [rq.LandChange(path=".coord/secret")]
    elif why == "kind":
        request.began_with[0].kind = "planet"
    before, rows = work.trunk, world.rows()
    refused = world.refused(request)
    assert refused.code is code and work.trunk == before
    assert bool(refused.facts.get("target_moved")) == (why == "target")
    assert world.rows() == rows


def test_a_lease_of_another_is_named(world: World) -> None:
    work = Branch(world, "a", "b")
    world.acquire("you", "b")
    assert "held: b by you" in world.refused(work.request()).message


def test_a_lease_that_was_lost_and_taken_anew_is_not_the_one_it_began_with(world: World) -> None:
    work = Branch(world, "a")
    world.ask(rq.Release(agent="me", resources=["a"]))
    world.acquire("me", "a")
    assert world.refused(work.request()).code is Code.STALE_TOKEN


def test_only_the_launch_lands_and_only_the_agent_asks(world: World) -> None:
    work = Branch(world, "a")
    token = world.ask(rq.Register(agent="me")).token
    other = world.ask(rq.Register(agent="you")).token
    assert world.refused(work.request(), token).code is Code.UNAUTHORIZED
    assert world.ask(work.check(), token).fencing_tokens
    assert world.refused(work.check(), other).code is Code.UNAUTHORIZED


def test_a_full_disk_after_the_branch_moved_is_no_second_landing(world: World) -> None:
    """The log could not be written: the answer is STORAGE, and asking again finds it landed."""
    work = Branch(world, "a")
    with Sabotage(world.db, 1):
        assert world.refused(work.request()).code is Code.STORAGE
    assert work.trunk == work.after
    assert world.ask(work.request()).after == work.after
    assert len(world.ask(rq.Events(kind="target_moved")).items) == 1
    assert world.replay_differs() == []


def test_a_landing_can_be_taken_back_while_nobody_built_on_it(world: World) -> None:
    work = Branch(world, "a")
    world.ask(work.request())
    back = rq.LandBack(agent="me", task=work.task, target=TRUNK, before=work.before,
                       after=work.after, why="a was changed")
    world.ask(back)
    assert work.trunk == work.before
    world.ask(work.request())
    git(world.root, "reset", "-q", "--hard")
    git(world.root, "commit", "-q", "--allow-empty", "-m", "built on it")
    built = work.trunk
    assert world.refused(back).code is Code.VERSION_CHANGED and work.trunk == built


def test_leases_are_compared_in_the_worktree_that_is_worked_in(world: World) -> None:
    # Given a task on a file, a directory and a new file, worked on in a linked worktree
    world.write("d/x", "main's own, not committed\n")
    work = Branch(world, leased=("a", "d/", "new", "key:k"))
    (work.place / "d").mkdir()
    (work.place / "d/y").write_text("y\n")
    world.ask(rq.TaskWorktree(agent="me", task=work.task, worktree=str(work.place)))
    # When the agent changes some there, others change the main worktree, and the claim lapses
    (work.place / "a").write_text("partial\n")
    (work.place / "new").write_text("new\n")
    (work.place / "d/y").unlink()
    world.write("a", "a person's\n")
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())
    # Then the review has what the agent did, and a revert touches nothing else
    shown = world.ask(rq.ReviewShow(review="R-1"))
    assert {f.path: f.change for f in shown.files} == {
        "a": "modified", "new": "created", "d/y": "deleted"}
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    assert (work.place / "a").read_text() == "a\n" and not (work.place / "new").exists()
    assert (work.place / "d/y").read_text() == "y\n"
    assert (world.root / "a").read_text() == "a person's\n"
    assert world.replay_differs() == []


def test_where_an_agent_works_is_answered_and_noted_whole(world: World) -> None:
    work = Branch(world, leased=("a", "d/", "new", "e/*.py", "key:k"))
    for name in ("d/y", "e/f.py"):
        (work.place / name).parent.mkdir()
        (work.place / name).write_text("y\n")
    (work.place / "a").write_text("the branch's\n")
    world.acquire("me", "b")  # not the task's
    world.acquire("me", "short", task=work.task, ttl_s=1)
    world.clock.advance(1_000)
    told = world.ask(rq.TaskWorktree(agent="me", task=work.task, worktree=str(work.place)))
    assert (told.worktree, told.task.task, told.task.state, told.task.claimed_by) == (str(work.place), work.task, "claimed", "me")
    tokens = {one.resource: one.fencing_token for one in work.claim.leases}
    names = {"a": ("file", digest(b"the branch's\n"), None), "d/": ("dir", None, [["d/y", digest(b"y\n")]]), "new": ("file", None, None),
             "e/*.py": ("glob", None, [["e/f.py", digest(b"y\n")]])}
    assert {(one.resource, one.kind, one.content_hash, one.fencing_token, one.locked_by) for one in told.leases} == {
        (name, kind, content, tokens[name], "me") for name, (kind, content, _) in names.items()}
    noted = {event.resource: event for event in world.ask(rq.Events(kind="lease_placed", limit=100)).items}
    assert noted.keys() == names.keys()
    for name, (kind, content, below) in names.items():
        want = {"kind": "lease_placed", "fencing_token": tokens[name], "agent": "me", "resource": name, "lease_kind": kind,
                "worktree": str(work.place), "content_hash": content, "task": work.task}
        assert noted[name].data == want | ({"baselines": below} if below is not None else {})
        assert (noted[name].agent, noted[name].task) == ("me", work.task)
    no = world.refused(rq.TaskWorktree(agent="me", task=work.task, worktree=str(world.root)))
    assert (no.code, no.message, no.next) == (
        Code.INVALID, f"{world.root} is not a linked worktree of this repository. Nothing was changed.", "`git worktree list` shows them.")


def test_only_a_linked_worktree_can_be_worked_in(world: World, tmp_path: Path) -> None:
    work = Branch(world)
    ask = rq.TaskWorktree(agent="me", task=work.task, worktree=str(tmp_path))
    assert world.refused(ask).code is Code.INVALID
    ask.agent = "you"
    assert world.refused(ask).code is Code.NOT_HOLDER


def test_all_that_did_not_land_is_flagged(world: World) -> None:
    (world.root / "link").symlink_to("a")
    git(world.root, "add", ".")
    git(world.root, "commit", "-qm", "second")
    work = Branch(world, "a", "b", "ü new")
    world.ask(rq.TaskWorktree(agent="me", task=work.task, worktree=str(work.place)))
    (work.place / "link").unlink()
    git(work.place, "commit", "-qam", "more")
    left = rq.Unlanded(worktree=str(work.place), began=work.before,
                       commit=git(work.place, "rev-parse", "HEAD"))
    failed = world.ask(rq.TaskFail(agent="me", task=work.task, reason="no", unlanded=left))
    assert failed.state == "review"
    shown = world.ask(rq.ReviewShow(review="R-1", content=True))
    assert {f.path: (f.change, f.kept) for f in shown.files} == {
        "a": ("modified", True), "b": ("modified", True), "link": ("deleted", True),
        "ü new": ("created", True)}
    world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    assert (work.place / "b").read_text() == "b\n" and (work.place / "link").is_symlink()
    left.worktree = str(world.root)
    world.ask(rq.TaskClaim(agent="me", task=work.task))
    again = rq.TaskFail(agent="me", task=work.task, unlanded=left)
    assert world.refused(again).code is Code.INVALID


def test_what_did_not_land_is_looked_at_before_the_transaction(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """git takes its time; nobody may wait for that."""
    work = Branch(world, "a")
    left = rq.Unlanded(worktree=str(work.place), began=work.before, commit=work.after)
    inside: list[str] = []

    class Watched(Git):
        def run(self, *args: str, **more: Any) -> bytes:
            if world.db.in_transaction:
                inside.append(args[0])
            return super().run(*args, **more)

    monkeypatch.setattr(branches, "Git", Watched)
    world.ask(rq.TaskFail(agent="me", task=work.task, reason="no", unlanded=left))
    assert not inside
    (shown,) = world.ask(rq.ReviewShow(review="R-1")).files
    assert shown.path == "a" and shown.kept
    # and who may not give the task back has nothing looked at
    left.began = "no such commit"
    assert world.refused(rq.TaskFail(agent="other", task=work.task, unlanded=left)).code is Code.BAD_TRANSITION


def test_what_it_leased_for_no_task_in_the_worktree_is_in_the_same_review(world: World) -> None:
    work = Branch(world, "a")
    world.ask(rq.TaskWorktree(agent="me", task=work.task, worktree=str(work.place)))
    elsewhere = world.acquire("me", "elsewhere")
    world.ask(rq.Acquire(agent="me", resources=["more"], cwd=str(work.place)))
    (work.place / "more").write_text("m\n")
    git(work.place, "add", ".")
    git(work.place, "commit", "-qm", "more")
    left = rq.Unlanded(worktree=str(work.place), began=work.before, commit=git(work.place, "rev-parse", "HEAD"))
    world.ask(rq.TaskFail(agent="me", task=work.task, reason="no", unlanded=left))
    (review,) = world.ask(rq.Reviews()).items
    assert {one.path for one in review.files} == {"a", "more"}
    assert [one.resource for one in world.ask(rq.Locks()).items] == [elsewhere.leases[0].resource]
    world.ask(rq.Leave(agent="me", clean=False, reason="its process ended"))
    assert len(world.ask(rq.Reviews()).items) == 1 and world.replay_differs() == []
