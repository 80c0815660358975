"""Leases through the service: sets, modes, renewal, takeover, the line. Facts | ask | answer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.settings import Leases, Reviewing, Settings
from coordinator.words import requests as rq
from coordinator.words.clock import iso
from coordinator.words.refusals import Code, Refusal
from tests.world import World


def locked(world: World, agent: str, *names: str, **more: object) -> dict[str, object]:
    refusal = world.refused(rq.Acquire(agent=agent, resources=list(names), **more))  # type: ignore[arg-type]
    assert refusal.code is Code.LOCKED
    return {**refusal.facts, "message": refusal.message, "next": refusal.next}


@pytest.mark.parametrize(
    ("held", "asked", "free"),
    [
        ("a.py", "a.py", False),
        ("a.py", "./x/../a.py", False),
        ("a.py", "b.py", True),
        ("d/", "d/a.py", False),
        ("d/a.py", "d/", False),
        ("d/", "da.py", True),
        ("./", "anything/at/all.py", False),
        ("src/**/*.sql", "src/x/y.sql", False),
        ("src/**/*.sql", "src/x/y.py", True),
        ("src/*.py", "src/*.sql", True),
        ("src/a*", "src/*b", False),
        ("key:account:1", "key:account:1:balance", False),
        ("key:account:1", "key:account:12", True),
        ("a.py::C", "a.py::C.m", False),
        ("a.py::C", "a.py::D", True),
        ("a.py::<header>", "a.py::C", False),
        ("a.py", "a.py::C.m", False),
        ("git:index", "git:index", False),
    ],
)
def test_overlap_decides(world: World, held: str, asked: str, free: bool) -> None:
    world.acquire("ann", held)
    if free:
        world.acquire("bob", asked)
    else:
        locked(world, "bob", asked)


def test_whoever_meets_gits_turn_is_told_what_runs(world: World) -> None:
    world.acquire("ann", "git:index", description="git pull --rebase")
    refused = world.refused(rq.Acquire(agent="bob", resources=["a.py"]))
    assert refused.message.startswith("ann changes the whole working tree just now (\"git pull --rebase\"). Modify nothing there")
    assert refused.facts["conflicts"][0]["resource"] == "git:index"


def test_all_or_nothing(world: World) -> None:
    # Given one of three resources held
    world.acquire("ann", "b.py")
    # If another asks for all three
    locked(world, "bob", "a.py", "b.py", "c.py", retry=False)
    # I expect it to hold none
    assert [row.locked_by for row in world.live()] == ["ann"]


def test_shared_leases_go_together_and_upgrade_alone(world: World) -> None:
    world.acquire("ann", "a.py", mode="shared")
    world.acquire("bob", "a.py", mode="shared")
    locked(world, "ann", "a.py", retry=False)
    world.ask(rq.Release(agent="bob", resources=["a.py"]))
    got = world.acquire("ann", "a.py")
    assert got.leases[0].mode == "exclusive" and not got.leases[0].reentrant
    assert len(world.live()) == 1


def test_asking_again_is_the_same_lease_renewed(world: World) -> None:
    first = world.acquire("ann", "a.py").leases[0]
    world.clock.advance(60_000)
    again = world.acquire("ann", "a.py").leases[0]
    assert again.reentrant and again.fencing_token == first.fencing_token
    assert again.expires_at > first.expires_at


def test_who_waited_in_vain_is_told(world: World) -> None:
    world.acquire("ann", "a.py", ttl_s=3000)
    locked(world, "bob", "a.py")
    world.clock.advance(599_000)
    world.ask(rq.Sweep())
    assert world.ask(rq.Heartbeat(agent="bob")).notices == []
    world.clock.advance(2_000)
    world.ask(rq.Sweep())
    (notice,) = world.ask(rq.Heartbeat(agent="bob")).notices
    assert notice.text.startswith("You do not stand in line for a.py any more")
    assert not world.ask(rq.Locks()).waiters
    assert world.replay_differs() == []


def test_a_new_file_is_not_taken_for_a_deleted_one_whose_inode_number_it_has(world: World) -> None:
    """ext4 gives the number of a deleted file to the next new one."""
    world.write("a.py", "1\n")
    number = (world.root / "a.py").stat().st_ino
    world.acquire("ann", "a.py")
    (world.root / "a.py").unlink()
    for i in range(200):
        world.write(f"new{i}.py", "2\n")
        if (world.root / f"new{i}.py").stat().st_ino == number:
            assert world.acquire("bob", f"new{i}.py").leases[0].locked_by == "bob"
            return
    pytest.skip("this disk does not use inode numbers again soon")


def test_hard_links_symlinks_and_renames_collide(world: World) -> None:
    world.write("a.py", "x")
    os.link(world.root / "a.py", world.root / "hard.py")
    os.symlink("a.py", world.root / "soft.py")
    world.acquire("ann", "a.py")
    locked(world, "bob", "hard.py")
    locked(world, "bob", "soft.py")
    os.rename(world.root / "a.py", world.root / "renamed.py")
    os.unlink(world.root / "hard.py")
    locked(world, "bob", "renamed.py")


def test_an_editor_that_replaces_the_file_keeps_the_lease(world: World) -> None:
    world.write("a.py", "x")
    world.acquire("ann", "a.py")
    world.write("tmp", "y")
    os.replace(world.root / "tmp", world.root / "a.py")
    locked(world, "bob", "a.py")
    world.write("b.py", "another file may get the old inode number")
    world.acquire("bob", "b.py")


def test_a_release_names_a_lease_and_not_what_lies_on_the_disk_by_now(world: World) -> None:
    # Given two leases, and the one file replaced by a link to the other meanwhile
    (world.root / "a.py").write_text("a")
    (world.root / "b.py").write_text("b")
    world.acquire("ann", "a.py", "b.py")
    (world.root / "a.py").unlink()
    (world.root / "a.py").symlink_to("b.py")
    # When its holder gives back what it was told that it holds
    gone = world.ask(rq.Release(agent="ann", resources=["a.py"]))
    # Then it is that one
    assert [lease.resource for lease in gone.released] == ["a.py"]
    locked(world, "bob", "b.py", retry=False)


def test_a_printed_name_can_be_typed_below_the_root(world: World) -> None:
    """Names are printed from the root; one that is copied from there says how it is typed."""
    below = str(world.root / "src")
    world.acquire("ann", "a.py", "d.py", cwd=below)
    refusal = world.refused(rq.Release(agent="ann", resources=["src/a.py"], cwd=below))
    assert refusal.code is Code.UNKNOWN_LEASE and "`:/src/a.py`" in refusal.next
    gone = world.ask(rq.Release(agent="ann", resources=[":/src/a.py"], cwd=below))
    assert [lease.resource for lease in gone.released] == ["src/a.py"]
    assert world.refused(rq.Acquire(agent="bob", resources=[":/src/d.py"], cwd=below)).code is Code.LOCKED
    world.ask(rq.Renew(agent="ann", resources=[":/src/d.py"], cwd=str(world.root)))
    no = world.refused(rq.Release(agent="bob", resources=["d.py"], cwd=below))
    assert "`coord unlock :/src/d.py --agent ann --force`" in no.next
    assert "waits for it (W-1)" in no.message and "`coord request withdraw W-1 --agent bob`" in no.next
    nothing = world.refused(rq.Release(agent="ann", resources=["nothing.py"], cwd=below))
    assert ":/" not in nothing.next


def test_a_person_who_takes_a_file_in_its_holders_name_is_noted_and_the_holder_told(world: World) -> None:
    """As the refusal proposes, and the documents."""
    world.write("a.py", "one\n")
    world.acquire("ann", "a.py")
    world.write("a.py", "half\n")
    assert world.ask(rq.Release(agent="ann", resources=["a.py"], force=True)).reviews == ["R-1"]
    (told,) = world.ask(rq.Heartbeat(agent="ann")).notices
    assert "Your lease on a.py was released by a person (override)" in told.text and "R-1" in told.text
    (review,) = world.ask(rq.Reviews()).items
    assert review.summary.endswith("released by force (a person).")
    assert "ann released a.py (by a person, override)" in "\n".join(world.ask(rq.Explain(subject="a.py")).sentences)
    world.acquire("ann", "b.py")
    assert world.ask(rq.Release(agent="ann", resources=["b.py"])).reviews == []
    assert len(world.ask(rq.Heartbeat(agent="ann")).notices) == 1, "its own is no override"


@pytest.mark.parametrize("saved", [False, True], ids=["as it was", "saved anew"])
def test_a_file_that_is_named_stands_for_the_parts_that_the_agent_has(world: World, saved: bool) -> None:
    """Edit hooks lease regions; a person who takes the file from an agent names the file. An editor that saves gives it
    another inode, and nothing changes by that."""
    world.write("a.py", "def f():\n    return 1\n\n\ndef g():\n    return 2\n\n\ndef h():\n    return 3\n")
    world.acquire("ann", "a.py::f", "a.py::h")
    if saved:
        text = (world.root / "a.py").read_text()
        (world.root / "new").write_text(text.replace("return 1", "return 10"))
        (world.root / "new").rename(world.root / "a.py")
    world.acquire("bob", "a.py::g")
    for force in (True, False):
        other = world.refused(rq.Release(agent="maria", resources=["a.py"], force=force))
        assert other.code is Code.NOT_HOLDER and "ann (a.py::f)" in other.message and "bob (a.py::g)" in other.message
    gone = world.ask(rq.Release(agent="ann", resources=["a.py"], force=saved))
    assert {(one.resource, one.locked_by) for one in gone.released} == {("a.py::f", "ann"), ("a.py::h", "ann")}
    assert bool(world.ask(rq.Reviews()).items) is saved
    assert world.refused(rq.Release(agent="maria", resources=["a.py"])).code is Code.NOT_HOLDER
    assert [one.resource for one in world.ask(rq.Release(agent="maria", resources=["a.py"], force=True)).released] == ["a.py::g"]
    world.acquire("ann", "s", mode="shared")
    world.acquire("bob", "s", mode="shared")
    assert len(world.ask(rq.Release(agent="maria", resources=["s"], force=True)).released) == 2, "all who share it"


def test_a_part_of_what_is_leased_is_not_leased_by_itself(world: World) -> None:
    world.acquire("ann", "d/")
    own = world.refused(rq.Release(agent="ann", resources=["d/1.py"]))
    assert own.code is Code.UNKNOWN_LEASE and "You hold d/, which overlaps it" in own.message and own.next.startswith("`coord unlock d/ --agent ann`")
    assert str(world.refused(rq.Renew(agent="ann", resources=["d/x.py"])).next).startswith("`coord renew d/ --agent ann`")
    other = world.refused(rq.Release(agent="bob", resources=["d/1.py"]))
    assert "ann holds d/" in other.message and "coord locks" in other.next
    assert "Nobody holds" in world.refused(rq.Release(agent="bob", resources=["e.py"])).message


@pytest.mark.parametrize(("held", "named"), [("docs/*.md", "docs"), ("tests/*", "tests/"), ("*.toml", "."), ("**/*.py", "./"), ("app/templates/**", "app/templates")])
def test_a_directory_that_is_named_is_no_glob_in_it(world: World, held: str, named: str) -> None:
    """`coord unlock docs` gave `docs/*.md` back, and with --force another's."""
    world.write("docs/a.md", "")
    world.acquire("ann", held, "x.py")
    for request in (rq.Release(agent="ann", resources=[named]), rq.Renew(agent="ann", resources=[named]),
                    rq.Release(agent="root", resources=[named], force=True)):
        refused = world.refused(request)
        assert refused.code is Code.UNKNOWN_LEASE and "lease on" in refused.message, refused
        assert {row.file_path for row in world.live()} == {held, "x.py"}
    world.acquire("ann", named)
    world.ask(rq.Release(agent="ann", resources=[named]))
    assert {row.file_path for row in world.live()} == {held, "x.py"}


