"""New texts of leased regions, written by the coordinator: all or none, whatever comes in between."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.looking.file_regions import FileRegions
from coordinator.rules.function_bodies import is_body_alone
from coordinator.settings import Leases, Settings
from coordinator.slices.guard import renames
from coordinator.slices.impact.impact import Impact
from coordinator.source.meaning import Meaning
from coordinator.store.rows import VersionRow
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.effort import examples
from tests.files.faults import Crash, FaultyKernel
from tests.waiting import until
from tests.world import World

TEXT = "import os\n\n\ndef f():\n    return 1\n\n\nclass C:\n    x = 1\n\n    def m(self):\n        return 2\n\n\ndef g():\n    return 3\n"


@pytest.fixture
def world(world: World) -> World:
    world.write("a.py", TEXT)
    world.write("b.py", TEXT)
    return world


def commit(agent: str, *texts: tuple[str, str], **more: Any) -> rq.CommitRegion:
    return rq.CommitRegion(agent=agent, regions=[rq.RegionText(resource=name, text=text, **more) for name, text in texts])


def f(value: object) -> str:
    return f"def f():\n    return {value}\n"


def read(world: World, name: str = "a.py") -> str:
    return (world.root / name).read_bytes().decode()


def test_a_region_is_written_and_nothing_else(world: World) -> None:
    world.acquire("ann", "a.py::f")
    world.acquire("bob", "a.py::g", "a.py::C.m")
    done = world.ask(commit("ann", ("a.py::f", f(10))))
    assert read(world) == TEXT.replace("return 1", "return 10")
    world.ask(commit("ann", ("a.py::f", f(100)), content_hash=done.regions[0].content_hash))
    world.ask(commit("ann", ("a.py::f", f(1000))))
    world.ask(commit("bob", ("a.py::g", "def g():\n    return 30\n"), ("a.py::C.m", "    def m(self):\n        return 20\n")))
    assert read(world) == TEXT.replace("return 1", "return 1000").replace("return 2", "return 20").replace("return 3", "return 30")
    assert {one.resource for one in world.ask(rq.Locks()).items} == {"a.py::f", "a.py::g", "a.py::C.m"}
    assert world.view().first(VersionRow, "version_get", "a.py").agent == "bob"  # type: ignore[union-attr]
    assert world.replay_differs() == []


@pytest.mark.parametrize(("who", "text", "code"), [
    ("bob", f(2), Code.NOT_HOLDER),
    ("ann", "def f(:\n    return 1\n", Code.PARSE_INVALID),
    ("ann", f(2) + "\n\ndef h():\n    pass\n", Code.OUT_OF_SCOPE_EDIT),
    ("ann", "def other():\n    return 1\n", Code.OUT_OF_SCOPE_EDIT),
    ("ann", f(2) + "x = 1\n", Code.OUT_OF_SCOPE_EDIT),
    ("ann", 'def f():\n    return """\n', Code.PARSE_INVALID),
    # what the grammar takes and Python does not
    ("ann", "def f():\n", Code.PARSE_INVALID),
    ("ann", "def f():\n    return 1\n      x = 2\n", Code.PARSE_INVALID),
    ("ann", "def f():\n    if 1:\n    return 1\n", Code.PARSE_INVALID),
    ("ann", "def f():\n\tif 1:\n        return 1\n", Code.PARSE_INVALID),
    ("ann", "def f():\n    print 'x'\n", Code.PARSE_INVALID),
])
def test_what_does_not_fit_is_not_written(world: World, who: str, text: str, code: Code) -> None:
    world.acquire("ann", "a.py::f")
    world.acquire("cyd", "b.py::f")
    refusal = world.refused(commit(who, ("a.py::f", text)))
    assert refusal.code is code and "Nothing was written" in refusal.message
    assert read(world) == TEXT
    assert {one.resource for one in world.ask(rq.Locks()).items} == {"a.py::f", "b.py::f"}, "no window is left open"


def test_what_was_wrongly_indented_before_may_be_written(world: World) -> None:
    """Nobody is kept from one region by a mistake in another."""
    world.write("a.py", TEXT.replace("        return 2", "    return 2"))
    world.acquire("ann", "a.py::f")
    world.ask(commit("ann", ("a.py::f", f(10))))
    assert "return 10" in read(world)


def test_words_of_another_version_of_the_language_are_no_mistake(world: World) -> None:
    world.write("a.py", "print 'two'\n\n\n" + TEXT)
    world.acquire("ann", "a.py::f")
    world.ask(commit("ann", ("a.py::f", f(10))))
    assert "return 10" in read(world)


def test_rights_that_are_none(world: World) -> None:
    got = world.acquire("ann", "a.py::f", ttl_s=60)
    token = got.leases[0].lease_token
    assert world.refused(commit("ann", ("a.py::g", f(2)))).code is Code.UNKNOWN_LEASE
    assert world.refused(commit("ann", ("a.py", f(2)))).code is Code.INVALID
    assert world.refused(commit("ann")).code is Code.INVALID
    assert world.refused(commit("ann", ("a.py::f", f(2)), lease_token="0" * 32)).code is Code.STALE_TOKEN
    for shown in ("1", "abc"):
        refusal = world.refused(commit("ann", ("a.py::f", f(2)), lease_token=shown))
        assert refusal.code is Code.INVALID and "is no lease token" in refusal.message, "a lease's number is taken for its token"
    world.ask(commit("ann", ("a.py::f", f(2)), lease_token=token))
    world.clock.advance(60_000)
    assert world.refused(commit("ann", ("a.py::f", f(3)))).code is Code.STALE_TOKEN
    world.acquire("ann", "a.py::f", mode="shared")
    assert world.refused(commit("ann", ("a.py::f", f(3)))).code is Code.UNKNOWN_LEASE


def test_what_contains_a_region_gives_the_right_to_it(world: World) -> None:
    m = "    def m(self):\n        return {}\n"
    for turn, held in enumerate(("a.py::C", "a.py", "./", "*.py", "a.py::<header>")):
        world.acquire("ann", held)
        world.ask(commit("ann", ("a.py::C.m", m.format(turn + 100))))
        assert f"return {turn + 100}" in read(world), held
        world.ask(rq.Release(agent="ann", resources=[held]))


