"""Attacks on the watcher, with real files: editors, floods, ignored noise, exhausted kernels."""

import errno
import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from watchdog.events import (
    DirCreatedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers.api import BaseObserver

from coordinator.daemon.watcher import Change, Manner, Watcher
from coordinator.files import watchdog_observers
from coordinator.files.canonical import Tree
from coordinator.files.ignore import Ignore

PATIENCE_S = 10.0


class Owner:
    """Collects batches, and waits for what it is to see."""

    def __init__(self) -> None:
        self.batches: list[list[Change]] = []
        self._came = threading.Condition()

    def __call__(self, batch: list[Change]) -> None:
        with self._came:
            self.batches.append(batch)
            self._came.notify_all()

    @property
    def changes(self) -> list[Change]:
        return [change for batch in self.batches for change in batch]

    def hears(self, what: Callable[[list[Change]], bool], seconds: float) -> bool:
        with self._came:
            return self._came.wait_for(lambda: what(self.changes), seconds)

    def waits_for(self, what: Callable[[list[Change]], bool]) -> None:
        assert self.hears(what, PATIENCE_S), self.changes

    def waits_for_path(self, path: str) -> None:
        self.waits_for(lambda seen: any(path in (c.path, c.to) for c in seen))

    def told(self) -> set[str]:
        return {f"{c.kind} {c.path}" + (f" {c.to}" if c.to else "") for c in self.changes}


Start = Callable[..., tuple[Watcher, Owner]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ein repo"
    (made / ".git/info").mkdir(parents=True)
    (made / ".coord").mkdir()
    (made / "src").mkdir()
    (made / "src/a.py").write_text("a")
    (made / "src/b.py").write_text("b")
    return made


@pytest.fixture
def start(root: Path) -> Iterator[Start]:
    begun: list[Watcher] = []

    def make(**options: Any) -> tuple[Watcher, Owner]:
        tree, owner = Tree(root), Owner()
        options.setdefault("debounce_s", 0.05)
        manner = Manner(**{name: options.pop(name) for name in Manner._fields if name in options})
        watcher = Watcher(tree, Ignore(tree), owner, manner=manner, **options)
        begun.append(watcher)
        watcher.start()
        return watcher, owner

    yield make
    for watcher in begun:
        watcher.stop()


def finish(root: Path, owner: Owner) -> None:
    """Wait until all that happened so far has been told: what happens last is told last."""
    (root / "last").write_text("")
    owner.waits_for_path("last")


def test_what_has_happened_is_told_at_once_where_that_is_asked_for(root: Path, start: Start) -> None:
    """Also what the kernel has not told of yet, when it is asked for; and nothing else is left, or told."""
    watcher, owner = start(debounce_s=30.0)
    for number in range(60):
        (root / "src/a.py").rename(root / f"src/{number}.py")
        (root / f"src/{number}.py").rename(root / "src/a.py")
        (root / f"n{number}").write_text("")
        watcher.flush(10.0)
        assert f"created n{number}" in owner.told()
    assert all(".coord" not in line for line in owner.told()) and not list(root.glob(".coord-*"))
    assert watcher._cookies == {}


def test_the_four_kinds(root: Path, start: Start) -> None:
    watcher, owner = start()
    assert watcher.health()["mode"] == "inotify"
    (root / "src/new.py").write_text("new")
    (root / "src/a.py").write_text("aa")
    (root / "src/b.py").rename(root / "c.py")
    finish(root, owner)
    (root / "c.py").unlink()
    owner.waits_for(lambda seen: Change("deleted", "c.py") in seen)
    assert owner.told() == {
        "created src/new.py", "modified src/a.py", "moved src/b.py c.py", "created last",
        "deleted c.py",
    }


def test_an_editor_that_renames_over_has_modified(root: Path, start: Start) -> None:
    _, owner = start()
    (root / "src/.a.py.tmp").write_text("new")
    os.replace(root / "src/.a.py.tmp", root / "src/a.py")
    finish(root, owner)
    assert owner.told() == {"modified src/a.py", "created last"}


def test_new_directories_are_watched(root: Path, start: Start) -> None:
    _, owner = start()
    (root / "one/two/three").mkdir(parents=True)
    (root / "one/two/three/x.py").write_text("x")
    owner.waits_for_path("one/two/three/x.py")
    (root / "one/two/three/y.py").write_text("y")
    owner.waits_for_path("one/two/three/y.py")
    (root / "one").rename(root / "eins")
    owner.waits_for(lambda seen: Change("moved", "one", "eins", True) in seen)
    (root / "eins/two/three/z.py").write_text("z")
    owner.waits_for_path("eins/two/three/z.py")


def test_noise_is_not_heard(root: Path, start: Start) -> None:
    # Given ignored files and directories, a `.git`, and a linked worktree inside
    (root / ".gitignore").write_text("*.log\nnode_modules/\n")
    (root / "node_modules/x").mkdir(parents=True)
    _, owner = start()
    (root / ".git/worktrees/w").mkdir(parents=True)
    (root / ".git/worktrees/w/gitdir").write_text(f"{root}/trees/w/.git\n")
    (root / "trees/w").mkdir(parents=True)
    # If all of them change
    for name in (
        ".git/index", ".coord/db", "a.log", "src/b.log", "node_modules/y", "node_modules/x/z",
        "trees/w/a.py",
    ):
        (root / name).write_text("noise")
    (root / "node_modules/new").mkdir()
    (root / "src/a.py").rename(root / "src/a.log")
    (root / "b.log").write_text("")
    (root / "b.log").rename(root / "src/b.py")
    finish(root, owner)
    # I expect to hear only of what left or came, seen from outside
    assert owner.told() - {"created trees"} == {
        "deleted src/a.py", "modified src/b.py", "created last",
    }


@pytest.mark.skipif(watchdog_observers._pruned is None, reason="watchdog's own observer watches all")
def test_the_kernel_watches_no_ignored_directories(root: Path) -> None:
    (root / "skipped/x/y").mkdir(parents=True)
    asked: list[str] = []

    def skip(directory: str) -> bool:
        asked.append(directory)
        return directory.endswith("/skipped")

    observer = watchdog_observers.native_observer(skip, lambda no: None)
    try:
        from watchdog.events import FileSystemEventHandler

        observer.schedule(FileSystemEventHandler(), str(root), recursive=True)
        observer.start()
        assert f"{root}/skipped" in asked
        assert not any("/skipped/" in path for path in asked)
    finally:
        observer.stop()
        observer.join(PATIENCE_S)


def test_a_changed_gitignore_counts(root: Path, start: Start) -> None:
    (root / ".gitignore").write_text("out/\n")
    (root / "out/deep").mkdir(parents=True)
    _, owner = start()
    (root / "out/deep/a").write_text("")
    (root / ".gitignore").write_text("*.py\n")
    owner.waits_for_path(".gitignore")
    finish(root, owner)
    # what was ignored is watched now, and what was watched is ignored
    (root / "out/deep/b").write_text("")
    owner.waits_for_path("out/deep/b")
    (root / "src/a.py").write_text("aaa")
    (root / "then").write_text("")
    owner.waits_for_path("then")
    assert not any("a.py" in c.path or c.path == "out/deep/a" for c in owner.changes)


def test_five_thousand_files_at_once(root: Path, start: Start) -> None:
    _, owner = start()
    for n in range(5000):
        (root / f"src/f{n}").write_text("x")
    finish(root, owner)
    if Change("overflow", "") not in owner.changes:
        seen = {change.path for change in owner.changes}
        assert len(seen & {f"src/f{n}" for n in range(5000)}) == 5000


def test_files_go_straight_on_and_overtake_nothing(root: Path) -> None:
    # Given an observer whose handler is slow with what goes through watchdog's queues
    heard: list[str] = []
    came = threading.Condition()

    def note(kind: str, path: str) -> None:
        with came:
            heard.append(f"{kind} {os.path.basename(path)}")
            came.notify_all()

    class Slow(FileSystemEventHandler):
        def dispatch(self, event: FileSystemEvent) -> None:
            threading.Event().wait(0.05)
            note(event.event_type, os.fsdecode(event.dest_path or event.src_path))

    def waits_for(what: Callable[[], bool]) -> None:
        with came:
            assert came.wait_for(what, PATIENCE_S), heard

    in_order = ["at once created one", "moved two", "deleted two", "created two", "created new", "deleted two"]
    observer = watchdog_observers.native_observer(
        lambda path: False, lambda no: None, lambda kind, path: note(f"at once {kind}", os.fsdecode(path))
    )
    wanted: list[type[FileSystemEvent]] = [FileCreatedEvent, FileDeletedEvent, FileMovedEvent, DirCreatedEvent]
    observer.schedule(Slow(), str(root), recursive=True, event_filter=wanted)
    observer.start()
    try:
        # When nothing else is under way, then a file's events come at once
        (root / "src/one").touch()
        waits_for(lambda: heard == in_order[:1])
        # When others are, then they keep their order
        os.rename(root / "src/one", root / "src/two")
        (root / "src/two").unlink()
        (root / "src/two").touch()
        (root / "new").mkdir()
        (root / "src/two").unlink()
        waits_for(lambda: len(heard) >= len(in_order))
        assert heard == in_order
        # And some time after these they come at once again
        for n in range(100):
            (root / f"src/{n}").touch()
            waits_for(lambda n=n: heard[-1].endswith(f"created {n}"))  # type: ignore[misc]
            if heard[-1].startswith("at once"):
                break
        assert heard[-1].startswith("at once")
    finally:
        observer.stop()
        observer.join()


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_done_each_path_that_is_another_now_is_told(root: Path, start: Start, seed: int) -> None:
    luck = random.Random(seed)
    places = [root / folder / name for folder in ("src", "lib", "lib/deep") for name in ("x", "y", "z")]
    for place in places:
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"{place.name} at first")

    def there() -> dict[str, str]:
        return {str(path.relative_to(root)): path.read_text()
                for path in sorted(root.rglob("*")) if path.is_file()}

    before = there()
    _, owner = start(debounce_s=0.02)
    for n in range(60):
        place = luck.choice(places)
        place.parent.mkdir(parents=True, exist_ok=True)
        act = luck.randrange(5)
        if act == 0:
            place.write_text(f"{n}")
        elif act == 1:  # as some editors write
            place.unlink(missing_ok=True)
            place.write_text(f"{n}")
        elif act == 2 and place.exists():
            place.rename(luck.choice([other for other in places if other.parent.exists()]))
        elif act == 3:
            place.unlink(missing_ok=True)
        elif act == 4 and n % 3 == 0 and (root / "lib/deep").exists():
            (root / "lib/deep").rename(root / f"lib/moved{n}")
    (root / "over").write_text("all was done before this")
    owner.waits_for_path("over")
    now = there()
    changed = {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}
    told = {name for change in owner.changes for name in (change.path, change.to) if name}
    untold = {path for path in changed
              if not any(path == name or path.startswith(f"{name}/") for name in told)}
    assert not untold, (untold, owner.changes)


def test_too_much_is_told_as_one_overflow(root: Path, start: Start) -> None:
    watcher, owner = start(queue_max=20, debounce_s=0.2)
    for n in range(200):
        (root / f"src/f{n}").write_text("x")
    owner.waits_for(lambda seen: Change("overflow", "") in seen)
    assert watcher.health()["dropped"] > 0
    # and all is well again afterwards, as soon as the last of the flood has been heard
    for n in range(100):
        (root / "src/a.py").write_text(f"{n}")
        if owner.hears(lambda seen: any(change.path == "src/a.py" for change in seen), 0.5):
            return
    raise AssertionError(owner.changes)


def test_a_flooded_kernel_is_told_as_overflow(root: Path, start: Start) -> None:
    import logging

    _, owner = start()
    logging.getLogger("watchdog.observers.inotify_c").warning(
        "Inotify queue overflowed; filesystem events were lost"
    )
    owner.waits_for(lambda seen: Change("overflow", "") in seen)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE])