def test_braces_that_may_be_meant_as_a_pattern_are_told(world: World) -> None:
    world.write("odd{a,b}.py", "x = 1\n")
    for name, told in (("src/{a,b}.py", True), ("src/*.{js,ts}", True), ("src/{a,b}/", True), ("{{slug}}/a.py", False),
                       ("odd{a,b}.py", False), ("src/*.py", False)):
        got = world.acquire("ann", name)
        assert any("braces stand for themselves" in one for one in got.warnings) is told, name
    for name, told in (("src/[ab].py", False), ("src/[a-z].py", True), ("src/[0-9][a-z]/x", True), ("app/[user-id]/p.ts", False), ("app/[a-z]*.ts", False)):
        got = world.acquire("ann", name)
        assert any("brackets stand for themselves" in one for one in got.warnings) is told, name


def test_who_gives_back_the_right_to_write_goes_on_reading(world: World) -> None:
    """In one step: nobody who waits to write comes between, and whoever waits to read is served."""
    world.write("d/a.py", "one\n")
    world.acquire("ann", "d/", "key:k")
    locked(world, "cho", "d/a.py")
    locked(world, "bob", "key:k", mode="shared")
    world.write("d/a.py", "two\n")
    told = world.ask(rq.Release(agent="ann", resources=["d/", "key:k"], keep_shared=True)).released
    assert [(one.resource, one.mode, one.locked_by) for one in told] == [("d/", "shared", "ann"), ("key:k", "shared", "ann")]
    assert all(one.lease_token for one in told)
    assert {(one.resource, one.mode, one.locked_by) for one in world.ask(rq.Locks()).items} == {
        ("d/", "shared", "ann"), ("key:k", "shared", "ann"), ("key:k", "shared", "bob")}
    # Asked again it changes nothing; nobody's work is judged that was finished with the right to write
    assert world.ask(rq.Release(agent="ann", resources=["d/"], keep_shared=True)).released[0].fencing_token == told[0].fencing_token
    world.ask(rq.Leave(agent="ann", clean=False))
    assert world.ask(rq.Reviews()).items == []