def test_what_was_changed_meanwhile_is_told_with_the_fresh_text(world: World) -> None:
    world.acquire("ann", "a.py::f")
    world.write("a.py", TEXT.replace("return 1", "return 'by hand'"))
    refusal = world.refused(commit("ann", ("a.py::f", f(2))))
    assert refusal.code is Code.REGION_CHANGED and "by hand" in refusal.facts["text"]
    world.ask(commit("ann", ("a.py::f", f(2)), content_hash=refusal.facts["content_hash"]))
    world.write("a.py", read(world).replace("def f", "def ff"))
    gone = world.refused(commit("ann", ("a.py::f", f(3))))
    assert gone.code is Code.REGION_CHANGED and gone.facts["nearest"][0] == "a.py::ff"
    (world.root / "a.py").unlink()
    assert world.refused(commit("ann", ("a.py::f", f(3)))).code is Code.REGION_CHANGED


def test_a_region_that_was_moved_in_its_file_is_followed_and_one_that_was_renamed_is_told(world: World) -> None:
    """Where it lies is found anew each time: no offset is kept."""
    world.acquire("ann", "a.py::f", "a.py::g")
    start = TEXT.index("def f")
    moved = TEXT[:start] + TEXT[start + len(f(1)) + 2:] + "\n\n" + f(1)
    world.write("a.py", moved)
    world.ask(commit("ann", ("a.py::f", f(10))))
    assert read(world) == moved.replace("return 1\n", "return 10\n")
    world.write("a.py", read(world).replace("def g", "def h"))
    refusal = world.refused(commit("ann", ("a.py::g", "def g():\n    return 30\n")))
    assert refusal.code is Code.REGION_CHANGED and "a.py::h" in refusal.facts["nearest"]
    world.ask(rq.Release(agent="ann", resources=["a.py::f", "a.py::g"]))
    assert world.ask(rq.Reviews()).items == []


def test_a_file_stays_what_it_was_but_for_the_region(world: World) -> None:
    raw = b"\xef\xbb\xbf" + TEXT.replace("import os", "# Gr\u00fc\u00dfe\nimport os").replace("\n", "\r\n").encode()
    (world.root / "a.py").write_bytes(raw)
    os.chmod(world.root / "a.py", 0o750)
    world.acquire("ann", "a.py::f")
    world.ask(commit("ann", ("a.py::f", f("'\u00e9'"))))
    assert (world.root / "a.py").read_bytes() == raw.replace(b"return 1", "return '\u00e9'".encode())
    assert (world.root / "a.py").stat().st_mode & 0o777 == 0o750
    (world.root / "b.py").write_bytes(TEXT.replace("import os", "# \u00e9\nimport os").encode("latin-1"))
    world.acquire("ann", "b.py::f")
    assert world.refused(commit("ann", ("b.py::f", f("'\u00e9'")))).code is Code.INVALID
    world.ask(commit("ann", ("b.py::f", f(2))))
    assert b"# \xe9" in (world.root / "b.py").read_bytes()


def many(count: int, body: str = "    return {n}\n", end: str = "\n") -> bytes:
    return "".join(f"def f{n}():\n{body.format(n=n)}\n\n" for n in range(count)).replace("\n", end).encode()


DEEP = "".join("    " * n + f"class C{n}:\n" for n in range(60)) + "    " * 60 + "x = 1\n\n\n"


@pytest.mark.parametrize(("data", "name", "old", "text", "new"), [
    (many(10_000), "f7000", b"return 7000\n", "def f7000():\n    return 'new'\n", b"return 'new'\n"),
    (many(40, "    return '{n}" + "x" * 120_000 + "'\n"), "f20", b"'20" + b"x" * 120_000, "def f20():\n    return ''\n", b"'"),
    (DEEP.encode() + many(3), "f1", b"return 1\n", "def f1():\n    return 10\n", b"return 10\n"),
    (b"\xef\xbb\xbf" + many(3, "\treturn {n}\n", "\r\n"), "f1", b"return 1\r\n", "def f1():\n\treturn 10\n", b"return 10\r\n"),
    (many(3), "f1", b"return 1\n", "def f1():\r\n    return 10\r\n", b"return 10\n"),
    (b"# -*- coding: latin-1 -*-\n# \xe9\xff\n" + many(3), "f1", b"return 1\n", "def f1():\n    return 10\n", b"return 10\n"),
    (many(3) + b"def broken(:\n    ( [ {\n", "f0", b"return 0\n", "def f0():\n    return 10\n", b"return 10\n"),
    (b"\0\0\n" + many(3), "f1", b"return 1\n", "def f1():\n    return 10\n", b"return 10\n"),
], ids=["10,000 functions", "5 MB", "60 deep", "mark, tabs, CRLF", "CRLF for LF", "latin-1", "broken below", "zeros"])
def test_odd_and_large_files_stay_what_they_were_but_for_the_region(
    world: World, data: bytes, name: str, old: bytes, text: str, new: bytes,
) -> None:
    (world.root / "odd.py").write_bytes(data)
    world.acquire("ann", f"odd.py::{name}")
    try:
        world.ask(commit("ann", (f"odd.py::{name}", text)))
    except Refusal as refusal:
        assert refusal.code in (Code.PARSE_INVALID, Code.OUT_OF_SCOPE_EDIT, Code.INVALID)
        assert (world.root / "odd.py").read_bytes() == data and b"\0" in data, refusal.message
    else:
        assert (world.root / "odd.py").read_bytes() == data.replace(old, new, 1)
    assert world.replay_differs() == []


def test_a_region_can_be_removed(world: World) -> None:
    world.acquire("ann", "a.py::f")
    done = world.ask(commit("ann", ("a.py::f", "")))
    assert done.regions[0].content_hash is None and "def f" not in read(world)


def test_several_files_all_or_none(world: World) -> None:
    world.acquire("ann", "a.py::f", "b.py::f")
    assert world.refused(commit("ann", ("a.py::f", f(2)), ("b.py::f", "def f(:\n"))).code is Code.PARSE_INVALID
    assert read(world) == read(world, "b.py") == TEXT
    world.ask(commit("ann", ("a.py::f", f(2)), ("b.py::f", f(3))))
    assert "return 2" in read(world) and "return 3" in read(world, "b.py")


EVERY = 7


