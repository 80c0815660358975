"""One working tree, one coordinator: submodules, repositories in repositories, folders kept apart."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.client.test_own import hook
from tests.conftest import Repo
from tests.waiting import until

pytestmark = pytest.mark.slow

Make = Callable[..., Repo]


def git(place: Path, *args: str) -> None:
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@x", "-c", "protocol.file.allow=always", *args],
                   cwd=place, check=True, capture_output=True)


@pytest.fixture
def library(tmp_path: Path) -> Path:
    made = tmp_path / "library"
    made.mkdir()
    (made / "l.py").write_text("one\n")
    git(made, "init", "-q", "-b", "main", ".")
    git(made, "add", ".")
    git(made, "commit", "-qm", "x")
    return made


@pytest.fixture
def outer(make_repo: Make, library: Path) -> Repo:
    """A repository with a submodule, and with another repository that just lies in it."""
    made = make_repo("outer")
    git(made.root, "submodule", "add", "-q", str(library), "vendor/lib")
    git(made.root, "commit", "-qm", "with lib")
    git(made.root, "clone", "-q", str(library), "vendor/clone")
    return made


def held(repo: Repo) -> dict[str, str]:
    with repo.client() as client:
        return {x.resource: x.locked_by for x in client.call(rq.Locks()).items}


@pytest.mark.parametrize("part", ["vendor/lib", "vendor/clone"])
def test_a_file_of_a_repository_inside_is_leased_once(outer: Repo, part: str) -> None:
    """people-2: granted in the one around, and again from inside, without a word."""
    outer.coord("init")
    inside = outer.root / part
    assert outer.coord("lock", f"{part}/l.py", "--agent", "A").returncode == 0
    for name in ("l.py", str(inside / "l.py"), "../../" + f"{part}/l.py"):
        refused = outer.coord("lock", name, "--agent", "B", cwd=inside)
        assert refused.returncode == 3 and "A" in refused.stderr, (name, refused)
    assert not (inside / ".coord").exists()
    assert outer.coord("unlock", "l.py", "--agent", "A", cwd=inside).returncode == 0
    assert outer.coord("lock", "l.py", "--agent", "B", cwd=inside).returncode == 0
    assert held(outer) == {f"{part}/l.py": "B"}


def test_a_submodule_belongs_to_the_one_around_before_anything_is_prepared(outer: Repo) -> None:
    inside = outer.root / "vendor/lib"
    assert outer.coord("lock", "l.py", "--agent", "B", cwd=inside).returncode == 0
    assert held(outer) == {"vendor/lib/l.py": "B"} and not (inside / ".coord").exists()


def test_a_commit_in_a_submodule_is_guarded(outer: Repo) -> None:
    outer.coord("init")
    inside = outer.root / "vendor/lib"
    assert outer.coord("guard", "install", cwd=inside).returncode == 0
    outer.coord("lock", "vendor/lib/l.py", "--agent", "A")
    (inside / "l.py").write_text("two\n")
    git(inside, "add", ".")
    done = subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "x"], cwd=inside,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "held by A" in done.stderr


def test_a_linked_worktree_with_its_submodule(outer: Repo, tmp_path: Path) -> None:
    outer.coord("init")
    git(outer.root, "worktree", "add", "-q", str(tmp_path / "linked"))
    git(tmp_path / "linked", "submodule", "update", "-q", "--init")
    assert outer.coord("lock", "l.py", "--agent", "A", cwd=tmp_path / "linked/vendor/lib").returncode == 0
    refused = outer.coord("lock", "l.py", "--agent", "B", cwd=outer.root / "vendor/lib")
    assert refused.returncode == 3 and "A" in refused.stderr


@pytest.fixture
def apart(outer: Repo) -> Repo:
    """The submodule, separated by a person's word."""
    outer.coord("init")
    inside = Repo(outer.root / "vendor/lib")
    done = inside.coord("init", "--separate")
    assert done.returncode == 0, done.stderr
    assert f"that of {outer.root} covers nothing in it" in done.stdout
    return inside


def test_separated_they_never_meet(outer: Repo, apart: Repo) -> None:
    try:
        assert apart.coord("lock", "l.py", "--agent", "B").returncode == 0
        assert held(apart) == {"l.py": "B"}
        for name in ("vendor/lib/l.py", "vendor/lib/", "vendor/lib", str(apart.root / "l.py"), "vendor/lib/new.py",
                     "vendor/lib/sub/*.py", "vendor/clone/../lib/l.py"):
            refused = outer.coord("lock", name, "--agent", "A")
            assert refused.returncode == 2 and "OUTSIDE_REPO" in refused.stderr, (name, refused)
            assert "belongs to the coordinator of" in refused.stderr and f"next: Repeat it in {apart.root}" in refused.stderr
        assert held(outer) == {}
        # what looks as if it covered the folder says that it does not
        a = outer.client("A")
        for name in ("vendor/", "vendor/**/*.py", "."):
            got = a.acquire(name)
            assert got.warnings == [f"{got.leases[0].resource} does not cover vendor/lib: that folder has a coordinator of its own."]
            a.release(name)
        got = a.acquire("vendor/clone/")
        assert got.warnings == []
        a.release("vendor/clone/")
        # and what changes there is no partial work of its
        a.acquire("vendor/", ttl=0.1)
        (apart.root / "l.py").write_text("two\n")
        with outer.client() as client:
            until(lambda: client.call(rq.Sweep()) and not client.call(rq.Locks()).items)  # (whoever has closed it)
            assert client.call(rq.Reviews()).items == []
        assert apart.coord("lock", "../clone/l.py", "--agent", "B").returncode == 2
    finally:
        apart.down()