def test_a_task_keeps_the_right_to_write_that_it_needs(world: World) -> None:
    world.acquire("ann", "a.py")
    world.ask(rq.TaskAdd(title="one", resources=["a.py"]))
    world.ask(rq.TaskClaim(agent="ann"))
    told = world.ask(rq.Release(agent="ann", resources=["a.py"], keep_shared=True)).released
    assert [(one.mode, one.task) for one in told] == [("exclusive", "T-1")]
    world.ask(rq.TaskDone(agent="ann", task="T-1"))
    assert world.ask(rq.Locks()).items == []


def test_nobody_makes_anothers_lease_a_shared_one(world: World) -> None:
    world.acquire("ann", "a.py")
    assert world.refused(rq.Release(agent="bob", resources=["a.py"], keep_shared=True)).code is Code.NOT_HOLDER
    refusal = world.refused(rq.Release(agent="ann", resources=["a.py"], keep_shared=True, force=True))
    assert refusal.code is Code.INVALID and refusal.facts["field"] == "keep_shared"
    assert [one.mode for one in world.ask(rq.Locks()).items] == ["exclusive"]


def test_a_name_given_twice_is_released_once(world: World) -> None:
    world.acquire("ann", "a.py", "d/")
    gone = world.ask(rq.Release(agent="ann", resources=["a.py", "d/", "a.py", "./a.py"]))
    assert sorted(lease.resource for lease in gone.released) == ["a.py", "d/"]
    world.acquire("ann", "a.py", "d/")
    gone = world.ask(rq.Release(agent="ann", resources=["a.py", "d/", "a.py"]))
    assert sorted(lease.resource for lease in gone.released) == ["a.py", "d/"]


