"""What cannot be served for one is set aside, and nobody else's request hears of it (invariant 11).

Each test is a way in which one waiter, task, lapse or chain once failed or froze everybody's.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from coordinator.settings import Leases, Reviewing, Settings
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.world import World

FEW = Settings(review=Reviewing(files_max=5), leases=Leases(offered_ttl_s=4))


@pytest.fixture
def small(tmp_path: Path) -> World:
    """A world in which a directory of more than five files is too large."""
    world = World(tmp_path / "few", FEW)
    for n in range(11):
        world.write(f"d/f{n}", "x\n")
    return world


def notices(world: World, agent: str) -> list[str]:
    return [n.text for n in world.ask(rq.Heartbeat(agent=agent)).notices]


def holders(world: World) -> dict[str, str]:
    return {row.file_path: row.locked_by for row in world.live()}


# ------------------------------------------------------------ waiters


def test_a_waiter_for_too_large_a_directory_fails_nobody(small: World) -> None:
    small.acquire("ann", "d/f1", ttl_s=60)
    small.refused(rq.Acquire(agent="bob", resources=["d/"]))
    # The holder lets go, a newcomer takes it, a sweep goes through
    small.ask(rq.Release(agent="ann", resources=["d/f1"]))
    aside = small.ask(rq.Status()).aside
    assert [(one.what, "5" in one.reason) for one in aside] == [("waiter", True)]
    assert any("set aside" in said for said in notices(small, "bob"))
    small.acquire("cyd", "d/f1", ttl_s=5)
    small.write("d/f1", "half\n")
    small.clock.advance(6_000)
    swept = small.ask(rq.Sweep())
    assert len(swept.lapsed) == len(swept.reviews) == 1
    # Once the directory is small enough it is tried again by itself, and is bob's
    for n in range(2, 11):
        (small.root / f"d/f{n}").unlink()
    small.clock.advance(31_000)
    small.tend()
    assert holders(small) == {"d/": "bob"}
    assert small.ask(rq.Status()).aside == []


def test_who_waits_for_one_thing_under_two_names_is_served(world: World) -> None:
    world.write("a.py", "one\n")
    world.acquire("ann", "a.py", "b.py")
    world.refused(rq.Acquire(agent="bob", resources=["a.py", "b.py"]))
    os.symlink("a.py", world.root / "b.py")
    world.ask(rq.Release(agent="ann", resources=["a.py", "b.py"]))
    assert holders(world) == {"a.py": "bob", "b.py": "bob"}


def test_a_client_that_died_in_line_is_only_offered_the_lease(world: World) -> None:
    world.acquire("ann", "q.py")
    world.refused(rq.Acquire(agent="bob", resources=["q.py"], wait_s=300))
    world.restart()  # with the daemon every open request is gone
    world.ask(rq.Release(agent="ann", resources=["q.py"]))
    (lease,) = world.live()
    assert lease.locked_by == "bob"
    left_s = (world.clock.at_ms + 120_000)
    from coordinator.words.clock import from_iso

    assert from_iso(lease.expires_at) <= left_s
    assert any("q.py" in said for said in notices(world, "bob"))


def test_the_machines_sleep_is_given_back_to_waiters(world: World) -> None:
    world.acquire("ann", "a.py")
    world.refused(rq.Acquire(agent="bob", resources=["a.py"]))
    world.sleep_machine(8 * 3_600_000)
    world.tend()
    assert [w.agent for w in world.ask(rq.Locks()).waiters] == ["bob"]


# ------------------------------------------------------------ tasks


def test_a_task_over_the_limit_is_set_aside_and_the_others_are_given_out(small: World) -> None:
    big = small.task("big", "d/", priority=5)
    little = small.task("small", "other.txt")
    assert small.ask(rq.TaskClaim(agent="ann")).task.task == little
    (one,) = small.ask(rq.Status()).aside
    assert (one.what, one.subject) == ("task", big)
    # Asked for by name the refusal is the asker's own
    assert small.refused(rq.TaskClaim(agent="bob", task=big)).code is Code.LIMIT
    # It is tried again when it has rested
    for n in range(2, 11):
        (small.root / f"d/f{n}").unlink()
    small.clock.advance(31_000)
    small.tend()
    assert small.ask(rq.TaskClaim(agent="bob")).task.task == big


def test_a_task_that_names_a_thing_twice_leases_it_once(world: World) -> None:
    task = world.task("x", "pkg", "pkg/", priority=9)
    got = world.ask(rq.TaskClaim(agent="ann"))
    assert got.task.task == task and [one.resource for one in got.leases] == ["pkg/"]


def test_files_that_become_one_are_leased_once_with_the_link(world: World) -> None:
    world.write("a.py", "one\n")
    task = world.task("x", "a.py", "b.py", priority=9)
    os.symlink("a.py", world.root / "b.py")
    assert world.ask(rq.TaskClaim(agent="ann")).task.task == task
    assert holders(world) == {"a.py": "ann", "b.py": "ann"}


def test_wanted_in_both_modes_is_wanted_exclusively(world: World) -> None:
    world.task("x", "shared:k.py", "k.py")
    (lease,) = world.ask(rq.TaskClaim(agent="ann")).leases
    assert lease.mode == "exclusive"


def test_a_task_whose_file_leads_outside_by_now_is_set_aside(world: World) -> None:
    (world.root / "g").mkdir()
    task = world.task("x", "g/x", priority=9)
    free = world.task("y", "y.py")
    (world.root / "g").rmdir()
    os.symlink("/etc", world.root / "g")
    assert world.ask(rq.TaskClaim(agent="ann")).task.task == free
    assert [one.subject for one in world.ask(rq.Status()).aside] == [task]
    assert "/" not in {row.file_path[0] for row in world.live()}


def test_a_file_in_place_of_a_directory_is_leased_by_its_name(world: World) -> None:
    """Work that makes a directory of a file leases both names, whichever is there now."""
    world.write("docs/index.txt", "one\n")
    task = world.task("make docs a file", "docs/", "docs/index.txt", "docs")
    (world.root / "docs/index.txt").unlink()
    (world.root / "docs").rmdir()
    world.write("docs", "now a file\n")
    got = world.ask(rq.TaskClaim(agent="ann"))
    assert got.task.task == task and {"docs/index.txt"} < {one.resource for one in got.leases}


def test_a_task_blocked_through_a_hard_link_is_offered_again(world: World) -> None:
    world.write("a.py", "one\n")
    os.link(world.root / "a.py", world.root / "b.py")
    task = world.task("t", "b.py")
    world.acquire("ann", "a.py")
    assert world.refused(rq.TaskClaim(agent="bob")).code is Code.NOTHING_TO_DO
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    assert world.ask(rq.TaskClaim(agent="bob")).task.task == task


@pytest.mark.parametrize("length", [600, 2_500])
def test_a_chain_of_tasks_freezes_nobody(world: World, length: int) -> None:
    world.checked = False  # the replay of so many events, again and again, takes too long
    lines = ["- [ ] s0 (id: s0)"]
    lines += [f"- [ ] s{n} (after: s{n - 1}) (id: s{n})" for n in range(1, length)]
    world.ask(rq.TaskImport(text="\n".join(lines), format="markdown"))
    before = world.view().value("event_last")
    assert before is not None
    world.ask(rq.TaskCancel(task="T-1"))
    assert world.ask(rq.Tasks(limit=1)).counts == {"cancelled": 1, "blocked": length - 1}
    # Each transaction told only some of them: nobody had to wait for all
    per_instant = world.db.execute(
        "SELECT count(*) FROM events WHERE kind = 'ripple_left'").get
    assert per_instant >= (length // 200) - 1
    world.ask(rq.TaskRetry(task="T-1"))
    assert world.ask(rq.Tasks(limit=1)).counts == {"ready": 1, "pending": length - 1}
    # A last attempt that lapses ends the chain in the same way, and the sweep goes on
    world.acquire("eve", "free.py", ttl_s=5)
    for _ in range(3):
        world.ask(rq.TaskClaim(agent="ann", task="T-1", ttl_s=5))
        world.clock.advance(6_000)
        world.ask(rq.Sweep())
        world.clock.advance(700_000)
        world.tend()
    assert world.ask(rq.Tasks(limit=1)).counts == {"dead": 1, "blocked": length - 1}
    assert world.live() == [] and world.replay_differs() == []


def test_a_wide_fan_of_tasks_is_told_in_slices_and_a_restart_goes_on(world: World) -> None:
    world.checked = False
    lines = ["- [ ] root (id: r)"] + [f"- [ ] s{n} (after: r)" for n in range(1_000)]
    world.ask(rq.TaskImport(text="\n".join(lines), format="markdown"))
    # The daemon dies right after the transaction that cancelled the root
    world.engine.on_commit.clear()
    settle, world.engine.settle = world.engine.settle, lambda: None  # type: ignore[method-assign]
    world.ask(rq.TaskCancel(task="T-1"))
    counts = world.ask(rq.Tasks(limit=1)).counts
    assert counts["pending"] > 0
    world.restart()
    del settle
    world.tend()
    assert world.ask(rq.Tasks(limit=1)).counts == {"cancelled": 1, "blocked": 1_000}
    assert world.replay_differs() == []


# ------------------------------------------------------------ leases on the side, and their ends


def test_a_lease_that_nobody_used_ends_alone(tmp_path: Path) -> None:
    world = World(tmp_path, FEW)
    world.write("b.py", "b\n")
    task = world.task("one", "a.py")
    world.ask(rq.TaskClaim(agent="ann"))
    world.acquire("bob", "b.py")
    world.refused(rq.Acquire(agent="ann", resources=["b.py"], task=task))
    world.ask(rq.Release(agent="bob", resources=["b.py"]))
    assert holders(world) == {"a.py": "ann", "b.py": "ann"}
    world.clock.advance(5_000)  # a test run: the offer of b.py is over
    world.ask(rq.Sweep())
    assert holders(world) == {"a.py": "ann"}
    assert world.ask(rq.TaskShow(task=task)).claimed_by == "ann"
    assert world.ask(rq.Reviews()).items == []
    assert world.ask(rq.TaskDone(agent="ann", task=task)).state == "done"


def test_a_lapse_that_two_resources_meet_is_told_once(world: World) -> None:
    for n in (10, 12):
        world.write(f"m/f{n}.txt", "x\n")
    world.acquire("ann", "m/f1*.txt", ttl_s=1)
    world.clock.advance(2_000)
    world.acquire("bob", "m/f10.txt", "m/f12.txt")
    lapsed = world.db.execute("SELECT count(*) FROM events WHERE kind = 'lease_lapsed'").get
    assert lapsed == 1 and len(notices(world, "ann")) == 1


def test_heartbeats_do_not_keep_progress_from_renewing(world: World) -> None:
    world.acquire("ann", "a.py", ttl_s=20)
    for second in range(40):
        world.clock.advance(1_000)
        world.ask(rq.Heartbeat(agent="ann"))
        if second % 4 == 3:
            world.acquire("ann", f"other{second}.py", ttl_s=600)
    assert "a.py" in holders(world)


def test_bare_heartbeats_do_not_renew(world: World) -> None:
    world.acquire("ann", "a.py", ttl_s=20)
    for _ in range(21):
        world.clock.advance(1_000)
        world.ask(rq.Heartbeat(agent="ann"))
    assert holders(world) == {}


def test_renewing_all_leaves_out_what_has_lapsed(world: World) -> None:
    world.acquire("ann", "a.py", ttl_s=5)
    world.acquire("ann", "b.py", ttl_s=600)
    world.clock.advance(6_000)
    got = world.ask(rq.Renew(agent="ann", ttl_s=900))
    assert [one.resource for one in got.leases] == ["b.py"]


def test_a_release_by_force_keeps_what_was_changed(world: World) -> None:
    world.write("f.py", "before\n")
    world.acquire("ann", "f.py")
    world.write("f.py", "half\n")
    world.ask(rq.Release(agent="ann", resources=["f.py"], force=True))
    (review,) = world.ask(rq.Reviews()).items
    assert review.reason == "overridden" and review.files[0].kept
    world.acquire("bob", "g.py", ttl_s=5)
    world.write("g.py", "new\n")
    world.clock.advance(6_000)
    world.ask(rq.Release(agent="eve", resources=["g.py"], force=True))
    assert [one.reason for one in world.ask(rq.Reviews()).items] == ["overridden"] * 2


def test_sub_agents_that_name_each_other_parents_can_leave(world: World) -> None:
    world.ask(rq.Register(agent="a", profile="p", parent="b"))
    world.ask(rq.Register(agent="b", profile="p", parent="a"))
    world.ask(rq.Leave(agent="a"))
    assert world.ask(rq.Agents()).items == []


# ------------------------------------------------------------ after an approval


def test_an_approval_does_not_let_the_asker_pass_without_bound(world: World) -> None:
    world.acquire("cyd", "d/")
    world.refused(rq.Acquire(agent="dan", resources=["d/a.py"], priority=9))
    bound = world.live()[0].max_until
    for name in ("d/", "d/a.py"):
        world.ask(rq.RequestFile(agent="ann", resource=name, reason="now"))
    world.clock.advance(200_000)
    world.ask(rq.RequestAnswer(agent="cyd", request="U-1", verdict="approve"))
    world.tend()
    mine = [row for row in world.live() if row.locked_by == "ann"]
    assert mine and all(row.max_until <= bound for row in mine)
