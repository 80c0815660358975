"""Hunks carried in any order: the algebra under the benchmark's honesty."""

import random
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.replay.changes import Change, Entry, Hunk, Kind, mixture, segments
from benchmarks.replay.difference import difference, hunks
from benchmarks.replay.edits import Torn, applied, told_apart, with_hunks

# Few different lines, so that texts repeat: that is where edits are mistaken for each other.
LINE = st.sampled_from([b"x\n", b"y\n", b"x\r\n", b"\n", b"z", b"\xff\xfe\n", b"\r"])
TEXT = st.lists(LINE, max_size=14).map(b"".join)


def change(old: bytes, new: bytes) -> Change:
    return Change(Kind.EDIT, "a.py", "a.py", Entry(old), Entry(new), hunks(old, new))


@given(TEXT, TEXT)
@example(b"x\nx\nx\n", b"x\nx\n")
@example(b"", b"z")
def test_the_hunks_of_two_texts_turn_one_into_the_other(old: bytes, new: bytes) -> None:
    found = hunks(old, new)
    parts = segments(old, found)
    assert mixture(parts, set()) == old
    assert mixture(parts, set(range(len(found)))) == new
    assert all(h.old != h.new for h in found)


@given(TEXT, TEXT)
@example(b"x\nx\nx\ny\nx\n", b"x\nx\nx\nx\ny\nx\nx\n")
def test_no_two_mixtures_are_equal(old: bytes, new: bytes) -> None:
    found = hunks(old, new)[:7]
    parts = segments(old, found)
    every = [
        set(chosen) for n in range(len(found) + 1) for chosen in combinations(range(len(found)), n)
    ]
    contents = [mixture(parts, chosen) for chosen in every]
    assert len(set(contents)) == len(contents)
    assert [applied(content, parts) for content in contents] == every


def test_edits_that_could_be_mistaken_for_each_other_are_joined() -> None:
    # Given one line too many before and one behind a run of equal lines,
    old = b"x\nx\n"
    twins = (Hunk(0, b"", b"x\n"), Hunk(2, b"", b"x\n"))
    # when only one of them is in, nobody can tell which: so they are one edit.
    assert told_apart(old, twins) == (Hunk(0, b"x\n", b"x\nx\nx\n"),)
    # Far apart and different, they stay two.
    far = (Hunk(0, b"", b"y\n"), Hunk(2, b"", b"z\n"))
    assert told_apart(old, far) == far


@given(TEXT, TEXT, st.randoms(use_true_random=False))
def test_hunks_carried_in_any_order_and_grouping_end_at_new(
    old: bytes, new: bytes, chance: random.Random
) -> None:
    it = change(old, new)
    todo = list(range(len(it.hunks)))
    chance.shuffle(todo)
    content, done = old, set[int]()
    while todo:
        group = {todo.pop() for _ in range(min(len(todo), chance.randint(1, 3)))}
        content = with_hunks(content, it, group)
        done |= group
        assert applied(content, segments(old, it.hunks)) == done
        # Carrying them again changes nothing: a task may be repeated after a crash.
        assert with_hunks(content, it, done) == content
    assert content == new


@given(TEXT, TEXT, st.data())
def test_what_is_no_mixture_is_known_as_torn(old: bytes, new: bytes, data: st.DataObject) -> None:
    it = change(old, new)
    parts = segments(old, it.hunks)
    chosen = data.draw(st.sets(st.integers(0, max(0, len(it.hunks) - 1))))
    whole = mixture(parts, chosen)
    torn = whole[: data.draw(st.integers(0, len(whole)))]
    found = applied(torn, parts)
    if found is None:
        with pytest.raises(Torn, match=r"a\.py"):
            with_hunks(torn, it, {0})
    else:
        assert mixture(parts, found) == torn


def test_long_repetitive_texts_are_split_quickly() -> None:
    chance = random.Random(7)
    old = [b"x\n" if chance.random() < 0.7 else b"%d\n" % n for n in range(2000)]
    new = [line for line in old if chance.random() > 0.1]
    it = change(b"".join(old), b"".join(new))
    assert len(it.hunks) > 10
    assert with_hunks(b"".join(old), it, range(len(it.hunks))) == b"".join(new)


def test_a_tree_differs_by_kind(tmp_path: Path) -> None:
    # Given two trees that differ in every way there is,
    old, new = tmp_path / "old", tmp_path / "new"
    text = b"".join(b"line %d\n" % n for n in range(30))
    for root, names in (
        (old, ["same", "edit", "bin", "mode", "gone", "moved", "likely"]),
        (new, ["same", "edit", "bin", "mode"]),
    ):
        root.mkdir()
        for name in names:
            (root / name).write_bytes(name.encode() + b"\n" + text)
    (new / "edit").write_bytes(b"edit\r\n" + text[:-1])
    (new / "bin").write_bytes(b"\0" + text)
    (new / "mode").chmod(0o755)
    (new / "sub").mkdir()
    (new / "sub" / "moved2").write_bytes(b"moved\n" + text)
    (new / "likely2").write_bytes(b"likely\n" + text + b"more\n")
    (new / "come").write_bytes(b"nothing like it")
    (old / "link").symlink_to("same")
    (new / "link").symlink_to("edit")
    for ignored in ("__pycache__", ".git"):
        (new / ignored).mkdir()
        (new / ignored / "x").write_bytes(b"x")
    (new / "m.pyc").write_bytes(b"x")
    # I expect each to be found, and nothing else.
    assert {(c.kind.value, c.source, c.path, len(c.hunks)) for c in difference(old, new)} == {
        ("edit", "edit", "edit", 2),
        ("replace", "bin", "bin", 0),
        ("replace", "mode", "mode", 0),
        ("replace", "link", "link", 0),
        ("delete", "gone", "gone", 0),
        ("rename", "moved", "sub/moved2", 0),
        ("rename", "likely", "likely2", 1),
        ("create", "", "come", 0),
    }
    with pytest.raises(NotADirectoryError):
        difference(old / "same", new)