def test_a_lapsed_lease_is_dead_though_nobody_swept(world: World) -> None:
    # Given partial work under a lease that ran out
    world.write("a.py", "before\n")
    old = world.acquire("ann", "a.py", ttl_s=10, description="half a refactoring").leases[0]
    world.write("a.py", "half\n")
    world.clock.advance(10_000)
    # If another asks
    new = world.acquire("bob", "a.py")
    # I expect it granted, the work flagged in the same transaction, the holder told, its token dead
    assert new.leases[0].fencing_token > old.fencing_token
    assert "review" in new.warnings[0]
    (review,) = world.ask(rq.Reviews()).items
    assert review.agent == "ann" and review.files[0].change == "modified"
    notices = world.ask(rq.Heartbeat(agent="ann")).notices
    assert [n.kind for n in notices] == ["lapsed"] and review.review in notices[0].text
    stale = world.refused(
        rq.Release(agent="bob", resources=["a.py"], lease_token=old.lease_token)
    )
    assert stale.code is Code.STALE_TOKEN


def test_who_waits_to_write_what_it_reads_keeps_it_for_as_long(world: World) -> None:
    """The short time of an offer is for who has nothing yet."""
    for one in ("ann", "bob"):
        world.acquire(one, "a.py", mode="shared", ttl_s=1800)
    (had,) = [row for row in world.live() if row.locked_by == "ann"]
    assert world.refused(rq.Acquire(agent="ann", resources=["a.py"], reentrant=True)).code is Code.LOCKED
    world.ask(rq.Release(agent="bob", resources=["a.py"]))
    world.settle()
    (lease,) = world.live()
    assert (lease.locked_by, lease.mode, lease.expires_at) == ("ann", "exclusive", had.expires_at)
    (told,) = [one.text for one in world.ask(rq.Heartbeat(agent="ann")).notices]
    assert lease.expires_at[11:16] in told


