"""Landings without a process: real git, the real service, and any mix of what was done meanwhile."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordinator.files.git import Git
from coordinator.launch import recovery
from coordinator.launch.branch_landing import Lander, Work, only_ignored, rights
from coordinator.launch.checkout_update import CheckoutUpdate
from coordinator.launch.worktrees import Workplace, find_target
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.effort import examples
from tests.golden import assert_golden, said
from tests.world import World

BASE = {"a": "a\n", "d/e": "e\n", "d/f": "f\n", "x": "x\n"}
TRUNK = "refs/heads/trunk"
names = st.sampled_from([*BASE, "new", "d/new"])


def git(place: Path, *args: str) -> str:
    done = subprocess.run(["git", "-c", "user.name=P", "-c", "user.email=p@x", *args], cwd=place,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def put(place: Path, files: dict[str, str | None]) -> None:
    for name, text in files.items():
        if text is None:
            (place / name).unlink(missing_ok=True)
        else:
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_text(text)


class Ground:
    """A repository whose root may lie below the top of its working tree, and an agent's branch."""

    def __init__(self, folder: Path, below: str = "") -> None:
        self.top = folder / "repo"
        root = self.top / below
        root.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(self.top)], check=True)
        git(self.top, "symbolic-ref", "HEAD", TRUNK)
        put(root, {**BASE, ".gitignore": ".coord\n*.log\n"})
        (self.top / "beside").write_text("beside\n")
        git(self.top, "add", ".")
        git(self.top, "commit", "-qm", "first")
        self.world = World(root)
        self.root = root
        self.target = find_target(root)
        self.place = folder / "work"
        self.lander = Lander(self.world.state_dir, self.target, self.world.ask)
        self.finished: list[str] = []

    def agent(self, leased: list[str], changed: dict[str, str | None], beside: bool = False) -> Work:
        task = self.world.task("one", *leased)
        claim = self.world.ask(rq.TaskClaim(agent="me", task=task))
        git(self.top, "worktree", "add", "-q", "-b", "work", str(self.place), TRUNK)
        put(self.place / self.target.below, changed)
        if beside:
            (self.place / "beside").write_text("changed\n")
        git(self.place, "add", "-A")
        git(self.place, "commit", "-qm", "work", "--allow-empty")
        return Work("me", task, "one: it", git(self.place, "rev-parse", "HEAD"), rights(claim.leases))

    def finish(self, commit: str) -> bool:
        self.finished.append(commit)
        return True

    def by_hand(self, files: dict[str, str | None]) -> None:
        put(self.root, files)
        git(self.top, "add", "-A")
        git(self.top, "commit", "-qm", "by hand", "--allow-empty")

    @property
    def trunk(self) -> str:
        return git(self.top, "rev-parse", TRUNK)

    def at(self, commit: str) -> dict[str, str]:
        listed = git(self.root, "ls-tree", "-r", "--name-only", commit).split()
        return {name: git(self.root, "show", f"{commit}:./{name}") + "\n" for name in listed
                if name not in (".gitignore", "beside")}

    def there(self) -> dict[str, str]:
        return {str(p.relative_to(self.root)): p.read_text() for p in self.root.rglob("*")
                if p.is_file() and ".git" not in p.parts and ".coord" not in p.parts
                and p.name not in ("beside", ".gitignore")}


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    made = Ground(tmp_path)
    yield made
    made.world.close()


def after(files: dict[str, str], changes: dict[str, str | None]) -> dict[str, str]:
    return {name: text for name, text in {**files, **changes}.items() if text is not None}


@settings(max_examples=examples(12))
@given(
    changed=st.dictionaries(names, st.sampled_from(["agent's\n", None]), min_size=1, max_size=3),
    moved=st.dictionaries(names, st.sampled_from(["by hand\n", None]), max_size=2),
    dirty=st.dictionaries(names, st.sampled_from(["unsaved\n", None]), max_size=2),
    unleased=st.sampled_from([False] * 5 + [True]), below=st.sampled_from(["", "", "sub"]),
    elsewhere=st.sampled_from([False, False, True]), beside=st.sampled_from([False] * 6 + [True]),
)
@example(changed={"a": "agent's\n"}, moved={"x": "by hand\n"}, dirty={"d/e": "unsaved\n"}, unleased=False, below="sub",
         elsewhere=False, beside=False)