def test_without_watches_it_polls_and_says_so(root: Path, start: Start, code: int) -> None:
    def exhausted() -> BaseObserver:
        raise OSError(code, os.strerror(code))

    watcher, owner = start(native=exhausted, poll_s=0.05)
    health = watcher.health()
    assert health["mode"] == "polling"
    assert os.strerror(code) in health["detail"]
    (root / "src/new.py").write_text("")
    owner.waits_for_path("src/new.py")


@pytest.mark.skipif(watchdog_observers._pruned is None, reason="watchdog's own observer says nothing")
@pytest.mark.parametrize("when", ["at the start", "later"])
def test_watches_that_run_out_are_noticed(
    root: Path, start: Start, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    from watchdog.observers.inotify_c import InotifyFD

    real = InotifyFD.add_callback
    refusing = threading.Event()

    def add(self: Any, path: bytes, *rest: Any) -> Any:
        if refusing.is_set() and not path.endswith(b"ein repo"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, path, *rest)

    monkeypatch.setattr(InotifyFD, "add_callback", add)
    if when == "at the start":
        refusing.set()
    watcher, owner = start(poll_s=0.05)
    if when == "later":
        assert watcher.health()["mode"] == "inotify"
        refusing.set()
        (root / "more").mkdir()
        owner.waits_for(lambda seen: Change("overflow", "") in seen)
    assert watcher.health()["mode"] == "polling"
    (root / "src/new.py").write_text("")
    owner.waits_for_path("src/new.py")


def test_polling_passes_over_what_is_ignored(root: Path, start: Start) -> None:
    (root / ".gitignore").write_text("out/\n")
    (root / "out").mkdir()
    watcher, owner = start(poll=True, poll_s=0.05)
    assert watcher.health()["mode"] == "polling"
    assert "as configured" in watcher.health()["detail"]
    (root / "out/x").write_text("")
    (root / ".git/x").write_text("")
    (root / "src/a.py").write_text("changed")
    owner.waits_for_path("src/a.py")
    assert owner.told() == {"modified src/a.py"}


def test_an_owner_that_fails_does_not_stop_it(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    owner = Owner()

    def fails(batch: list[Change]) -> None:
        owner(batch)
        raise ValueError("oh")

    tree = Tree(root)
    watcher = Watcher(tree, Ignore(tree), fails, manner=Manner(debounce_s=0.02))
    watcher.start()
    try:
        (root / "one").write_text("")
        owner.waits_for_path("one")
        (root / "two").write_text("")
        owner.waits_for_path("two")
    finally:
        watcher.stop()
    assert "goes on" in caplog.text


def test_names_that_are_not_text_are_passed_over(root: Path, start: Start) -> None:
    _, owner = start()
    with open(os.path.join(os.fsencode(root), b"b\xe4d"), "wb"):
        pass
    (root / "gut ä").write_text("")
    owner.waits_for_path("gut ä")
    assert owner.told() == {"created gut ä"}


def test_stopping_leaves_no_thread(root: Path, start: Start) -> None:
    before = set(threading.enumerate())
    watcher, _ = start()
    assert set(threading.enumerate()) - before
    watcher.stop()
    watcher.stop()
    left = set(threading.enumerate()) - before
    for thread in left:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in left)
    assert watcher.health()["mode"] == "off"


def test_a_root_that_is_gone_is_said(root: Path, start: Start) -> None:
    watcher, owner = start()
    root.rename(root.parent / "away")
    (root.parent / "away").rename(root)
    (root / "src/a.py").write_text("still here")
    owner.waits_for_path("src/a.py")
    assert watcher.health()["mode"] == "inotify"