def test_quarantine_refuses_what_is_under_review(tmp_path: Path) -> None:
    world = World(tmp_path, Settings(review=Reviewing(quarantine=True)))
    world.acquire("ann", "a.py", ttl_s=1)
    world.write("a.py", "half")
    world.clock.advance(1_000)
    refusal = world.refused(rq.Acquire(agent="bob", resources=["a.py"]))
    assert refusal.code is Code.REVIEW_OPEN and refusal.facts["reviews"] == ["R-1"]
    world.close()


def test_renewal_never_passes_max_hold(tmp_path: Path) -> None:
    world = World(tmp_path, Settings(leases=Leases(max_hold_s=100)))
    lease = world.acquire("ann", "a.py", ttl_s=60).leases[0]
    for _ in range(5):
        world.clock.advance(20_000)
        if world.live():
            world.ask(rq.Heartbeat(agent="ann", progress="typing"))
    assert not world.live(), "aliveness alone held it past max_hold"
    assert world.refused(rq.Renew(agent="ann", resources=["a.py"])).code is Code.STALE_TOKEN
    assert lease.fencing_token == 1
    world.close()


def test_only_progress_renews(world: World) -> None:
    world.acquire("ann", "a.py", ttl_s=40)
    for _ in range(2):
        world.clock.advance(20_000)
        world.ask(rq.Heartbeat(agent="ann"))
    assert not world.live(), "a hung agent that only lives kept its lease"


def test_time_that_the_machine_slept_is_given_back(world: World) -> None:
    world.acquire("ann", "a.py", ttl_s=60)
    world.task("t", "b.py")
    world.ask(rq.TaskClaim(agent="ann", ttl_s=60))
    world.sleep_machine(8 * 3600 * 1000)
    assert len(world.live()) == 2
    world.ask(rq.TaskDone(agent="ann", task="T-1"))
    assert world.replay_differs() == []


# ------------------------------------------------------------------ the line


def test_a_waiter_gets_it_when_it_is_released_and_is_told(world: World) -> None:
    world.acquire("ann", "a.py")
    first = locked(world, "bob", "a.py")
    assert first["queue_position"] == 1
    second = locked(world, "cyd", "a.py")
    assert second["queue_position"] == 2
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    assert [row.locked_by for row in world.live()] == ["bob"]
    (notice,) = world.ask(rq.Heartbeat(agent="bob")).notices
    assert notice.kind == "granted" and notice.data["waited_as"] == first["acquisition_id"]
    # delivered once: kept until acknowledged, then gone
    assert world.ask(rq.Heartbeat(agent="bob", ack=notice.notice)).notices == []


def test_priority_then_age(world: World) -> None:
    world.acquire("ann", "a.py")
    locked(world, "bob", "a.py")
    world.clock.advance(1_000)
    locked(world, "cyd", "a.py", priority=5)
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    assert world.live()[0].locked_by == "cyd"
    world.ask(rq.Release(agent="cyd", resources=["a.py"]))
    assert world.live()[0].locked_by == "bob"


def test_a_stream_of_small_requests_never_starves_a_large_one(world: World) -> None:
    # Given two holders and one who wants both their files
    world.acquire("ann", "a.py")
    world.acquire("bob", "b.py")
    locked(world, "big", "a.py", "b.py")
    # If small requests keep coming for whatever is free
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    for name in ("s1", "s2", "s3"):
        refused = locked(world, name, "a.py")
        assert refused["conflicts"][0]["waiting"]  # type: ignore[index]
    world.ask(rq.Release(agent="bob", resources=["b.py"]))
    # I expect the large one to be served first
    assert {row.locked_by for row in world.live()} == {"big"}


def test_patience_beats_a_stream_of_urgent_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leases, "age_step_s", 1.0)
    world = World(tmp_path, Settings(leases=Leases(line_s=3600)))
    world.acquire("ann", "a.py")
    locked(world, "patient", "a.py")
    holder = "ann"
    for i in range(20):
        world.clock.advance(1_000)
        locked(world, f"urgent-{i}", "a.py", priority=10)
        world.ask(rq.Release(agent=holder, resources=["a.py"]))
        holder = world.live()[0].locked_by
        if holder == "patient":
            world.close()
            return
    raise AssertionError("the patient waiter was never served")


