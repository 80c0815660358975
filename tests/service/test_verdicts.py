"""Verdicts that write files, attacked: they cannot tear, lose what a person saves, or leave the tree.

Real files, a real database; a crash, a full disk or a person at each operation on the disk in turn.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.in_process import Worker
from coordinator.files import syscalls
from coordinator.kernel.use_cases import OnDisk, Write
from coordinator.settings import Reviewing, Settings
from coordinator.slices.review import verdicts
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.effort import EFFORT
from tests.files.faults import Crash, FaultyKernel
from tests.world import World

REVERT = rq.ReviewDecide(review="R-1", verdict="revert", by="eve")
UNDO = rq.ReviewUndo(review="R-1")


def to_now(world: World) -> None:
    """The clock as the disk has it, a moment after what was written there."""
    time.sleep(0.05)
    world.clock.advance(time.time_ns() // 1_000_000 - world.clock.now_ms())


def lapse(world: World) -> rq.Review:
    """Let the leases end with what is there now; the review of it."""
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())
    shown = world.ask(rq.ReviewShow(review="R-1", content=True))
    assert isinstance(shown, rq.Review)
    return shown


def tree(world: World, below: str = "") -> dict[str, tuple[str, bytes, bool]]:
    """Every file and link: type, bytes, whether it is executable."""
    out = {}
    top = os.path.join(os.fsencode(world.root), os.fsencode(below))
    for folder, folders, files in os.walk(top):
        if os.path.basename(folder) == b".coord":
            folders.clear()
            continue
        for name in files + [f for f in folders if os.path.islink(os.path.join(folder, f))]:
            path = os.path.join(folder, name)
            shown = os.path.relpath(path, os.fsencode(world.root)).decode("utf-8", "backslashreplace")
            if os.path.islink(path):
                out[shown] = ("link", os.readlink(path), False)
            else:
                with open(path, "rb") as file:
                    out[shown] = ("file", file.read(), os.access(path, os.X_OK))
    return out


def held_by_coord(world: World) -> list[str]:
    return [row.file_path for row in world.live() if row.locked_by.startswith("coord/")]


def half_done(world: World) -> tuple[dict[str, Any], dict[str, Any]]:
    """A review with every kind of step; how it was at the lease, and when it was flagged."""
    world.write("d/changed", "one\n")
    world.write("d/gone", "bye\n")
    world.write("d/run.sh", "true\n")
    (world.root / "d/run.sh").chmod(0o755)
    world.write("d/same", "same\n")
    os.symlink("same", world.root / "d/link")
    world.write("d/dir/inner", "inner\n")
    world.write("d/file", "file\n")
    world.write("d/was_dir/inner", "inner\n")
    os.symlink("dir", world.root / "d/was_link")
    world.acquire("ann", "d/", ttl_s=5)
    before = tree(world)
    world.write("d/changed", "two\n")
    (world.root / "d/gone").unlink()
    (world.root / "d/run.sh").chmod(0o644)
    (world.root / "d/link").unlink()
    os.symlink("changed", world.root / "d/link")
    shutil.rmtree(world.root / "d/dir")
    world.write("d/dir", "a file now\n")
    (world.root / "d/file").unlink()
    world.write("d/file/inner", "a directory now\n")
    world.write("d/new", "new\n")
    shutil.rmtree(world.root / "d/was_dir")
    os.symlink("file", world.root / "d/was_dir")
    (world.root / "d/was_link").unlink()
    world.write("d/was_link/inner", "inner\n")
    partial = tree(world)
    lapse(world)
    return before, partial


# ----------------------------------------------------------------------- links that lead out


def test_a_parent_that_became_a_link_leads_nowhere(world: World) -> None:
    # Given partial work below a directory, leased file by file, and one that was absent
    outside = world.root.parent / "outside"
    outside.mkdir()
    (outside / "authorized_keys").write_text("mine")
    (outside / "known_hosts").write_text("mine, too")
    world.write("dd/authorized_keys", "EVIL")
    world.acquire("ann", "dd/authorized_keys", "dd/known_hosts", ttl_s=1)
    # If the directory is replaced by a link that leads out of the repository
    shutil.rmtree(world.root / "dd")
    (world.root / "dd").symlink_to(outside)
    review = lapse(world)
    # I expect that nothing outside is read, shown or kept
    (file,) = review.files
    assert (file.path, file.change, file.flagged) == ("dd/authorized_keys", "deleted", None)
    assert "mine" not in str(review)
    assert not world.db.execute("SELECT 1 FROM blobs WHERE size IN (4, 9) AND hash NOT IN "
                                "(SELECT baseline_hash FROM review_files)").get
    # and nothing is written there
    refusal = world.refused(REVERT)
    assert refusal.code is Code.VERSION_CHANGED and "symlink" in refusal.message
    assert (outside / "authorized_keys").read_text() == "mine"
    assert sorted(os.listdir(outside)) == ["authorized_keys", "known_hosts"]
    # When the directory is back, the revert works, and so does its undo after another such swap
    (world.root / "dd").unlink()
    world.ask(REVERT)
    assert (world.root / "dd/authorized_keys").read_text() == "EVIL"
    (world.root / "dd").rename(world.root / "ee")
    (world.root / "dd").symlink_to(outside)
    assert world.refused(UNDO).code is Code.VERSION_CHANGED
    assert (outside / "authorized_keys").read_text() == "mine"


def test_of_a_leased_directory_that_became_a_link_the_link_alone_is_listed(world: World) -> None:
    outside = world.root.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    world.write("dd/a", "one")
    world.acquire("ann", "dd/", ttl_s=1)
    shutil.rmtree(world.root / "dd")
    (world.root / "dd").symlink_to(outside)
    assert {f.path: f.change for f in lapse(world).files} == {"dd": "created", "dd/a": "deleted"}
    world.ask(REVERT)
    assert (world.root / "dd/a").read_text() == "one" and (outside / "secret").read_text() == "secret"
    world.ask(UNDO)
    assert (world.root / "dd").is_symlink() and (outside / "secret").read_text() == "secret"


def test_a_link_swapped_in_while_it_writes_is_not_followed(world: World) -> None:
    """Between any look and any write somebody may swap a directory for a link, and back."""
    outside = world.root.parent / "outside"
    outside.mkdir()
    (outside / "a").write_text("one\n")
    (outside / "b").write_text("half\n")
    world.write("dd/a", "one\n")
    world.write("dd/b", "one\n")
    world.acquire("ann", "dd/a", "dd/b", "dd/new", ttl_s=5)
    for name in ("a", "b", "new"):
        world.write(f"dd/{name}", "half\n")
    lapse(world)
    (world.root / "other").symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        place = os.open(world.root, os.O_RDONLY)
        while not stop.is_set():
            syscalls.exchange(place, b"dd", b"other")
        os.close(place)

    thread = threading.Thread(target=swap)
    thread.start()
    said = set()
    try:
        for _ in range(60):
            for request in (REVERT, UNDO):
                try:
                    world.ask(request)
                    said.add("done")
                except Refusal as refusal:
                    said.add(refusal.code.value)
    finally:
        stop.set()
        thread.join()
    assert said - {"done", "BAD_TRANSITION"}, "nobody met the link"
    assert {p.name: p.read_text() for p in outside.iterdir()} == {"a": "one\n", "b": "half\n"}
    # and it comes to its end, one way or the other
    if (world.root / "dd").is_symlink():
        place = os.open(world.root, os.O_RDONLY)
        syscalls.exchange(place, b"dd", b"other")
        os.close(place)
    world.resume()
    assert held_by_coord(world) == [] and world.replay_differs() == []
    texts = {(world.root / f"dd/{n}").read_text() for n in ("a", "b")}
    texts |= {path.read_text() for path in (world.root / "dd").glob("new")}
    state = world.ask(rq.ReviewShow(review="R-1")).state
    assert texts == {"half\n" if state == "open" else "one\n"}


# ---------------------------------------------------------------- there and back, every kind


def test_every_kind_of_file_goes_there_and_back(world: World) -> None:
    before, partial = half_done(world)
    reply = world.ask(REVERT)
    assert reply.state == "reverted" and reply.warnings == []
    assert tree(world) == before
    reply = world.ask(UNDO)
    assert reply.state == "open"
    assert tree(world) == partial
    world.ask(REVERT)
    assert tree(world) == before
    assert held_by_coord(world) == [] and world.replay_differs() == []


def test_a_chmod_alone_is_a_change(world: World) -> None:
    world.write("run.sh", "true\n")
    world.acquire("ann", "run.sh", ttl_s=5)
    (world.root / "run.sh").chmod(0o755)
    review = lapse(world)
    (file,) = review.files
    assert file.change == "modified" and file.diff == "old mode 100644\nnew mode 100755\n"
    assert file.flagged_hash == f"{file.baseline_hash}+x"
    world.ask(REVERT)
    assert not os.access(world.root / "run.sh", os.X_OK)
    world.ask(UNDO)
    assert os.access(world.root / "run.sh", os.X_OK)


@pytest.mark.parametrize("mode", [0o755, 0o700, 0o600, 0o640, 0o444])
def test_a_deleted_file_comes_back_open_to_nobody_else(world: World, mode: int) -> None:
    world.write("d/secret", "secret\n")
    (world.root / "d/secret").chmod(mode)
    world.acquire("ann", "d/", ttl_s=5)
    (world.root / "d/secret").unlink()
    lapse(world)
    world.ask(REVERT)
    assert (world.root / "d/secret").stat().st_mode & 0o7777 == mode


def test_permission_bits_come_back_with_an_undo(world: World) -> None:
    world.write("f", "one\n")
    world.acquire("ann", "f", ttl_s=5)
    world.write("f", "half\n")
    (world.root / "f").chmod(0o600)
    lapse(world)
    world.ask(REVERT)
    assert (world.root / "f").stat().st_mode & 0o7777 == 0o600, "what is not content stays"
    world.ask(UNDO)
    assert (world.root / "f").stat().st_mode & 0o7777 == 0o600


def test_an_undo_gives_each_file_its_own_permission_bits(world: World) -> None:
    world.write("d/keep", "x")
    world.acquire("ann", "d/", ttl_s=5)
    for name, mode in (("a", 0o600), ("b", 0o644), ("c", 0o640), ("d", 0o755), ("e", 0o700)):
        world.write(f"d/{name}", "the same\n")
        (world.root / f"d/{name}").chmod(mode)
    lapse(world)
    world.ask(REVERT)
    assert os.listdir(world.root / "d") == ["keep"]
    world.ask(UNDO)
    assert {name: (world.root / f"d/{name}").stat().st_mode & 0o7777 for name in "abcde"} == {
        "a": 0o600, "b": 0o644, "c": 0o640, "d": 0o755, "e": 0o700}


def test_names_that_no_lease_can_have(world: World) -> None:
    # Given files with names of all kinds below a leased directory
    names = [b"b\xe4d", b"-dash", b"new\nline", b"x" * 255, "e\u0301".encode(), "\u00e9".encode(),
             b"sp ace", b"quo\"te", b"tab\t", b"\\", "\uef80".encode(), b"\xff\xfe"]
    folder = os.path.join(os.fsencode(world.root), b"d")
    os.mkdir(folder)

    def put(name: bytes, text: bytes) -> None:
        with open(os.path.join(folder, name), "wb") as file:
            file.write(text)

    for name in names[:-1]:
        put(name, b"one\n")
    world.acquire("ann", "d/", ttl_s=5)
    before = tree(world)
    for name in names:
        put(name, b"half\n")
    partial = tree(world)
    # I expect each to be flagged, reverted and given back
    assert len(lapse(world).files) == len(names)
    world.ask(REVERT)
    assert tree(world) == before
    world.ask(UNDO)
    assert tree(world) == partial
    assert world.replay_differs() == []
    # and none to be leased by a name that means another
    assert world.refused(rq.Acquire(agent="bob", resources=["d/b\uefe4d"])).code is Code.INVALID


def test_two_spellings_of_one_name_are_held_once(world: World) -> None:
    for name in ("e\u0301", "\u00e9"):
        world.write(f"d/{name}", "one\n")
    world.acquire("ann", "d/", ttl_s=5)
    for name in ("e\u0301", "\u00e9"):
        world.write(f"d/{name}", "half\n")
    lapse(world)
    world.ask(REVERT)
    assert {t[1] for t in tree(world).values()} == {b"one\n"}


# ------------------------------------------------------------------------------ large files


def large(world: World, **more: Any) -> None:
    world.service.settings = Settings(review=Reviewing(file_bytes_max=1000, **more))


def test_large_files_are_kept_reverted_and_given_back(world: World) -> None:
    large(world)
    one, two = os.urandom(300_000), os.urandom(200_000)
    world.write("d/x", "")
    (world.root / "d/x").write_bytes(one)
    (world.root / "d/gone").write_bytes(two)
    world.acquire("ann", "d/", ttl_s=5)
    (world.root / "d/x").write_bytes(two)
    (world.root / "d/x").chmod(0o755)
    (world.root / "d/gone").unlink()
    (world.root / "d/new").write_bytes(one + two)
    partial = tree(world)
    review = lapse(world)
    assert all(file.kept for file in review.files)
    (x,) = [file for file in review.files if file.path == "d/x"]
    assert x.baseline is None and Path(str(x.baseline_at)).read_bytes() == one
    world.ask(REVERT)
    assert tree(world) == {"d/x": ("file", one, False), "d/gone": ("file", two, False)}
    world.ask(UNDO)
    assert tree(world) == partial
    assert not [row for row in world.db.execute("SELECT length(data) FROM blobs") if row[0] > 1000]


def test_what_nothing_needs_any_more_leaves_the_folder(world: World) -> None:
    from coordinator.kernel import repository_files

    large(world)
    (world.root / "f").write_bytes(os.urandom(100_000))
    world.acquire("ann", "f", ttl_s=5)
    world.ask(rq.Release(agent="ann", resources=["f"]))
    folder = world.service.blobs
    assert folder.bytes_kept() == 100_000
    world.ask(rq.Compact(keep_days=1))
    for path in folder.path.iterdir():
        os.utime(path, (1, 1))
    world.clock.at_ms = 10**12
    assert repository_files.tidy(world.service, world.view()) == 100_000
    assert folder.bytes_kept() == 0


def test_over_the_budget_it_is_said_and_nothing_is_destroyed(world: World) -> None:
    # Given a large file whose partial work no longer fits into the budget
    one, two = os.urandom(100_000), os.urandom(100_000)
    large(world, kept_bytes_max=150_000)
    (world.root / "f").write_bytes(one)
    world.acquire("ann", "f", ttl_s=5)
    (world.root / "f").write_bytes(two)
    review = lapse(world)
    # I expect it to be flagged, with words
    assert not review.files[0].kept and "kept_bytes_max" in review.files[0].note
    # and no verdict to destroy what is kept nowhere
    refusal = world.refused(REVERT)
    assert refusal.code is Code.LIMIT and "kept_bytes_max" in refusal.message
    assert (world.root / "f").read_bytes() == two
    # until there is room
    large(world)
    world.ask(REVERT)
    assert (world.root / "f").read_bytes() == one
    world.ask(UNDO)
    assert (world.root / "f").read_bytes() == two


def over_the_budget(world: World) -> None:
    """Partial work of ann's on `f` that is kept nowhere but in `f`."""
    large(world, kept_bytes_max=150_000)
    (world.root / "f").write_bytes(os.urandom(100_000))
    world.acquire("ann", "f", ttl_s=5)
    (world.root / "f").write_bytes(os.urandom(100_000))