def test_after_a_crash_in_any_moment_all_files_are_old_or_all_are_new(tmp_path: Path) -> None:
    first = World(tmp_path / "first")
    names = ["a.py", "b.py", "d/c.py"]
    for name in names:
        first.write(name, TEXT)
    first.acquire("ann", *(f"{name}::f" for name in names))
    now = first.clock.now_ms()
    first.close()
    came = set()
    for nth in range(1, 5000, EVERY):
        shutil.copytree(first.root, tmp_path / f"{nth}")
        world = World(tmp_path / f"{nth}")
        world.clock.at_ms = now
        with FaultyKernel(nth, crash) as faults:
            try:
                world.ask(commit("ann", *((f"{name}::f", f(2)) for name in names)))
            except Crash:
                assert faults.struck
        if not faults.struck:
            world.close()
            break
        world.restart()
        texts = {read(world, name) for name in names}
        assert len(texts) == 1, faults.said
        ended = [event.data["outcome"] for event in world.ask(rq.Events(kind="verdict_ended")).items]
        new = texts == {TEXT.replace("return 1", "return 2")}
        assert ended == (["done"] if new else []), faults.said
        came.add(new)
        assert {one.locked_by for one in world.ask(rq.Locks()).items} == {"ann"}, faults.said
        world.ask(commit("ann", *((f"{name}::f", f(3)) for name in names)))
        assert world.replay_differs() == []
        world.close()
        shutil.rmtree(world.root)
    assert came == {True, False}


def crash() -> None:
    raise Crash


BODIES = st.sampled_from(["return 1", "x = 1\n    return x", "'''doc'''", "return {\n        1: 2,\n    }", "pass  # " + "x" * 200])