def test_a_waiter_who_waits_for_me_does_not_hold_me_back(world: World) -> None:
    world.acquire("ann", "b.py")
    locked(world, "bob", "a.py", "b.py")
    world.acquire("ann", "a.py")


def test_a_circle_is_named(world: World) -> None:
    world.acquire("ann", "a.py")
    world.acquire("bob", "b.py")
    locked(world, "ann", "b.py")
    told = locked(world, "bob", "a.py")
    assert told["deadlock"] == ["ann"] and "wait for each other" in str(told["message"])


def test_a_grant_to_one_who_went_away_is_short(world: World) -> None:
    world.acquire("ann", "a.py")
    locked(world, "bob", "a.py", ttl_s=3600)
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    world.clock.advance(130_000)
    assert not world.live()


def test_waiters_leave_the_line_when_their_time_is_over(world: World) -> None:
    world.acquire("ann", "a.py", ttl_s=86_000)
    locked(world, "bob", "a.py")
    world.clock.advance(601_000)
    world.ask(rq.Sweep())
    assert world.ask(rq.Locks()).waiters == []


# ------------------------------------------------------------------ redirect


def test_a_blocked_agent_is_sent_to_another_unlocked_task(world: World) -> None:
    archive = world.root / "context_archive"
    archive.mkdir()
    (archive / "design.md").write_text(
        "# Design\n\n## 4 Utils\n\n### 4.2 Normalization architecture\n\n"
        "`utils/constants.py` holds the factors; they are read once.\n"
    )
    world.service.archive.refresh()
    world.task("the same file", "utils/constants.py", priority=9)
    free = world.task("Add the AOI report parser", "parsers/aoi.py")
    world.acquire("agent-a", "utils/constants.py", description="refactoring the constants")
    told = locked(world, "agent-b", "utils/constants.py")
    assert told["redirect"]["task"] == free  # type: ignore[index]
    assert told["next"] == f"coord task claim {free} --agent agent-b"
    assert told["excerpts"][0]["section"] == "4.2"  # type: ignore[index]
    for part in ("agent-a", "refactoring the constants", '4.2 "Normalization architecture"', free):
        assert part in str(told["message"])
    claimed = world.ask(rq.TaskClaim(agent="agent-b", task=free))
    assert [lease.resource for lease in claimed.leases] == ["parsers/aoi.py"]