@example(changed={"a": None, "d/new": "agent's\n"}, moved={"x": None}, dirty={}, unleased=False, below="", elsewhere=False,
         beside=False)
@example(changed={"new": "agent's\n"}, moved={}, dirty={"new": "unsaved\n"}, unleased=False, below="", elsewhere=False, beside=False)
@example(changed={"a": "agent's\n"}, moved={"a": "by hand\n"}, dirty={}, unleased=False, below="sub", elsewhere=True, beside=False)
@example(changed={"a": "agent's\n"}, moved={}, dirty={}, unleased=False, below="sub", elsewhere=False, beside=True)
@example(changed={"d/e": None}, moved={"d/f": None}, dirty={"d/f": "unsaved\n"}, unleased=False, below="", elsewhere=False,
         beside=False)
def test_what_lands_is_the_agents_work_and_nobodys_else_is_lost(
    changed: dict[str, str | None], moved: dict[str, str | None], dirty: dict[str, str | None],
    unleased: bool, below: str, elsewhere: bool, beside: bool,
) -> None:
    changed = {name: text for name, text in changed.items() if BASE.get(name) != text}
    with tempfile.TemporaryDirectory() as folder:
        ground = Ground(Path(folder), below)
        leased = [*changed][1:] if unleased else [*changed]
        work = ground.agent(leased or ["key:other"], changed, beside and bool(below))
        ground.by_hand(moved)
        tip = after(BASE, moved)
        if elsewhere:
            git(ground.top, "switch", "-q", "-c", "other")
        put(ground.root, dirty)
        files = after(tip, dirty)
        before, status = ground.trunk, git(ground.top, "status", "--porcelain", "-uall")
        gone_on = {name for name in moved if BASE.get(name) != moved[name]}
        in_the_way = not elsewhere and any(tip.get(name) != dirty[name] for name in dirty.keys() & changed.keys())
        if beside and below:
            code = Code.OUTSIDE_REPO
        elif changed.keys() - set(leased):
            code = Code.NOT_HOLDER
        elif changed.keys() & gone_on or in_the_way:
            code = Code.VERSION_CHANGED
        else:
            code = None
        try:
            landed = ground.lander.land(work, ground.finish)
        except Refusal as refusal:
            assert refusal.code is code, refusal.message
            assert work.task in refusal.message
            assert ground.trunk == before and ground.finished == []
            assert ground.there() == files and git(ground.top, "status", "--porcelain", "-uall") == status
        else:
            assert code is None and ground.trunk == landed and ground.finished == [landed]
            assert ground.at(landed) == after(tip, changed)
            parents = git(ground.top, "log", "-1", "--format=%P", landed).split()
            assert landed == work.commit or parents == [before, work.commit]
            assert ground.there() == (files if elsewhere else after(files, changed))
            if not elsewhere:
                assert git(ground.top, "status", "--porcelain", "-uall") == status, "what was unsaved is, and nothing else"
        assert recovery.unfinished(ground.world.state_dir) is None
        git_dir = ground.top / ".git"
        assert not [p.name for p in git_dir.iterdir() if "coord" in p.name or p.suffix == ".lock"]
        assert not (ground.world.state_dir.path / "landing.index").exists()
        assert ground.world.replay_differs() == []
        ground.world.close()


def test_a_merge_says_what_it_brings_and_a_landing_begins_anew_after_a_persons_commit(ground: Ground) -> None:
    work = ground.agent(["a"], {"a": "agent's\n"})
    asked: list[str] = []

    def ask(request: rq.Request[object]) -> object:
        if request.op != "land_queue":  # what is told of its place in the queue: tests/service/test_landing_queue.py
            asked.append(request.op)
        if request.op == "land" and asked.count("land") <= 3:  # a person is faster, three times
            tree, tip = git(ground.top, "rev-parse", f"{TRUNK}^{{tree}}"), ground.trunk
            git(ground.top, "update-ref", TRUNK, git(ground.top, "commit-tree", tree, "-p", tip, "-m", "by hand"))
        return ground.world.ask(request)

    landed = Lander(ground.world.state_dir, ground.target, ask).land(work, ground.finish)  # type: ignore[arg-type]
    assert asked.count("land") == 4 and asked[0] == "land_check"
    assert git(ground.top, "log", "-1", "--format=%s", landed) == "Merge one: it"
    assert git(ground.top, "rev-list", "--count", landed) == "6"
    assert ground.there() == {**BASE, "a": "agent's\n"} and git(ground.top, "status", "--porcelain", "-uall") == ""


