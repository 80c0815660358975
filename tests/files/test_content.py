"""Attacks on reading, comparing and writing bytes: races, odd files, missing newlines."""

import hashlib
import os
import shutil
import socket
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator.files import content
from coordinator.files.content import digest, is_binary, snapshot, unified, write_atomic

MANY = 1 << 24


def test_a_digest_is_what_sha256sum_says() -> None:
    assert digest(b"abc") == "sha256:" + hashlib.sha256(b"abc").hexdigest()


def test_kinds_of_content(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "file").chmod(0o750)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("absent")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as plug:
        here = os.open(".", os.O_RDONLY)
        try:
            os.chdir(tmp_path)  # a socket's path must be short
            plug.bind("plug")
        finally:
            os.fchdir(here)
            os.close(here)
    seen = {
        name: snapshot(tmp_path / name, MANY)
        for name in ("file", "empty", "link", "dangling", "pipe", "plug", ".", "none", "file/x")
    }
    assert {name: found.kind for name, found in seen.items()} == {
        "file": "file", "empty": "file", "link": "symlink", "dangling": "symlink",
        "pipe": "special", "plug": "special", ".": "directory", "none": "absent",
        "file/x": "absent",
    }
    assert (seen["file"].data, seen["file"].size, seen["file"].mode) == (b"abc", 3, 0o750)
    assert (seen["empty"].data, seen["empty"].hash) == (b"", digest(b""))
    assert seen["link"].data == b"file"
    assert seen["link"].hash != digest(b"file")
    assert seen["none"].data is None


def test_large_files_are_hashed_but_not_kept(tmp_path: Path) -> None:
    data = os.urandom(content.CHUNK_BYTES * 2 + 17)
    (tmp_path / "big").write_bytes(data)
    big = snapshot(tmp_path / "big", 1000)
    assert (big.kind, big.data, big.size, big.hash) == ("large", None, len(data), digest(data))
    assert snapshot(tmp_path / "big", len(data)).data == data
    assert snapshot(tmp_path / "big", len(data) - 1).kind == "large"


def test_a_file_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a writer that appends during the first reading
    path = tmp_path / "f"
    path.write_bytes(b"one")
    real = os.read
    left = [b"two"]

    def read(fd: int, size: int) -> bytes:
        got = real(fd, size)
        if left:
            with open(path, "ab") as file:
                file.write(left.pop())
        return got

    monkeypatch.setattr(os, "read", read)
    # I expect what was there at one moment
    assert snapshot(path, MANY).data == b"onetwo"


@pytest.mark.parametrize(("then", "kind"), [("replaced", "file"), ("gone", "absent")])
def test_a_file_that_is_replaced_or_deleted_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str, kind: str
) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    real = os.read
    once = [True]

    def read(fd: int, size: int) -> bytes:
        got = real(fd, size)
        if once:
            once.clear()
            if then == "gone":
                path.unlink()
            else:
                (tmp_path / "g").write_bytes(b"new")
                os.replace(tmp_path / "g", path)
        return got

    monkeypatch.setattr(os, "read", read)
    found = snapshot(path, MANY)
    assert (found.kind, found.data) == (kind, b"new" if then == "replaced" else None)


def test_a_file_that_never_stands_still_is_read_so_often_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"")
    real = os.read

    def read(fd: int, size: int) -> bytes:
        with open(path, "ab") as file:
            file.write(b"x")
        return real(fd, size) if os.fstat(fd).st_size < 1000 else b""

    monkeypatch.setattr(os, "read", read)
    assert snapshot(path, MANY).kind == "file"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_closed_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"")
    (tmp_path / "f").chmod(0)
    with pytest.raises(PermissionError):
        snapshot(tmp_path / "f", MANY)


# --- differences ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (b"a\n", b"a\n", ""),
        (None, None, ""),
        (b"a\nb\n", b"a\nc\n", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"),
        (None, b"a\n", "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"),
        (b"a\n", None, "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"),
        (None, b"", "--- /dev/null\n+++ b/f\n"),
        (b"a", b"a\n",
         "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"),
        (b"a\n", b"b",
         "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n"),
        (b"\xe9\n", b"e\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-\\xe9\n+e\n"),
        (b"a\x0cb\r\n", b"c\x0cb\r\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\x0cb\r\n+c\x0cb\r\n"),
        (b"a\0", b"b", "Binary files a/f and b/f differ (2 -> 1 bytes)\n"),
        (None, b"\0", "Binary files /dev/null and b/f differ (0 -> 1 bytes)\n"),
    ],
)
def test_differences(before: bytes | None, after: bytes | None, expected: str) -> None:
    assert unified("f", before, after) == expected


def test_large_differences_are_said_in_a_line() -> None:
    big = b"x\n" * (content.DIFF_BYTES_MAX // 2)
    assert unified("f", big, big + b"y\n").startswith("Large files a/f and b/f differ (2,097,152")


def test_what_is_binary() -> None:
    assert is_binary(b"\0")
    assert not is_binary(b"abc\xff")
    assert not is_binary(b"x" * 8000 + b"\0")


TEXT = st.lists(st.sampled_from(["a", "b", "", "c\r", "\\"]), max_size=6).flatmap(
    lambda lines: st.sampled_from(["\n".join(lines), "\n".join([*lines, ""])])
)


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs patch(1)")
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(TEXT, TEXT)
def test_patch_understands_the_difference(tmp_path: Path, before: str, after: str) -> None:
    (tmp_path / "f").write_bytes(before.encode())
    diff = unified("f", before.encode(), after.encode())
    if diff:
        subprocess.run(
            ["patch", "-p1", "-s", "--binary"], cwd=tmp_path, input=diff.encode(), check=True
        )
        found = (tmp_path / "f").read_bytes() if (tmp_path / "f").exists() else b""
        assert found == after.encode()


# --- writing --------------------------------------------------------------------------------


def test_writing_makes_parents_and_keeps_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "a/b/run.sh"
    write_atomic(path, b"one")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    path.chmod(0o755)
    write_atomic(path, b"two")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"two", 0o755)
    write_atomic(path, b"three", mode=0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["run.sh"]


def test_a_link_is_replaced_and_its_target_left_alone(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"mine")
    (tmp_path / "link").symlink_to("target")
    write_atomic(tmp_path / "link", b"new")
    assert (tmp_path / "target").read_bytes() == b"mine"
    assert not (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("step", ["fsync", "replace", "fchmod"])
def test_a_write_that_fails_leaves_all_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "f"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space"):
        write_atomic(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_git_finds_the_file_whatever_its_name_is(tmp_path: Path) -> None:
    for name in ('two\nlines.txt', 'say "so".txt', "back\\slash\there.txt", "名前 🚀.txt"):
        (tmp_path / name).write_text("one\n")
        done = subprocess.run(["git", "apply", "-"], cwd=tmp_path, text=True, capture_output=True, check=False,
                              input=unified(name, b"one\n", b"two\n"))
        assert done.returncode == 0 and (tmp_path / name).read_text() == "two\n", (name, done.stderr)