@given(st.lists(st.sampled_from(["a.py", "b.py", "c.py", "d/"]), max_size=4))
def test_what_is_offered_can_be_claimed(names: list[str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        for name in ("a.py", "b.py", "c.py", "d/x.py"):
            world.task(name, name)
        world.acquire("ann", "a.py", *names)
        told = locked(world, "bob", "a.py")
        if told["redirect"] is not None:
            world.ask(rq.TaskClaim(agent="bob", task=told["redirect"]["task"]))  # type: ignore[index]
        world.close()


def test_a_directory_full_of_others_leases_is_refused_without_reading_them_all(world: World) -> None:
    for i in range(4):
        world.acquire(f"w{i}", *[f"d/{i}_{j}.py" for j in range(50)])
    refused = locked(world, "big", "d/")
    assert len(refused["conflicts"]) == 20  # type: ignore[arg-type]
    # lapsed ones among them are closed, all of them, before it is granted
    world.clock.advance(3_600_000)
    assert world.acquire("big", "d/").leases[0].locked_by == "big"
    assert len(world.live()) == 1 and world.replay_differs() == []


def test_a_place_in_line_ends_at_its_instant_though_nobody_tidied(world: World) -> None:
    world.acquire("ann", "a.py", ttl_s=30)
    locked(world, "bob", "a.py")
    world.clock.advance(700_000)
    world.acquire("cyd", "a.py")


def test_asking_again_keeps_ones_place(world: World) -> None:
    world.acquire("ann", "a.py")
    locked(world, "bob", "a.py")
    world.clock.advance(5_000)
    locked(world, "cyd", "a.py")
    world.clock.advance(5_000)
    assert locked(world, "bob", "a.py")["queue_position"] == 1
    assert [w.agent for w in world.ask(rq.Locks()).waiters] == ["bob", "cyd"]
    world.ask(rq.Release(agent="ann", resources=["a.py"]))
    assert world.live()[0].locked_by == "bob"
    assert world.replay_differs() == []


def test_an_agent_at_work_is_not_sent_into_its_own_files(world: World) -> None:
    own = world.task("touches what bob holds", "mine.py", priority=9)
    other = world.task("elsewhere", "else.py")
    world.acquire("bob", "mine.py")
    world.acquire("ann", "a.py")
    assert locked(world, "bob", "a.py")["redirect"]["task"] == other  # type: ignore[index]
    # (but when it asks for its next task, that one is the best)
    assert world.ask(rq.TaskClaim(agent="bob")).task.task == own


def test_the_place_in_line_ends_with_the_task_it_was_for(world: World) -> None:
    task = world.task("t", "b.py")
    world.acquire("ann", "a.py")
    world.ask(rq.TaskClaim(agent="bob", task=task))
    locked(world, "bob", "a.py", task=task)
    world.ask(rq.TaskFail(agent="bob", task=task, blocked=["a.py"]))
    assert world.ask(rq.Locks()).waiters == []


def test_what_explains_it_is_shown_once_a_session(world: World) -> None:
    """A model keeps what it has read; of a new session, a changed text and after an hour it is not known that it has."""
    world.write("src/parser.py", "x = 1\n")
    world.write("context_archive/a.md", "# House\n\n## 1. Parser\n\n`src/parser.py` reads twice.\n")
    world.service.archive.refresh()
    world.acquire("ann", "src/parser.py", ttl_s=3600 * 3)

    def shown(agent: str = "bob") -> bool:
        said = world.refused(rq.Acquire(agent=agent, resources=["src/parser.py"])).message
        assert 'See context archive section 1 "Parser" (context_archive/a.md)' in said
        return "reads twice" in said

    assert [shown(), shown(), shown("eve"), shown()] == [True, False, True, False]
    world.clock.advance(3_590_000)
    assert not shown()
    world.ask(rq.Renew(agent="ann"))
    world.clock.advance(20_000)
    assert shown() and not shown()
    world.write("context_archive/a.md", "# House\n\n## 1. Parser\n\n`src/parser.py` reads twice, and keeps the text.\n")
    world.service.archive.refresh()
    assert shown() and not shown()
    world.ask(rq.Register(agent="bob"))
    assert shown() and world.replay_differs() == []


def test_what_is_asked_about_narrows_who_waits_too_and_the_limit_counts_what_overlaps(world: World) -> None:
    for n in range(30):
        world.acquire("ann", f"other-{n}.py")
    world.acquire("bob", "src/wanted.py")
    world.refused(rq.Acquire(agent="cyd", resources=["src/wanted.py"]))
    world.refused(rq.Acquire(agent="dan", resources=["other-3.py"]))
    about = world.ask(rq.Locks(resource="src/", limit=1))
    assert [one.resource for one in about.items] == ["src/wanted.py"] and about.next is None
    assert [(one.agent, one.position) for one in about.waiters] == [("cyd", 1)]
    assert [one.agent for one in world.ask(rq.Locks(agent="ann", limit=1)).waiters] == ["dan"]
    assert [one.agent for one in world.ask(rq.Locks(agent="cyd")).waiters] == ["cyd"]
    some = world.ask(rq.Locks(resource="other-*", limit=20))
    rest = world.ask(rq.Locks(resource="other-*", limit=20, after=int(some.next)))
    assert (len(some.items), len(rest.items), rest.next) == (20, 10, None)


def test_leases_are_listed_by_pages_whatever_they_are_about(world: World) -> None:
    for n in range(7):
        world.acquire(f"a{n % 2}", f"d/f{n}.py")
    world.acquire("ann", "key:x")
    for about, agent, wanted in ((None, None, 8), ("./", None, 7), ("d/", None, 7), ("d/", "a0", 4), ("d/f3.py", None, 1), ("e/", None, 0), ("key:x", None, 1)):
        found: list[str] = []
        after, pages = 0, 0
        while True:
            page = world.ask(rq.Locks(resource=about, agent=agent, limit=3, after=after))
            found += [one.resource for one in page.items]
            pages += 1
            if page.next is None:
                break
            after = int(page.next)
        assert len(found) == len(set(found)) == wanted and pages <= 3, (about, agent, found)


@pytest.mark.parametrize(("cwd", "asked", "names", "typed"), [
    ("", "./", ["a b.py", "s/c.py", "s/t/d.py", "s/t/d.py::f"], "'a b.py' s/c.py s/t/d.py s/t/d.py::f"),
    ("", "s/", ["s/c.py", "s/t/d.py", "s/t/d.py::f"], "s/c.py s/t/d.py s/t/d.py::f"),
    ("s", "./", ["s/c.py", "s/t/d.py", "s/t/d.py::f"], ":/s/c.py :/s/t/d.py :/s/t/d.py::f"),
    ("s", "t/", ["s/t/d.py", "s/t/d.py::f"], ":/s/t/d.py :/s/t/d.py::f"),
    ("s", "*.py", ["s/c.py"], ":/s/c.py"),
])
def test_a_directory_that_is_not_leased_names_all_ones_leases_in_it(world: World, cwd: str, asked: str, names: list[str], typed: str) -> None:
    world.write("s/t/d.py", "def f():\n    pass\n\ndef g():\n    pass\n")
    world.acquire("bob", "0.py", "s/e.py")
    world.acquire("ann", "a b.py", "s/c.py", "s/t/d.py::f")
    where = str(world.root / cwd)
    for name in ("s/t/d.py",):
        world.acquire("ann", name)
    for request, does in ((rq.Release(agent="ann", resources=[asked], cwd=where), "coord unlock"), (rq.Renew(agent="ann", resources=[asked], cwd=where), "coord renew")):
        refusal = world.refused(request)
        assert refusal.code is Code.UNKNOWN_LEASE and "0.py" not in refusal.message and "s/e.py" not in refusal.message
        assert sorted(name for name in ("a b.py", "s/c.py", "s/t/d.py", "s/t/d.py::f") if name in refusal.message) == names, refusal.message
        assert str(refusal.next).startswith(f"`{does} {typed} --agent ann` "), refusal.next
    assert len(world.live()) == 6


@pytest.mark.parametrize("other", ["a.py::nosuch", "a.py::C", "a.py::F", "../repo space ü/a.py::nosuch"])
def test_a_region_that_is_not_leased_gives_no_other_of_its_file_back(world: World, other: str) -> None:
    world.write("a.py", "def f():\n    return 1\n\n\ndef g():\n    return 1\n")
    world.acquire("ann", "a.py::f", "a.py::g", ttl_s=60)
    until = world.live()[0].expires_at
    world.clock.advance(1000)
    for request in (rq.Release(agent="ann", resources=[other]), rq.Renew(agent="ann", resources=[other]), rq.Release(agent="ann", resources=[other], force=True)):
        assert world.refused(request).code is Code.UNKNOWN_LEASE
    assert [(row.file_path, row.expires_at) for row in world.live()] == [("a.py::f", until), ("a.py::g", until)]
    os.link(world.root / "a.py", world.root / "b.py")
    assert [one.resource for one in world.ask(rq.Release(agent="ann", resources=["b.py::f"])).released] == ["a.py::f"], "its other name"


def test_what_is_advised_of_regions_below_the_root_can_be_typed_there(world: World) -> None:
    world.write("src/a.py", "def f():\n    return 1\n")
    below = f"{world.root}/src"
    refusal = world.refused(rq.Acquire(agent="ann", resources=["a.py::nosuch"], cwd=below))
    assert "`coord regions :/src/a.py` lists them; `coord lock --new :/src/a.py::nosuch --agent ann`" in str(refusal.next)
    change = rq.ProposedChange(resource="a.py::nosuch", version="0" * 8, content="x")
    assert "`coord regions :/src/a.py`" in str(world.refused(rq.Propose(agent="ann", changes=[change], cwd=below)).next)


@pytest.mark.parametrize("sets", [[["a.py"], ["a.py", "b.py"]], [["a.py", "b.py"], ["a.py"]], [["a.py"], ["a.py"]], [["d/"], ["d/x.py"]]])
def test_who_waits_at_two_places_and_is_away_is_granted_all_for_as_long_as_at_one(world: World, sets: list[list[str]]) -> None:
    """The second grant took the first for something that its holder uses, and renewed it for half an hour."""
    world.acquire("ann", *sets[0])
    for names in sets:
        with pytest.raises(Refusal):
            world.acquire("bob", *names)
    offered = iso(world.clock.now_ms() + 120_000)
    world.ask(rq.Release(agent="ann", resources=sets[0]))
    assert {row.locked_by for row in world.live()} == {"bob"} and len(world.live()) >= len(set(sets[0]) | set(sets[1])) - 1
    assert {row.expires_at for row in world.live()} == {offered}
    world.acquire("bob", *sets[0])
    assert {row.expires_at for row in world.live() if row.file_path in sets[0]} == {iso(world.clock.now_ms() + 1_800_000)}, "it is used"
