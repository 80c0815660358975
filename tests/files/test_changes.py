"""Attacks on boiling events down: down a column of stories, then against a pretended disk."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.files.changes import MOVES_MAX, Change, ChangeKind, Changes

Event = tuple[ChangeKind, str] | tuple[ChangeKind, str, str]


def boiled(*events: Event) -> list[str]:
    changes = Changes()
    for kind, path, *to in events:
        changes.add(kind, path, to[0] if to else None)
    return [f"{c.kind} {c.path}" + (f" {c.to}" if c.to else "") for c in changes.take()]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([("created", "f")], ["created f"]),
        ([("created", "f"), ("modified", "f")], ["created f"]),
        ([("modified", "f"), ("modified", "f")], ["modified f"]),
        ([("modified", "f"), ("deleted", "f")], ["deleted f"]),
        ([("created", "f"), ("deleted", "f")], []),
        ([("deleted", "f"), ("created", "f")], ["modified f"]),
        ([("moved", "f", "g")], ["moved f g"]),
        ([("moved", "f", "g"), ("moved", "g", "h")], ["deleted g", "moved f h"]),
        ([("moved", "f", "g"), ("moved", "g", "f")], ["deleted g"]),
        ([("modified", "f"), ("moved", "f", "g")], ["moved f g", "modified g"]),
        ([("moved", "f", "g"), ("modified", "g")], ["moved f g", "modified g"]),
        ([("modified", "f"), ("moved", "f", "g"), ("moved", "g", "f")],
         ["deleted g", "modified f"]),
        # an editor that writes a temporary file and renames it over
        ([("created", "t"), ("modified", "t"), ("moved", "t", "f")], ["modified f"]),
        ([("deleted", "f"), ("created", "t"), ("moved", "t", "f")], ["modified f"]),
        ([("created", "f"), ("created", "t"), ("moved", "t", "f")], ["created f"]),
        # an editor that moves the old file away and writes a new one
        ([("moved", "f", "f~"), ("created", "f")], ["moved f f~", "created f"]),
        ([("moved", "f", "f~"), ("created", "f"), ("deleted", "f~")],
         ["modified f", "deleted f~"]),
        ([("moved", "f", "g"), ("deleted", "g")], ["deleted f", "deleted g"]),
        ([("moved", "f", "g"), ("moved", "h", "g")], ["deleted f", "moved h g"]),
        ([("deleted", "f"), ("modified", "f")], ["modified f"]),
    ],
)
def test_stories(events: list[Event], expected: list[str]) -> None:
    assert boiled(*events) == expected


def test_each_rename_is_told_by_itself_too() -> None:
    """A name that something had in between may be another's by now."""
    changes = Changes()
    for kind, path, to in (("moved", "a", "n"), ("created", "t", None), ("moved", "t", "n"), ("moved", "n", "m"), ("moved", "m", "a")):
        changes.add(kind, path, to, heard_ms=7)  # type: ignore[arg-type]
    assert changes.moves() == [
        Change("moved", "a", "n"), Change("moved", "t", "n", is_new=True), Change("moved", "n", "m"), Change("moved", "m", "a")]
    assert changes.moves() == []
    changes = Changes()
    for number in range(MOVES_MAX + 2):
        changes.add("moved", f"f{number}", f"f{number + 1}")
    assert changes.moves() == [Change("moved", "f0", f"f{MOVES_MAX + 2}")]


def test_renames_of_many_temporary_files_hide_no_other() -> None:
    changes = Changes()
    changes.add("moved", "a", "b")
    for number in range(MOVES_MAX + 2):
        changes.add("created", f"t{number}")
        changes.add("moved", f"t{number}", f"f{number}")
    changes.add("moved", "b", "c")
    told = changes.moves()
    assert [one for one in told if not one.is_new] == [Change("moved", "a", "b"), Change("moved", "b", "c")]
    assert len(told) == MOVES_MAX + 2


def test_directories_are_not_modified() -> None:
    changes = Changes()
    changes.add("created", "d", is_dir=True)
    changes.add("moved", "d", "e", is_dir=True)
    changes.add("modified", "e", is_dir=True)
    assert changes.take() == [Change("created", "e", None, True)]
    assert changes.take() == []
    assert len(changes) == 0


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_what_is_told_accounts_for_what_is_there(data: st.DataObject) -> None:
    # Given a disk with some files, each with a content
    names = "abc"
    before = {name: f"old {name}" for name in data.draw(st.sets(st.sampled_from(names)))}
    disk = dict(before)
    changes = Changes()
    for step in range(data.draw(st.integers(0, 8))):
        # If this and that happens to it
        name, other = data.draw(st.permutations(names))[:2]
        verb = data.draw(st.sampled_from(["write", "delete", "move"]))
        if verb == "write":
            changes.add("modified" if name in disk else "created", name)
            disk[name] = f"new {step}"
        elif name in disk and verb == "delete":
            changes.add("deleted", name)
            del disk[name]
        elif name in disk:
            changes.add("moved", name, other)
            disk[other] = disk.pop(name)
    told = changes.take()
    # I expect each path that differs to be named, and each move to be true
    named = {change.path for change in told} | {change.to for change in told}
    assert {n for n in names if before.get(n) != disk.get(n)} <= named
    written = {change.path for change in told if change.kind in ("created", "modified")}
    for change in told:
        if change.kind == "deleted":
            assert change.path not in disk
        elif change.kind in ("created", "modified"):
            assert change.path in disk
        elif change.to is not None:
            assert change.to in disk
            assert disk[change.to] == before.get(change.path) or change.to in written