def test_a_hook_of_the_one_around_stops_writes_in_the_folder(outer: Repo, apart: Repo) -> None:
    """Its lease there would bind nobody; in words, with the place to go to."""
    outer.coord("up")
    said = json.loads(hook(outer, {}, "vendor/lib/l.py").stdout)["hookSpecificOutput"]
    assert said["permissionDecision"] == "deny" and f"Repeat it in {apart.root}" in said["permissionDecisionReason"]
    assert hook(outer, {}, "vendor/clone/l.py").stdout == b"" == hook(outer, {}, "/elsewhere/l.py").stdout
    with outer.client("A") as client, pytest.raises(Refusal) as met:
        client.acquire("vendor/lib/l.py")
    assert met.value.code is Code.OUTSIDE_REPO and met.value.facts["coordinator"] == str(apart.root)


def test_what_is_held_there_is_not_separated(outer: Repo) -> None:
    """Neither a lease in it, nor one that covers it, nor a place in line."""
    outer.coord("init")
    inside = Repo(outer.root / "vendor/lib")
    pids = set()
    for name in ("vendor/lib/l.py", "vendor/", "**/*.py"):
        outer.coord("lock", name, "--agent", "A")
        pids.add(outer.pid())
        refused = inside.coord("init", "--separate")
        assert refused.returncode == 3 and "A holds" in refused.stderr, (name, refused)
        assert not inside.state.path.exists()
        outer.coord("unlock", name, "--agent", "A")
        pids.add(outer.pid())
    assert len(pids) == 1, "whoever works there goes on"
    with outer.client("A") as client, outer.client("B") as waiter:
        client.acquire("vendor/x")
        with pytest.raises(Refusal):
            waiter.acquire("vendor/x", "vendor/lib/l.py")
        refused = inside.coord("init", "--separate")
        assert refused.returncode == 3 and "B waits for vendor/lib/l.py" in refused.stderr


def test_separated_from_one_that_is_about_to_make_its_database(outer: Repo) -> None:
    outer.coord("init")
    outer.down()
    for file in outer.state.path.glob("*.sqlite3*"):
        file.unlink()
    outer.state.database.touch(0o600)
    done = Repo(outer.root / "vendor/lib").coord("init", "--separate")
    assert done.returncode == 0, done


def test_separating_goes_between_two_grants_of_a_busy_coordinator(outer: Repo) -> None:
    """Whatever is asked of it meanwhile: in the end the folder has one coordinator."""
    outer.coord("init")
    inside = Repo(outer.root / "vendor/lib")
    over = threading.Event()
    codes: set[Code] = set()

    def ask() -> None:
        with outer.client("A") as client:
            while not over.is_set():
                try:
                    client.acquire("vendor/lib/l.py")
                    client.release("vendor/lib/l.py")
                except Refusal as refusal:
                    codes.add(refusal.code)

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        for _ in range(50):
            done = inside.coord("init", "--separate")
            if done.returncode == 0:
                break
            assert done.returncode == 3, done.stderr
        assert done.returncode == 0
        assert inside.coord("lock", "l.py", "--agent", "B").returncode == 0
    finally:
        over.set()
        asker.join()
    assert held(outer) == {} and held(inside) == {"l.py": "B"}
    assert Code.OUTSIDE_REPO in codes or not codes
    inside.down()


def test_one_that_was_there_first_stays_apart(make_repo: Make, library: Path) -> None:
    """The folder above gets a coordinator later: it does not reach into the other's."""
    above = make_repo("above", git=False)
    below = make_repo("above/below")
    try:
        assert below.coord("lock", "f", "--agent", "B").returncode == 0
        assert above.coord("init").returncode == 0
        refused = above.coord("lock", "below/f", "--agent", "A")
        assert refused.returncode == 2 and f"next: Repeat it in {below.root}" in refused.stderr
        assert below.coord("lock", "f", "--agent", "C").returncode == 3
        # a person's word makes it known above, too
        assert below.coord("init", "--separate").returncode == 0
        assert above.coord("down").returncode == 0
        assert above.client("A").acquire(".").warnings
    finally:
        below.down()


def test_it_can_be_brought_together_again(outer: Repo, apart: Repo) -> None:
    apart.coord("up")
    apart.down()
    shutil.rmtree(apart.state.path)
    assert outer.coord("lock", "l.py", "--agent", "A", cwd=apart.root).returncode == 0
    assert held(outer) == {"vendor/lib/l.py": "A"}
    assert outer.client("A").acquire("vendor/clone/").warnings == []


def test_separating_where_there_is_nothing_around(repo: Repo, tmp_path: Path) -> None:
    done = repo.coord("init", "--separate")
    assert done.returncode == 2 and "nothing to be separated from" in done.stderr
    assert not repo.state.path.exists()
    git(repo.root, "commit", "-qm", "x", "--allow-empty")
    git(repo.root, "worktree", "add", "-q", str(tmp_path / "linked"))
    done = repo.coord("init", "--separate", cwd=tmp_path / "linked")
    assert done.returncode == 2 and "linked worktree" in done.stderr


def test_init_says_whose_coordinator_a_repository_inside_has(outer: Repo) -> None:
    outer.coord("init")
    done = outer.coord("init", cwd=outer.root / "vendor/clone")
    assert f"{outer.root / 'vendor/clone'} lies in {outer.root} and shares its coordinator" in done.stdout
    assert "coord init --separate" in done.stdout
