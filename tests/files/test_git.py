"""git asked for contents as they would lie in the working tree: filters, sizes, names of all kinds."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.files.git import LINK, NO_MODE, Git, GitError

Run = Callable[..., None]
NAMES = [b"plain.txt", b"new\nline.txt", b"tab\t.txt", b"quo\"te'.txt", b"b\xe4d.txt", b"-dash.txt",
         b"sp ace .txt", b"$HOME `x`.txt", b"e\xcc\x81.txt", b"x" * 251 + b".txt", b"d/\\.txt"]
#: A stand-in for a large file store: what git has is a short pointer, what lies there is long.
SMUDGE = 'import sys; data = sys.stdin.buffer.read(); sys.stdout.buffer.write(b"large " * 5000 + data)'
CLEAN = "import sys; data = sys.stdin.buffer.read(); sys.stdout.buffer.write(data.replace(b'large ', b''))"


@pytest.fixture
def root(tmp_path: Path, git: Run) -> Path:
    made = tmp_path / "a repo ü"
    made.mkdir()
    git(made, "init", "-q", ".")
    return made


def put(root: Path, name: bytes, data: bytes) -> None:
    place = os.path.join(os.fsencode(root), name)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(place, "wb") as file:
        file.write(data)


def contents(root: Path) -> dict[bytes, bytes]:
    asked = Git(root)
    empty = asked.run("hash-object", "-t", "tree", "/dev/null").decode().strip()
    entries = asked.changes(empty, "HEAD")
    assert all(entry.old_mode == NO_MODE for entry in entries)
    files = [(entry.new, entry.path) for entry in entries if entry.new_mode != LINK]
    return {os.fsencode(k): v for k, v in asked.contents(files, lambda out: out.read()).items()}


@pytest.mark.parametrize("how", ["eol=crlf", "autocrlf", "filter", "ident", "nothing", "utf16"])
def test_contents_are_what_a_checkout_writes(root: Path, git: Run, how: str) -> None:
    # Given files of all names, and a filter that changes sizes
    if how == "autocrlf":
        git(root, "config", "core.autocrlf", "true")
    elif how != "nothing":
        rule = {"eol=crlf": "text eol=crlf", "filter": "filter=large", "ident": "ident",
                "utf16": "text working-tree-encoding=UTF-16"}[how]
        (root / ".gitattributes").write_text(f"*.txt {rule}\n")
    for side, code in (("smudge", SMUDGE), ("clean", CLEAN)):
        (root / f"../{side}.py").write_text(code)
        git(root, "config", f"filter.large.{side}", f"'{sys.executable}' '{root.parent}/{side}.py'")
    for number, name in enumerate(NAMES):
        text = f"one\n$Id$\nthree {number}\n" * (number + 1)
        put(root, name, text.encode("utf-16" if how == "utf16" else "utf-8"))
    git(root, "add", ".")
    git(root, "commit", "-qm", "x")
    # I expect, byte by byte, what git itself writes
    for name in NAMES:
        os.unlink(os.path.join(os.fsencode(root), name))
    git(root, "checkout", "--", ".")
    there = {}
    for name in NAMES:
        with open(os.path.join(os.fsencode(root), name), "rb") as file:
            there[name] = file.read()
    got = contents(root)
    got.pop(b".gitattributes", None)
    assert got == there
    if how in ("eol=crlf", "filter", "ident"):
        with pytest.raises(AssertionError):
            assert got[b"plain.txt"] == Git(root).blob("HEAD:plain.txt"), "nothing was filtered"


def test_a_filter_that_fails_is_an_error_and_no_half_content(root: Path, git: Run) -> None:
    (root / ".gitattributes").write_text("*.txt filter=bad\n")
    git(root, "config", "filter.bad.required", "true")
    git(root, "config", "filter.bad.clean", "cat")
    git(root, "config", "filter.bad.smudge", "head -c 2; exit 3")
    put(root, b"a.txt", b"abcdef")
    git(root, "add", ".")
    git(root, "commit", "-qm", "x")
    with pytest.raises(GitError):
        contents(root)


def test_what_git_does_not_have_is_an_error(root: Path, git: Run) -> None:
    with pytest.raises(GitError):
        Git(root).contents([("0" * 39 + "1", "a")], lambda out: out.read())
    with pytest.raises(GitError):
        Git(root).blob("0" * 39 + "1")


def test_a_taker_that_fails_stops_git(root: Path, git: Run) -> None:
    put(root, b"big", b"x" * 3_000_000)
    git(root, "add", ".")
    git(root, "commit", "-qm", "x")

    def take(out: object) -> bytes:
        raise OSError(28, "No space left on device")

    name = Git(root).text("rev-parse", "HEAD:big")
    with pytest.raises(OSError, match="No space"):
        Git(root).contents([(name, "big")], take)


def test_a_worktree_that_another_is_just_making_is_waited_for(root: Path, git: Run) -> None:
    """git ends with `failed to read …/commondir` where it meets one between two steps of its making."""
    git(root, "commit", "-q", "--allow-empty", "-m", "one")
    half = root / ".git/worktrees/half"
    half.mkdir(parents=True)
    (half / "gitdir").write_text("/nowhere/.git\n")
    (half / "HEAD").write_text("ref: refs/heads/other\n")
    (half / "commondir").touch()
    whole = threading.Timer(0.2, lambda: (half / "commondir").write_text("../..\n"))
    whole.start()
    Git(root).run("checkout", "-q", "-B", "mine")
    whole.join()
    assert Git(root).branch() == "refs/heads/mine"


def test_what_is_typed_at_a_terminal_ends_no_git_of_coords(tmp_path: Path) -> None:
    """Ctrl-C goes to all of the foreground: whoever runs git decides what becomes of it."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    code = """
import os, pathlib, signal, sys, threading, time
from coordinator.files.git import Git
signal.signal(signal.SIGINT, lambda *_: None)
threading.Timer(0.3, lambda: os.killpg(0, signal.SIGINT)).start()
print(Git(pathlib.Path.cwd()).text("-c", "alias.slow=!sleep 0.8; echo whole", "slow"))
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False,
                          start_new_session=True, timeout=30)
    assert done.stdout.strip() == "whole", done.stderr
