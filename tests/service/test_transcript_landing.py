"""Work in a worktree of its own, and how it lands or does not, told in full (tests/transcripts.py)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from coordinator.settings import Reviewing, Settings
from coordinator.slices.guard import renames
from coordinator.slices.guard.shell_commands import Broken
from coordinator.words import requests as rq
from tests.transcripts import Heard, Transcript
from tests.world import World

TRUNK = "refs/heads/trunk"
DATES = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2026-01-01T00:00:00Z")


def git(place: Path, *args: str) -> str:
    done = subprocess.run(["git", "-c", "user.name=P", "-c", "user.email=p@x", *args], cwd=place,
                          capture_output=True, text=True, check=True, env={**os.environ, **DATES})
    return done.stdout.strip()


def begun(tmp_path: Path) -> tuple[Transcript, Path, str]:
    """A repository, a linked worktree as a launch makes it, and the commit where both begin."""
    world = World(tmp_path / "repo", Settings(review=Reviewing(file_bytes_max=1000)), git=True)
    git(world.root, "symbolic-ref", "HEAD", TRUNK)
    world.write("a", "a\n")
    world.write("d/x", "x\n")
    world.write("r", "r\n")
    world.write(".gitignore", ".coord\n")
    git(world.root, "add", ".")
    git(world.root, "commit", "-qm", "first")
    place = world.root / ".coord/worktrees/run/me"
    git(world.root, "worktree", "add", "-q", "-b", "work", str(place))
    return Transcript(world), place, git(place, "rev-parse", "HEAD")


def rights(claimed: Any) -> list[rq.LandRight]:
    return [rq.LandRight(fencing_token=one.fencing_token, resource=one.resource, kind=one.kind)
            for one in claimed.leases]


def test_what_lands(tmp_path: Path) -> None:
    told, place, before = begun(tmp_path)
    world = told.world
    token = told.ask(rq.Register(agent="me")).token
    told.ask(rq.Register(agent="you"))
    told.ask(rq.TaskAdd(title="t", resources=["a", "d/", "r::C", "key:k"]))
    told.ask(rq.TaskClaim(agent="me", task="T-1", ttl_s=60))
    told.ask(rq.TaskWorktree(agent="me", task="T-1", worktree=str(world.root)))
    told.ask(rq.TaskWorktree(agent="me", task="T-1", worktree=str(place / "d")))
    told.ask(rq.TaskWorktree(agent="you", task="T-1", worktree=str(place)))
    (place / "a").write_text("its own\n")
    work = told.ask(rq.TaskWorktree(agent="me", task="T-1", worktree=str(place)))
    began_with = rights(work)
    told.ask(rq.TaskDone(agent="me", task="T-1"), token)
    told.ask(rq.RequestFile(agent="you", resource="a", reason="why"))
    (place / "a").write_text("new\n")
    told.ask(rq.RequestAnswer(agent="me", request="U-1", verdict="approve"))
    git(place, "commit", "-qam", "work")
    after = git(place, "rev-parse", "HEAD")

    def land(*paths: str, **more: Any) -> None:
        facts: dict[str, Any] = {
            "agent": "me", "task": "T-1", "target": TRUNK, "before": before, "after": after,
            "changes": [rq.LandChange(path=path) for path in paths], "began_with": began_with, **more}
        told.ask(rq.Land(**facts))

    told.ask(rq.LandCheck(agent="me", task="T-1", changes=[rq.LandChange(path="a")],
                          began_with=began_with), token)
    told.ask(rq.LandCheck(agent="you", task="T-1", changes=[]), token)
    told.ask(rq.Acquire(agent="you", resources=["b", "e/"]))
    told.ask(rq.Acquire(agent="you", resources=["shared"], mode="shared"))
    land("a", "b", "e/x", "free", "shared")
    land("a", moved=["a"])
    land("a", dirty=["a"])
    land("a", agent="you")
    land("a", task="T-9")
    land(*["a"] * 20_001)
    land("a", began_with=[rq.LandRight(fencing_token=1, resource="a", kind="planet" * 10)])
    land("a", before=after[::-1])
    land("a", target="refs/heads/a..b")
    world.service.landing.add("T-1")
    told.ask(rq.Release(agent="me", resources=["a"]))
    told.ask(rq.Leave(agent="me"))
    told.ask(rq.TaskDone(agent="me", task="T-1", landed=after))
    told.ask(rq.TaskCancel(task="T-1", force=True))
    world.service.landing.clear()
    land("a")
    told.ask(rq.Locks())
    told.ask(rq.LandBack(agent="me", task="T-1", target=TRUNK, before=before, after=after, why="a mistake"))
    told.ask(rq.LandBack(agent="me", task="T-1", target=TRUNK, before=before, after=after, why="a mistake"))
    land("a")
    told.ask(rq.TaskDone(agent="me", task="T-1", landed=after))
    land("a")
    told.assert_is("landed")
    world.close()


def test_a_claim_that_has_ended_lands_nothing(tmp_path: Path) -> None:
    told, _, before = begun(tmp_path)
    told.ask(rq.TaskAdd(title="t", resources=["a"]))
    claimed = told.ask(rq.TaskClaim(agent="me", task="T-1", ttl_s=60))
    told.later(60)
    told.ask(rq.Land(agent="me", task="T-1", target=TRUNK, before=before, after=before,
                     changes=[rq.LandChange(path="a")], began_with=rights(claimed)))
    told.assert_is("landed_late")
    told.world.close()


def test_what_did_not_land(tmp_path: Path) -> None:
    told, place, before = begun(tmp_path)
    world = told.world
    told.ask(rq.TaskAdd(title="t", resources=["a"]))
    told.ask(rq.TaskClaim(agent="me", task="T-1"))
    told.ask(rq.TaskWorktree(agent="me", task="T-1", worktree=str(place)))
    (place / "a").write_text("half\n")
    (place / "new").write_text("new\n")
    (place / "run.sh").write_text("run\n")
    (place / "run.sh").chmod(0o755)
    (place / "large").write_text("1" * 2000)
    (place / "link").symlink_to("a")
    (place / "d/x").unlink()
    git(place, "add", ".")
    (place / "r").write_text("changed\n")
    git(place, "commit", "-qam", "work")
    (place / "r").write_text("r\n")
    after = git(place, "rev-parse", "HEAD")
    left = rq.Unlanded(worktree=str(world.root), began=before, commit=after)
    told.ask(rq.TaskFail(agent="me", task="T-1", reason="refused", unlanded=left))
    left.worktree, left.began = str(place), "0" * 40
    told.ask(rq.TaskFail(agent="me", task="T-1", reason="refused", unlanded=left))
    left.began = before
    told.ask(rq.TaskFail(agent="me", task="T-1", reason="refused", unlanded=left, log_tail="tail"))
    told.ask(rq.ReviewShow(review="R-1"))
    told.assert_is("not_landed")
    world.close()


def test_agents_in_a_worktree_of_their_own(tmp_path: Path) -> None:
    told, place, _ = begun(tmp_path)
    world, below = told.world, ".coord/worktrees/run/me"
    ann, sub, bob = Heard(told, "ann"), Heard(told, "ann", "s1"), Heard(told, "bob")
    ann.hook("SessionStart")
    told.ask(rq.TaskAdd(title="t", resources=["a", "d/"]))
    told.ask(rq.TaskClaim(agent=ann.name, task="T-1"))
    told.ask(rq.TaskWorktree(agent=ann.name, task="T-1", worktree=str(place)))
    sub.edit(f"{below}/a", "by a sub-agent\n")
    sub.edit(f"{below}/d/x", "by a sub-agent\n")
    ann.edit(f"{below}/n", "1\n")
    told.later(1)
    ann.edit(f"{below}/n", "2\n")
    told.ask(rq.Acquire(agent=ann.name, resources=["r.py::C", "d2/"], cwd=str(place)))
    bob.edit(f"{below}/a", "bob's\n")
    bob.edit("n", "bob's\n")
    bob.shell("git stash")
    bob.call("Bash", {"command": "git stash"}, cwd=str(place))
    bob.call("Bash", {"command": "git stash"}, cwd="/")
    bob.hook("Stop", broken=bob.broke(Broken("n", ann.name, None, str(place))))
    told.ask(rq.GuardCheck(paths=[str(place / "n"), str(world.root / "n"), str(place / "d/x")]))
    world.decide(lambda tx: renames.follow(world.service, tx, "d", "e"))
    told.came("d was moved to e, in the main worktree")
    (world.root / "a").unlink()
    (world.root / "a").symlink_to("r")
    told.ask(rq.Sweep())
    sub.hook("SubagentStop")
    (place / "d/y").write_text("new\n")
    (place / "d2").mkdir()
    (place / "d2/z").write_text("new\n")
    told.ask(rq.Release(agent="eve", resources=["d/", "n", "r.py::C"], force=True))
    told.later(4000)
    told.ask(rq.Sweep())
    told.ask(rq.Reviews())
    told.assert_is("in_a_worktree")
    world.close()