def test_a_file_whose_partial_work_is_kept_nowhere_is_given_to_nobody(world: World) -> None:
    """A new holder would destroy it without anybody having seen it."""
    over_the_budget(world)
    assert not lapse(world).files[0].kept
    refusal = world.refused(rq.Acquire(agent="bob", resources=["f"]))
    assert refusal.code is Code.REVIEW_OPEN and "kept_bytes_max" in refusal.message
    world.ask(rq.ReviewDecide(review="R-1", verdict="keep"))
    assert world.acquire("bob", "f").leases


def test_nor_with_a_claim_a_place_in_line_or_an_approval(world: World) -> None:
    # Given a task and a waiter for such a file
    over_the_budget(world)
    task = world.task("wants it", "f")
    waits = world.refused(rq.Acquire(agent="bob", resources=["f"], retry=True))
    assert waits.code is Code.LOCKED
    world.clock.advance(6_000)
    world.ask(rq.Sweep())
    # I expect none of them to get it
    assert [row.locked_by for row in world.live()] == []
    named = world.refused(rq.TaskClaim(agent="bob", task=task))
    assert named.code is Code.REVIEW_OPEN and named.facts["reviews"] == ["R-1"]
    assert world.refused(rq.TaskClaim(agent="bob")).code is Code.NOTHING_TO_DO
    # until a person has looked
    world.ask(rq.ReviewDecide(review="R-1", verdict="keep"))
    assert [row.locked_by for row in world.live()] == ["bob"]
    # and an approval after the verdict was undone to give it to nobody either
    world.ask(rq.RequestFile(agent="eve", resource="f", reason="I need it"))
    world.ask(rq.ReviewUndo(review="R-1"))
    world.ask(rq.RequestAnswer(agent="bob", request="U-1", verdict="approve"))
    assert [row.locked_by for row in world.live()] == []
    assert world.replay_differs() == []