@settings(max_examples=examples(30))
@given(st.lists(st.tuples(st.sampled_from(["f", "g", "h"]), BODIES), min_size=1, max_size=6), st.sampled_from(["\n", "\r\n"]))
def test_many_commits_leave_what_was_committed_last(edits: list[tuple[str, str]], end: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        try:
            start = "# top\n\n" + "\n\n".join(f"def {name}():\n    return 0\n" for name in "fgh") + "\n\n\nlast = 1\n"
            (world.root / "a.py").write_bytes(start.replace("\n", end).encode())
            for name in "fgh":
                world.acquire(f"agent-{name}", f"a.py::{name}")
            now = dict.fromkeys("fgh", "return 0")
            for name, body in edits:
                world.ask(commit(f"agent-{name}", (f"a.py::{name}", f"def {name}():\n    {body}\n")))
                now[name] = body
            wanted = "# top\n\n" + "\n\n".join(f"def {name}():\n    {body}\n" for name, body in now.items()) + "\n\n\nlast = 1\n"
            assert read(world) == wanted.replace("\n", end)
        finally:
            world.close()


def test_while_another_writes_the_file_a_commit_waits(world: World) -> None:
    from tests.sessions import Session

    bob = Session(world, "bob")
    world.acquire("ann", "a.py::f")
    bob.call("Edit", {"file_path": str(world.root / "a.py"), "old_string": "return 3", "new_string": "return 30"})
    with pytest.raises(Refusal) as refused:
        world.ask(commit("ann", ("a.py::f", f(2))))
    assert refused.value.code is Code.LOCKED and bob.name in refused.value.message
    assert read(world) == TEXT


# ---------------------------------------------------------------- whom a commit breaks

PAY = "def charge(account, amount):\n    return amount\n\n\ndef spread(things):\n    return charge(*things)\n"
ORDERS = "from pay import charge\n\n\ndef a(account):\n    return charge(account, 1)\n\n\ndef b():\n    return 2\n"


@pytest.fixture
def judged(world: World) -> World:
    """With the repository's files read; ann holds pay.py::charge."""
    return with_all_read(world, "ann")


def with_all_read(world: World, agent: str) -> World:
    world.write("pay.py", PAY.partition("\n\n\ndef spread")[0] + "\n")
    world.write("orders.py", ORDERS)
    meaning = Meaning(str(world.root), ":memory:")
    world.service.impact = Impact(meaning)
    world.acquire(agent, "pay.py::charge")
    done = world.ask(commit(agent, ("pay.py::charge", "def charge(account, amount, note=None):\n    return amount\n")))
    assert "not known yet" in done.warnings[0]
    until(lambda: meaning.progress().state == "done")
    world.service.impact.note(["pay.py"])
    return world


def charge(signature: str) -> str:
    return f"def charge({signature}):\n    return amount\n"


def test_who_breaks_others_is_told_whom_and_what_to_lease(judged: World) -> None:
    for fits in ("account, amount, note=''", "account, amount, *, note=''"):
        judged.ask(commit("ann", ("pay.py::charge", charge(fits))))
        judged.service.impact.note(["pay.py"])  # type: ignore[union-attr]
    refusal = judged.refused(commit("ann", ("pay.py::charge", charge("account, amount, currency"))))
    assert refusal.code is Code.REQUIRE_ADDITIONAL_LOCKS and refusal.facts["required"] == ["orders.py::a"]
    assert "a() in orders.py calls charge() with two arguments" in refusal.message and "Nothing was written" in refusal.message
    judged.acquire("ann", "orders.py::a")
    judged.ask(commit("ann", ("pay.py::charge", charge("account, amount, currency")),
                      ("orders.py::a", "def a(account):\n    return charge(account, 1, 'CHF')\n")))
    assert "CHF" in read(judged, "orders.py") and "currency" in read(judged, "pay.py")


def test_what_cannot_be_seen_through_is_for_whoever_has_the_whole_file(judged: World) -> None:
    judged.ask(rq.Release(agent="ann", resources=["pay.py::charge"]))
    judged.write("pay.py", PAY)
    judged.clock.advance(1_000)
    judged.acquire("ann", "pay.py::charge")
    judged.write("orders.py", "b = 2\n")
    judged.service.impact.note(["pay.py", "orders.py"])  # type: ignore[union-attr]
    asked = commit("ann", ("pay.py::charge", charge("account, amount, currency")))
    judged.acquire("ann", "pay.py::spread")
    refusal = judged.refused(asked)
    assert refusal.code is Code.ESCALATION_REQUIRED and "spread" in str(refusal.facts["unseen"])
    judged.acquire("ann", "pay.py")
    judged.ask(asked)


def test_a_policy_has_nobody_judge(tmp_path: Path) -> None:
    world = World(tmp_path / "repo", Settings(leases=Leases(meaning="off")))
    world.write("pay.py", PAY)
    world.service.impact = Impact(Meaning(str(world.root), ":memory:"))
    world.acquire("ann", "pay.py::charge")
    assert world.ask(commit("ann", ("pay.py::charge", charge("account")))).warnings == []
    world.close()


@pytest.mark.parametrize(("before", "after", "alone"), [
    ("def f(a):\n    return a\n", "def f(a):\n    return a + 1\n", True),
    ("@cache\ndef f(a):\n    return a\n", "@cache\ndef f(a):\n    x = 1\n    return a\n", True),
    ("@cache\ndef f(a):\n    return a\n", "def f(a):\n    return a\n", False),
    ("def f(a):\n    return a\n", "def f(a, b):\n    return a\n", False),
    ("def f(a):\n    return a\n", "async def f(a):\n    return a\n", False),
    ("def f(a):\n    return a\n", "def f(a):\n    yield a\n", False),
    ("def f(\n    a,\n):\n    return a\n", "def f(\n    a, b,\n):\n    return a\n", False),
    ("    def f(self):\n        self.x = 1\n", "    def f(self):\n        self.y = 1\n", False),
    ("    def f(self):\n        return self.x\n", "    def f(self):\n        return self.y\n", True),
    ("class C:\n    x = 1\n", "class C:\n    y = 1\n", False),
    ("def f(a): return a\n", "def f(a): return 1\n", False),
    ("def f(a):\n    return a\n", "", False),
])
def test_what_is_in_a_body_alone_breaks_nobody(before: str, after: str, alone: bool) -> None:
    assert is_body_alone("a.py", before.encode(), after.encode()) is alone


ADDED = "def h():\n    return 4\n"


def adds(agent: str, name: str, text: str, after: str) -> rq.CommitRegion:
    return rq.CommitRegion(agent=agent, regions=[rq.RegionText(resource=name, text=text, after=after)])


@pytest.mark.parametrize(("name", "text", "after", "before", "behind"), [
    ("h", ADDED, "", "    return 3\n\n\ndef h", "    return 4\n"),
    ("h", ADDED, "f", "    return 1\n\n\ndef h", "    return 4\n\n\nclass C"),
    ("h", ADDED, "C", "    return 2\n\n\ndef h", "    return 4\n\n\ndef g"),
    ("C.k", "    def k(self):\n        return 5\n", "", "        return 2\n\n    def k", "        return 5\n\n\ndef g"),
    ("C.k", "\n\n    def k(self):\n        return 5\n\n\n", "C.m", "        return 2\n\n    def k", "        return 5\n\n\ndef g"),
])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_region_that_is_not_there_is_added(world: World, name: str, text: str, after: str, before: str, behind: str, ends: str) -> None:
    whole = "import os\n\n\ndef f():\n    return 1\n\n\nclass C:\n    x = 1\n\n    def m(self):\n        return 2\n\n\ndef g():\n    return 3\n"
    (world.root / "add.py").write_bytes(whole.replace("\n", ends).encode())
    assert world.refused(rq.Acquire(agent="ann", resources=[f"add.py::{name}"])).code is Code.REGION_UNKNOWN
    world.ask(rq.Acquire(agent="ann", resources=[f"add.py::{name}"], new=True))
    assert world.refused(rq.Acquire(agent="bob", resources=[f"add.py::{name}"], new=True)).code is Code.LOCKED
    done = world.ask(adds("ann", f"add.py::{name}", text, after))
    made = (world.root / "add.py").read_bytes().decode()
    assert before.replace("\n", ends) in made and behind.replace("\n", ends) in made
    assert made.replace(ends, "\n").replace(text.strip("\n"), "").split() == whole.split() and done.regions[0].content_hash is not None
    world.ask(rq.CommitRegion(agent="ann", regions=[rq.RegionText(resource=f"add.py::{name}", text=text.replace("return", "return 1 +"))]))
    assert "return 1 +" in (world.root / "add.py").read_text()
    assert world.replay_differs() == []


@pytest.mark.parametrize(("name", "text", "after", "code"), [
    ("f", ADDED, "", Code.INVALID),  # it is there
    ("h", "", "", Code.INVALID),
    ("h", ADDED, "nothing", Code.REGION_UNKNOWN),
    ("N.h", ADDED, "", Code.REGION_UNKNOWN),  # no such class
    ("h", "def h(:\n", "", Code.PARSE_INVALID),
    ("h", "def z():\n    pass\n", "", Code.OUT_OF_SCOPE_EDIT),
    ("h", ADDED + "\n\ndef z():\n    pass\n", "f", Code.OUT_OF_SCOPE_EDIT),
])
def test_what_cannot_be_added_is_refused_and_nothing_is_written(world: World, name: str, text: str, after: str, code: Code) -> None:
    world.write("add.py", "def f():\n    return 1\n")
    world.ask(rq.Acquire(agent="ann", resources=[f"add.py::{name}"], new=True))
    refusal = world.refused(adds("ann", f"add.py::{name}", text, after))
    assert refusal.code is code and "Nothing was written" in refusal.message
    assert (world.root / "add.py").read_text() == "def f():\n    return 1\n"


def test_who_holds_what_contains_it_may_add_to_it(world: World) -> None:
    world.write("add.py", "class C:\n    def m(self):\n        return 1\n")
    world.acquire("ann", "add.py::C")
    world.ask(adds("ann", "add.py::C.k", "    def k(self):\n        return 2\n", "C.m"))
    assert (world.root / "add.py").read_text() == "class C:\n    def m(self):\n        return 1\n\n    def k(self):\n        return 2\n"
    assert world.refused(adds("bob", "add.py::C.z", "    def z(self): pass\n", "")).code is Code.NOT_HOLDER


def texts(*given: tuple[str, str, str | None]) -> rq.CommitRegion:
    return rq.CommitRegion(agent="ann", regions=[rq.RegionText(resource=name, text=text, after=after) for name, text, after in given])


@pytest.mark.parametrize("after", [None, "", "g", "f"])
@pytest.mark.parametrize("turned", [False, True])
def test_what_is_new_is_committed_with_what_it_comes_behind(world: World, after: str | None, turned: bool) -> None:
    """As the refusal of a text with both in it says. Leased as new, it comes at the end without a word."""
    world.write("add.py", "def f():\n    return 1\n\n\ndef g():\n    return 2\n")
    world.acquire("ann", "add.py::g")
    both = "def g():\n    return 22\n\n\ndef h():\n    return 4\n"
    refusal = world.refused(texts(("add.py::g", both, None)))
    assert refusal.code is Code.OUT_OF_SCOPE_EDIT and "as new: h" in refusal.next
    world.ask(rq.Acquire(agent="ann", resources=["add.py::h"], new=True))
    given = [("add.py::g", "def g():\n    return 22\n", None), ("add.py::h", ADDED, after)]
    done = world.ask(texts(*(given[::-1] if turned else given)))
    assert all(one.content_hash for one in done.regions)
    assert (world.root / "add.py").read_text().replace("\n\n\n", "|") == (
        "def f():\n    return 1\n|def h():\n    return 4\n|def g():\n    return 22\n" if after == "f"
        else "def f():\n    return 1\n|def g():\n    return 22\n|def h():\n    return 4\n").replace("\n|", "|")
    world.ask(texts(("add.py::g", "", None)))
    assert "def g" not in (world.root / "add.py").read_text() and world.replay_differs() == []


def test_what_has_come_where_one_was_to_be_added_is_not_replaced_without_a_word(world: World) -> None:
    world.write("add.py", "def f():\n    return 1\n\n\ndef g():\n    return 2\n")
    world.acquire("bob", "add.py::g")
    world.ask(rq.Acquire(agent="ann", resources=["add.py::h"], new=True))
    theirs = "def f():\n    return 1\n\n\ndef h():\n    return 2\n"
    world.write("add.py", theirs)  # bob has renamed it, with a program
    refusal = world.refused(texts(("add.py::h", ADDED, None)))
    assert refusal.code is Code.REGION_CHANGED and "is there already" in refusal.message
    assert refusal.facts["text"] == "def h():\n    return 2\n" and (world.root / "add.py").read_text() == theirs
    world.write("add.py", theirs.replace("def h():\n    return 2\n", ""))
    first = world.ask(texts(("add.py::h", ADDED, None)))
    again = world.ask(texts(("add.py::h", ADDED.replace("4", "5"), None)))
    assert first.regions[0].content_hash != again.regions[0].content_hash, "its own is known to it"


def test_who_only_reads_a_region_is_told_so(world: World) -> None:
    world.ask(rq.Acquire(agent="ann", resources=["a.py::f"], mode="shared"))
    refusal = world.refused(commit("ann", ("a.py::f", f(2))))
    assert refusal.code is Code.UNKNOWN_LEASE and "leased shared, to read it" in refusal.message
    assert {one.resource for one in world.ask(rq.Events(resource="a.py", kind="lease_granted")).items} == {"a.py::f"}


def test_several_that_are_new_come_in_the_order_in_which_they_are_given(world: World) -> None:
    world.write("add.py", "class C:\n    x = 1\n")
    names = ["C.z", "C.y", "last", "C.x2"]
    world.ask(rq.Acquire(agent="ann", resources=[f"add.py::{name}" for name in names], new=True))
    one = "    def {}(self):\n        return 1\n"
    world.ask(texts(("add.py::C.z", one.format("z"), ""), ("add.py::C.y", one.format("y"), "C.z"),
                    ("add.py::last", "def last():\n    return 1\n", None), ("add.py::C.x2", one.format("x2"), None)))
    made = (world.root / "add.py").read_text()
    assert [line.split("(")[0].split()[-1] for line in made.splitlines() if "def " in line] == ["z", "y", "x2", "last"], made
    compile(made, "add.py", "exec")


def test_a_region_that_is_named_twice_is_told_so(world: World) -> None:
    world.acquire("ann", "a.py::f")
    refusal = world.refused(commit("ann", ("a.py::f", f(2)), ("a.py::f", f(3))))
    assert refusal.code is Code.INVALID and "named twice" in refusal.message and read(world) == TEXT


@pytest.mark.parametrize("after", [None, ""])
def test_who_leases_regions_of_a_file_that_is_not_there_makes_it(world: World, after: str | None) -> None:
    names = ["made.py::x", "made.py::y"]
    world.ask(rq.Acquire(agent="ann", resources=names))
    world.ask(texts((names[0], "def x():\n    return 1\n", after), (names[1], "def y():\n    return 2\n", after)))
    made = world.root / "made.py"
    assert made.read_text() == "def x():\n    return 1\n\n\ndef y():\n    return 2\n" and made.stat().st_mode & 0o777 == 0o644
    world.ask(texts((names[0], "def x():\n    return 3\n", None)))
    made.unlink()
    refusal = world.refused(texts((names[0], "def x():\n    return 4\n", None)))
    assert refusal.code is Code.REGION_CHANGED and "is not there any more" in refusal.message and not made.exists()
    world.ask(rq.Acquire(agent="ann", resources=["none/made.py::x"]))
    assert "its directory is not there" in world.refused(texts(("none/made.py::x", "x = 1\n", None))).message
    assert world.replay_differs() == []


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("name", ["x", "<header>"])
def test_a_file_that_is_not_divided_is_leased_as_a_whole(world: World, name: str, new: bool) -> None:
    world.write("b.txt", "b\n")
    refusal = world.refused(rq.Acquire(agent="ann", resources=[f"b.txt::{name}"], new=new))
    assert refusal.code is Code.REGION_UNKNOWN and "leased as a whole" in refusal.message and "coord lock b.txt" in refusal.next


HEADED = "#!/usr/bin/env python\nimport os\n\n\ndef f():\n    return 1\n\n\nclass A:\n    def g(self):\n        pass\n"


@pytest.mark.parametrize("known", ["lease", "listed", "whole", "old"])
def test_the_header_is_what_stands_before_the_definitions(world: World, known: str) -> None:
    """It was the whole file once: who gave the imports lost all the code."""
    world.write("h.py", HEADED)
    (lease,) = world.acquire("ann", "h.py::<header>").leases
    with closing(FileRegions()) as divided:
        listed = next(one for one in divided.outline("h.py", HEADED.encode()).regions if one.name == "<header>")
    was = {"lease": None, "listed": listed.hash, "whole": lease.content_hash, "old": "sha256:" + "0" * 64}[known]
    new = "#!/usr/bin/env python\nimport os\nimport sys\n"
    given = rq.CommitRegion(agent="ann", regions=[rq.RegionText(resource="h.py::<header>", text=new, content_hash=was)])
    if known == "old":
        refusal = world.refused(given)
        assert refusal.code is Code.REGION_CHANGED and refusal.facts["text"].startswith("#!/usr") and "def f" not in refusal.facts["text"]
        return
    world.ask(given)
    assert read(world, "h.py") == HEADED.replace("import os\n", "import os\nimport sys\n")


@pytest.mark.parametrize("text", [HEADED.replace("import os", "import re"), "import re\n\n\ndef f():\n    return 2\n", "def new():\n    pass\n"])
def test_nothing_else_is_changed_by_a_header(world: World, text: str) -> None:
    world.write("h.py", HEADED)
    world.acquire("ann", "h.py::<header>")
    refusal = world.refused(commit("ann", ("h.py::<header>", text)))
    assert refusal.code is Code.OUT_OF_SCOPE_EDIT and read(world, "h.py") == HEADED


@pytest.mark.parametrize(("before", "text", "after"), [
    (HEADED, "", HEADED[HEADED.index("def f"):]),
    ("def f():\n    pass\n", "import os\n", "import os\n\n\ndef f():\n    pass\n"),
    ("\ufeff\r\ndef f():\r\n    pass\r\n", "import os\n", "\ufeffimport os\r\n\r\n\r\n\r\ndef f():\r\n    pass\r\n"),
    ("import os\n", "import sys\n", "import sys\n"),
])
def test_a_header_may_be_empty(world: World, before: str, text: str, after: str) -> None:
    (world.root / "h.py").write_bytes(before.encode())
    world.acquire("ann", "h.py::<header>")
    world.ask(commit("ann", ("h.py::<header>", text)))
    assert (world.root / "h.py").read_bytes().decode() == after


def test_code_between_definitions_is_no_one_text(world: World) -> None:
    between = HEADED + "\n\nprint(f())\n\n\ndef last():\n    pass\n"
    world.write("h.py", between)
    world.acquire("ann", "h.py::<header>")
    refusal = world.refused(commit("ann", ("h.py::<header>", "import sys\n")))
    assert refusal.code is Code.INVALID and "as a whole" in refusal.next and read(world, "h.py") == between


def test_a_header_and_regions_are_committed_together_as_a_refusal_says(world: World) -> None:
    world.write("h.py", HEADED)
    world.acquire("ann", "h.py::f")
    refusal = world.refused(commit("ann", ("h.py::f", "import sys\n\n\ndef f():\n    return 3\n")))
    assert refusal.code is Code.OUT_OF_SCOPE_EDIT and "h.py::<header>" in refusal.next
    world.acquire("ann", "h.py::<header>")
    world.ask(commit("ann", ("h.py::<header>", "import os\nimport sys\n"), ("h.py::f", "def f():\n    return 3\n")))
    assert read(world, "h.py") == HEADED.replace("#!/usr/bin/env python\n", "").replace("os\n", "os\nimport sys\n").replace("1", "3")


IN_A_CLASS = {
    "n.js": ("class Bar {\n  a() {}\n}\n\nfunction z() {}\n", "Bar.b", "  b() {}\n", "class Bar {\n  a() {}\n\n  b() {}\n}\n\nfunction z() {}\n"),
    "e.ts": ("class Foo {\n  a = 1;\n  c() {}\n}\n", "Foo.b", "  b(): void {}\n", "class Foo {\n  a = 1;\n  c() {}\n\n  b(): void {}\n}\n"),
    "r.rs": ("struct K;\n\nimpl K {\n    fn a(&self) {}\n}\n", "K.b", "    fn b(&self) {}\n", None),
    "J.java": ("class J {\n    void a() {}\n}\n", "J.b", "    void b() {}\n", "class J {\n    void a() {}\n\n    void b() {}\n}\n"),
    "c.rb": ("class C\n  def a\n  end\nend\n", "C.b", "  def b\n  end\n", "class C\n  def a\n  end\n\n  def b\n  end\nend\n"),
    "p.php": ("<?php\nclass P {\n    function a() {}\n}\n", "P.b", "    function b() {}\n", "<?php\nclass P {\n    function a() {}\n\n    function b() {}\n}\n"),
    "s.cs": ("class S {\n    void A() {}\n}\n", "S.B", "    void B() {}\n", "class S {\n    void A() {}\n\n    void B() {}\n}\n"),
}


@pytest.mark.parametrize("file", IN_A_CLASS)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("after", ["", None])
def test_at_the_end_of_what_contains_it_is_before_its_bracket(world: World, file: str, ends: str, after: str | None) -> None:
    before, name, text, then = IN_A_CLASS[file]
    (world.root / file).write_bytes(before.replace("\n", ends).encode())
    holder = "impl K" if file == "r.rs" else None
    with closing(FileRegions()) as divided:
        names = divided.names(file, before.encode())
    if holder is not None:  # how the table calls what contains it
        above = next(one for one in names if one.endswith(".a")).rpartition(".")[0]
        name, then = f"{above}.b", "struct K;\n\nimpl K {\n    fn a(&self) {}\n\n    fn b(&self) {}\n}\n"
    world.ask(rq.Acquire(agent="ann", resources=[f"{file}::{name}"], new=True))
    world.ask(texts((f"{file}::{name}", text, after)))
    assert (world.root / file).read_bytes().decode() == (then or "").replace("\n", ends)


@pytest.mark.parametrize(("file", "before", "left"), [
    ("k.ts", "export class K {\n  m() {\n    return 1;\n  }\n}\n", "export class K {\n}\n"),
    ("k.py", "class K:\n    def m(self):\n        return 1\n", "class K:\n    pass\n")])
def test_the_last_member_of_a_class_goes_with_the_whole_of_it(world: World, file: str, before: str, left: str) -> None:
    """What is advised can be done."""
    world.write(file, before)
    world.acquire("ann", f"{file}::K.m")
    refusal = world.refused(texts((f"{file}::K.m", "", None)))
    if refusal.code is not Code.PARSE_INVALID:  # (a class of Python's has to have something in it)
        assert refusal.code is Code.OUT_OF_SCOPE_EDIT and f"Commit {file}::K in its place, as a whole" in refusal.next
    world.acquire("ann", f"{file}::K")
    world.ask(texts((f"{file}::K", left, None)))
    assert read(world, file) == left


def test_the_first_member_of_a_class_changes_the_class_and_is_committed_with_it(world: World) -> None:
    world.write("n.js", "class Foo {\n}\n")
    world.ask(rq.Acquire(agent="ann", resources=["n.js::Foo.b"], new=True))
    refusal = world.refused(texts(("n.js::Foo.b", "  b() {}\n", None)))
    assert refusal.code is Code.OUT_OF_SCOPE_EDIT and "Commit n.js::Foo with it" in refusal.next
    world.acquire("ann", "n.js::Foo")
    world.ask(texts(("n.js::Foo", "class Foo {\n}\n", None), ("n.js::Foo.b", "  b() {}\n", None)))
    assert read(world, "n.js") == "class Foo {\n  b() {}\n}\n"


@pytest.mark.parametrize(("before", "text"), [("class Foo {}\n", "  b() {}\n"), ("class Foo {\n}\n", "  c() {}\n"), ("class Foo {\n}\n", "  b( {\n")])
def test_what_has_no_place_in_it_is_told_so(world: World, before: str, text: str) -> None:
    world.write("n.js", before)
    world.ask(rq.Acquire(agent="ann", resources=["n.js::Foo.b"], new=True))
    refusal = world.refused(texts(("n.js::Foo.b", text, None)))
    assert refusal.code is Code.INVALID and "commit n.js::Foo with it" in refusal.next and read(world, "n.js") == before


def test_functions_of_other_languages_stand_a_line_apart(world: World) -> None:
    world.write("m.go", "package m\n\nfunc F() {}\n")
    world.ask(rq.Acquire(agent="ann", resources=["m.go::G"], new=True))
    world.ask(texts(("m.go::G", "func G() {}\n", None)))
    assert read(world, "m.go") == "package m\n\nfunc F() {}\n\nfunc G() {}\n"


#: Regions of one file that one agent holds, some in others, and how each is made anew from what it is.
OWN = ["<header>", "f", "g", "C", "C.m", "C.n"]
HELD = "import os\n\n\ndef f():\n    return 1\n\n\nclass C:\n    x = 1\n\n    def m(self):\n        return 1\n\n    def n(self):\n        return 1\n\n\ndef g():\n    return 1\n"


def anew(world: World, file: str, name: str, turn: int) -> str:
    if name == "<header>":
        return f"import os  # {turn}\n"
    part = world.service.regions.part(file, read(world, file).replace("\r\n", "\n").encode(), name)
    assert part is not None
    return part.decode().replace("return ", f"return {turn}0 + ", 1)


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.sampled_from([*OWN, "a rename"]), min_size=2, max_size=9), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_whoever_holds_several_regions_meets_no_change_but_of_others(tmp_path_factory: pytest.TempPathFactory, names: list[str], end: str, runs: bool) -> None:
    """In any order, by any name that its file has got meanwhile."""
    world, file = World(tmp_path_factory.mktemp("own")), "a.py"
    (world.root / file).write_bytes(HELD.replace("\n", end).encode())
    (world.root / file).chmod(0o755 if runs else 0o644)
    world.acquire("ann", *(f"a.py::{name}" for name in OWN))
    for turn, name in enumerate(names, 1):
        world.clock.advance(10)
        if name == "a rename":
            os.rename(world.root / file, world.root / f"n{turn}.py")
            world.decide(lambda tx, old=file, new=f"n{turn}.py": renames.follow(world.service, tx, old, new))
            file = f"n{turn}.py"
            continue
        world.ask(commit("ann", (f"{file}::{name}", anew(world, file, name, turn))))
        assert f"{turn}" in read(world, file)
    # What somebody else writes meanwhile is met as before, in what contains it, too
    place = world.root / file
    place.write_bytes(place.read_bytes().replace(b"def n(self):", b"def n(self):  # by hand"))
    for name, is_met in (("C.n", True), ("C", True), ("f", False)):
        request = commit("ann", (f"{file}::{name}", anew(world, file, name, 99)))
        if is_met:
            assert world.refused(request).code is Code.REGION_CHANGED, name
        else:
            world.ask(request)
    assert world.replay_differs() == []
    world.close()


