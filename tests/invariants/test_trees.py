"""Trees of all kinds: whatever an agent leaves below its lease, a revert gives exactly the tree at
the lease, and its undo exactly what the agent had left; and what a person changes is never lost.

Content is bytes, type, and whether a file is executable. Directories without files are none.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordinator.settings import Reviewing, Settings
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.effort import examples
from tests.world import World

PARTS = [b"a", b"b", b"c", b"-n", b"new\nline", b"\xe4\xff", "e\u0301".encode(), "\u00e9".encode(),
         "\uef80".encode(), b"x" * 255, b"sp ace ", b"*", b"[a]", b"a::b", b"\\"]
part = st.sampled_from([b"a", b"a", b"b", *PARTS])
path = st.lists(part, min_size=1, max_size=3).map(b"/".join)
#: Small ones stay in memory, the others are over the (small) limit, or kept as files.
data = st.sampled_from([b"", b"1", b"one\ntwo\nthree\n", b"\0\1", b"y" * 300, b"z" * 301,
                        b"large" * 14_000, b"LARGE" * 14_000])
op = st.one_of(
    st.tuples(st.just("write"), path, data),
    st.tuples(st.just("in place"), path, data),
    st.tuples(st.just("link"), path, st.one_of(path, st.sampled_from([b"/etc", b"..", b"../../out"]))),
    st.tuples(st.just("hard link"), path, path),
    st.tuples(st.just("rename"), path, path),
    st.tuples(st.just("delete"), path, st.just(b"")),
    st.tuples(st.just("chmod"), path, st.sampled_from([b"755", b"644", b"600", b"700"])),
    st.tuples(st.just("pipe"), path, st.just(b"")),
)
Ops = Sequence[tuple[str, bytes, bytes]]
ops = st.lists(op, max_size=8)


def play(top: bytes, steps: Ops) -> None:
    """Do this below `top`, whatever is in the way: an agent does not ask."""
    for what, name, more in steps:
        place = os.path.join(top, name)
        if what in ("chmod", "in place"):
            if os.path.isfile(place) and os.path.realpath(place).startswith(os.path.realpath(top)):
                if what == "chmod":
                    os.chmod(place, int(more, 8))
                else:
                    with open(place, "wb") as file:
                        file.write(more)
            continue
        other = os.path.join(top, more) if what in ("hard link", "rename") else b""
        if other and (not os.path.lexists(other) or place == other or place.startswith(other + b"/")
                      or (what == "hard link" and os.path.isdir(other) and not os.path.islink(other))):
            continue
        source = b""
        if other:
            source = tempfile.mkdtemp(dir=os.path.dirname(os.path.dirname(top)))  # out of the way
            if what == "rename":
                os.rename(other, source + b"/it")
            else:
                os.link(other, source + b"/it", follow_symlinks=False)
        clear(top, name)
        if what == "write":
            with open(place, "wb") as file:
                file.write(more)
        elif what == "link":
            os.symlink(more, place)
        elif what == "pipe":
            os.mkfifo(place)
        elif source:
            os.rename(source + b"/it", place)
        if source:
            os.rmdir(source)


def clear(top: bytes, name: bytes) -> None:
    """Make room for a file of this name, and the directories above it."""
    parts = name.split(b"/")
    for end in range(1, len(parts)):
        folder = os.path.join(top, *parts[:end])
        if not os.path.isdir(folder) or os.path.islink(folder):
            if os.path.lexists(folder):
                os.unlink(folder)
            os.mkdir(folder)
    place = os.path.join(top, name)
    if os.path.isdir(place) and not os.path.islink(place):
        shutil.rmtree(place)
    elif os.path.lexists(place):
        os.unlink(place)


def tree(top: bytes) -> dict[bytes, tuple[str, bytes, bool]]:
    out = {}
    for folder, folders, files in os.walk(top):
        for name in files + [f for f in folders if os.path.islink(os.path.join(folder, f))]:
            place = os.path.join(folder, name)
            relative = os.path.relpath(place, top)
            if os.path.islink(place):
                out[relative] = ("link", os.readlink(place), False)
            elif os.path.isfile(place):
                with open(place, "rb") as file:
                    out[relative] = ("file", file.read(), os.access(place, os.X_OK))
    return out


def modes(top: bytes) -> dict[bytes, int]:
    return {name: os.lstat(os.path.join(top, name)).st_mode & 0o7777 for name in tree(top)}


class Ground:
    """A world with one leased directory."""

    def __init__(self, place: str, first: Ops) -> None:
        self.world = World(Path(place) / "repo",
                           Settings(review=Reviewing(file_bytes_max=300, files_max=1000)))
        self.top = os.fsencode(self.world.root / "d")
        os.mkdir(self.top)
        play(self.top, [step for step in first if step[0] != "pipe"])
        self.world.acquire("ann", "d/", ttl_s=5)
        self.before = tree(self.top)

    def lapse(self) -> rq.Review | None:
        self.world.clock.advance(5_000)
        self.world.ask(rq.Sweep())
        return next(iter(self.world.ask(rq.Reviews()).items), None)

    def ask(self, request: Any) -> Any:
        try:
            return self.world.ask(request)
        except Refusal as refusal:
            return refusal

    def check(self) -> None:
        assert not [r for r in self.world.live() if r.locked_by.startswith("coord/")]
        assert self.world.replay_differs() == []
        left = [name for name in os.listdir(self.top) if name.startswith(b".coord-")]
        assert not left, "something was left beside a file"


@given(ops, ops)
@example([("write", b"a/b", b"1")], [("link", b"a", b"b"), ("write", b"b", b"1")])
@example([("link", b"a", b"b")], [("write", b"a/b/c", b"1")])
@example([("write", b"a", b"1"), ("hard link", b"b", b"a")], [("in place", b"a", b"one\ntwo\nthree\n")])
@example([("write", b"a", b"1")], [("chmod", b"a", b"755"), ("rename", b"b/c", b"a")])
@settings(max_examples=examples(50))
def test_there_and_back(first: Ops, then: Ops) -> None:
    with tempfile.TemporaryDirectory() as place:
        ground = Ground(place, first)
        try:
            play(ground.top, then)
            partial, bits = tree(ground.top), modes(ground.top)
            pipes = any(what == "pipe" for what, _, _ in then)
            review = ground.lapse()
            if review is None:
                assert partial == ground.before, "changed, and nobody was told"
                return
            assert all(file.kept for file in review.files)
            answer = ground.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
            if isinstance(answer, Refusal):
                # only what no verdict may replace is in the way of one
                assert pipes and answer.code is Code.VERSION_CHANGED, answer
                assert tree(ground.top) == partial
            else:
                assert tree(ground.top) == ground.before
                assert ground.ask(rq.ReviewUndo(review="R-1")).state == "open"
                assert tree(ground.top) == partial
                assert modes(ground.top) == bits
            ground.check()
        finally:
            ground.world.close()


def merged(before: Any, partial: Any, theirs: Any, done: Any) -> bool:
    """Whether `done` is theirs without the partial work: its bytes, or else its mode."""
    if not all(one is not None and one[0] == "file" for one in (before, partial, theirs, done)):
        return False
    bytes_ok = done[1] == (before[1] if theirs[1] == partial[1] else theirs[1])
    return bytes_ok or partial[1] not in (before[1], theirs[1])


@given(ops, ops, ops, st.booleans())
@settings(max_examples=examples(35))
def test_what_a_person_changes_is_never_lost(
    first: Ops, then: Ops, later: Ops, after: bool
) -> None:
    """After it was flagged, or after it was reverted, a person does this and that."""
    with tempfile.TemporaryDirectory() as place:
        ground = Ground(place, first)
        try:
            play(ground.top, then)
            if ground.lapse() is None:
                return
            request: Any = rq.ReviewDecide(review="R-1", verdict="revert")
            if after:
                if isinstance(ground.ask(request), Refusal):
                    return
                request = rq.ReviewUndo(review="R-1")
            was = tree(ground.top)
            play(ground.top, later)
            now = tree(ground.top)
            theirs = {name for name in {*was, *now} if was.get(name) != now.get(name)}
            answer = ground.ask(request)
            done = tree(ground.top)
            if isinstance(answer, Refusal):
                assert answer.code is Code.VERSION_CHANGED and done == now
            else:
                for name in theirs:
                    if done.get(name) != now.get(name):
                        assert not after and merged(ground.before.get(name), was.get(name),
                                                    now.get(name), done.get(name)), name
            ground.check()
        finally:
            ground.world.close()