def test_whoever_leases_what_cannot_be_kept_is_told(world: World) -> None:
    """No revert could bring it back."""
    large(world, kept_bytes_max=150_000)
    for name in ("f", "d/one", "d/two"):
        world.write(name, "")
        (world.root / name).write_bytes(os.urandom(100_000))
    assert world.acquire("ann", "f").warnings == []
    (warning,) = world.acquire("bob", "d/one").warnings
    assert "d/one" in warning and "kept_bytes_max" in warning
    assert world.acquire("bob", "d/one").warnings == []  # told once
    (warning,) = world.acquire("bob", "d/").warnings
    assert "d/one and d/two" in warning


# ------------------------------------------------------------------- several names, one file


def test_all_names_of_a_leased_file_are_reverted(world: World) -> None:
    world.write("f", "one\n")
    os.link(world.root / "f", world.root / "second")
    world.acquire("ann", "f", ttl_s=5)
    with (world.root / "f").open("w") as file:  # in place: both names have it
        file.write("half\n")
    lapse(world)
    world.ask(REVERT)
    assert (world.root / "second").read_text() == "one\n"
    assert (world.root / "second").samefile(world.root / "f")
    world.ask(UNDO)
    assert (world.root / "second").read_text() == "half\n"
    assert world.replay_differs() == []