TWO = "import os\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n"


@pytest.mark.parametrize(("leased", "mine", "theirs", "ends"), [
    (["two.py"], TWO.replace("return 1", "return 10"), TWO.replace("return 2", "return 20"), None),
    (["two.py::f"], TWO.replace("return 1", "return 10"), TWO.replace("return 2", "return 20"), None),
    (["two.py::f"], TWO.replace("return 1", "return 10"), None, None),
    (["two.py::f", "two.py::h"], TWO.replace("return 1", "return 10") + "\n\ndef h():\n    return 3\n",
     TWO + "\n\ndef k():\n    return 4\n", None),
    (["two.py::<header>"], TWO.replace("return 1", "return 10"), TWO.replace("return 2", "return 20"), None),
    (["two.py::<header>"], TWO.replace("import os", "import re").replace("return 1", "return 10"), TWO.replace("return 2", "return 20"), None),
    (["two.py::<header>", "two.py::f"], TWO.replace("import os\n", "import re\nX = 1\n").replace("return 1", "return 10"), None, None),
    (["two.py::g", "two.py::f"], TWO.replace("import os", "import re"), None, Code.NOT_HOLDER),
    (["two.py::f"], TWO.replace("return 2", "return 20"), None, Code.NOT_HOLDER),
    (["two.py::f"], TWO.replace("return 1", "return 10").replace("import os", "import re"), None, Code.NOT_HOLDER),
    (["two.py::f"], TWO.replace("return 1", "return ("), None, Code.NOT_HOLDER),
    (["two.py"], TWO.replace("return 1", "return 10"), TWO.replace("return 1", "return 11"), Code.VERSION_CHANGED),
    (["two.py::f"], TWO.replace("return 1", "return 10"), TWO.replace("return 1", "return 11"), Code.VERSION_CHANGED),
    (["two.py"], None, TWO.replace("return 1", "return 11"), Code.VERSION_CHANGED),
])
def test_what_differs_by_region_lands_with_what_the_target_has(
    tmp_path: Path, leased: list[str], mine: str | None, theirs: str | None, ends: Code | None,
) -> None:
    ground = Ground(tmp_path, "sub")
    ground.by_hand({"two.py": TWO})
    work = ground.agent(leased, {"two.py": mine})
    if theirs is not None:
        ground.by_hand({"two.py": theirs})
    before = ground.trunk
    if ends is not None:
        with pytest.raises(Refusal) as no:
            ground.lander.land(work, ground.finish)
        assert no.value.code is ends and ground.trunk == before and ground.there()["two.py"] == (theirs or TWO)
        if ends is Code.VERSION_CHANGED and mine is not None:
            assert "Both changed two.py: f" in no.value.message and "there: \"by hand\"" in no.value.message
    else:
        landed, both = ground.lander.land(work, ground.finish), ground.there()["two.py"]
        assert mine is not None and landed == ground.trunk
        assert both == git(ground.root, "show", f"{landed}:./two.py") + "\n"
        ours = {line for text in (mine, theirs or TWO) for line in text.splitlines()} - (set(TWO.splitlines()) - set(mine.splitlines()))
        assert ours - {"    return 1", "    return 2"} <= set(both.splitlines()) and "return 1\n" not in both
        assert ("return 20" in both) == (theirs is not None and "return 20" in theirs)
        assert git(ground.top, "status", "--porcelain", "-uall") == ""
    ground.world.close()


