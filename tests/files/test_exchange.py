"""Compare-and-exchange of one file, attacked: people who save in every gap between two operations,
crashes at each, disks that refuse, file systems that cannot exchange names."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.files import compare_exchange, syscalls
from coordinator.files.beneath import Root
from coordinator.files.blobs import BlobFolder
from coordinator.files.compare_exchange import Exchanger
from coordinator.files.content import digest, link_digest, snapshot
from coordinator.files.verdict_steps import Outcome, Step, fitting_mode, is_mixed
from tests.files.faults import Crash, FaultyKernel

OLD, NEW, THEIRS = b"old\n", b"new and longer\n", b"somebody saved this\n"
CONTENTS = {digest(data): data for data in (OLD, NEW, THEIRS, b"")}
CONTENTS |= {name + "+x": data for name, data in CONTENTS.items()}
CONTENTS |= {link_digest(b"target"): b"target"}
ASIDE = ".coord-R-1-0-aa.tmp"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    made.mkdir()
    return made


def run(tree: Path, step: Step, *, after_crash: bool = False) -> tuple[Outcome, Exchanger]:
    with Root(tree) as root:
        by = Exchanger(root, BlobFolder(tree.parent / "blobs"), CONTENTS.__getitem__, after_crash)
        outcome = by.run(step)
        by.sync()
    return outcome, by


def put(tree: Path, name: str | None, path: str = "f") -> None:
    """Let there be a content of this name."""
    place = tree / path
    if name is None:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if name.startswith("link:"):
        place.symlink_to(os.fsdecode(CONTENTS[name]))
    else:
        place.write_bytes(CONTENTS[name])
        place.chmod(0o755 if name.endswith("+x") else 0o644)


def there(tree: Path, path: str = "f") -> str | None:
    return snapshot(tree / path, 1 << 20).name


NAMES = [None, digest(OLD), digest(NEW), digest(NEW) + "+x", digest(b""), link_digest(b"target")]
PAIRS = [(old, new) for old in NAMES for new in NAMES if old != new]


@pytest.fixture(params=["exchange", "no exchange"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With `renameat2`, and on a file system that knows none of its flags."""
    if request.param == "no exchange":
        def refuse(place: int, one: bytes, other: bytes, flags: int) -> None:
            raise OSError(errno.EINVAL, "Invalid argument")

        monkeypatch.setattr(syscalls, "_rename", refuse)
    return str(request.param)


def step_for(old: str | None, new: str | None, **more: Any) -> Step:
    mode = fitting_mode(0o640, new) if new is not None and not new.startswith("link:") else 0
    return Step("f", old, new, mode, ASIDE, **more)


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_from_each_content_to_each(tree: Path, way: str, old: str | None, new: str | None) -> None:
    put(tree, old)
    outcome, _ = run(tree, step_for(old, new))
    assert outcome.state == "done" and outcome.names == 0 and there(tree) == new
    assert os.listdir(tree) == (["f"] if new else [])
    if new is not None and not new.startswith("link:"):
        assert stat.S_IMODE((tree / "f").stat().st_mode) == fitting_mode(0o640, new)
    assert run(tree, step_for(old, new))[0].state == "done", "once more changes nothing"


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_what_somebody_changed_stays(tree: Path, way: str, old: str | None, new: str | None) -> None:
    put(tree, digest(THEIRS))
    outcome, _ = run(tree, step_for(old, new))
    assert outcome.state == "changed" and outcome.why
    assert there(tree) == digest(THEIRS) and os.listdir(tree) == ["f"]


def test_what_somebody_deleted_stays_deleted(tree: Path, way: str) -> None:
    outcome, _ = run(tree, step_for(digest(OLD), digest(NEW)))
    assert outcome.state == "changed" and os.listdir(tree) == []
    assert run(tree, step_for(digest(OLD), None))[0].state == "done"


def save(tree: Path) -> Callable[[], None]:
    """As most editors do: a new file in the place of the old."""
    def act() -> None:
        (tree / "theirs~").write_bytes(THEIRS)
        (tree / "theirs~").replace(tree / "f")
    return act


def save_in_place(tree: Path) -> Callable[[], None]:
    def act() -> None:
        with (tree / "f").open("wb") as file:
            file.write(THEIRS)
    return act