def test_names_within_one_directory_are_all_reverted(world: World) -> None:
    world.write("d/f", "one\n")
    os.link(world.root / "d/f", world.root / "d/second")
    world.acquire("ann", "d/", ttl_s=5)
    with (world.root / "d/f").open("w") as file:
        file.write("half\n")
    assert len(lapse(world).files) == 2
    assert world.ask(REVERT).warnings == []
    assert {t[1] for t in tree(world).values()} == {b"one\n"}
    world.ask(UNDO)
    assert {t[1] for t in tree(world).values()} == {b"half\n"}


def test_a_foreign_file_linked_in_is_not_written_through(world: World) -> None:
    """The agent replaced its file by another name of a file that it did not hold."""
    world.write("f", "one\n")
    world.write("precious", "precious\n")
    to_now(world)
    world.acquire("ann", "f", ttl_s=5)
    (world.root / "f").unlink()
    os.link(world.root / "precious", world.root / "f")
    lapse(world)
    (said,) = world.ask(REVERT).warnings
    assert "another name" in said
    assert str((world.root / "precious").stat().st_ino) in said
    assert (world.root / "precious").read_text() == "precious\n"
    assert (world.root / "f").read_text() == "one\n"


# -------------------------------------------------------------------- a person in between


def verdict(world: World, request: Any) -> rq.Review | Refusal:
    try:
        reply = world.ask(request)
    except Refusal as refusal:
        return refusal
    assert isinstance(reply, rq.Review)
    return reply


