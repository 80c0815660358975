"""One holder, one name, two working trees: each copy is leased by itself, and half-done work in each is flagged."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.files.content import digest
from coordinator.kernel.repository_files import Bytes
from coordinator.settings import Settings
from coordinator.slices.guard import ended_rights, seen_writes, shell_commands
from coordinator.slices.guard.adoption import adopt
from coordinator.slices.guard.attribution import Running
from coordinator.store.rows import LeaseRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.sessions import Session
from tests.world import World

SOURCE = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
NAMES = ["src/a.py", "docs/", "docs/*.md", "src/a.py::f"]


def by_tree(found: tuple[str, str | None]) -> tuple[str, str]:
    return found[0], found[1] or ""


class Trees:
    """A world with a linked worktree beside it; `cwd` by its name."""

    def __init__(self, tmp_path: Path, settings: Settings | None = None) -> None:
        self.world = World(tmp_path / "main", settings or Settings(), git=True)
        git = ["git", "-C", str(self.world.root), "-c", "user.name=n", "-c", "user.email=e@x"]
        self.world.write("src/a.py", SOURCE)
        self.world.write("docs/one.md", "one\n")
        for words in (["add", "."], ["commit", "-qm", "x"], ["worktree", "add", "-q", "--detach", str(tmp_path / "w")]):
            subprocess.run([*git, *words], check=True, capture_output=True)
        self.cwd = {"main": str(self.world.root), "w": str(tmp_path / "w")}

    def lock(self, tree: str, *names: str, agent: str = "bob", **more: object) -> rq.Acquired:
        return self.world.acquire(agent, *names, cwd=self.cwd[tree], **more)

    def half(self, tree: str, name: str) -> str:
        """Something half done in what is leased; the file that it is in."""
        path = {"docs/": "docs/one.md", "docs/*.md": "docs/one.md"}.get(name, "src/a.py")
        file = Path(self.cwd[tree], path)
        file.write_text(file.read_text().replace("return 1", "return 1 +").replace("one", f"half in {tree}"))
        return path

    def rows(self) -> list[LeaseRow]:
        return self.world.live()

    def trees(self) -> list[str | None]:
        return [row.worktree for row in self.rows()]

    def reviewed(self) -> list[tuple[str, str | None]]:
        shown = [self.world.ask(rq.ReviewShow(review=one.review)) for one in self.world.ask(rq.Reviews()).items]
        return sorted(((file.path, file.worktree) for review in shown for file in review.files), key=by_tree)


@pytest.fixture
def trees(tmp_path: Path) -> Iterator[Trees]:
    made = Trees(tmp_path)
    yield made
    assert made.world.replay_differs() == []
    made.world.close()


def in_tree(trees: Trees, tree: str) -> str | None:
    return None if tree == "main" else trees.cwd[tree]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("first", "second"), [("w", "main"), ("main", "w")])
def test_each_copy_has_a_lease_of_its_own(trees: Trees, name: str, first: str, second: str) -> None:
    one, two = trees.lock(first, name).leases[0], trees.lock(second, name).leases[0]
    assert not two.reentrant and one.fencing_token != two.fencing_token
    assert trees.trees() == [in_tree(trees, first), in_tree(trees, second)]
    # If either is asked for again, it is that one
    for tree, lease in ((first, one), (second, two)):
        again = trees.lock(tree, name).leases[0]
        assert again.reentrant and again.fencing_token == lease.fencing_token
    # And nobody else gets it in any tree
    for tree in (first, second):
        refused = trees.world.refused(rq.Acquire(agent="ann", resources=[name], cwd=trees.cwd[tree], retry=False))
        assert refused.code is Code.LOCKED and len(refused.facts["conflicts"]) == 1
        assert "more of what you asked for" not in refused.message


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("where", ["main", "w", "both"])
@pytest.mark.parametrize("order", [("w", "main"), ("main", "w")])
def test_half_done_work_in_each_is_flagged(trees: Trees, name: str, where: str, order: tuple[str, str]) -> None:
    for tree in order:
        trees.lock(tree, name)
    changed = ["main", "w"] if where == "both" else [where]
    path, *_ = [trees.half(tree, name) for tree in changed]
    done = trees.world.ask(rq.Release(agent="bob", resources=[name], force=True))
    assert [one.resource for one in done.released] == [name, name] and trees.rows() == []
    assert trees.reviewed() == sorted(((path, in_tree(trees, tree)) for tree in changed), key=by_tree)


def test_both_lapse_and_each_is_flagged(trees: Trees) -> None:
    for tree in ("main", "w"):
        trees.lock(tree, "src/a.py", ttl_s=5)
        trees.half(tree, "src/a.py")
    trees.world.clock.advance(5_000)
    trees.world.ask(rq.Sweep())
    assert trees.reviewed() == [("src/a.py", None), ("src/a.py", trees.cwd["w"])]
    said = [one.text for one in trees.world.ask(rq.Heartbeat(agent="bob")).notices]
    assert not any("src/a.py and src/a.py" in text for text in said)


def test_a_task_that_fails_leaves_what_was_done_in_both(trees: Trees) -> None:
    task = trees.world.task("do it", "src/a.py")
    trees.world.ask(rq.Register(agent="bob"))
    trees.world.ask(rq.TaskClaim(agent="bob", task=task, cwd=trees.cwd["w"]))
    trees.lock("main", "src/a.py", task=task)
    for tree in ("main", "w"):
        trees.half(tree, "src/a.py")
    trees.world.ask(rq.TaskFail(agent="bob", task=task, reason="no"))
    assert trees.reviewed() == [("src/a.py", None), ("src/a.py", trees.cwd["w"])]
    assert trees.rows() == []


@pytest.mark.parametrize("first", ["main", "w"])
def test_an_agents_edits_in_both_trees(trees: Trees, first: str) -> None:
    ann = Session(trees.world, "ann")
    where = {"main": "docs/one.md", "w": f"{trees.cwd['w']}/docs/one.md"}
    order = [first, "w" if first == "main" else "main"]
    for tree in order:
        ann.read(where[tree])
        assert ann.edit(where[tree], "whole = 1\n") == ""
    assert sorted(map(str, trees.trees())) == sorted(["None", trees.cwd["w"]])
    trees.world.ask(rq.Release(agent=ann.name, resources=["docs/one.md"], force=True))
    assert trees.reviewed() == [("docs/one.md", None), ("docs/one.md", trees.cwd["w"])]


def test_a_claim_in_a_worktree_and_edits_in_main(trees: Trees) -> None:
    ann = Session(trees.world, "ann")
    ann.read("docs/one.md")
    task = trees.world.task("do it", "docs/one.md")
    trees.world.ask(rq.TaskClaim(agent=ann.name, task=task, cwd=trees.cwd["w"]))
    assert ann.edit("docs/one.md", "half = 1\n") == ""
    assert [(row.worktree, row.task_id) for row in trees.rows()] == [(trees.cwd["w"], task), (None, task)]
    trees.world.ask(rq.TaskFail(agent=ann.name, task=task, reason="no"))
    assert trees.reviewed() == [("docs/one.md", None)]


def test_what_it_holds_in_one_tree_is_in_no_ones_way_in_the_other(trees: Trees) -> None:
    """A directory in one and a file of it in the other, in both orders."""
    for first, second in (("docs/", "docs/one.md"), ("docs/one.md", "docs/")):
        trees.lock("w", first)
        trees.lock("main", second)
        trees.half("main", "docs/")
        trees.world.ask(rq.Release(agent="bob", resources=[second], force=True))
        assert trees.reviewed() == [("docs/one.md", None)]
        trees.world.write("docs/one.md", "one\n")
        for one in trees.world.ask(rq.Reviews()).items:
            trees.world.ask(rq.ReviewDecide(review=one.review, verdict="keep"))
        trees.world.ask(rq.Release(agent="bob", resources=[first]))


@pytest.mark.parametrize("mode", ["exclusive", "shared"])
def test_a_shared_lease_and_an_upgrade_are_each_trees_own(trees: Trees, mode: str) -> None:
    trees.lock("main", "src/a.py", mode="shared")
    trees.lock("w", "src/a.py", mode=mode)
    assert len(trees.rows()) == 2
    trees.lock("main", "src/a.py")
    trees.lock("w", "src/a.py")
    assert [(row.mode, row.worktree) for row in trees.rows()].count(("exclusive", None)) == 1
    assert len(trees.rows()) == 2
    given = trees.world.ask(rq.Release(agent="bob", resources=["src/a.py"], keep_shared=True))
    assert [one.mode for one in given.released] == ["shared", "shared"] and len(trees.rows()) == 2


def test_renew_and_unlock_mean_all_rows_of_the_name(trees: Trees) -> None:
    tokens = [trees.lock(tree, "src/a.py", ttl_s=60).leases[0].fencing_token for tree in ("w", "main")]
    renewed = trees.world.ask(rq.Renew(agent="bob", resources=["src/a.py"], ttl_s=120, cwd=trees.cwd["w"]))
    assert [one.fencing_token for one in renewed.leases] == tokens
    assert {row.expires_at for row in trees.rows()} == {one.expires_at for one in renewed.leases}
    released = trees.world.ask(rq.Release(agent="bob", resources=["src/a.py"], cwd=trees.cwd["w"]))
    assert [one.fencing_token for one in released.released] == tokens and trees.rows() == []


@pytest.mark.parametrize("at", [0, 1])
def test_one_row_is_ended_by_its_own_token_or_acquisition(trees: Trees, at: int) -> None:
    def got() -> list[rq.Acquired]:
        return [trees.lock(tree, "src/a.py") for tree in ("w", "main")]

    leases = [one.leases[0] for one in got()]
    kept = leases[1 - at]
    trees.world.ask(rq.Renew(agent="bob", resources=["src/a.py"], lease_token=leases[at].lease_token))
    done = trees.world.ask(rq.Release(agent="bob", resources=["src/a.py"], lease_token=leases[at].lease_token))
    assert [one.fencing_token for one in done.released] == [leases[at].fencing_token]
    assert [row.fencing_token for row in trees.rows()] == [kept.fencing_token]
    old = trees.world.refused(rq.Release(agent="bob", resources=["src/a.py"], lease_token=leases[at].lease_token))
    assert old.code is Code.STALE_TOKEN
    again = got()
    trees.world.ask(rq.Release(agent="bob", acquisition_id=again[at].acquisition_id))
    assert len(trees.rows()) == 1


def test_when_the_first_ends_the_second_stays_and_the_first_can_be_had_again(trees: Trees) -> None:
    first, second = trees.lock("w", "src/a.py"), trees.lock("main", "src/a.py")
    trees.world.ask(rq.Release(agent="bob", acquisition_id=first.acquisition_id))
    assert trees.world.refused(rq.Acquire(agent="ann", resources=["src/a.py"], retry=False)).code is Code.LOCKED
    assert not trees.lock("w", "src/a.py").leases[0].reentrant
    trees.world.ask(rq.Release(agent="bob", acquisition_id=second.acquisition_id))
    assert trees.trees() == [trees.cwd["w"]]
    trees.lock("main", "src/a.py")
    assert len(trees.rows()) == 2


def test_a_name_in_two_trees_in_one_request_is_refused(trees: Trees) -> None:
    """It would be one place in line, and one answer: half of it would be forgotten."""
    refused = trees.world.refused(rq.Acquire(agent="bob", resources=["src/a.py", f"{trees.cwd['w']}/src/a.py"]))
    assert refused.code is Code.INVALID and trees.rows() == []


def test_coord_locks_shows_which_tree(trees: Trees) -> None:
    for tree in ("main", "w"):
        trees.lock(tree, "src/a.py")
    assert [one.worktree for one in trees.world.ask(rq.Locks()).items] == [None, trees.cwd["w"]]


def test_asked_to_let_go_it_gives_up_all_rows(trees: Trees) -> None:
    for tree in ("w", "main"):
        trees.lock(tree, "src/a.py")
    asked = trees.world.ask(rq.RequestFile(agent="ann", resource="src/a.py", reason="why"))
    assert asked.releases == ["src/a.py"]
    refused = trees.world.refused(rq.RequestAnswer(agent="bob", request=asked.request, verdict="coexist"))
    assert "worktree" in refused.message
    told = trees.world.ask(rq.RequestAnswer(agent="bob", request=asked.request, verdict="approve"))
    assert told.granted and "src/a.py and src/a.py" not in told.message
    assert [(row.locked_by, row.worktree) for row in trees.rows()] == [("ann", None)]


def test_narrowing_keeps_a_part_in_the_tree_that_is_meant(trees: Trees) -> None:
    trees.world.write("docs/two.md", "two\n")
    Path(trees.cwd["w"], "docs/two.md").write_text("two\n")
    for tree in ("w", "main"):
        trees.lock(tree, "docs/")
    trees.lock("w", "docs/two.md")
    asked = trees.world.ask(rq.RequestFile(agent="ann", resource="docs/one.md", reason="why"))
    told = trees.world.ask(rq.RequestAnswer(agent="bob", request=asked.request, verdict="narrow", keep=["docs/two.md"],
                                            cwd=trees.cwd["main"]))
    assert told.granted
    assert sorted((row.locked_by, row.file_path, str(row.worktree)) for row in trees.rows()) == [
        ("ann", "docs/one.md", "None"), ("bob", "docs/two.md", trees.cwd["w"]), ("bob", "docs/two.md", "None")]


def test_a_task_that_is_handed_over_takes_the_other_trees_copy_with_it(trees: Trees) -> None:
    """Else two would hold the same name."""
    for name in ("bob", "ann"):
        trees.world.ask(rq.Register(agent=name))
    task = trees.world.task("do it", "src/a.py")
    trees.world.ask(rq.TaskClaim(agent="bob", task=task, cwd=trees.cwd["w"]))
    trees.lock("main", "src/a.py")
    asked = trees.world.ask(rq.RequestFile(agent="ann", resource=f"task:{task}", reason="why"))
    trees.world.ask(rq.RequestAnswer(agent="bob", request=asked.request, verdict="approve"))
    assert {(row.locked_by, row.worktree) for row in trees.rows() if row.kind == "file"} == {
        ("ann", None), ("ann", trees.cwd["w"])}


def test_what_was_leased_for_no_task_is_given_back_beside_the_tasks_own(trees: Trees) -> None:
    trees.world.ask(rq.Register(agent="bob"))
    mine = trees.lock("main", "src/a.py")
    task = trees.world.task("do it", "src/a.py")
    trees.world.ask(rq.TaskClaim(agent="bob", task=task, cwd=trees.cwd["w"]))
    trees.world.ask(rq.Release(agent="bob", acquisition_id=mine.acquisition_id))
    assert [(row.worktree, row.task_id) for row in trees.rows()] == [(trees.cwd["w"], task)]


def test_a_second_task_that_needs_the_same_is_not_claimed_in_the_other_tree(trees: Trees) -> None:
    trees.world.ask(rq.Register(agent="bob"))
    tasks = [trees.world.task(title, "src/a.py") for title in ("one", "two")]
    trees.world.ask(rq.TaskClaim(agent="bob", task=tasks[0], cwd=trees.cwd["w"]))
    refused = trees.world.refused(rq.TaskClaim(agent="bob", task=tasks[1], cwd=trees.cwd["main"]))
    assert refused.code is Code.TASK_NOT_READY


def test_work_moves_into_a_worktree_where_its_holder_has_the_copy_already(trees: Trees) -> None:
    trees.world.ask(rq.Register(agent="bob"))
    task = trees.world.task("do it", "src/a.py")
    trees.world.ask(rq.TaskClaim(agent="bob", task=task, cwd=trees.cwd["main"]))
    trees.lock("w", "src/a.py")
    trees.world.ask(rq.TaskWorktree(agent="bob", task=task, worktree=trees.cwd["w"]))
    assert sorted(map(str, trees.trees())) == sorted(["None", trees.cwd["w"]])


def test_a_sub_agent_in_a_worktree_has_its_parents_lease_and_one_of_its_own(trees: Trees) -> None:
    ann, sub = Session(trees.world, "ann"), Session(trees.world, "ann", "s1")
    ann.read("src/a.py")
    assert ann.edit("src/a.py", "a = 1\n") == ""
    there = f"{trees.cwd['w']}/src/a.py"
    sub.read(there)
    assert sub.edit(there, "b = 1\n") == ""
    assert {(row.locked_by, row.worktree) for row in trees.rows()} == {(sub.name, None), (sub.name, trees.cwd["w"])}
    sub.shell("git commit -qam x")
    assert {(row.locked_by, row.worktree) for row in trees.rows()} == {(ann.name, None), (ann.name, trees.cwd["w"])}
    assert sub.edit(there, "b = 2\n") == ""
    sub.hook("SubagentStop")
    assert (ann.name, None) in {(row.locked_by, row.worktree) for row in trees.rows()}
    assert {row.locked_by for row in trees.rows()} == {ann.name}


@pytest.mark.parametrize("order", [("w", "main"), ("main", "w")])
def test_a_region_is_committed_in_the_tree_that_is_meant(trees: Trees, order: tuple[str, str]) -> None:
    for tree in order:
        trees.lock(tree, "src/a.py::f")
    text = "def f():\n    return 10\n"
    trees.world.ask(rq.CommitRegion(agent="bob", regions=[rq.RegionText(resource="src/a.py::f", text=text)],
                                    cwd=trees.cwd["main"]))
    assert "return 10" in (trees.world.root / "src/a.py").read_text()
    assert "return 10" not in Path(trees.cwd["w"], "src/a.py").read_text()
    trees.lock("w", "src/a.py::f")
    trees.world.ask(rq.CommitRegion(agent="bob", regions=[rq.RegionText(resource="src/a.py::f", text=text)],
                                    cwd=trees.cwd["w"]))
    assert "return 10" in Path(trees.cwd["w"], "src/a.py").read_text()


@pytest.mark.parametrize("order", [("w", "main"), ("main", "w")])
def test_what_the_watcher_sees_is_judged_by_the_main_trees_lease(trees: Trees, order: tuple[str, str]) -> None:
    Path(trees.cwd["w"], "src/a.py").write_text("another = 1\n")
    for tree in order:
        trees.lock(tree, "src/a.py")
    world = trees.world
    main = next(row for row in trees.rows() if row.worktree is None)
    change = seen_writes.Seen("src/a.py", Bytes("sha256:" + "0" * 64, None), is_in_git=True)

    def held(tx: object) -> tuple[str | None, str | None]:
        rights = seen_writes._Rights(world.service, tx, ended_rights.EndedRights())  # type: ignore[arg-type]
        return rights.holder(change), rights.baseline(change)

    assert world.decide(held) == ("bob", main.content_hash)


def test_a_rename_in_main_is_followed_beside_a_lease_on_the_new_name_elsewhere(trees: Trees) -> None:
    from coordinator.slices.guard import renames

    trees.lock("w", "src/b.py")
    trees.lock("main", "src/a.py")
    os.rename(trees.world.root / "src/a.py", trees.world.root / "src/b.py")
    trees.world.decide(lambda tx: renames.follow(trees.world.service, tx, "src/a.py", "src/b.py"))
    trees.world.raise_unsound()
    assert sorted((row.file_path, str(row.worktree)) for row in trees.rows()) == sorted([
        ("src/a.py", "None"), ("src/b.py", "None"), ("src/b.py", trees.cwd["w"])])


def test_a_command_that_changes_both_copies_is_told_of_once_and_both_are_kept(trees: Trees) -> None:
    for tree in ("main", "w"):
        trees.lock(tree, "docs/one.md")
    ann = Session(trees.world, "ann")
    ann.shell("true")
    before = {row.worktree: row.content_hash for row in trees.rows()}
    for tree in ("main", "w"):
        trees.half(tree, "docs/")
    (said,) = ann.broke(*(shell_commands.Broken("docs/one.md", "bob", was, tree) for tree, was in before.items()))
    assert "one.md and docs/one.md" not in said and "R-1 and R-2" in said
    assert trees.reviewed() == [("docs/one.md", None), ("docs/one.md", trees.cwd["w"])]


def test_what_a_command_of_its_holder_writes_in_main_is_leased_there_too(trees: Trees) -> None:
    ann = Session(trees.world, "ann")
    ann.shell("true")
    trees.lock("w", "docs/one.md", agent=ann.name)
    trees.half("main", "docs/")
    data = (trees.world.root / "docs/one.md").read_bytes()
    change = seen_writes.Seen("docs/one.md", Bytes(digest(data), data), before=Bytes(digest(b"one\n"), b"one\n"),
                              calls=(Running(ann.name, True),), is_in_git=True)
    (found,) = trees.world.decide(lambda tx: seen_writes.seen(trees.world.service, tx, [change]))
    assert trees.world.decide(lambda tx: adopt(trees.world.service, tx, found))
    assert {(row.locked_by, row.worktree) for row in trees.rows()} == {(ann.name, None), (ann.name, trees.cwd["w"])}
    trees.world.ask(rq.Release(agent=ann.name, resources=["docs/one.md"], force=True))
    assert trees.reviewed() == [("docs/one.md", None)]


def test_what_was_read_in_one_tree_is_not_known_of_the_copy_in_another(trees: Trees) -> None:
    """A write on what another has replaced is refused, though the agent has read that in the other tree since."""
    ann, bob = Session(trees.world, "ann"), Session(trees.world, "bob")
    ann.read("docs/one.md")
    assert bob.edit("docs/one.md", "two\n") == ""
    bob.hook("SessionEnd")
    copy = Path(trees.cwd["w"], "docs/one.md")
    copy.write_text("two\n")
    ann.read(str(copy))
    assert "+two" in ann.edit("docs/one.md", "one\nann\n")
    assert ann.edit("docs/one.md", "two\nann\n") == ""


@pytest.mark.parametrize("reads", [True, False])
def test_what_was_written_in_one_tree_has_not_changed_the_copy_in_another(trees: Trees, reads: bool) -> None:
    ann = Session(trees.world, "ann")
    copy = Path(trees.cwd["w"], "docs/one.md")
    if reads:
        ann.read("docs/one.md")
        ann.read(str(copy))
    for text in ("two\n", "three\n"):
        given = {"file_path": str(copy), "content": text}
        assert not ann.call("Write", given).deny
        copy.write_text(text)
        ann.call("Write", given, "PostToolUse", tool_response={})
        assert ann.edit("docs/one.md", f"main, {text}") == ""
