"""Files of the repository as the service speaks of them: what is there, by what name, kept or not."""

from __future__ import annotations

import io
import os
import subprocess
from pathlib import Path

import pytest

from coordinator.files.blobs import FILE_FROM
from coordinator.files.content import digest, link_digest
from coordinator.files.git import Git
from coordinator.kernel import repository_files as files
from coordinator.kernel.repository_files import NOTHING, Bytes
from coordinator.settings import Reviewing, Settings
from tests.world import World

MOST = 100_000
SMALL, MIDDLE = b"x" * FILE_FROM, b"y" * (FILE_FROM + 1)
LARGEST, LARGE = b"z" * MOST, b"z" * (MOST + 1)


@pytest.fixture
def limited(tmp_path: Path) -> World:
    """Files over 100,000 bytes are large, and what is kept beside the database is at most 250,000."""
    return World(tmp_path / "repo", Settings(review=Reviewing(file_bytes_max=MOST, kept_bytes_max=250_000)))


def facts(found: Bytes) -> tuple[object, ...]:
    return found.hash, found.data, found.size, found.stored, found.kept


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("data", [b"", b"1\n", SMALL, MIDDLE, LARGEST, LARGE])
def test_what_is_at_a_path(limited: World, data: bytes, keep: bool) -> None:
    target = limited.root / "f"
    target.write_bytes(data)
    target.chmod(0o640)
    found = files.look(limited.service, None, "f", keep=keep)
    stored = keep and len(data) > FILE_FROM
    held = data if len(data) <= MOST else None
    assert facts(found) == (digest(data), held, len(data), stored, held is not None or stored)
    assert (found.mode, found.links) == (0o640, 1)
    assert found.stamp is not None and found.stamp[3] == len(data)
    assert limited.service.blobs.has(digest(data)) == stored
    target.chmod(0o750)
    os.link(target, limited.root / "twin")
    again = files.look(limited.service, str(limited.root), "twin", keep=keep)
    assert (again.hash, again.mode, again.links) == (f"{digest(data)}+x", 0o750, 2)
    assert again.stored == stored


def test_what_is_no_file(limited: World) -> None:
    svc = limited.service
    limited.write("d/f", "1\n")
    (limited.root / "link").symlink_to("d")
    os.mkfifo(limited.root / "fifo")
    found = files.look(svc, None, "link", keep=True)
    assert facts(found) == (link_digest(b"d"), b"d", 1, False, True)
    for path in ("absent", "d", "d/f/below", "link/f", "fifo"):
        assert files.look(svc, None, path) == NOTHING, path
    assert files.look(svc, str(limited.root / "gone"), "f") == NOTHING
    with files.root_of(svc, None) as root:
        assert files.look(svc, None, "link/f", root=root, strict=True).hash == files.BEHIND
        assert files.look(svc, None, "link/f", root=root) == NOTHING
        assert files.look(svc, None, "d/f", root=root, strict=True).data == b"1\n"
    assert files.look(svc, None, "link/f", strict=True).hash == files.BEHIND
    kinds = {path: files.kind(svc, None, path) for path in ("", "d", "d/f", "link", "fifo", "absent", "link/f")}
    assert kinds == {"": "directory", "d": "directory", "d/f": "file", "link": None, "fifo": None,
                     "absent": "absent", "link/f": "absent"}
    assert files.kind(svc, str(limited.root / "gone"), "") == "absent"


def test_what_goes_over_the_budget_is_named_all_the_same(limited: World) -> None:
    svc = limited.service
    limited.service.blobs.put(b"a" * 200_000)
    for name, data in (("middle", MIDDLE), ("large", LARGE)):
        (limited.root / name).write_bytes(data)
        found = files.look(svc, None, name, keep=True)
        held = data if len(data) <= MOST else None
        assert facts(found) == (digest(data), held, len(data), False, held is not None)
        assert facts(files.pour(svc, io.BytesIO(data))) == facts(found)
    assert facts(files.stow(svc, "sha256:m", MIDDLE)) == ("sha256:m", MIDDLE, len(MIDDLE), False, True)


@pytest.mark.parametrize("data", [b"", b"1\n", SMALL, MIDDLE, LARGEST, LARGE, LARGE * 15])
def test_what_a_program_prints(tmp_path: Path, data: bytes) -> None:
    world = World(tmp_path / "repo", Settings(review=Reviewing(file_bytes_max=MOST)))
    found = files.pour(world.service, io.BytesIO(data))
    stored = len(data) > FILE_FROM
    held = data if len(data) <= MOST else None
    assert facts(found) == (digest(data), held, len(data), stored, True) and found.mode == 0
    if stored:
        assert world.service.blobs.place(digest(data)).read_bytes() == data
    world.close()


def test_what_is_kept_in_a_transaction(limited: World) -> None:
    def rows() -> dict[str, tuple[int, bool, int | None]]:
        return {row[0]: (row[1], bool(row[2]), row[3])
                for row in limited.db.execute("SELECT hash, size, data, mode FROM blobs")}

    for content in (NOTHING, Bytes("sha256:1", b"1", 0o600, 1), Bytes("sha256:2", b"22", 0, 2),
                    Bytes("sha256:3", None, 0o644, 3, stored=True), Bytes("sha256:4", b"4444", 0, 4, stored=True),
                    Bytes("sha256:5", None, 0o644, 5)):
        limited.decide(lambda tx, content=content: files.keep(tx, content))
    assert rows() == {"sha256:1": (1, True, 0o600), "sha256:2": (2, True, None),
                      "sha256:3": (3, False, 0o644), "sha256:4": (4, False, None)}


def test_what_git_has(limited: World) -> None:
    root = limited.root
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    limited.write("run.sh", "run\n")
    (root / "run.sh").chmod(0o755)
    (root / "large").write_bytes(LARGE)
    (root / "link").symlink_to("run.sh")
    git = Git(root)
    subprocess.run(["git", "add", "run.sh", "large", "link"], cwd=root, check=True)
    listed = subprocess.run(["git", "ls-files", "-s"], cwd=root, check=True, capture_output=True, text=True).stdout
    entries = {line.split("\t")[1]: (line.split()[0], line.split()[1]) for line in listed.splitlines()}
    entries["module"] = ("160000", "1" * 40)
    found = files.from_git(limited.service, git, entries)
    told = {path: (*facts(one), one.mode) for path, one in found.items()}
    assert told == {
        "run.sh": (f"{digest(b'run' + bytes([10]))}+x", b"run\n", 4, False, True, 0),
        "large": (digest(LARGE), None, len(LARGE), True, True, 0),
        "link": (link_digest(b"run.sh"), b"run.sh", 6, False, True, 0o777),
    }


def test_where_a_file_lies(limited: World) -> None:
    svc, root = limited.service, limited.root
    assert files.place(svc, None, "d/f") == root / "d/f" and files.place(svc, None, "") == root
    assert files.place(svc, "/elsewhere", "ü/f") == Path("/elsewhere/ü/f")
    assert os.fsencode(files.place(svc, None, "\uefe4.txt")).endswith(b"/\xe4.txt")
    assert svc.where(None, "d/f") == f"{root}/d/f" and svc.where("/elsewhere/", "f") == "/elsewhere/f"


def test_what_has_lines() -> None:
    assert [files.can_merge(name) for name in ("sha256:1", "link:1", None, "unreadable")] == [True, False, False, False]