#: Of all operations on the disk, each so many-th is struck (`make test-chaos` strikes more of them);
#: each single one is in tests/files/test_exchange.py.
EVERY = max(1, round(13 / EFFORT))


def worlds(tmp_path: Path, start: int = 1) -> Iterator[tuple[int, World, Any, Any]]:
    """(operation to be struck, world with half-done work, how it was at the lease, how it is)."""
    first = World(tmp_path / "first")
    before, partial = half_done(first)
    now = first.clock.now_ms()
    first.close()
    for nth in range(start, 5000, EVERY):
        shutil.copytree(first.root, tmp_path / f"{nth}", symlinks=True)
        world = World(tmp_path / f"{nth}")
        world.clock.at_ms = now
        try:
            yield nth, world, before, partial
        finally:
            world.close()
            shutil.rmtree(world.root)


def saving(world: World, path: str) -> Callable[[], None]:
    def save() -> None:
        place = world.root / path
        if place.is_dir():
            shutil.rmtree(place)
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh = world.root / "theirs~"
        fresh.write_text("somebody's\n")
        fresh.replace(place)
    return save


@pytest.mark.parametrize("path", ["d/changed", "d/new", "d/run.sh"])
def test_what_a_person_saves_in_any_moment_stays(tmp_path: Path, path: str) -> None:
    met = set()
    for nth, world, before, partial in worlds(tmp_path):
        with FaultyKernel(nth, saving(world, path)) as faults:
            answer = verdict(world, REVERT)
        if not faults.struck:
            break
        now = tree(world)
        assert now.pop(path)[1] == b"somebody's\n", (faults.said, answer)
        whole = before if isinstance(answer, rq.Review) else partial
        assert now == {k: v for k, v in whole.items() if k != path}, (faults.said, answer)
        met.add(answer.state if isinstance(answer, rq.Review) else answer.code.value)
        if isinstance(answer, Refusal):
            assert path in answer.message and world.ask(rq.ReviewShow(review="R-1")).state == "open"
        assert held_by_coord(world) == [] and world.replay_differs() == []
    assert met >= {"VERSION_CHANGED", "reverted"}


def test_an_undo_says_which_files_it_cannot_give_back(world: World) -> None:
    half_done(world)
    world.ask(REVERT)
    before = tree(world)
    world.write("d/changed", "later work\n")
    world.write("d/gone", "later, too\n")
    refusal = world.refused(UNDO)
    assert refusal.code is Code.VERSION_CHANGED
    assert refusal.facts["paths"] == ["d/changed", "d/gone"]
    assert "d/changed" in refusal.message and "d/gone" in refusal.message
    assert {k: v for k, v in tree(world).items() if before[k] != v}.keys() == {"d/changed", "d/gone"}
    assert world.ask(rq.ReviewShow(review="R-1")).state == "reverted"