def test_the_advice_of_a_change_that_was_met_is_enough(world: World) -> None:
    world.acquire("ann", "a.py::f")
    world.write("a.py", TEXT.replace("return 1", "return 5"))
    for name in ("a.py::f",):
        refusal = world.refused(commit("ann", (name, f(6))))
        short = refusal.next.rstrip(".").rpartition(" ")[2]  # type: ignore[union-attr]
        assert refusal.code is Code.REGION_CHANGED and refusal.facts["content_hash"].startswith(f"sha256:{short}")
        assert world.refused(commit("ann", (name, f(6)), content_hash="0" * 12)).code is Code.REGION_CHANGED
        world.ask(commit("ann", (name, f(6)), content_hash=short))
    assert "return 6" in read(world)


@pytest.mark.parametrize("given_", ["abc", "sha256:", "sha256:" + "g" * 64, "1" * 65, "sha256:1234567"])
def test_what_names_no_content_is_told_to_name_none(world: World, given_: str) -> None:
    world.acquire("ann", "a.py::f")
    refusal = world.refused(commit("ann", ("a.py::f", f(2)), content_hash=given_))
    assert refusal.code is Code.INVALID and "content_hash" in refusal.message and read(world) == TEXT


@pytest.mark.parametrize(("name", "text", "new", "wanted"), [
    ("n.py", TEXT, "def h():\n    return 0\n", TEXT.replace("import os\n\n\n", "import os\n\n\ndef h():\n    return 0\n\n\n")),
    ("n.py", "def f():\n    return 1\n", "def h():\n    return 0\n", "def h():\n    return 0\n\n\ndef f():\n    return 1\n"),
    ("n.ts", 'import x from "y";\n\nfunction f() {\n  return 1;\n}\n\nf();\n', "function h() {\n  return 0;\n}\n",
     'import x from "y";\n\nfunction h() {\n  return 0;\n}\n\nfunction f() {\n  return 1;\n}\n\nf();\n'),
])
def test_a_region_behind_the_header_is_the_first(world: World, name: str, text: str, new: str, wanted: str) -> None:
    world.write(name, text)
    world.ask(rq.Acquire(agent="ann", resources=[f"{name}::h"], new=True))
    world.ask(commit("ann", (f"{name}::h", new), after="<header>"))
    assert read(world, name) == wanted


