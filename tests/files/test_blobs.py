"""Large contents kept as files: named by what is in them, whole or not at all, within a budget."""

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from coordinator.files import syscalls
from coordinator.files.blobs import UNSETTLED_MAX, YOUNG_S, BlobFolder, OverBudget
from coordinator.files.content import CHUNK_BYTES

DATA = os.urandom(CHUNK_BYTES * 2 + 17)
NAME = "sha256:" + hashlib.sha256(DATA).hexdigest()


def take(folder: BlobFolder, path: Path, **more: Any) -> tuple[str, int]:
    fd = os.open(path, os.O_RDONLY)
    try:
        return folder.take(fd, **more)
    finally:
        os.close(fd)


@pytest.mark.parametrize("shared", [False, True])
def test_taking_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool) -> None:
    def clone(source: int, target: int) -> bool:
        if shared:
            os.pwrite(target, os.pread(source, 1 << 30, 0), 0)
        return shared

    monkeypatch.setattr(syscalls, "clone", clone)
    (tmp_path / "f").write_bytes(DATA)
    folder = BlobFolder(tmp_path / "blobs")
    assert take(folder, tmp_path / "f") == (NAME.removeprefix("sha256:"), len(DATA))
    assert folder.has(NAME) and folder.has(NAME + "+x")
    assert folder.place(NAME).read_bytes() == DATA
    assert folder.place(NAME).stat().st_mode & 0o077 == 0
    take(folder, tmp_path / "f")
    folder.put(DATA)
    assert os.listdir(folder.path) == [folder.place(NAME).name]
    assert folder.bytes_kept() == len(DATA) == BlobFolder(folder.path).bytes_kept()


def test_taking_what_a_program_prints(tmp_path: Path) -> None:
    folder = BlobFolder(tmp_path / "blobs")
    with subprocess.Popen(["printf", "abc"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert folder.take(process.stdout.fileno())[1] == 3


def test_a_budget_is_a_budget(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(DATA)
    folder = BlobFolder(tmp_path / "blobs", lambda: len(DATA) + 10)
    folder.put(b"x" * 20)
    with pytest.raises(OverBudget):
        take(folder, tmp_path / "f")
    with pytest.raises(OverBudget):
        folder.put(DATA)
    with subprocess.Popen(["cat", str(tmp_path / "f")], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        with pytest.raises(OverBudget):
            folder.take(process.stdout.fileno())
        process.stdout.read()
    assert len(os.listdir(folder.path)) == 1
    take(folder, tmp_path / "f", forced=True)
    assert folder.has(NAME)


@pytest.mark.parametrize("step", ["fsync", "write", "rename"])
def test_a_disk_that_refuses_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    folder = BlobFolder(tmp_path / "blobs")
    if step == "rename":
        monkeypatch.setattr(Path, step, refuse)
    else:
        monkeypatch.setattr(os, step, refuse)
    with pytest.raises(OSError, match="No space"):
        folder.put(DATA)
    monkeypatch.undo()
    assert os.listdir(folder.path) == [] and folder.bytes_kept() == 0
    folder.put(DATA)
    assert folder.has(NAME)


def test_several_are_made_durable_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(fd), real(fd))[1])
    folder = BlobFolder(tmp_path / "blobs", at_once=False)
    (tmp_path / "f").write_bytes(DATA)
    take(folder, tmp_path / "f")
    take(folder, tmp_path / "f")
    folder.put(b"other")
    assert not synced and not folder.has(NAME)  # nothing has its name before it is on the disk
    folder.settle()
    assert len(synced) == 3  # each content once, and the folder once for all
    assert folder.place(NAME).read_bytes() == DATA
    assert len(os.listdir(folder.path)) == 2
    assert folder.bytes_kept() == len(DATA) + 5 == BlobFolder(folder.path).bytes_kept()
    opened = len(os.listdir("/proc/self/fd"))
    for n in range(3 * UNSETTLED_MAX):
        folder.put(b"number %d" % n)
    assert len(os.listdir("/proc/self/fd")) <= opened + UNSETTLED_MAX
    folder.settle()
    assert len(os.listdir(folder.path)) == 2 + 3 * UNSETTLED_MAX


@pytest.mark.parametrize("step", ["fsync", "rename"])
def test_what_could_not_be_settled_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(5, "Input/output error")

    folder = BlobFolder(tmp_path / "blobs", at_once=False)
    folder.put(DATA)
    folder.put(b"other")
    monkeypatch.setattr(Path if step == "rename" else os, step, refuse)
    with pytest.raises(OSError, match="Input/output"):
        folder.settle()
    monkeypatch.undo()
    assert os.listdir(folder.path) == [] and folder.bytes_kept() == 0
    folder.put(DATA)
    folder.settle()
    assert folder.has(NAME)


def test_tidying_spares_the_needed_and_the_young(tmp_path: Path) -> None:
    folder = BlobFolder(tmp_path / "blobs")
    for data in (b"needed", b"not", b"young"):
        folder.put(data)
    (folder.path / "0011.new").write_bytes(b"torn")  # a crash left it
    old = folder.place("sha256:" + hashlib.sha256(b"young").hexdigest()).stat().st_mtime
    needed = hashlib.sha256(b"needed").hexdigest()
    for path in folder.path.iterdir():
        if path.name != hashlib.sha256(b"young").hexdigest():
            os.utime(path, (old - YOUNG_S - 1, old - YOUNG_S - 1))
    assert folder.tidy({needed}.__contains__, old + 1) == len(b"not") + len(b"torn")
    assert sorted(p.read_bytes() for p in folder.path.iterdir()) == [b"needed", b"young"]
    # what is kept once more counts as young: nobody removes it on its way into a transaction
    os.utime(folder.path / needed, (1, 1))
    folder.put(b"needed")
    assert folder.tidy(lambda name: False, old + 1) == 0


def test_many_at_once(tmp_path: Path) -> None:
    folder = BlobFolder(tmp_path / "blobs")
    threads = [threading.Thread(target=folder.put, args=(b"x" * (100_000 + n % 3),))
               for n in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(os.listdir(folder.path)) == 3
    assert folder.bytes_kept() == BlobFolder(folder.path).bytes_kept()
