"""A start on a disk that refuses says the true reason, and what to do."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from coordinator.store.database import open_writer
from coordinator.words.refusals import Code, Refusal
from tests.waiting import until
from tests.world import World

pytestmark = pytest.mark.slow

SIZES = {"bytes": "size=3m", "inodes": "size=48m,nr_inodes=60"}


@pytest.fixture(scope="module")
def unshared() -> None:
    """In a mount namespace of its own."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare (util-linux)")
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("user namespaces are not allowed here")


@pytest.mark.parametrize("kind", list(SIZES))
def test_a_full_disk_and_one_without_inodes(unshared: None, tmp_path: Path, kind: str) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    script = Path(__file__).with_name("bad_disk.py")
    options = SIZES["inodes"] if kind == "inodes" else "size=16m"
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c",
         f'mount -t tmpfs -o {options} none "{mount}" && exec "{sys.executable}" "{script}" "{mount}" {kind}'],
        capture_output=True, text=True, timeout=120, check=False, cwd=Path.cwd())
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    for name in ("fresh", "prepared"):
        code, said = told[name]
        assert code == 9 and "STORAGE" in said and "Make room" in said, (name, said)
        assert "No space left on device" in said or "the disk is full" in said, (name, said)
        assert "Traceback" not in said and "Error:" not in said and "damaged" not in said, (name, said)
    assert told["after"][0] == told["whole"][0] == 0, told


class _Failing(apsw.VFSFile):
    """A file whose later pages the disk does not give back."""

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's own name
        if _Disk.broken and offset >= 4096:
            raise apsw.IOError("injected: EIO")
        return super().xRead(amount, offset)


class _Disk(apsw.VFS):
    broken = False

    def __init__(self, base: str) -> None:
        self.base = base
        super().__init__("failing", base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> _Failing:  # noqa: N802
        return _Failing(self.base, name, flags)


@pytest.fixture
def failing_reads() -> Iterator[Callable[[], None]]:
    base = apsw.vfs_names()[0]
    disk = _Disk(base)

    def breaks() -> None:
        _Disk.broken = True

    yield breaks
    _Disk.broken = False
    disk.unregister()
    apsw.VFS("again", base, makedefault=True).unregister()


def test_a_disk_that_does_not_read_is_not_called_a_damaged_database(
    failing_reads: Callable[[], None], tmp_path: Path
) -> None:
    path = tmp_path / "coord.sqlite3"
    open_writer(path).close()
    failing_reads()
    with pytest.raises(Refusal) as met:
        open_writer(path)
    assert met.value.code is Code.STORAGE
    assert "the disk answered" in met.value.message and "damaged" not in met.value.message, met.value.message


def test_a_damaged_page_is_called_that(world: World) -> None:
    world.acquire("ann", "a.py")
    world.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    world.db.close()
    with world.state_dir.database.open("r+b") as file:
        file.seek(4096 * 4)
        file.write(b"\xff" * 4096 * 3)
    with pytest.raises(Refusal) as met:
        open_writer(world.state_dir.database)
    assert "damaged" in met.value.message
    world.state_dir.database.unlink()
    world.open()
    assert until(lambda: world.db)