JSON = '{\n  "a": 1,\n  "b": {\n    "x": "1, 2"\n  }\n}\n'


@pytest.mark.parametrize(("name", "text", "new", "wanted"), [
    ("a", '  "a": 10', False, JSON.replace("1,\n", "10,\n", 1)),
    ("a", '  "a": 10,\n', False, JSON.replace("1,\n", "10,\n", 1)),
    ("a", "", False, JSON.replace('  "a": 1,\n', "")),
    ("b", "", False, '{\n  "a": 1\n}\n'),
    ("b.x", '    "x": 2,\n', False, JSON.replace('"1, 2"', "2")),
    ("b.y", '    "y": 2\n', True, JSON.replace('"1, 2"', '"1, 2",\n    "y": 2')),
    ("c", '  "c": [3]\n', True, JSON.replace("  }\n}", '  },\n  "c": [3]\n}')),
])
@pytest.mark.parametrize("known", [True, False])
def test_the_commas_of_json_belong_to_no_member(world: World, name: str, text: str, new: bool, wanted: str, known: bool) -> None:
    """Whoever leases, adds or removes one has not changed those around it, and need not think of them."""
    world.write("p.json", JSON)
    names = ["a", "b", "b.x"]
    (got,) = world.ask(rq.Acquire(agent="ann", resources=[f"p.json::{name}"], new=new)).leases
    beside = [one for one in names if one != name and not f"{one}.".startswith(f"{name}.") and not f"{name}.".startswith(f"{one}.")]
    for one in beside:
        world.acquire("bob", f"p.json::{one}")
    more = {"content_hash": got.content_hash} if known and not new else {}
    (done,) = world.ask(commit("ann", (f"p.json::{name}", text), **more)).regions
    assert read(world, "p.json") == wanted
    if text:
        world.ask(commit("ann", (f"p.json::{name}", text), content_hash=done.content_hash))
        assert read(world, "p.json") == wanted
    world.ask(rq.Release(agent="bob", resources=[f"p.json::{one}" for one in beside], force=True))
    assert world.ask(rq.Reviews()).items == [], "bob has changed nothing"
    assert world.replay_differs() == []


