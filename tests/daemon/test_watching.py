"""What the daemon sees by itself: renames, writes without a lease, the archive, many files at once."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable

import pytest

from coordinator.files.content import digest
from coordinator.words import requests as rq
from coordinator.words.clock import iso
from coordinator.words.refusals import Refusal
from tests.conftest import Repo
from tests.waiting import gone, until

QUICK = "[watch]\ndebounce_s = 0.05\n"


def kinds(repo: Repo, kind: str) -> list[rq.EventRow]:
    return repo.client().call(rq.Events(kind=kind, limit=5000)).items


def test_a_lease_follows_a_rename(make_repo: Callable[..., Repo]) -> None:
    repo = make_repo(config=QUICK)
    (repo.root / "a.py").write_text("x")
    (repo.root / "d").mkdir()
    (repo.root / "d/in.py").write_text("y")
    ann = repo.client("ann")
    ann.acquire("a.py")
    ann.acquire("d/in.py")
    os.rename(repo.root / "a.py", repo.root / "b.py")
    os.rename(repo.root / "d", repo.root / "e")
    until(lambda: {x.resource for x in ann.call(rq.Locks()).items} == {"a.py", "b.py", "d/in.py", "e/in.py"})
    assert {n.kind for n in ann.heartbeat().notices} == {"moved"}
    with pytest.raises(Refusal):
        repo.client("bob").acquire("a.py", retry=False)
    ann.release("a.py")
    repo.client("bob").acquire("b.py")
    assert repo.client().call(rq.Replay()).equal


@pytest.mark.parametrize("watched", [True, False])
def test_a_lease_follows_what_was_renamed_while_no_coordinator_ran(make_repo: Callable[..., Repo], watched: bool) -> None:
    repo = make_repo(config="" if watched else "[watch]\nenabled = false\n")
    for name in ("a.py", "d/in.py", "gone.py", "saved.py", "part.py", "late.py"):
        repo.write(name, "def f():\n    pass\n")
    ann = repo.client("ann")
    for name in ("a.py", "d/in.py", "gone.py", "saved.py", "part.py::f"):
        ann.acquire(name, ttl=600)
    repo.down()
    repo.write("a.py", "def f():\n    return 1\n")
    os.rename(repo.root / "a.py", repo.root / "b.py")
    repo.write("a.py", "another's\n")
    os.rename(repo.root / "d", repo.root / "e")
    os.unlink(repo.root / "gone.py")
    repo.write("new.py", "perhaps with that number\n")
    repo.write("tmp.py", "as editors do\n")
    os.rename(repo.root / "tmp.py", repo.root / "saved.py")
    os.rename(repo.root / "part.py", repo.root / "parts.py")
    with repo.client() as boss:
        until(lambda: {one.resource for one in boss.call(rq.Locks()).items} == {
            "a.py", "b.py", "d/in.py", "e/in.py", "gone.py", "saved.py", "part.py::f", "parts.py::f"})
        assert boss.call(rq.Replay()).equal
        boss.call(rq.Leave(agent="ann", clean=False))
        (review,) = boss.call(rq.Reviews()).items
        assert {one.path: one.change for one in review.files if one.path in ("b.py", "d/in.py", "e/in.py")} == {
            "b.py": "created", "d/in.py": "deleted", "e/in.py": "created"}


@pytest.mark.parametrize("pause", [0.0, 0.4])
def test_a_swap_with_what_nobody_held_comes_back(make_repo: Callable[..., Repo], pause: float) -> None:
    """Heard of step by step, or all at once."""
    repo = make_repo(git=True)
    for name in ("a", "b"):
        repo.write(name, f"{name}\n")
    git = ["git", "-c", "user.name=n", "-c", "user.email=e"]
    for words in (["add", "a", "b"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], cwd=repo.root, check=True)
    with repo.client("ann") as ann:
        ann.acquire("a")
        for old, new in (("a", "t"), ("b", "a"), ("t", "b")):
            os.rename(repo.root / old, repo.root / new)
            time.sleep(pause)
        ann.call(rq.Leave(agent="ann", clean=False))
    with repo.client() as boss:
        (review,) = boss.call(rq.Reviews()).items
        assert {one.path: one.change for one in review.files} == {"a": "modified", "b": "modified"}
        boss.call(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert [(repo.root / name).read_text() for name in ("a", "b")] == ["a\n", "b\n"]


def test_what_a_file_was_moved_over_is_known_where_the_move_is_heard_of_late(make_repo: Callable[..., Repo]) -> None:
    """On a busy machine the watcher looks at a file for one change, and sees already what the next will tell."""
    repo = make_repo(git=True, config="[watch]\ndebounce_s = 0.05\n")
    committed(repo, "a", "b")
    with repo.client("ann") as ann:
        ann.acquire("a")
        os.unlink(repo.root / "b")
        repo.write("b", (repo.root / "a").read_text())  # what a look sees that comes after the move
        until(lambda: any(one.kind == "versions_seen" for one in ann.call(rq.Events(limit=100)).items))
        os.rename(repo.root / "a", repo.root / "b")
        ann.call(rq.Leave(agent="ann", clean=False))
    with repo.client() as boss:
        (review,) = boss.call(rq.Reviews()).items
        assert {one.path: one.change for one in review.files} == {"a": "deleted", "b": "modified"}
        assert boss.call(rq.Replay()).equal


def test_a_lease_taken_after_a_rename_does_not_follow_it(make_repo: Callable[..., Repo]) -> None:
    """What is heard of late was before it: the lease is on what stands at the old name since."""
    repo = make_repo(config="[watch]\ndebounce_s = 0.8\n")
    for name in ("d/in.py", "a.py", "old.py"):
        repo.write(name, "x")
    ann, bob = repo.client("ann"), repo.client("bob")
    ann.acquire("old.py")
    os.rename(repo.root / "d", repo.root / "e")
    os.rename(repo.root / "a.py", repo.root / "b.py")
    os.rename(repo.root / "old.py", repo.root / "new.py")
    repo.write("d/in.py", "y")
    repo.write("a.py", "y")
    bob.acquire("d/in.py")
    bob.acquire("a.py")
    until(lambda: "new.py" in {x.resource for x in ann.call(rq.Locks()).items})
    assert {x.resource: x.locked_by for x in ann.call(rq.Locks()).items} == {"old.py": "ann", "new.py": "ann", "d/in.py": "bob", "a.py": "bob"}
    assert repo.client().call(rq.Replay()).equal


def test_a_lease_follows_what_was_made_and_renamed_at_once(make_repo: Callable[..., Repo]) -> None:
    """All of it is heard of in one batch: also a chain of names, a new directory, and a rename over what was there."""
    repo = make_repo(git=True)
    committed(repo, "old.py")
    ann = repo.client("ann")
    for name in ("n.py", "d/in.py", "p.py", "over.py"):
        ann.acquire(name)
    for name in ("n.py", "d/in.py", "p.py", "over.py", "free.tmp"):
        repo.write(name, "def f():\n    pass\n")
    for old, new in (("n.py", "m.py"), ("d", "e"), ("p.py", "q.py"), ("q.py", "r.py"), ("over.py", "old.py"), ("free.tmp", "free.py")):
        os.rename(repo.root / old, repo.root / new)
    until(lambda: {one.resource for one in ann.call(rq.Locks()).items} == {
        "n.py", "m.py", "d/in.py", "e/in.py", "p.py", "q.py", "r.py", "over.py", "old.py"})
    until(lambda: [one.resource for one in kinds(repo, "unleased_write")] == ["free.py"])
    with pytest.raises(Refusal):
        repo.client("bob").acquire("m.py", retry=False)
    with repo.client() as boss:
        boss.call(rq.Leave(agent="ann", clean=False))
        (review,) = boss.call(rq.Reviews()).items
        assert {one.path: one.change for one in review.files} == {
            "m.py": "created", "e/in.py": "created", "r.py": "created", "old.py": "modified"}
        boss.call(rq.ReviewDecide(review=review.review, verdict="revert"))
        assert (repo.root / "old.py").read_text() == "old.py\n"
        assert not [name for name in ("m.py", "e/in.py", "r.py") if (repo.root / name).exists()]
        assert boss.call(rq.Replay()).equal


def test_a_write_without_a_lease_is_recorded(make_repo: Callable[..., Repo]) -> None:
    repo = make_repo(config=QUICK)
    ann = repo.client("ann")
    ann.acquire("mine.py")
    (repo.root / "mine.py").write_text("leased")
    (repo.root / "other.py").write_text("not leased")
    until(lambda: [e.resource for e in kinds(repo, "unleased_write")] == ["other.py"])
    seen = [tuple(v) for e in kinds(repo, "versions_seen") for v in e.data["versions"]]
    assert ("mine.py", "ann") in {(path, agent) for path, _, agent in seen}
    assert repo.client().call(rq.Reviews()).items == []


def committed(repo: Repo, *names: str) -> None:
    for name in names:
        (repo.root / name).parent.mkdir(exist_ok=True)
        (repo.root / name).write_text(f"{name}\n")
    git = ["git", "-C", str(repo.root), "-c", "user.name=n", "-c", "user.email=e@x"]
    subprocess.run([*git, "add", *names], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)


def test_what_is_removed_or_moved_without_a_lease_is_recorded_too(make_repo: Callable[..., Repo]) -> None:
    """Nobody has seen these before; but git has them."""
    repo = make_repo(config=QUICK)
    committed(repo, "gone.py", "d/gone.py", "old.py")
    repo.client("ann").register()
    (repo.root / "gone.py").unlink()
    (repo.root / "d/gone.py").unlink()
    (repo.root / "old.py").rename(repo.root / "d/new.py")
    expected = {"gone.py", "d/gone.py", "old.py", "d/new.py"}
    until(lambda: {e.resource for e in kinds(repo, "unleased_write")} == expected)
    (repo.root / "temporary").write_text("x")
    (repo.root / "temporary").unlink()
    (repo.root / "d/new.py").rename(repo.root / "last.py")
    until(lambda: {e.resource for e in kinds(repo, "unleased_write")} == {*expected, "last.py"})
    assert [e.resource for e in kinds(repo, "unleased_write")].count("d/new.py") == 2, "it has come, and gone"
    assert "without a lease" in repo.coord("explain", "gone.py").stdout


def test_a_directory_that_is_moved_out_is_gone_with_all_that_git_has_of_it(make_repo: Callable[..., Repo]) -> None:
    """The kernel tells of the directory alone."""
    repo = make_repo(config=QUICK)
    committed(repo, "d/a.py", "d/b.py", "e/c.py")
    (repo.root / "d/new.py").write_text("nobody has seen this\n")
    ann = repo.client("ann")
    ann.acquire("d/b.py")
    (repo.root / "d").rename(repo.root.parent / "away")
    until(lambda: {e.resource for e in kinds(repo, "unleased_write")} == {"d/a.py"})
    assert {v[0]: v[1:] for e in kinds(repo, "versions_seen") for v in e.data["versions"]} == {
        "d/a.py": [None, None], "d/b.py": [None, "ann"]}


def test_by_policy_a_move_is_flagged_by_both_names(make_repo: Callable[..., Repo]) -> None:
    repo = make_repo(config='[watch]\ndebounce_s = 0.05\nunleased = "review"\n')
    committed(repo, "old.py", "gone.py")
    repo.client("ann").register()
    (repo.root / "old.py").rename(repo.root / "new.py")
    until(lambda: len(repo.client().call(rq.Reviews()).items) == 2)
    reviews = repo.client().call(rq.Reviews()).items
    assert {(file.path, file.change, file.kept) for review in reviews for file in review.files} == {
        ("old.py", "deleted", True), ("new.py", "created", True)}
    repo.coord("review", "revert", *[review.review for review in reviews])
    assert (repo.root / "old.py").read_text() == "old.py\n" and not (repo.root / "new.py").exists()
    (repo.root / "gone.py").unlink()
    (review,) = until(lambda: repo.client().call(rq.Reviews()).items)
    assert [(file.path, file.change, file.kept) for file in review.files] == [("gone.py", "deleted", True)]


def test_who_has_given_it_back_a_while_before_did_not_remove_it(make_repo: Callable[..., Repo]) -> None:
    repo = make_repo(config=QUICK)
    committed(repo, "a.py", "b.py")
    ann = repo.client("ann")
    ann.acquire("a.py", "b.py")
    (repo.root / "b.py").unlink()
    ann.release("a.py", "b.py")
    time.sleep(1.2)
    (repo.root / "a.py").unlink()
    until(lambda: [e.resource for e in kinds(repo, "unleased_write")] == ["a.py"])
    seen = {v[0]: v[2] for e in kinds(repo, "versions_seen") for v in e.data["versions"]}
    assert seen == {"a.py": None, "b.py": "ann"}


def test_a_write_that_is_seen_after_its_lease_was_released_is_still_the_holders(
    make_repo: Callable[..., Repo],
) -> None:
    # Given a watcher that looks late, and agents that write and release at once
    repo = make_repo(config="[watch]\ndebounce_s = 0.5\n")
    ann, bob = repo.client("ann"), repo.client("bob")
    ann.acquire("mine.py", "pack/")
    (repo.root / "mine.py").write_text("leased")
    (repo.root / "pack").mkdir()
    (repo.root / "pack" / "in.py").write_text("leased, with its directory")
    ann.release("mine.py", "pack/")
    bob.acquire("mine.py")
    (repo.root / "other.py").write_text("not leased")
    # Then only what nobody had leased counts as such, and the writer is told from its successor
    until(lambda: [e.resource for e in kinds(repo, "unleased_write")] == ["other.py"])
    seen = [tuple(v) for e in kinds(repo, "versions_seen") for v in e.data["versions"]]
    assert {("mine.py", "ann"), ("pack/in.py", "ann")} <= {(path, by) for path, _, by in seen}


def test_a_write_after_the_release_is_nobodys(make_repo: Callable[..., Repo]) -> None:
    repo = make_repo(config=QUICK)
    ann = repo.client("ann")
    ann.acquire("mine.py")
    released = ann.release("mine.py").released[0]
    until(lambda: iso(time.time_ns() // 1_000_000 - 20) > released.locked_at)
    (repo.root / "mine.py").write_text("too late")
    until(lambda: [e.resource for e in kinds(repo, "unleased_write")] == ["mine.py"])


def test_by_policy_it_is_flagged(make_repo: Callable[..., Repo]) -> None:
    repo = make_repo(config='[watch]\ndebounce_s = 0.05\nunleased = "review"\n')
    repo.client("ann").register()
    (repo.root / "other.py").write_text("not leased")
    review = until(lambda: repo.client().call(rq.Reviews()).items)[0]
    assert review.reason == "unleased" and review.files[0].path == "other.py"
    repo.coord("review", "revert", review.review)
    until(lambda: not (repo.root / "other.py").exists())


def test_what_git_has_is_shown_and_can_be_restored(make_repo: Callable[..., Repo]) -> None:
    repo = make_repo(config='[watch]\ndebounce_s = 0.05\nunleased = "review"\n')
    (repo.root / "old.py").write_text("committed\n")
    git = ["git", "-C", str(repo.root), "-c", "user.name=n", "-c", "user.email=e@x"]
    subprocess.run([*git, "add", "old.py"], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    repo.client("ann").register()
    (repo.root / "old.py").write_text("by nobody\n")
    until(lambda: repo.client().call(rq.Reviews()).items)
    shown = repo.coord("review", "show", "R-1").stdout
    assert "-committed" in shown and "+by nobody" in shown
    assert repo.coord("review", "revert", "R-1").returncode == 0
    assert (repo.root / "old.py").read_text() == "committed\n"


def test_what_is_as_git_has_it_is_no_change(make_repo: Callable[..., Repo]) -> None:
    """Type, mode and line endings are part of what git has."""
    repo = make_repo(config='[watch]\ndebounce_s = 0.05\nunleased = "review"\n')
    run, ends, link = (repo.root / name for name in ("run.sh", "ends.txt", "link"))
    (repo.root / ".gitattributes").write_text("*.txt text eol=crlf\n")
    run.write_text("true\n")
    run.chmod(0o755)
    ends.write_bytes(b"one\r\ntwo\r\n")
    link.symlink_to("run.sh")
    git = ["git", "-C", str(repo.root), "-c", "user.name=n", "-c", "user.email=e@x"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    repo.client("ann").register()
    # If each is written as it was
    run.write_text("true\n")
    ends.write_bytes(b"one\r\ntwo\r\n")
    link.unlink()
    link.symlink_to("run.sh")
    until(lambda: {e.resource for e in kinds(repo, "unleased_write")} >= {"run.sh", "ends.txt", "link"})
    (repo.root / "new.py").write_text("new")
    # I expect a review of what is new alone
    until(lambda: repo.client().call(rq.Reviews()).items)
    assert [r.files[0].path for r in repo.client().call(rq.Reviews()).items] == ["new.py"]


def test_a_mode_that_nobody_had_leased_comes_back(make_repo: Callable[..., Repo]) -> None:
    repo = make_repo(config='[watch]\ndebounce_s = 0.05\nunleased = "review"\n')
    run = repo.root / "run.sh"
    run.write_text("true\n")
    run.chmod(0o755)
    git = ["git", "-C", str(repo.root), "-c", "user.name=n", "-c", "user.email=e@x"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    repo.client("ann").register()
    run.unlink()
    run.write_text("false\n")
    until(lambda: repo.client().call(rq.Reviews()).items)
    assert "old mode 100755" in repo.coord("review", "show", "R-1").stdout
    assert repo.coord("review", "revert", "R-1").returncode == 0
    assert run.read_text() == "true\n" and os.access(run, os.X_OK)


def test_with_no_agent_about_nothing_is_said(make_repo: Callable[..., Repo]) -> None:
    repo = make_repo(config=QUICK)
    repo.coord("up")
    (repo.root / "other.py").write_text("a person edits")
    until(lambda: kinds(repo, "versions_seen"))
    assert kinds(repo, "unleased_write") == []


def test_the_archive_is_read_again_when_it_changes(make_repo: Callable[..., Repo]) -> None:
    repo = make_repo(config=QUICK)
    (repo.root / "context_archive").mkdir()
    repo.coord("up")
    (repo.root / "context_archive/new.md").write_text("# N\n\n## 3 Turbines\n\nThey spin.\n")
    until(lambda: repo.client().call(rq.ArchiveSearch(query="turbines")).items)
    repo.client("ann").acquire("blades.py", description="balancing the blades")
    hits = until(lambda: repo.client().call(rq.ArchiveSearch(query="balancing")).items)
    assert hits[0].source == "(living)"


def test_five_thousand_files_at_once(make_repo: Callable[..., Repo]) -> None:
    repo = make_repo(config=QUICK)
    (repo.root / ".gitignore").write_text("build/\n")
    repo.client("ann").register()
    for folder in ("src", "build"):
        (repo.root / folder).mkdir()
    until(lambda: repo.client().call(rq.Health()).watcher["mode"] == "inotify")
    for i in range(5000):
        (repo.root / f"src/{i}.txt").write_text(str(i))
        if i % 10 == 0:
            (repo.root / f"build/{i}.txt").write_text(str(i))

    def seen() -> int:
        return sum(
            v[0].startswith("src/") for e in kinds(repo, "versions_seen") for v in e.data["versions"]
        )

    until(lambda: seen() >= 5000, 60)
    assert not any(
        v[0].startswith("build/") for e in kinds(repo, "versions_seen") for v in e.data["versions"]
    )
    repo.client("bob").acquire("src/1.txt")


def test_what_was_seen_last_is_recorded_last(make_repo: Callable[..., Repo]) -> None:
    # Given much that changes at once, and while it is being recorded its last file changes again
    repo = make_repo(config=QUICK)
    repo.client("ann").register()
    until(lambda: repo.client().call(rq.Health()).watcher["mode"] == "inotify")
    for i in range(4000):
        (repo.root / f"{i}.txt").write_text(str(i))
    until(lambda: len(kinds(repo, "versions_seen")) > 0, 60)
    (repo.root / "3999.txt").write_text("changed since")

    def versions() -> list[str | None]:
        return [v[1] for e in kinds(repo, "versions_seen") for v in e.data["versions"]
                if v[0] == "3999.txt"]

    # Then the last version that is known is the last there was
    last = digest(b"changed since")
    until(lambda: last in versions(), 60)
    until(lambda: sum(len(e.data["versions"]) for e in kinds(repo, "versions_seen")) >= 4000, 60)
    assert versions()[-1] == last


@pytest.mark.parametrize("killed", [False, True])
def test_what_lapsed_while_no_coordinator_ran_is_in_the_first_list_of_reviews(make_repo: Callable[..., Repo], killed: bool) -> None:
    repo = make_repo()
    repo.write("a.py", "1\n")
    with repo.client("ann") as ann:
        ann.acquire("a.py", ttl=1)
        repo.write("a.py", "2\n")
    pid = repo.pid()
    if killed:
        os.kill(pid, 9)
    else:
        repo.down()
    until(lambda: gone(pid))
    time.sleep(1.2)
    with repo.client() as boss:
        assert [one.agent for one in boss.call(rq.Reviews()).items] == ["ann"]


@pytest.mark.parametrize("flags", [False, True])
def test_what_of_a_file_nobody_holds_is_told_by_its_region(make_repo: Callable[..., Repo], flags: bool) -> None:
    """Who holds a region holds no more of the file than that."""
    repo = make_repo(config=QUICK + ('unleased = "review"\n' if flags else ""))
    text = "def f():\n    return 1\n\n\ndef g():\n    return 1\n\n\ndef h():\n    return 1\n"
    repo.write("a.py", text)
    ann, bob = repo.client("ann"), repo.client("bob")
    ann.acquire("a.py::f")
    bob.acquire("a.py::h")

    def seen(new: str, *more: str) -> None:
        time.sleep(0.02)
        repo.write("a.py", new)
        version = digest(new.encode())
        until(lambda: any(version in str(one.data) for one in kinds(repo, "versions_seen")))
        until(lambda: [one.resource for one in kinds(repo, "unleased_write")] == list(more))

    seen(text.replace("f():\n    return 1", "f():\n    return 2"))
    both = text.replace("return 1", "return 3")
    seen(both, "a.py::g")
    ann.commit_region("a.py::f", "def f():\n    return 4\n", content_hash=digest(b"def f():\n    return 3\n\n\n"))
    bob.release("a.py::h")
    written = both.replace("f():\n    return 3", "f():\n    return 4")
    assert repo.read("a.py") == written
    seen(written.replace("g():\n    return 3", "g():\n    return 5"), "a.py::g", "a.py::g")
    reviews = repo.client().call(rq.Reviews()).items
    assert len(reviews) == (2 if flags else 0)
    assert all("a.py::g was changed while agents were active and nobody had leased it." in one.summary for one in reviews)
    assert repo.client().call(rq.Replay()).equal