@pytest.mark.parametrize("request_", [REVERT, UNDO])
def test_nothing_is_written_while_somebody_holds_a_file(world: World, request_: Any) -> None:
    half_done(world)
    if request_ is UNDO:
        world.ask(REVERT)
    now = tree(world)
    world.acquire("bob", "d/new")
    refusal = world.refused(request_)
    assert refusal.code is Code.LOCKED and "bob" in refusal.message and tree(world) == now


def test_files_of_a_verdict_are_given_to_nobody_meanwhile(world: World) -> None:
    half_done(world)
    asked: list[Any] = []

    world.checked = False  # which looks at the disk, between the parts of a verdict

    def ask() -> None:
        if held_by_coord(world) and not asked:
            for resource in ("d/changed", "d/", "d/new"):
                request = rq.Acquire(agent="bob", resources=[resource], retry=False)
                asked.append(world.refused(request))
            asked.append(world.refused(rq.ReviewDecide(review="R-1", verdict="keep")))
            shown = world.ask(rq.ReviewShow(review="R-1"))
            assert shown.under_way == "revert" and shown.state == "open"

    with FaultyKernel(1, ask, for_good=True):
        world.ask(REVERT)
    *locked, kept = asked
    assert len(locked) == 3 and {one.code for one in locked} == {Code.LOCKED}
    assert locked[0].facts["conflicts"][0]["holder"] == "coord/R-1"
    assert kept.code is Code.BAD_TRANSITION and "carried out" in kept.message
    assert world.acquire("bob", "d/").leases
    assert world.refused(rq.Register(agent="coord/R-1")).code is Code.INVALID


def between_plan_and_begin(world: World, act: Callable[[], object]) -> Any:
    """The files were looked at; then something happens; then the verdict is to begin."""
    course = verdicts.carry_out(world.service, REVERT)
    plan = next(course)
    assert isinstance(plan, OnDisk)
    looked = plan.work(Worker(world.engine))
    act()
    begin = course.send(looked)
    assert isinstance(begin, Write)
    return world.part(begin)


def test_who_came_first_while_it_was_planned_is_heeded(world: World) -> None:
    before, _ = half_done(world)
    refusal = between_plan_and_begin(world, lambda: world.acquire("bob", "d/new"))
    assert refusal.code is Code.LOCKED and "bob" in refusal.message
    world.ask(rq.Release(agent="bob", resources=["d/new"]))
    keep = rq.ReviewDecide(review="R-1", verdict="keep")
    refusal = between_plan_and_begin(world, lambda: world.ask(keep))
    assert refusal.code is Code.BAD_TRANSITION and "kept already" in refusal.message
    world.ask(UNDO)
    refusal = between_plan_and_begin(world, lambda: between_plan_and_begin(world, lambda: None))
    assert refusal.code is Code.BAD_TRANSITION and "carried out" in refusal.message
    world.resume()
    assert tree(world) == before and held_by_coord(world) == []


def test_a_lease_that_lapsed_on_a_file_is_closed_first(world: World) -> None:
    half_done(world)
    world.acquire("bob", "d/changed", ttl_s=5)
    world.clock.advance(6_000)
    assert world.ask(REVERT).state == "reverted"
    assert [e.agent for e in world.ask(rq.Events(kind="lease_lapsed", limit=100)).items][-1] == "bob"
    assert world.replay_differs() == []


def test_files_stay_held_however_long_the_coordinator_was_away(world: World) -> None:
    before, _ = half_done(world)
    with FaultyKernel(150, crash), pytest.raises(Crash):
        world.ask(REVERT)
    world.clock.advance(3 * 86_400_000)
    world.restart()
    assert tree(world) == before and held_by_coord(world) == []
    assert [r.review for r in world.ask(rq.Reviews(state="all")).items] == ["R-1"]


# ---------------------------------------------------------------- crashes and full disks


def crash() -> None:
    raise Crash