@pytest.mark.parametrize(("before", "name", "text", "new", "wanted"), [
    ("{}\n", "k", '  "k": 1', True, '{\n  "k": 1\n}\n'),
    ("{}", "k", '"k": 1\n', True, '{\n"k": 1\n}'),
    ("{\n}\n", "k", '  "k": 1', True, '{\n  "k": 1\n}\n'),
    ('{\n  "d": {}\n}\n', "d.x", '    "x": 1', True, '{\n  "d": {\n    "x": 1\n  }\n}\n'),
    ('{\n  "d": {},\n  "e": 1\n}\n', "d.x", '    "x": 1', True, '{\n  "d": {\n    "x": 1\n  },\n  "e": 1\n}\n'),
    ('{\n  "d": {"a": 1, "b": 2}\n}\n', "d.x", '"x": 3', True, '{\n  "d": {"a": 1, "b": 2, "x": 3}\n}\n'),
    ('{"a": 1, "b": 2}', "c", '"c": 3', True, '{"a": 1, "b": 2, "c": 3}'),
    ('{"a": 1, "b": 2}', "b", '"b": 3', False, '{"a": 1, "b": 3}'),
    ('{"a": 1, "b": 2}', "a", '"a": 3', False, '{"a": 3, "b": 2}'),
    ('{"a": 1}', "a", '"a": 3', False, '{"a": 3}'),
    ('{"s":{"x":1,"y":2}}\n', "s.y", '"y":3', False, '{"s":{"x":1,"y":3}}\n'),
    ('{\n  "a": 1\n}\n', "a", "", False, "{\n}\n"),
    ('{"a": 1, "b": 2}', "b", "", False, '{"a": 1 }'),
])
def test_first_last_and_only_members_of_json(world: World, before: str, name: str, text: str, new: bool, wanted: str) -> None:
    world.write("p.json", before)
    world.ask(rq.Acquire(agent="ann", resources=[f"p.json::{name}"], new=new))
    world.ask(commit("ann", (f"p.json::{name}", text)))
    assert read(world, "p.json") == wanted