@pytest.mark.parametrize("how", [save, save_in_place])
@pytest.mark.parametrize(("old", "new"), [
    (digest(OLD), digest(NEW)), (digest(OLD), None), (None, digest(NEW)),
    (digest(NEW) + "+x", digest(OLD)),
])
def test_saving_between_any_two_operations_loses_nothing(
    tmp_path: Path, way: str, old: str | None, new: str | None,
    how: Callable[[Path], Callable[[], None]],
) -> None:
    """A person saves just before the first operation on the disk, then before the second, …"""
    met = set()
    for nth in range(1, 200):
        tree = tmp_path / f"{nth}" / "tree"
        tree.mkdir(parents=True)
        put(tree, old)
        with FaultyKernel(nth, how(tree)) as faults:
            outcome, by = run(tree, step_for(old, new))
        if not faults.struck:
            break
        kept = [(by.blobs.place(one.name)).read_bytes() for one in by.saved]
        found = (tree / "f").read_bytes() if (tree / "f").is_file() else None
        met.add(outcome.state)
        assert found == THEIRS or THEIRS in kept, (nth, outcome, faults.said)
        assert [n for n in os.listdir(tree) if n != "f"] == [], (nth, faults.said)
        if outcome.state == "done":
            assert found == THEIRS, "saved after it: theirs is the newest"
    else:
        raise AssertionError("it never ended")
    assert nth > 5 and "changed" in met


