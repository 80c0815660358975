"""Attacks on entering a working tree: links in parents, at the end, swapped in between; both ways of
the kernel."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.files import syscalls
from coordinator.files.beneath import Root
from coordinator.files.content import digest, link_digest
from coordinator.words import file_names
from tests.waiting import until

MANY = 1 << 20


@pytest.fixture(params=["openat2", "step by step"])
def root(request: pytest.FixtureRequest, tmp_path: Path,
         monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A tree, and beside it what must not be reached: with and without `openat2`."""
    if request.param == "step by step":
        monkeypatch.setattr(syscalls, "_has_openat2", False)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    made = tmp_path / "tree"
    (made / "d/e").mkdir(parents=True)
    (made / "d/e/f").write_text("inside")
    yield made


@pytest.mark.parametrize("target", ["../outside", "/", "d", ".", "/proc/self/root", "loop"])
def test_no_link_above_is_followed(root: Path, target: str) -> None:
    (root / "loop").symlink_to(target)
    below = "secret" if target == "../outside" else "d/e/f"
    with Root(root) as opened:
        for path in (f"loop/{below}", "loop/secret", "loop/x/y"):
            assert opened.snapshot(path, MANY).kind == "absent"
            assert opened.stat(path) is None and opened.identity(path) is None
            assert opened.link_above(path) == "loop"
            with pytest.raises(OSError), opened.above(path, make=True):
                pass
        with pytest.raises(OSError), opened.scan("loop"):
            pass
        assert opened.snapshot("loop", MANY).hash == link_digest(target.encode())
        assert opened.link_above("d/e/f") is None
    assert os.listdir(root.parent / "outside") == ["secret"]


@pytest.mark.parametrize("path", ["../outside/secret", "d/../../outside/secret", "/etc/passwd", "",
                                  ".", "d//e/f", "d/./e/f", "d/e/f/", "a\0b"])
def test_only_downwards(root: Path, path: str) -> None:
    with Root(root) as opened:
        assert opened.snapshot(path, MANY).kind == "absent" and opened.stat(path) is None
        with pytest.raises(OSError), opened.above(path):
            pass


def test_a_root_that_is_a_link_by_now_is_gone(root: Path) -> None:
    root.rename(root.with_name("moved"))
    root.symlink_to(root.with_name("outside"))
    with pytest.raises(OSError):
        Root(root)


def test_directories_are_made_below_and_nowhere_else(root: Path) -> None:
    (root / "link").symlink_to("../outside")
    with Root(root) as opened:
        with opened.above("a/b/c/file", make=True) as (place, name):
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=place))
        for bad in ("link/new/file", "d/e/f/new/file"):
            with pytest.raises(OSError) as no, opened.above(bad, make=True):
                pass
            assert no.value.errno in (errno.ELOOP, errno.ENOTDIR)
    assert (root / "a/b/c/file").exists() and os.listdir(root / "../outside") == ["secret"]


def test_odd_names_and_long_ways(root: Path) -> None:
    names = [b"b\xe4d", b"-x", b"new\nline", b"y" * 255, "\uef80".encode()]
    for name in names:
        with open(os.path.join(os.fsencode(root), name), "wb") as file:
            file.write(name)
    deep = "/".join(["x"] * 300)
    with Root(root) as opened:
        for name in names:
            assert opened.snapshot(file_names.from_bytes(name), MANY).data == name
        with opened.above(f"{deep}/file", make=True) as (place, name):
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=place))
        assert opened.snapshot(f"{deep}/file", MANY).kind == "file"
        with pytest.raises(OSError, match="too long"):
            opened.snapshot("z" * 300, MANY)


def test_a_link_that_comes_and_goes_is_never_followed(root: Path) -> None:
    """Somebody swaps a directory and a link for each other without pause."""
    (root / "swap").mkdir()
    (root / "swap/secret").write_text("inside")
    stop = threading.Event()

    def swap() -> None:
        (root / "other").symlink_to("../outside")
        place = os.open(root, os.O_RDONLY)
        while not stop.is_set():
            syscalls.exchange(place, b"swap", b"other")
        os.close(place)

    thread = threading.Thread(target=swap)
    thread.start()
    seen: dict[Any, int] = {}

    def look() -> bool:
        with Root(root) as opened:
            for _ in range(500):
                found = opened.snapshot("swap/secret", MANY)
                seen[found.data] = seen.get(found.data, 0) + 1
                for way in (_write, _list):
                    way(opened)
        return len(seen) > 1

    def _write(opened: Root) -> None:
        try:
            with opened.above("swap/written", make=True) as (place, name):
                os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=place))
        except OSError:
            pass

    def _list(opened: Root) -> None:
        try:
            with opened.scan("swap") as entries:
                list(entries)
        except OSError:
            pass

    try:
        until(look)  # both were met
    finally:
        stop.set()
        thread.join()
    assert set(seen) <= {b"inside", None}, "it was followed"
    assert os.listdir(root / "../outside") == ["secret"]


def test_the_mode_is_part_of_the_name(root: Path) -> None:
    path = root / "d/e/f"
    plain = digest(b"inside")
    with Root(root) as opened:
        assert opened.snapshot("d/e/f", MANY).hash == plain
        for mode, name in ((0o755, plain + "+x"), (0o744, plain + "+x"), (0o600, plain),
                           (0o655, plain), (0o4700, plain + "+x")):
            path.chmod(mode)
            for most in (MANY, 1):
                found = opened.snapshot("d/e/f", most)
                assert (found.hash, found.mode) == (name, mode)
    assert plain + "+x" == digest(b"inside", executable=True)


def test_what_tells_one_state_from_another(root: Path) -> None:
    with Root(root) as opened:
        before = opened.stamp("d/e/f")
        assert before == opened.snapshot("d/e/f", 0).stamp is not None
        for change in _changes(root / "d/e/f"):
            change()
            after = opened.stamp("d/e/f")
            assert after != before
            before = after
        assert opened.stamp("none") is None


def _changes(path: Path) -> Iterator[Callable[[], object]]:
    yield lambda: path.write_text("other")
    yield lambda: path.chmod(0o755)
    yield lambda: (path.unlink(), path.write_text("other"), path.chmod(0o755))
    yield lambda: (path.unlink(), path.symlink_to("g"))