@pytest.mark.parametrize(("before", "name", "text", "wanted"), [
    ('name = "a"\n\n[pool]\nsize = 4\n', "debug", "debug = true", 'name = "a"\ndebug = true\n\n[pool]\nsize = 4\n'),
    ("# about\n[pool]\nsize = 4\n", "debug", "debug = true", "debug = true\n\n# about\n[pool]\nsize = 4\n"),
    ("[pool]\nsize = 4\n", "pool.max", "max = 5", "[pool]\nsize = 4\nmax = 5\n"),
    ("[tool.ruff]\nline = 1\n", "tool.mypy", "[tool.mypy]\nstrict = true", "[tool.ruff]\nline = 1\n\n[tool.mypy]\nstrict = true\n"),
    ("a = 1\n", "b", "b = 2", "a = 1\nb = 2\n"),
    ("[t]\na = 1\n\nb = 2\n\n[u]\nz = 1\n", "t.c", "c = 3", "[t]\na = 1\n\nb = 2\n\nc = 3\n\n[u]\nz = 1\n"),
])
def test_what_is_new_in_toml_stands_where_it_is_what_it_is_called(world: World, before: str, name: str, text: str, wanted: str) -> None:
    world.write("p.toml", before)
    world.ask(rq.Acquire(agent="ann", resources=[f"p.toml::{name}"], new=True))
    world.ask(commit("ann", (f"p.toml::{name}", text)))
    assert read(world, "p.toml") == wanted


@pytest.mark.parametrize(("before", "name", "text", "wanted"), [
    ("a: 1\nb: 2\n", "c", "c: 3", "a: 1\nb: 2\nc: 3\n"),
    ("a: 1\n\nb:\n  d: 1\n  e: 2\n", "b.f", "  f: 3", "a: 1\n\nb:\n  d: 1\n  e: 2\n  f: 3\n"),
    ("a: 1\n\nb:\n  d: 1\n", "c", "c: 3", "a: 1\n\nb:\n  d: 1\n\nc: 3\n"),
    ("b:\n  d: 1\n\nc: 2\n", "b.e", "  e: 2", "b:\n  d: 1\n  e: 2\n\nc: 2\n"),
])
def test_a_new_key_of_yaml_stands_as_far_from_the_last_as_that_from_its_own(world: World, before: str, name: str, text: str, wanted: str) -> None:
    world.write("p.yaml", before)
    world.ask(rq.Acquire(agent="ann", resources=[f"p.yaml::{name}"], new=True))
    world.ask(commit("ann", (f"p.yaml::{name}", text)))
    assert read(world, "p.yaml") == wanted


@pytest.mark.parametrize(("file", "before", "text", "begins"), [
    ("p.json", '{\n  "a": 1\n}\n', "5", '`"a": …`'), ("p.json", '{\n  "a": 1\n}\n', '{"x": 1}', '`"a": …`'), ("p.toml", "a = 1\n", "5", "`a = …`"),
])
def test_a_value_without_its_key_is_refused_with_the_key(world: World, file: str, before: str, text: str, begins: str) -> None:
    world.write(file, before)
    world.acquire("ann", f"{file}::a")
    refused = world.refused(commit("ann", (f"{file}::a", text)))
    assert refused.code is Code.PARSE_INVALID and begins in refused.next and read(world, file) == before
    other = world.refused(commit("ann", (f"{file}::a", before.strip("{} \n").replace("1", "[1"))))
    assert other.next == "Correct the text, and commit it again."


def test_who_leased_as_new_what_is_there_by_another_name_is_told_of_that(world: World) -> None:
    """Not to lease what it would be then, a second one."""
    world.write("g.md", "# Guide\n\n## Paying\n\n### By card\n\nCard.\n")
    world.ask(rq.Acquire(agent="ann", resources=["g.md::By card"], new=True))
    refusal = world.refused(rq.CommitRegion(agent="ann", regions=[rq.RegionText(resource="g.md::By card", text="### By card\n\nNew.\n")]))
    assert refusal.code is Code.OUT_OF_SCOPE_EDIT and "g.md::Guide.Paying.By card would be there twice" in refusal.message
    assert "lease it by this name" in refusal.next and "#2" not in refusal.next
