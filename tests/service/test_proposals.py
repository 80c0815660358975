"""Optimistic writes: applied if what was read still stands, all or none; who loses again and again gets a lease."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.kernel.use_cases import Look, OnDisk, Write
from coordinator.rules.patches import DoesNotApply, applied
from coordinator.settings import Settings, Strategies
from coordinator.slices.proposals import proposals
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.world import World

TWO = "def one():\n    return 1\n\n\ndef two():\n    return 2\n"


@pytest.fixture(autouse=True)
def the_log_gives_the_state(world: World) -> Iterator[None]:
    yield
    assert world.replay_differs() == []
    assert [row for row in world.live() if row.locked_by.startswith("coord/") or row.task_description.startswith("writes C-")] == []


def sha(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def one(resource: str, read: str | None, content: str | None = None, **more: Any) -> rq.ProposedChange:
    return rq.ProposedChange(resource=resource, version=None if read is None else sha(read), content=content, **more)


def propose(world: World, *changes: rq.ProposedChange, agent: str = "ann", **more: Any) -> rq.ProposalApplied:
    got = world.ask(rq.Propose(agent=agent, changes=list(changes), **more))
    assert isinstance(got, rq.ProposalApplied)
    return got


def refused(world: World, *changes: rq.ProposedChange, agent: str = "ann", **more: Any) -> Refusal:
    return world.refused(rq.Propose(agent=agent, changes=list(changes), **more))


def read(world: World, path: str) -> str:
    return (world.root / path).read_text()


def test_written_if_it_still_stands(world: World) -> None:
    world.write("a.py", "x = 1\n")
    got = propose(world, one("a.py", "x = 1\n", "x = 2\n"))
    assert read(world, "a.py") == "x = 2\n" and got.changes[0].version == sha("x = 2\n")
    assert world.live() == [], "nobody holds anything after"
    refusal = refused(world, one("a.py", "x = 1\n", "x = 3\n"), agent="bob")
    assert refusal.code is Code.VERSION_CHANGED and "Your environment changed while you were thinking" in refusal.message
    assert "+x = 2" in refusal.message and refusal.facts["version"] == sha("x = 2\n") and "by ann" in refusal.message
    assert read(world, "a.py") == "x = 2\n" and world.live() == []


def test_made_removed_and_left_as_it_is(world: World) -> None:
    propose(world, one("new.py", None, "x = 1\n"))
    assert read(world, "new.py") == "x = 1\n"
    assert refused(world, one("new.py", None, "x = 9\n")).code is Code.VERSION_CHANGED
    gone = propose(world, one("new.py", "x = 1\n", delete=True))
    assert gone.changes[0].version is None and not (world.root / "new.py").exists()
    assert refused(world, one("new.py", "x = 1\n", "x = 2\n")).code is Code.VERSION_CHANGED
    assert refused(world, one("no/such/dir/a.py", None, "x")).code is Code.INVALID
    world.write("same.py", "s\n")
    os.chmod(world.root / "same.py", 0o755)
    assert propose(world, one("same.py", "s\n", "s\n")).changes[0].version == sha("s\n") + "+x"


def test_all_or_none(world: World) -> None:
    world.write("a.py", "a\n")
    world.write("b.py", "b\n")
    assert refused(world, one("a.py", "a\n", "A\n"), one("b.py", "other\n", "B\n")).code is Code.VERSION_CHANGED
    assert (read(world, "a.py"), read(world, "b.py")) == ("a\n", "b\n")
    propose(world, one("a.py", "a\n", "A\n"), one("b.py", "b\n", "B\n"), one("c.py", None, "C\n"))
    assert [read(world, name) for name in ("a.py", "b.py", "c.py")] == ["A\n", "B\n", "C\n"]


def test_what_others_hold_is_not_written(world: World) -> None:
    world.write("a.py", "a\n")
    world.acquire("bob", "a.py")
    refusal = refused(world, one("a.py", "a\n", "A\n"))
    assert refusal.code is Code.LOCKED and refusal.facts["conflicts"][0]["holder"] == "bob" and read(world, "a.py") == "a\n"
    world.ask(rq.Release(agent="bob", resources=["a.py"]))
    world.acquire("ann", "a.py", description="mine")
    propose(world, one("a.py", "a\n", "A\n"))
    assert [row.task_description for row in world.live()] == ["mine"], "its own lease stays"


def test_regions_by_their_own_versions(world: World) -> None:
    world.write("a.py", TWO)
    first, second = "def one():\n    return 1\n", "def two():\n    return 2\n"
    propose(world, one("a.py::one", first, "def one():\n    return 11\n"))
    propose(world, one("a.py::two", second, "def two():\n    return 22\n"), agent="bob")
    assert "return 11" in read(world, "a.py") and "return 22" in read(world, "a.py")
    stale = refused(world, one("a.py::one", first, "def one():\n    return 0\n"))
    assert stale.code is Code.REGION_CHANGED and "return 11" in stale.facts["text"] and "propose it with the `version` of that: " in str(stale.next)
    beyond = refused(world, rq.ProposedChange(resource="a.py::one", version=str(stale.next).rstrip(".").rpartition(" ")[2], content="def two():\n    return 0\n"))
    assert beyond.code is Code.OUT_OF_SCOPE_EDIT and "lease" not in str(beyond.next) and "or propose a.py::" in str(beyond.next)
    assert refused(world, one("a.py::one", None, "def one():\n    return 0\n")).code is Code.REGION_CHANGED, "its version has to be said"
    assert refused(world, one("a.py::nothing", first, "x")).code is Code.REGION_UNKNOWN
    world.acquire("eve", "a.py::two")
    assert refused(world, one("a.py::two", second, "x")).code is Code.LOCKED
    broken = refused(world, rq.ProposedChange(resource="a.py", version=sha(read(world, "a.py")), content="def one(:\n"), agent="eve")
    assert broken.code is Code.PARSE_INVALID


def test_a_region_that_is_not_there_is_added_by_what_has_no_version(world: World) -> None:
    world.write("a.py", TWO + "\n\nclass C:\n    x = 1\n")
    propose(world, one("a.py::three", None, "def three():\n    return 3\n"), one("a.py::C.m", None, "    def m(self):\n        return 4\n"),
            one("a.py::one", "def one():\n    return 1\n", "def one():\n    return 11\n"))
    made = read(world, "a.py")
    assert "return 11" in made and made.endswith("def three():\n    return 3\n") and "    x = 1\n\n    def m(self):\n        return 4\n" in made
    again = refused(world, one("a.py::three", None, "def three():\n    return 33\n"))
    assert again.code is Code.REGION_CHANGED and "a.py::three is there already" in again.message and "return 3" in again.facts["text"]
    propose(world, rq.ProposedChange(resource="a.py::three", version=str(again.next).rstrip(".").rpartition(" ")[2], content="def three():\n    return 33\n"))
    assert "return 33" in read(world, "a.py")
    absent = refused(world, one("a.py::none", "x", "def none():\n    return 3\n"))
    assert absent.code is Code.REGION_UNKNOWN and "Nothing was written." in absent.message and "one that is to be added has no version" in str(absent.next)
    for version in ("s", "sha256:", "sha256:0", "absent"):
        said = refused(world, rq.ProposedChange(resource="a.py::three", version=version, content="def three():\n    return 0\n"))
        assert said.code is Code.INVALID and "`version`" in said.message
    assert "return 33" in read(world, "a.py")
    world.acquire("eve", "a.py::four", new=True)
    assert refused(world, one("a.py::four", None, "def four():\n    return 4\n")).code is Code.LOCKED


def test_a_header_is_proposed_by_its_own_text(world: World) -> None:
    world.write("h.py", "import os\n\n\n" + TWO)
    propose(world, one("h.py::<header>", "import os\n\n\n", "import sys\n"))
    assert read(world, "h.py") == "import sys\n\n\n" + TWO
    lost = refused(world, one("h.py::<header>", "import sys\n\n\n", "import os\n\n\ndef one():\n    pass\n"))
    assert lost.code is Code.OUT_OF_SCOPE_EDIT and read(world, "h.py").startswith("import sys")


def test_patches(world: World) -> None:
    world.write("a.py", TWO)
    new = TWO.replace("return 2", "return 22")
    patch = "".join(difflib.unified_diff(TWO.splitlines(True), new.splitlines(True), "a/a.py", "b/a.py"))
    propose(world, one("a.py", TWO, patch=patch))
    assert read(world, "a.py") == new
    no = refused(world, one("a.py", new, patch=patch))
    assert no.code is Code.INVALID and "hunk 1" in no.message and read(world, "a.py") == new
    assert refused(world, one("a.py", new, patch="no patch at all")).code is Code.INVALID


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "  d\n", "é\n"]), max_size=14)


@given(LINES, LINES, st.booleans(), st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_what_diff_makes_is_applied(old: list[str], new: list[str], cut_old: bool, cut_new: bool, ending: str) -> None:
    before, after = "".join(old), "".join(new)
    before, after = (before[:-1] if cut_old else before), (after[:-1] if cut_new else after)
    lines = []
    for line in difflib.unified_diff(before.splitlines(True), after.splitlines(True), "a", "b", n=2):
        lines.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    if not lines:
        return
    made = applied(before.replace("\n", ending), "".join(lines))
    assert made == (after.replace("\n", ending) if ending in before.replace("\n", ending) else after)


@given(st.text(max_size=200), st.text(alphabet="@-+ 0123456789,\nab\\", max_size=200))
def test_a_patch_of_nonsense_is_refused_in_words(text: str, patch: str) -> None:
    try:
        applied(text, patch)
    except DoesNotApply as no:
        assert str(no)


@pytest.mark.parametrize("changes, code", [
    ([], Code.INVALID), ([one("a.py", "a\n")], Code.INVALID), ([one("a.py", "a\n", "x", patch="y")], Code.INVALID),
    ([one("d/", None, "x")], Code.INVALID), ([one("d", None, "x")], Code.INVALID), ([one("*.py", None, "x")], Code.INVALID),
    ([one("../x", None, "x")], Code.OUTSIDE_REPO), ([one("a.py", "a\n", "x"), one("./a.py", "a\n", "y")], Code.INVALID),
    ([one("a.py", "a\n", "x"), one("a.py::f", "a\n", "y")], Code.INVALID), ([one("a.py", "a\n", "x"), one("key:a", None, "1")], Code.INVALID),
    ([one("link.py", "a\n", "x")], Code.OUTSIDE_REPO), ([rq.ProposedChange(resource="key:a", version="x", content="1")], Code.INVALID),
    ([rq.ProposedChange(resource="key:a", version="0", content="{")], Code.INVALID), ([rq.ProposedChange(resource="git:index", version="0", content="1")], Code.INVALID),
    ([one("bin", "\0", "x")], Code.VERSION_CHANGED), ([one("a.py", "nonsense", "x")], Code.VERSION_CHANGED),
    ([rq.ProposedChange(resource="a.py", version="nonsense", content="x")], Code.INVALID),
])
def test_what_cannot_be_proposed(world: World, changes: list[rq.ProposedChange], code: Code) -> None:
    world.write("a.py", "a\n")
    world.write("d/x", "x\n")
    (world.root / "bin").write_bytes(b"\xff\x00\x01")
    (world.root / "link.py").symlink_to("/etc/hostname")
    before = {path: path.read_bytes() for path in world.root.iterdir() if path.is_file()}
    assert refused(world, *changes).code is code
    assert {path: path.read_bytes() for path in world.root.iterdir() if path.is_file()} == before and world.live() == []


def test_a_patch_of_what_is_not_text(world: World) -> None:
    (world.root / "bin").write_bytes(b"\xff\xfe\n")
    version = "sha256:" + hashlib.sha256(b"\xff\xfe\n").hexdigest()
    refusal = refused(world, rq.ProposedChange(resource="bin", version=version, patch="@@ -1 +1 @@\n-a\n+b\n"))
    assert refusal.code is Code.INVALID and "not UTF-8" in refusal.message


def test_keys_are_proposed_in_the_same_way(world: World) -> None:
    got = propose(world, rq.ProposedChange(resource="key:a", version="0", content='{"n": 1}'), rq.ProposedChange(resource="key:b", content="2"))
    assert [change.version for change in got.changes] == ["1", "1"]
    lost = refused(world, rq.ProposedChange(resource="key:a", version="1", patch='{"m": 2}'), rq.ProposedChange(resource="key:b", version="0", content="3"))
    assert lost.code is Code.VERSION_CHANGED and lost.facts["resource"] == "key:b"
    propose(world, rq.ProposedChange(resource="key:a", version="1", patch='{"m": 2}'), rq.ProposedChange(resource="key:b", version="1", delete=True))
    assert bytes(world.ask(rq.StateGet(key="key:a")).value) == b'{"n":1,"m":2}'
    world.acquire("bob", "key:a")
    assert refused(world, rq.ProposedChange(resource="key:a", version="2", content="1")).code is Code.LOCKED


def test_lost_writes_are_counted_and_nobody_loses_for_ever(tmp_path: Path) -> None:
    world = World(tmp_path / "lost", Settings(strategies=Strategies(losses_max=2)))
    world.write("a.py", "0\n")
    text = "0\n"
    for n in range(2):  # slow reads, and somebody quicker writes in between
        known = text
        text = f"{n + 1}\n"
        propose(world, one("a.py", known, text), agent="quick")
        refusal = refused(world, one("a.py", known, "slow\n"), agent="slow")
        assert refusal.code is Code.VERSION_CHANGED
    assert refusal.facts["lost"] == 2 and "stand in line for a lease" in refusal.message
    (lost,) = world.ask(rq.LostWrites()).items
    assert (lost.agent, lost.in_a_row, lost.total) == ("slow", 2, 2)
    world.settle()
    assert [row.locked_by for row in world.live()] == ["slow"]
    assert refused(world, one("a.py", text, "quick\n"), agent="quick").code is Code.LOCKED
    propose(world, one("a.py", text, "slow\n"), agent="slow")
    assert read(world, "a.py") == "slow\n"
    assert [one.in_a_row for one in world.ask(rq.LostWrites()).items] == [0]
    assert world.live() == [], "it has won: what it was to win by is nobody's"
    propose(world, one("a.py", "slow\n", "quick\n"), agent="quick")
    assert world.replay_differs() == []
    world.close()


@pytest.mark.parametrize("asks", [False, True])
def test_who_has_won_leaves_the_line_and_keeps_what_it_has_asked_for_itself(tmp_path: Path, asks: bool) -> None:
    world = World(tmp_path / "lost", Settings(strategies=Strategies(losses_max=1)))
    world.write("a.py", "0\n")
    world.acquire("ann", "a.py") if not asks else None
    if not asks:  # still in line as it wins
        assert refused(world, one("a.py", "1\n", "x\n"), agent="slow").code is Code.LOCKED
        world.ask(rq.Release(agent="ann", resources=["a.py"]))
    refused(world, one("a.py", "1\n", "x\n"), agent="slow")
    if asks:
        world.settle()
        assert [row.locked_by for row in world.live()] == ["slow"]
        world.acquire("slow", "a.py")
    propose(world, one("a.py", "0\n", "slow\n"), agent="slow")
    assert [row.locked_by for row in world.live()] == (["slow"] if asks else [])
    world.settle()
    assert world.ask(rq.Locks()).waiters == [] and [row.locked_by for row in world.live()] == (["slow"] if asks else [])
    assert world.replay_differs() == []
    world.close()


def test_a_crash_in_the_middle_leaves_each_file_old_or_new(world: World) -> None:
    """The daemon is gone after any part of the course; the next one goes on."""
    for stop in range(1, 12):
        names = [f"f{stop}-{n}.py" for n in range(3)]
        for name in names:
            world.write(name, "old\n")
        course = proposals.propose(world.service, rq.Propose(
            agent="ann", changes=[one(name, "old\n", "new\n") for name in names]))
        with contextlib.suppress(StopIteration):
            _parts(world, course, stop)
        world.restart()
        texts = {read(world, name) for name in names}
        assert texts in ({"old\n"}, {"new\n"}), (stop, texts)
        world.clock.advance(700_000)
        world.ask(rq.Sweep())
        assert world.ask(rq.Reviews()).items == [], "nothing of it is partial work"


def _parts(world: World, course: Any, count: int) -> None:
    value: Any = None
    for _ in range(count):
        part = course.send(value)
        try:
            value = world.part(part)
        except Refusal as refusal:
            value = refusal


@given(st.data())
def test_of_many_that_propose_every_acknowledged_write_is_there(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Agents append their names to two files, optimistically or under a lease; what is there in the end is what was acknowledged."""
    world = World(tmp_path_factory.mktemp("append"), Settings(strategies=Strategies(losses_max=2)))
    world.checked = False
    expected = {"a.txt": "", "b.txt": ""}
    for name in expected:
        world.write(name, "")
    known: dict[str, dict[str, str]] = {}
    for step in range(data.draw(st.integers(1, 25))):
        agent = data.draw(st.sampled_from(["ann", "bob", "cyd"]))
        do = data.draw(st.sampled_from(["read", "write", "write", "lease", "release", "time"]))
        try:
            if do == "read":
                known[agent] = dict(expected)
            elif do == "write" and agent in known:
                names = data.draw(st.lists(st.sampled_from(["a.txt", "b.txt"]), min_size=1, max_size=2, unique=True))
                before = known.pop(agent)
                world.ask(rq.Propose(agent=agent, changes=[one(name, before[name], before[name] + f"{agent}{step}\n") for name in names]))
                for name in names:
                    assert before[name] == expected[name], "a write on an older version went through"
                    expected[name] += f"{agent}{step}\n"
            elif do == "lease":
                world.acquire(agent, "a.txt", retry=False, ttl_s=30.0)
            elif do == "release":
                world.ask(rq.Release(agent=agent, resources=["a.txt"]))
            elif do == "time":
                world.clock.advance(data.draw(st.integers(1, 40_000)))
        except Refusal as refusal:
            assert refusal.code in (Code.VERSION_CHANGED, Code.LOCKED, Code.DEADLOCK, Code.UNKNOWN_LEASE, Code.NOT_HOLDER, Code.STALE_TOKEN), refusal
        assert {name: read(world, name) for name in expected} == expected
    assert world.replay_differs() == []
    world.close()