def test_a_person_who_is_always_faster_is_told_of(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    work = ground.agent(["a"], {"a": "agent's\n"})
    monkeypatch.setattr("coordinator.launch.branch_landing.TRIES_MAX", 3)
    tries: list[str] = []

    def ask(request: rq.Request[object]) -> object:
        if request.op == "land":
            tries.append(request.op)
            raise Refusal(Code.VERSION_CHANGED, "moved", target_moved=True)
        return ground.world.ask(request)

    with pytest.raises(Refusal) as refused:
        Lander(ground.world.state_dir, ground.target, ask).land(work, ground.finish)  # type: ignore[arg-type]
    assert refused.value.code is Code.VERSION_CHANGED and "trunk moved 3 times while T-1" in refused.value.message
    assert refused.value.next == "Merge its branch by hand." and len(tries) == 3
    assert ground.there() == BASE and git(ground.top, "status", "--porcelain", "-uall") == ""


def test_an_end_that_is_not_noted_is_tried_again_by_whoever_comes_next(ground: Ground) -> None:
    work = ground.agent(["a"], {"a": "agent's\n"})
    landed = ground.lander.land(work, lambda commit: False)
    note = recovery.unfinished(ground.world.state_dir)
    before = git(ground.top, "rev-parse", f"{landed}~1")
    assert note == recovery.Note(agent="me", task=work.task, target=TRUNK, before=before, after=landed, top=str(ground.top))
    assert "T-1 had landed" in str(recovery.recover(ground.world.state_dir, ground.world.ask))
    assert recovery.unfinished(ground.world.state_dir) is None
    assert ground.world.ask(rq.TaskShow(task=work.task)).state == "done"


def test_files_that_cannot_follow_take_the_branch_back(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody saved a file between the look and git's writing."""
    work = ground.agent(["a"], {"a": "agent's\n"})
    before = ground.trunk
    real = CheckoutUpdate.follow

    def follow(self: CheckoutUpdate, *commits: str) -> None:
        put(ground.root, {"a": "saved just now\n"})
        real(self, *commits)

    monkeypatch.setattr(CheckoutUpdate, "follow", follow)
    with pytest.raises(Refusal) as refused:
        ground.lander.land(work, ground.finish)
    assert refused.value.code is Code.VERSION_CHANGED and refused.value.facts["dirty"] is True
    assert "T-1 did not land" in refused.value.message and "a" in refused.value.message
    assert "put it aside" in (refused.value.next or "")
    assert ground.trunk == before and ground.there() == {**BASE, "a": "saved just now\n"}
    assert git(ground.top, "status", "--porcelain", "-uall") == "M a"
    # and where the branch cannot be taken back, both are told of
    git(ground.top, "checkout", "-q", "--", "a")

    def ask(request: rq.Request[object]) -> object:
        if request.op == "land_back":
            assert isinstance(request, rq.LandBack)
            assert (request.agent, request.task, request.target, request.before) == ("me", work.task, TRUNK, before)
            assert request.after == work.commit and request.why == refused.value.message
            raise Refusal(Code.VERSION_CHANGED, "somebody built on it")
        return ground.world.ask(request)

    with pytest.raises(Refusal) as kept:
        Lander(ground.world.state_dir, ground.target, ask).land(work, ground.finish)  # type: ignore[arg-type]
    assert kept.value.code is Code.STORAGE and "somebody built on it" in kept.value.message
    assert "T-1 landed on trunk" in kept.value.message and str(ground.top) in (kept.value.next or "")
    assert ground.trunk == work.commit
    assert recovery.unfinished(ground.world.state_dir) is not None, "whoever comes next brings the files forward"


def test_nothing_lands_on_a_branch_that_is_being_rebased(ground: Ground) -> None:
    work = ground.agent(["a"], {"a": "agent's\n"})
    git(ground.top, "checkout", "-q", "--detach")
    for name in ("rebase-merge", "rebase-apply"):
        folder = ground.top / ".git" / name
        folder.mkdir()
        (folder / "head-name").write_text("refs/heads/other\n")
        (folder / "head-name").write_text(f"{TRUNK}\n")
        with pytest.raises(Refusal) as refused:
            ground.lander.land(work, ground.finish)
        assert refused.value.code is Code.LOCKED and "trunk is being rebased" in refused.value.message
        (folder / "head-name").write_text("refs/heads/other\n")
    assert ground.lander.land(work, ground.finish) == work.commit


def test_a_branch_without_a_common_past_is_merged_by_hand(ground: Ground) -> None:
    work = ground.agent(["a"], {})
    tree = git(ground.top, "rev-parse", "HEAD^{tree}")
    apart = Work(work.agent, work.task, work.message, git(ground.top, "commit-tree", tree, "-m", "apart"), work.began_with)
    with pytest.raises(Refusal) as refused:
        ground.lander.land(apart, ground.finish)
    assert refused.value.code is Code.INVALID and "no history in common with trunk" in refused.value.message


def test_git_that_fails_is_told_with_the_task(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    work = ground.agent(["a"], {"a": "agent's\n"})
    monkeypatch.setenv("PATH", "/nonexistent")
    lander = Lander(ground.world.state_dir, ground.target, ground.world.ask)
    with pytest.raises(Refusal) as refused:
        lander.land(work, ground.finish)
    assert "T-1" in refused.value.message


def test_a_name_that_is_no_text_is_told(ground: Ground) -> None:
    work = ground.agent(["a"], {"a": "agent's\n"})
    with open(bytes(ground.place) + b"/\xff\xfe", "wb") as file:
        file.write(b"odd")
    git(ground.place, "add", "-A")
    git(ground.place, "commit", "-qm", "odd")
    odd = Work(work.agent, work.task, work.message, git(ground.place, "rev-parse", "HEAD"), work.began_with)
    with pytest.raises(Refusal) as refused:
        ground.lander.land(odd, ground.finish)
    assert refused.value.code is Code.INVALID and "not UTF-8" in refused.value.message
    assert refused.value.next == "Rename it on the branch."


def test_what_is_asked_and_what_is_said_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coordinator.launch.branch_landing.TRIES_MAX", 2)
    ground, text = Ground(tmp_path, "sub"), ""
    asked: list[rq.Request[object]] = []
    moving = [False]

    def ask(request: rq.Request[object]) -> object:
        if request.op != "land_queue":
            asked.append(request)
        if moving[0]:
            raise Refusal(Code.VERSION_CHANGED, "moved", target_moved=True)
        return ground.world.ask(request)

    def refused(case: str, work: Work) -> None:
        nonlocal text
        with pytest.raises(Refusal) as no:
            Lander(ground.world.state_dir, ground.target, ask).land(work, ground.finish)  # type: ignore[arg-type]
        text += said(case, no.value).replace(str(tmp_path), "FOLDER")

    def at(commit: str) -> Work:
        return Work(work.agent, work.task, work.message, commit, work.began_with)

    work = ground.agent(["a", "new", "d/"], {"a": "agent's\n", "new": "new\n", "d/e": None})
    ground.by_hand({"x": "by hand\n"})
    refused("no common past", at(git(ground.top, "commit-tree", f"{TRUNK}^{{tree}}", "-m", "apart")))
    assert asked == []
    moving[0] = True
    refused("always faster", work)
    moving[0] = False
    (ground.place / "beside").write_text("changed\n")
    git(ground.place, "commit", "-qam", "beside")
    refused("beside the root", at(git(ground.place, "rev-parse", "HEAD")))
    asked.clear()
    landed = Lander(ground.world.state_dir, ground.target, ask).land(work, ground.finish)  # type: ignore[arg-type]
    assert git(ground.top, "show", f"{landed}:sub/x") == "by hand"
    text += "\n".join(msgspec.json.encode(one).decode() for one in asked)
    assert_golden("lander.txt", re.sub("[0-9a-f]{40}", "…", text))
    ground.world.close()


def test_ignored_files_that_were_leased_and_written_are_found(ground: Ground) -> None:
    ground.agent(["a.log", "same.log", "gone.log", "a", "d/"], {"a.log": "agent's\n", "same.log": "same\n", "a": "agent's\n"})
    put(ground.root, {"same.log": "same\n"})
    put(ground.place, {"d/x.log": "agent's\n"})
    work = Workplace(ground.place, ground.place)
    leases = ground.world.ask(rq.Locks()).items
    assert only_ignored(work, ground.root, leases) == ["a.log"]
    assert only_ignored(work, ground.root, [one for one in leases if one.resource != "a.log"]) == []
    assert only_ignored(Workplace(ground.root, ground.root), ground.root, []) == []
    shared = [rq.Lease(**{name: getattr(one, name) for name in one.__struct_fields__} | {"mode": "shared"}) for one in leases]
    assert only_ignored(work, ground.root, shared) == []
    assert Git(ground.top).commit(TRUNK) == ground.trunk