def test_saving_again_and_again_keeps_each(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody saves whenever names are exchanged: the last stays, those before are kept."""
    put(tree, digest(OLD))
    real = syscalls.exchange
    count = 0

    def meddled(place: int, one: bytes, other: bytes) -> None:
        nonlocal count
        count += 1
        if count <= 4:
            (tree / "x").write_bytes(b"version %d" % count)
            (tree / "x").replace(tree / "f")
        real(place, one, other)

    monkeypatch.setattr(syscalls, "exchange", meddled)
    outcome, by = run(tree, step_for(digest(OLD), digest(NEW)))
    kept = {by.blobs.place(one.name).read_bytes() for one in by.saved}
    assert outcome.state == "changed"
    assert (tree / "f").read_bytes() == b"version 4" and os.listdir(tree) == ["f"]
    assert kept == {b"version 3"}, "the others were overwritten by whoever saved them"


@pytest.mark.parametrize("write", [True, False])
def test_a_file_that_another_program_is_writing_is_left_to_it(
    tree: Path, monkeypatch: pytest.MonkeyPatch, write: bool
) -> None:
    """It was opened before, and is written to only after it was compared."""
    monkeypatch.setattr(compare_exchange, "WRITER_S", 0.05)
    put(tree, digest(OLD))
    with (tree / "f").open("r+b") as file:
        outcome, _ = run(tree, step_for(digest(OLD), digest(NEW)))
        if write:
            file.write(THEIRS)
    assert outcome.state == "changed" and "writing it just now" in outcome.why
    assert (tree / "f").read_bytes() == (THEIRS if write else OLD)
    with (tree / "f").open("rb"):  # a reader is no hindrance
        outcome, _ = run(tree, step_for(there(tree), digest(NEW)))
    assert outcome.state == "done" and os.listdir(tree) == ["f"]


def test_a_directory_without_files_gives_way(tree: Path) -> None:
    (tree / "f/a/b").mkdir(parents=True)
    assert run(tree, step_for(None, digest(NEW)))[0].state == "done"
    (tree / "f").unlink()
    (tree / "f/a").mkdir(parents=True)
    (tree / "f/a/theirs").write_text("")
    outcome, _ = run(tree, step_for(None, digest(NEW)))
    assert outcome.state == "changed" and "a directory with other files" in outcome.why
    assert (tree / "f/a/theirs").exists() and os.listdir(tree) == ["f"]


def test_no_link_above_is_written_through(tree: Path) -> None:
    outside = tree.parent / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(OLD)
    (tree / "d").symlink_to(outside)
    for old, new in ((digest(OLD), digest(NEW)), (digest(OLD), None), (None, digest(NEW))):
        outcome, _ = run(tree, Step("d/f", old, new, 0o644, ASIDE))
        assert outcome.state == "barred"
        assert (outside / "f").read_bytes() == OLD and os.listdir(outside) == ["f"]


# --------------------------------------------------------------- several names for one file


def test_all_names_of_a_file_get_the_new_content(tree: Path) -> None:
    put(tree, digest(OLD))
    os.link(tree / "f", tree / "second")
    outcome, _ = run(tree, step_for(digest(OLD), digest(NEW) + "+x", in_place=True))
    assert outcome == Outcome("done")
    assert (tree / "second").read_bytes() == NEW and (tree / "second").samefile(tree / "f")
    assert os.access(tree / "second", os.X_OK)
    run(tree, step_for(digest(NEW) + "+x", digest(OLD), in_place=True))
    assert (tree / "second").read_bytes() == OLD and not os.access(tree / "f", os.X_OK)


def test_another_name_that_keeps_the_old_content_is_told(tree: Path) -> None:
    put(tree, digest(OLD))
    os.link(tree / "f", tree / "second")
    outcome, _ = run(tree, step_for(digest(OLD), digest(NEW)))
    second = (tree / "second").stat()
    assert outcome == Outcome("done", out=(second.st_dev, second.st_ino), names=1)
    assert (tree / "second").read_bytes() == OLD


@pytest.mark.parametrize(("torn", "ours"), [
    (OLD, True), (NEW, True), (NEW[:4], True), (NEW[:9], True), (b"nld\n", True), (NEW[:3], False),
    (b"", False), (OLD[:2], False), (THEIRS, False), (OLD + b"x", False), (NEW + b"x", False),
])
def test_a_file_torn_by_our_own_crash_is_known(tree: Path, torn: bytes, ours: bool) -> None:
    """Nothing else is taken for it: not a person's shortened file either."""
    (tree / "f").write_bytes(torn)
    fd = os.open(tree / "f", os.O_RDONLY)
    try:
        assert is_mixed(fd, OLD, NEW) is ours
    finally:
        os.close(fd)
    step = step_for(digest(OLD), digest(NEW), in_place=True)
    os.link(tree / "f", tree / "second")
    exact = torn in (OLD, NEW)
    assert (run(tree, step)[0].state == "done") is exact
    (tree / "f").write_bytes(torn)
    assert (run(tree, step, after_crash=True)[0].state == "done") is ours
    assert (tree / "f").read_bytes() == (NEW if ours else torn)


def test_a_file_that_is_written_by_another_is_not_written_in_place(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare_exchange, "WRITER_S", 0.05)
    put(tree, digest(OLD))
    os.link(tree / "f", tree / "second")
    step = step_for(digest(OLD), digest(NEW), in_place=True)
    with (tree / "second").open("r+b"):
        outcome, _ = run(tree, step)
    assert outcome.state == "changed" and "writing it just now" in outcome.why
    assert (tree / "f").read_bytes() == OLD
    with (tree / "second").open("rb"):  # a reader is no hindrance for ever
        assert run(tree, step)[0].state == "done"


def test_whoever_opens_a_file_that_is_written_in_place_waits(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that opens it in the middle gets it only when it is whole."""
    put(tree, digest(OLD))
    os.link(tree / "f", tree / "second")
    seen: list[bytes] = []
    reader = threading.Thread(target=lambda: seen.append((tree / "second").read_bytes()))
    real = os.ftruncate

    def meanwhile(fd: int, size: int) -> None:
        reader.start()
        reader.join(0.2)
        assert seen == [], "it did not wait"
        real(fd, size)

    monkeypatch.setattr(os, "ftruncate", meanwhile)
    assert run(tree, step_for(digest(OLD), digest(NEW), in_place=True))[0].state == "done"
    reader.join()
    assert seen == [NEW]


# --------------------------------------------------------------- crashes and disks that refuse

FAULTY = [(digest(OLD), digest(NEW)), (digest(OLD), None), (None, digest(NEW)),
          (digest(OLD), link_digest(b"target")), (link_digest(b"target"), digest(NEW) + "+x"),
          (None, link_digest(b"target"))]
STEPS = [step_for(*pair) for pair in FAULTY]
STEPS += [step_for(digest(OLD), digest(NEW), in_place=True),
          step_for(digest(NEW) + "+x", digest(OLD), in_place=True)]


def each_operation(tmp_path: Path, act: Callable[[], None], old: str | None,
                   step: Step) -> Iterator[tuple[Path, FaultyKernel, Any]]:
    for nth in range(1, 200):
        tree = tmp_path / f"{nth}" / "tree"
        tree.mkdir(parents=True)
        put(tree, old)
        if step.in_place:
            os.link(tree / "f", tree / "second")
        outcome: Any = None
        with FaultyKernel(nth, act) as faults:
            try:
                outcome, _ = run(tree, step)
            except (Crash, OSError) as bad:
                outcome = bad
        if not faults.struck:
            assert nth > 5
            return
        yield tree, faults, outcome
    raise AssertionError("it never ended")


def reverse(step: Step) -> Step:
    return step.reversed(fitting_mode(0o640, step.old or ""))


def crash() -> None:
    raise Crash


def full() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_a_crash_at_any_operation_is_gone_on_from(
    tmp_path: Path, way: str, step: Step, back: bool
) -> None:
    old, new = step.old, step.new
    for tree, faults, _ in each_operation(tmp_path, crash, old, step):
        assert there(tree) in (old, new, None) or step.in_place, faults.said
        again = reverse(step) if back else step
        outcome, by = run(tree, again, after_crash=True)
        assert outcome.state == "done", (faults.said, outcome)
        assert there(tree) == (old if back else new) and by.saved == []
        assert set(os.listdir(tree)) <= {"f", "second"}, faults.said


@pytest.mark.parametrize(("old", "new"), FAULTY)
def test_a_person_who_saves_after_a_crash_keeps_what_they_saved(
    tmp_path: Path, way: str, old: str | None, new: str | None
) -> None:
    for tree, faults, _ in each_operation(tmp_path, crash, old, step_for(old, new)):
        save(tree)()
        outcome, _ = run(tree, step_for(old, new), after_crash=True)
        assert outcome.state == "changed", (faults.said, outcome)
        assert (tree / "f").read_bytes() == THEIRS and os.listdir(tree) == ["f"], faults.said


@pytest.mark.parametrize("step", STEPS)
def test_a_disk_that_refuses_once_is_no_harm(tmp_path: Path, way: str, step: Step) -> None:
    old = step.old
    for tree, faults, outcome in each_operation(tmp_path, full, old, step):
        if isinstance(outcome, Outcome) and outcome.state == "failed":
            assert "no space" in outcome.why
        outcome, _ = run(tree, reverse(step), after_crash=True)
        assert outcome.state == "done" and there(tree) == old, (faults.said, outcome)
        assert set(os.listdir(tree)) <= {"f", "second"}, faults.said


def test_what_is_put_in_place_is_on_the_disk_before(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    def noted(module: Any, name: str, said: str) -> None:
        real = getattr(module, name)

        def call(*args: Any, **more: Any) -> Any:
            order.append(said)
            return real(*args, **more)

        monkeypatch.setattr(module, name, call)

    for module, name in ((os, "write"), (os, "fsync"), (syscalls, "exchange"), (os, "unlink")):
        noted(module, name, name)
    put(tree, digest(OLD))
    run(tree, step_for(digest(OLD), digest(NEW)))
    assert [name for name in order if name != "unlink"] == ["write", "fsync", "exchange", "fsync"]
    assert order.index("exchange") < len(order) - 1 - order[::-1].index("unlink")


def test_a_damaged_kept_content_is_not_written(tree: Path, tmp_path: Path) -> None:
    blobs = BlobFolder(tmp_path / "blobs")
    blobs.put(NEW)
    blobs.place(digest(NEW)).write_bytes(b"damaged by somebody")
    put(tree, digest(OLD))
    with Root(tree) as root:
        by = Exchanger(root, blobs, lambda name: blobs.place(name))
        outcome = by.run(step_for(digest(OLD), digest(NEW)))
    assert outcome.state == "failed" and "damaged" in outcome.why
    assert there(tree) == digest(OLD) and os.listdir(tree) == ["f"]