@pytest.mark.parametrize("how", ["proposal", "lease", "elsewhere"])
def test_what_was_written_after_the_look_is_not_overwritten(world: World, how: str) -> None:
    """Somebody has the right to write it, and ends it again, between the look and the transaction."""
    world.write("a.py", "old\n")
    world.write("b.py", "same\n")
    changes = [one("a.py", "old\n", "mine\n"), one("b.py", "same\n", "same\n")]
    course = proposals.propose(world.service, rq.Propose(agent="ann", changes=changes))
    value, parts = None, []
    with pytest.raises(StopIteration) as end:
        while True:
            part = course.send(value)
            parts.append(type(part))
            if parts == [Look, OnDisk, Write]:
                if how == "proposal":
                    propose(world, one("a.py", "old\n", "theirs\n"), agent="bob")
                else:
                    name = "a.py" if how == "lease" else "b.py"  # which is not changed, but must stand
                    world.ask(rq.Acquire(agent="bob", resources=[name]))
                    world.write(name, "theirs\n")
                    world.ask(rq.Release(agent="bob", resources=[name]))
            try:
                value = world.part(part)
            except Refusal as refusal:
                value = refusal
    answer = end.value.value
    assert isinstance(answer, Refusal) and answer.code is Code.VERSION_CHANGED and "theirs" in answer.message
    assert (read(world, "a.py"), read(world, "b.py")) == (("old\n", "theirs\n") if how == "elsewhere" else ("theirs\n", "same\n"))


def test_a_file_takes_two_transactions(world: World) -> None:
    world.write("a.py", "old\n")
    course = proposals.propose(world.service, rq.Propose(agent="ann", changes=[one("a.py", "old\n", "new\n")]))
    value, parts = None, []
    with pytest.raises(StopIteration):
        while True:
            parts.append(course.send(value))
            value = world.part(parts[-1])
    assert [type(part).__name__ for part in parts] == ["Look", "OnDisk", "Write", "OnDisk", "Write"]