@pytest.mark.parametrize("start", [1, 1 + EVERY // 2])
def test_a_crash_in_any_moment_is_gone_on_from(tmp_path: Path, start: int) -> None:
    went_on = set()
    for nth, world, before, partial in worlds(tmp_path, start):
        with FaultyKernel(nth, crash) as faults:
            try:
                verdict(world, REVERT)
            except Crash:
                assert faults.struck
        if not faults.struck:
            break
        world.restart()
        state = world.ask(rq.ReviewShow(review="R-1")).state
        went_on.add(state)
        assert tree(world) == (partial if state == "open" else before), faults.said
        assert held_by_coord(world) == [], faults.said
        # The verdict is as good as any other: what was there comes back whole
        if state == "reverted":
            world.ask(UNDO)
            assert tree(world) == partial, faults.said
        world.ask(REVERT)
        assert tree(world) == before
        assert world.replay_differs() == []
    assert went_on == {"open", "reverted"}


def test_a_link_in_the_way_of_taking_back_is_waited_for(world: World) -> None:
    """In the middle of a verdict a directory is replaced by a link: what is behind it is neither
    taken back blindly nor given up; it is gone on with when the directory is back."""
    outside = world.root.parent / "outside"
    outside.mkdir()
    for name in ("a/f", "b/f", "c/f"):
        world.write(name, "one\n")
    world.acquire("ann", "a/f", "b/f", "c/f", ttl_s=5)
    for name in ("a/f", "b/f", "c/f"):
        world.write(name, "half\n")
    lapse(world)

    def swap() -> None:
        if (world.root / "b/f").read_text() == "one\n" and not (world.root / "a").is_symlink():
            (world.root / "a").rename(world.root / "moved")
            (world.root / "a").symlink_to(outside)
            world.write("c/f", "somebody's\n")

    with FaultyKernel(1, swap, for_good=True):
        refusal = world.refused(REVERT)
    assert "half done" in refusal.message and "a/f: a link" in refusal.message
    assert refusal.code is Code.VERSION_CHANGED and held_by_coord(world)
    assert os.listdir(outside) == []
    assert world.refused(REVERT).code is Code.VERSION_CHANGED, "it is no better yet"
    (world.root / "a").unlink()
    (world.root / "moved").rename(world.root / "a")
    refusal = world.refused(REVERT)
    assert "c/f" in refusal.message and held_by_coord(world) == []
    assert [(world.root / f"{d}/f").read_text() for d in "abc"] == ["half\n", "half\n", "somebody's\n"]


def test_a_crash_while_it_is_taken_back_or_undone(tmp_path: Path) -> None:
    for nth, world, before, partial in worlds(tmp_path):
        world.ask(REVERT)
        with FaultyKernel(nth, crash) as faults, contextlib.suppress(Crash):
            verdict(world, UNDO)
        if not faults.struck:
            return
        # A second crash, in the middle of going on
        with FaultyKernel(nth // 2 + 1, crash), contextlib.suppress(Crash):
            world.restart()
        world.restart()
        state = world.ask(rq.ReviewShow(review="R-1")).state
        assert tree(world) == (partial if state == "open" else before), faults.said
        assert held_by_coord(world) == [] and world.replay_differs() == []


def full() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def broken() -> None:
    raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("act", [full, broken])
def test_a_disk_that_refuses_once_leaves_all_as_it_was_or_all_done(
    tmp_path: Path, act: Callable[[], None]
) -> None:
    met = set()
    for nth, world, before, partial in worlds(tmp_path):
        with FaultyKernel(nth, act) as faults:
            answer = verdict(world, REVERT)
        if not faults.struck:
            break
        world.resume()  # what could not be taken back is, once the disk answers
        state = world.ask(rq.ReviewShow(review="R-1")).state
        met.add((state, answer.code if isinstance(answer, Refusal) else None))
        assert tree(world) == (partial if state == "open" else before), (faults.said, answer)
        assert held_by_coord(world) == []
        if isinstance(answer, Refusal):
            assert answer.code in (Code.STORAGE, Code.LIMIT, Code.VERSION_CHANGED), faults.said
            verdict(world, REVERT)
            assert tree(world) == before
        world.ask(UNDO)
        assert tree(world) == partial and world.replay_differs() == []
    assert ("open", Code.STORAGE) in met


def test_a_disk_that_goes_on_refusing_is_told_and_gone_on_from(tmp_path: Path) -> None:
    stuck = 0
    for nth, world, before, partial in worlds(tmp_path):
        with FaultyKernel(nth, broken, for_good=True) as faults:
            answer = verdict(world, REVERT)
            if isinstance(answer, Refusal) and "half done" in answer.message:
                stuck += 1
                # Nobody is given these files, nor may the review be closed over it
                assert held_by_coord(world)
                kept = world.refused(rq.ReviewDecide(review="R-1", verdict="keep"))
                assert kept.code is Code.STORAGE
        if not faults.struck:
            break
        assert isinstance(answer, Refusal) and answer.code in (
            Code.STORAGE, Code.VERSION_CHANGED, Code.LIMIT), (faults.said, answer)
        world.resume()
        state = world.ask(rq.ReviewShow(review="R-1")).state
        assert tree(world) == (partial if state == "open" else before), (faults.said, answer)
        assert held_by_coord(world) == [] and world.replay_differs() == []
    assert stuck


def test_what_a_person_builds_on_a_half_done_verdict_stays(world: World) -> None:
    """The coordinator died in the middle; before it comes back, a person edits what was written."""
    for i in range(100):
        world.write(f"d/{i:03}", "one\n")
    world.acquire("ann", "d/", ttl_s=5)
    for i in range(100):
        world.write(f"d/{i:03}", "half\n")
    lapse(world)
    count = 0

    def late() -> None:
        nonlocal count
        count += (world.root / "d/080").read_text() == "one\n"
        if count == 1:
            raise Crash

    with FaultyKernel(1, late, for_good=True), pytest.raises(Crash):
        world.ask(REVERT)
    world.write("d/005", "built on that\n")
    world.restart()
    assert world.ask(rq.ReviewShow(review="R-1")).state == "reverted"
    now = tree(world)
    assert now.pop("d/005")[1] == b"built on that\n" and {t[1] for t in now.values()} == {b"one\n"}
    refusal = world.refused(UNDO)
    assert refusal.facts["paths"] == ["d/005"]


def test_what_nobody_knows_to_be_done_is_taken_back_with_the_rest(world: World) -> None:
    """As above, but the coordinator died before it had noted how far it was: one file was changed
    since, by whoever and on whatever, so all others go back."""
    for i in range(20):
        world.write(f"d/{i:02}", "one\n")
    world.acquire("ann", "d/", ttl_s=5)
    for i in range(20):
        world.write(f"d/{i:02}", "half\n")
    lapse(world)

    def late() -> None:
        if (world.root / "d/12").read_text() == "one\n":
            raise Crash

    with FaultyKernel(1, late, for_good=True), pytest.raises(Crash):
        world.ask(REVERT)
    world.write("d/03", "somebody's\n")
    (said,) = world.restart()
    assert isinstance(said, Refusal) and "d/03" in said.message
    now = tree(world)
    assert now.pop("d/03")[1] == b"somebody's\n" and {t[1] for t in now.values()} == {b"half\n"}
    assert world.ask(rq.ReviewShow(review="R-1")).state == "open" and not held_by_coord(world)


def test_compaction_spares_what_a_half_done_verdict_needs(world: World) -> None:
    """What is there now, and what was merged for it, is in no review: the journal needs it."""
    lines = [f"line {i}\n" for i in range(20)]
    world.write("a.py", "".join(lines))
    world.write("b.py", "one\n")
    world.acquire("ann", "a.py", "b.py", ttl_s=5)
    world.write("a.py", "".join(["HALF\n", *lines[1:]]))
    world.write("b.py", "half\n")
    lapse(world)
    theirs = "".join(["HALF\n", *lines[1:19], "after\n"])
    world.write("a.py", theirs)
    for nth in range(1, 400):
        with FaultyKernel(nth, crash), contextlib.suppress(Crash):
            world.ask(REVERT)
        world.service.at_work.clear()
        if world.view().has("verdict_get", "R-1"):
            break
    world.ask(rq.Compact(keep_days=1))
    assert world.restart()[0].state == "reverted"
    assert (world.root / "a.py").read_text() == "".join([*lines[:19], "after\n"])
    world.ask(UNDO)
    assert (world.root / "a.py").read_text() == theirs
    assert (world.root / "b.py").read_text() == "half\n"


def test_a_database_that_refuses_at_the_end_is_no_harm(world: World) -> None:
    from tests.world import Sabotage

    before, partial = half_done(world)
    for nth in range(1, 60):
        with Sabotage(world.db, nth) as sabotage:
            answer = verdict(world, REVERT)
        if sabotage.left > 0:
            break
        if isinstance(answer, Refusal):
            assert answer.code is Code.STORAGE
        world.resume()
        state = world.ask(rq.ReviewShow(review="R-1")).state
        assert tree(world) == (partial if state == "open" else before), nth
        assert held_by_coord(world) == []
        if state == "reverted":
            world.ask(UNDO)
        assert tree(world) == partial and world.replay_differs() == []
    assert nth > 10


@pytest.mark.parametrize("before", [None, "old\n"])
@pytest.mark.parametrize("wide", ["d/", "d/*"])
def test_what_was_made_and_taken_away_again_is_in_no_review_though_its_directory_was_leased_between(
        world: World, before: str | None, wide: str) -> None:
    """What a later lease around it began with was in the middle of the work."""
    world.write("d/old.txt", "old\n")
    if before is not None:
        world.write("d/new.txt", before)
    world.acquire("ann", "d/new.txt")
    world.write("d/new.txt", "mine\n")
    world.acquire("ann", wide)
    (world.root / "d/old.txt").unlink()
    if before is None:
        (world.root / "d/new.txt").unlink()
    else:
        world.write("d/new.txt", before)
    world.ask(rq.Leave(agent="ann", clean=False))
    (review,) = world.ask(rq.Reviews()).items
    assert [file.path for file in review.files] == ["d/old.txt"]
    world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert (world.root / "d/old.txt").read_text() == "old\n" and (world.root / "d/new.txt").exists() is (before is not None)
