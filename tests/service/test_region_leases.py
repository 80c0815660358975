"""Leases on regions: what is kept of them, and what a review shows and reverts, is the region alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.looking.file_regions import FileRegions
from coordinator.looking.rewound_regions import Then, rewound
from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.effort import examples
from tests.world import World

TEXT = "import os\n\n\ndef f():\n    return 1\n\n\nclass C:\n    x = 1\n\n    def m(self):\n        return 2\n\n\ndef g():\n    return 3\n"


@pytest.fixture
def world(world: World) -> World:
    world.write("a.py", TEXT)
    return world


def shown(world: World, review: str) -> dict[str, tuple[str, str]]:
    said = world.ask(rq.ReviewShow(review=review, content=True))
    return {one.path: (one.change, one.diff) for one in said.files}


def lapse(world: World) -> list[str]:
    """Every lease ends; the reviews that are open then."""
    world.clock.advance(3_600_000)
    world.ask(rq.Sweep())
    return [one.review for one in world.ask(rq.Reviews()).items]


def test_regions_of_one_file_are_different_holders(world: World) -> None:
    world.acquire("ann", "a.py::f")
    world.acquire("bob", "a.py::C.m", "a.py::g")
    for name in ("a.py", "a.py::C", "a.py::<header>", "a.py::f"):
        assert world.refused(rq.Acquire(agent="cyd", resources=[name], retry=False)).code is Code.LOCKED, name
    refusal = world.refused(rq.Acquire(agent="cyd", resources=["a.py::C.n"], retry=False))
    assert refusal.code is Code.REGION_UNKNOWN and refusal.facts["nearest"][0] == "a.py::C.m"
    world.ask(rq.Release(agent="bob", resources=["a.py::C.m", "a.py::g"]))
    world.acquire("ann", "a.py")  # alone: from the region to the file


def test_what_lapses_is_the_region_and_its_revert_leaves_the_others(world: World) -> None:
    world.acquire("ann", "a.py::f")
    world.acquire("bob", "a.py::g", ttl_s=10_000)
    half = TEXT.replace("return 1", "return 'half'")
    world.write("a.py", half.replace("return 3", "return 'bobs'"))
    [review] = lapse(world)
    change, diff = shown(world, review)["a.py"]
    assert change == "modified" and "+    return 'half'" in diff and "bobs" not in diff.replace(" return 'bobs'", "")
    assert "-    return 3" not in diff and "+    return 'bobs'" not in diff
    world.ask(rq.Release(agent="bob", resources=["a.py::g"]))
    world.write("a.py", (world.root / "a.py").read_text() + "\n\ndef later():\n    pass\n")
    world.ask(rq.ReviewDecide(review=review, verdict="revert"))
    text = (world.root / "a.py").read_text()
    assert "return 1" in text and "bobs" in text and "def later" in text and "half" not in text
    world.ask(rq.ReviewUndo(review=review))
    text = (world.root / "a.py").read_text()
    assert "half" in text and "bobs" in text and "def later" in text


def test_what_was_not_touched_is_no_partial_work(world: World) -> None:
    world.acquire("ann", "a.py::f", "a.py::C")
    world.write("a.py", TEXT.replace("return 3", "return 'another'").replace("import os\n", "import os\nimport sys\n"))
    assert lapse(world) == []


def test_a_region_that_is_gone_and_one_that_is_new(world: World) -> None:
    world.acquire("ann", "a.py::C.m")
    world.write("a.py", TEXT.replace("\n    def m(self):\n        return 2\n", ""))
    [review] = lapse(world)
    assert "-    def m(self):" in shown(world, review)["a.py"][1]
    world.ask(rq.ReviewDecide(review=review, verdict="revert"))
    assert (world.root / "a.py").read_text().index("def m(self)") > (world.root / "a.py").read_text().index("class C")
    compile((world.root / "a.py").read_text(), "a.py", "exec")


def test_what_is_no_longer_divided_is_compared_as_a_whole(world: World) -> None:
    world.acquire("ann", "a.py::f")
    (world.root / "a.py").write_bytes(b"x" * 6_000_000)
    [review] = lapse(world)
    assert shown(world, review)["a.py"][0] == "modified"


def test_a_file_that_is_gone_comes_back(world: World) -> None:
    world.acquire("ann", "a.py::f")
    (world.root / "a.py").unlink()
    [review] = lapse(world)
    assert shown(world, review)["a.py"][0] == "deleted"
    world.ask(rq.ReviewDecide(review=review, verdict="revert"))
    assert (world.root / "a.py").read_text() == TEXT


@pytest.mark.parametrize("how", ["link", "directory", "gone", "as it was"])
def test_a_region_is_given_back_by_its_name_whatever_its_file_is_by_now(world: World, how: str) -> None:
    world.write("other.py", "x = 1\n")
    world.acquire("ann", "a.py::f", "a.py::<header>")
    file = world.root / "a.py"
    if how != "as it was":
        file.unlink()
    if how == "link":
        file.symlink_to("other.py")
    elif how == "directory":
        file.mkdir()
    assert [one.resource for one in world.ask(rq.Renew(agent="ann", resources=["a.py::f"])).leases] == ["a.py::f"]
    world.ask(rq.Release(agent="ann", resources=["a.py::f", "a.py::<header>"]))
    assert world.live() == []


NAMES = ["f", "C", "C.m", "g"]


@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True), st.data())
def test_rewinding_puts_back_exactly_these(names: list[str], data: st.DataObject) -> None:
    """Whatever has become of a file: with some regions as they were they are that, and all else is as it is."""
    regions = FileRegions()
    try:
        old = TEXT.encode()
        new = old
        for word in (b"return 1", b"x = 1", b"return 2", b"return 3", b"import os"):
            if data.draw(st.booleans()):
                new = new.replace(word, word + data.draw(st.sampled_from([b" # longer", b"; y = 2\n\n\n", b""])))
        back = rewound(regions, "a.py", new, [Then(name, regions.part("a.py", old, name)) for name in names])
        for name in NAMES:
            covered = any(name == one or name.startswith(one + ".") for one in names)
            around = any(one.startswith(name + ".") for one in names)
            if covered:
                assert regions.part("a.py", back, name) == regions.part("a.py", old, name)
            elif not around:
                assert regions.part("a.py", back, name) == regions.part("a.py", new, name)
    finally:
        regions.close()


BREAKS = ("return (", "x = [1,", 'x = """half', "if (", "def half(", "y = {")
FUNCTIONS = ("f", "C.m", "C.n", "g")
LONG = TEXT.replace("\n\ndef g", "\n    def n(self):\n        return 4\n\n\ndef g")


@settings(max_examples=examples(60))
@given(st.sampled_from(FUNCTIONS), st.data())
def test_rewinding_what_is_broken_leaves_what_others_did(mine: str, data: st.DataObject) -> None:
    """Whatever is not closed in a region, and reads on into others: their lines stay."""
    regions = FileRegions()
    try:
        lines = {"f": "    return 1\n", "C.m": "        return 2\n", "C.n": "        return 4\n", "g": "    return 3\n"}
        others = now = LONG
        for name, line in lines.items():
            space = line[:len(line) - len(line.lstrip())]
            if name == mine:
                now = now.replace(line, space + data.draw(st.sampled_from(BREAKS)) + "\n" + data.draw(st.sampled_from(["", line])))
            else:
                done = data.draw(st.sampled_from([line, space + "x = 5\n" + line, f"{space}return 'done'\n", f"{line}\n{space}x = 6\n"]))
                others, now = others.replace(line, done), now.replace(line, done)
        back = rewound(regions, "a.py", now.encode(), [Then(mine, regions.part("a.py", LONG.encode(), mine), LONG.encode())])
        assert back is not None and back.decode() == others
    finally:
        regions.close()


@pytest.mark.parametrize(("name", "text", "mine", "half"), [
    ("a.js", "function one() {\n  return 1;\n}\n\nfunction two() {\n  return 2;\n}\n", "one", ("return 1;", "if (x) {")),
    ("a.js", "function one() {\n  return 1;\n}\n\nfunction two() {\n  return 2;\n}\n\n/* end */\n", "one", ("return 1;", "/* half")),
    ("a.md", "# One\n\ntext 1\n\n# Two\n\nreturn 2;\n", "One", ("text 1", "```\nhalf")),
    ("a.toml", "[one]\nx = 1\n\n[two]\ny = 'return 2;'\n", "one", ("x = 1", 'x = """1')),
    ("a.py", "def one():\n    return 1\n\n\ndef two():\n    return '2;'\n", "two", ("def two():", "def two(")),
    ("a.py", "def one():\n    return 1\n\n\ndef two():\n    '''return 2;'''\n", "one", ("return 1", "'''half")),
    ("a.yaml", "one:\n  x: 1\ntwo:\n  y: return 2;\n", "one", ("x: 1", "x: [1")),
])
def test_reverting_what_is_broken_keeps_what_another_finished(world: World, name: str, text: str, mine: str, half: tuple[str, str]) -> None:
    world.write(name, text)
    world.acquire("ann", f"{name}::{mine}")
    other = {"one": "two", "two": "one", "One": "Two"}[mine]
    world.acquire("bob", f"{name}::{other}")
    done = text.replace("2;", "22;") if other.lower() == "two" else text.replace("return 1", "return 11")
    world.write(name, done)
    world.ask(rq.Release(agent="bob", resources=[f"{name}::{other}"]))
    world.write(name, done.replace(*half))
    [review] = lapse(world)
    world.ask(rq.ReviewDecide(review=review, verdict="revert"))
    assert (world.root / name).read_text() == done


@pytest.mark.parametrize("half", ["return (1, 2", "return 7", "x = {"])
@pytest.mark.parametrize("before", ["return (", "x = [1,", 'x = """half', "'''", "if (", "def half(", "y = {"])
def test_what_was_broken_at_the_grant_comes_back_as_it_was(world: World, before: str, half: str) -> None:
    broken = TEXT.replace("return 1", before)
    world.write("a.py", broken)
    world.acquire("ann", "a.py::f")
    world.write("a.py", broken.replace(before, half))
    [review] = lapse(world)
    world.ask(rq.ReviewDecide(review=review, verdict="revert"))
    assert (world.root / "a.py").read_text() == broken


WIDER = ("a.py", "./", "**/*.py", "a.py::C")


@pytest.mark.parametrize("wider", WIDER)
@pytest.mark.parametrize("after", [True, False])
def test_what_was_begun_in_a_part_is_work_of_what_is_leased_around_it(world: World, wider: str, after: bool) -> None:
    """The review has both halves, whether anything was changed after the second grant or not."""
    world.acquire("ann", "a.py::C.m")
    half = TEXT.replace("return 2", "return 22")
    world.write("a.py", half)
    world.acquire("ann", wider)
    if after:
        world.write("a.py", half.replace("x = 1", "x = 11"))
    [review] = lapse(world)
    diff = shown(world, review)["a.py"][1]
    assert "-        return 2\n" in diff and ("-    x = 1\n" in diff) is after
    world.ask(rq.ReviewDecide(review=review, verdict="revert"))
    assert (world.root / "a.py").read_text() == TEXT


def test_what_was_begun_in_a_part_goes_with_its_file(world: World) -> None:
    world.acquire("ann", "a.py::f")
    world.write("a.py", TEXT.replace("return 1", "return 11"))
    world.acquire("ann", "a.py")
    (world.root / "a.py").unlink()
    [review] = lapse(world)
    world.ask(rq.ReviewDecide(review=review, verdict="revert"))
    assert (world.root / "a.py").read_text() == TEXT


def test_what_others_finished_meanwhile_stays(world: World) -> None:
    world.acquire("ann", "a.py::f")
    world.acquire("bob", "a.py::g")
    both = TEXT.replace("return 1", "return 11").replace("return 3", "return 33")
    world.write("a.py", both)
    world.ask(rq.Release(agent="bob", resources=["a.py::g"]))
    world.acquire("ann", "a.py")
    world.write("a.py", both.replace("x = 1", "x = 11"))
    [review] = lapse(world)
    world.ask(rq.ReviewDecide(review=review, verdict="revert"))
    assert (world.root / "a.py").read_text() == TEXT.replace("return 3", "return 33")


RENAMED = [
    ("a.py", TEXT, "f", "def f():", "def ff():", ["ff"], ["g", "C.m"]),
    ("a.py", TEXT, "C", "class C:", "class D:", ["D", "D.m"], ["f", "g"]),
    ("a.py", TEXT, "C.m", "class C:", "class D:", ["D", "D.m"], ["f", "g"]),
    ("a.py", TEXT, "C.m", "def m(self)", "def mm(self)", ["C.mm"], ["f", "g"]),
    ("a.py", TEXT, "f", "def f():", "def f():\n    return 0\n\n\ndef f():", ["f#2"], ["g", "C.m"]),
    ("a.md", "# One\n\nx\n\n# Two\n\ny\n", "One", "# One", "# Eins", ["Eins"], ["Two"]),
    ("a.ts", "const one = 1;\n\nconst two = 2;\n", "one", "one", "uno", ["uno"], ["two"]),
    ("a.toml", "[[item]]\nx = 1\n\n[[item]]\nx = 2\n\n[other]\ny = 1\n", "item#2", "[[item]]\nx = 1\n\n", "", ["item"], ["other"]),
]


@pytest.mark.parametrize(("name", "text", "mine", "old", "new", "taken", "free"), RENAMED, ids=lambda one: str(one)[:12])
def test_what_its_holder_has_renamed_is_still_that_holders(
    world: World, name: str, text: str, mine: str, old: str, new: str, taken: list[str], free: list[str],
) -> None:
    world.write(name, text)
    world.acquire("ann", f"{name}::{mine}")
    world.write(name, text.replace(old, new, 1))
    for one in taken:
        refusal = world.refused(rq.Acquire(agent="bob", resources=[f"{name}::{one}"], retry=False))
        assert refusal.code is Code.LOCKED and refusal.facts["conflicts"][0]["holder"] == "ann", one
    for one in free:
        world.acquire("bob", f"{name}::{one}")
    world.acquire("ann", *(f"{name}::{one}" for one in taken))  # it is its own


def test_who_waits_for_what_was_renamed_gets_it_when_its_holder_is_done(world: World) -> None:
    world.acquire("ann", "a.py::f")
    world.write("a.py", TEXT.replace("def f", "def ff"))
    refusal = world.refused(rq.RequestFile(agent="bob", resource="a.py::ff", reason="mine"))
    assert refusal.code is Code.LOCKED and "`coord request file a.py::f --reason WHY --agent bob`" in str(refusal.next)
    world.refused(rq.Acquire(agent="bob", resources=["a.py::ff"]))
    assert [one.held_by for one in world.ask(rq.Locks()).waiters] == [["ann"]]
    world.acquire("ann", "a.py::ff")  # whoever stands in line for it
    world.ask(rq.Release(agent="ann", resources=["a.py::ff"]))
    world.settle()
    assert "bob" not in {row.locked_by for row in world.live()}
    task = world.task("t", "a.py::ff")
    assert world.refused(rq.TaskClaim(agent="cyd")).code in (Code.LOCKED, Code.NOTHING_TO_DO)
    world.ask(rq.Release(agent="ann", resources=["a.py::f"]))
    world.settle()
    assert [(row.locked_by, row.file_path) for row in world.live()] == [("bob", "a.py::ff")]
    world.ask(rq.Release(agent="bob", resources=["a.py::ff"]))
    assert world.ask(rq.TaskClaim(agent="cyd")).task.task == task


def test_what_is_new_is_nobodys_though_another_has_removed_its_own(world: World) -> None:
    world.acquire("ann", "a.py::f")
    world.write("a.py", TEXT.replace("def f():\n    return 1\n\n\n", ""))
    world.ask(rq.Acquire(agent="bob", resources=["a.py::h"], new=True))
    world.acquire("cyd", "a.py::g")


TS = "class Cart {\n  add(): number {\n    return 1;\n  }\n\n  clear(): void {\n    return;\n  }\n}\n\nexport const x = 1;\n"
JSON = '{\n  "db": {\n    "host": "h",\n    "url": "u"\n  },\n  "x": 1\n}\n'
GO = "package p\n\ntype T struct {\n\tx int\n}\n\nfunc (t T) M() int {\n\treturn t.x\n}\n\nfunc F() int {\n\treturn 1\n}\n"
GUIDE = "# Guide\n\n## One\n\nx\n\n## Two\n\ny\n"


@pytest.mark.parametrize(("name", "text", "mine", "old", "new"), [
    ("m.ts", TS, "Cart.clear", "\n  clear(): void {\n    return;\n  }\n", ""),
    ("m.ts", TS, "Cart.clear", "clear()", "empty()"),
    ("m.ts", TS, "Cart.add", "  add(): number {\n    return 1;\n  }\n\n", ""),
    ("m.json", JSON, "db.url", ',\n    "url": "u"', ""),
    ("m.json", JSON, "db.url", '"url"', '"urlR"'),
    ("a.py", LONG, "C.m", "def m(", "def mm("),
    ("a.py", LONG, "C.m", "    def m(self):\n        return 2\n\n", ""),
    ("a.py", LONG, "C.n", "\n    def n(self):\n        return 4\n", ""),
    ("a.py", LONG, "C", "class C:", "class D:"),
    ("a.go", GO, "T", "type T struct {\n\tx int\n}\n\n", ""),
    ("a.go", GO, "T.M", "func (t T) M()", "func M()"),
    ("a.md", GUIDE, "Guide.One", "## One\n\nx\n\n", ""),
    ("a.md", GUIDE, "Guide.One", "## One", "## Eins"),
    ("a.toml", "[one]\nx = 1\n\n[two]\ny = 2\n", "one", "[one]", "[uno]"),
    ("a.yaml", "one:\n  x: 1\n  y: 2\ntwo:\n  y: 3\n", "one.x", "  x: 1\n", "  z: 5\n"),
], ids=lambda one: str(one)[:12])
def test_a_part_that_was_renamed_or_removed_comes_back_to_its_place(
    world: World, name: str, text: str, mine: str, old: str, new: str,
) -> None:
    world.write(name, text)
    world.acquire("ann", f"{name}::{mine}")
    assert text.count(old) == 1
    world.write(name, text.replace(old, new))
    [review] = lapse(world)
    diff = shown(world, review)[name][1]
    world.ask(rq.ReviewDecide(review=review, verdict="revert"))
    assert (world.root / name).read_text() == text, diff


#: A file, a region, what in it is edited, how it is renamed, what it is called then, another's region and its edit.
CALLED_OTHERWISE = [
    ("a.py", TEXT, "f", ("return 1", "return 11"), ("def f(", "def ff("), "ff", "g", ("return 3", "return 33")),
    ("a.py", TEXT, "g", ("return 3", "return 33"), ("def g(", "def gee("), "gee", "f", ("return 1", "return 11")),
    ("a.py", LONG, "C.m", ("return 2", "return 22"), ("def m(", "def mm("), "C.mm", "C.n", ("return 4", "return 44")),
    ("a.py", LONG, "C", ("return 2", "return 22"), ("class C:", "class D:"), "D", "g", ("return 3", "return 33")),
    ("m.ts", TS, "Cart.add", ("return 1", "return 11"), ("add()", "plus()"), "Cart.plus", "Cart.clear", ("return;", "return 5;")),
    ("a.go", GO, "F", ("return 1", "return 11"), ("func F(", "func FF("), "FF", "T.M", ("t.x", "t.x + 1")),
    ("a.md", GUIDE, "Guide.One", ("x", "xx"), ("## One", "## Eins"), "Guide.Eins", "Guide.Two", ("y", "yy")),
    ("a.toml", "[one]\nx = 1\n\n[two]\ny = 2\n", "one", ("x = 1", "x = 11"), ("[one]", "[uno]"), "uno", "two", ("y = 2", "y = 22")),
]


ORDERS = ["edit, rename", "edit, lease, rename", "rename, lease, edit", "edit, rename, lease", "lease, edit, rename",
          "edit, rename, lease, edit"]


@pytest.mark.parametrize(("name", "text", "mine", "edit", "rename", "called", "other", "done", "beside", "order"), [
    # (Each order, each neighbour and each language is tried; all of them together in the slow tests.)
    pytest.param(*one, beside, order, id=f"{one[0]}-{one[2]}-{beside}-{order}", marks=[pytest.mark.slow] if (n + b + o) % 6 else [])
    for n, one in enumerate(CALLED_OTHERWISE) for b, beside in enumerate(("nobody", "before", "after")) for o, order in enumerate(ORDERS)
])
def test_what_its_holder_renames_and_leases_once_more_has_one_beginning(
    world: World, name: str, text: str, mine: str, edit: tuple[str, str], rename: tuple[str, str], called: str, other: str,
    done: tuple[str, str], beside: str, order: str,
) -> None:
    """A review shows all that was done since the first lease, and a revert takes that out and nothing else."""
    now, kept = text, text

    def another() -> None:
        nonlocal now, kept
        world.acquire("bob", f"{name}::{other}")
        now, kept = now.replace(*done, 1), kept.replace(*done, 1)
        world.write(name, now)
        world.ask(rq.Release(agent="bob", resources=[f"{name}::{other}"]))

    world.write(name, text)
    world.acquire("ann", f"{name}::{mine}")
    if beside == "before":
        another()
    for step in order.split(", "):
        if step == "lease":
            world.ask(rq.Acquire(agent="ann", resources=[f"{name}::{called}"], new=rename[1] not in now))
        else:
            old, new = edit if step == "edit" else rename
            now = now.replace(old, new, 1)
            assert new in now
        world.write(name, now)
    if beside == "after":
        another()
    [review] = lapse(world)
    diff = shown(world, review)[name][1]
    assert f"-{done[0]}" not in diff and f"+{done[1]}" not in diff, diff
    world.ask(rq.ReviewDecide(review=review, verdict="revert"))
    assert (world.root / name).read_text() == kept, diff


JS = "class C {\n  m() {\n    return 1;\n  }\n\n  n() {\n    return 2;\n  }\n}\n\nfunction user() {\n  return 5;\n}\n"
PY = "class C:\n    def m(self):\n        return 1\n\n    def n(self):\n        return 2\n\n\ndef user():\n    return 5\n"
MD = "# Guide\n\n## Install\n\nRun it.\n\n## Usage\n\nUse it.\n\n## License\n\nMIT\n"
YAML = "server:\n  host: localhost\n  port: 80\ndb:\n  url: x\n"
OBJECT = '{\n  "server": {\n    "host": "localhost",\n    "port": 80\n  },\n  "db": 5\n}\n'
#: A file, ann's region, what becomes of it, what bob adds (its name; before what; its text), what else bob changes.
BESIDE = [
    ("m.py", PY, "C.m", ("def m(self)", "def m2(self)"), "C.p", "    def n(", "    def p(self):\n        return 9\n\n", ("user", "return 5", "return 500")),
    ("m.py", PY, "C.m", ("    def m(self):\n        return 1\n\n", ""), "C.p", "    def n(", "    def p(self):\n        return 9\n\n",
     ("user", "return 5", "return 500")),
    ("m.py", PY, "user", ("def user()", "def owner()"), "other", "def user(", "def other():\n    return 9\n\n\n", ("C.n", "return 2", "return 22")),
    ("m.js", JS, "C.m", ("  m() {", "  m2() {"), "C.p", "  n() {", "  p() {\n    return 9;\n  }\n\n", ("user", "return 5", "return 500")),
    ("m.js", JS, "C.m", ("  m() {\n    return 1;\n  }\n\n", ""), "C.p", "  n() {", "  p() {\n    return 9;\n  }\n\n", ("user", "return 5", "return 500")),
    ("g.md", MD, "Guide.Install", ("## Install\n\nRun it.\n\n", ""), "Guide.Changelog", "## Usage", "## Changelog\n\n* 1.0\n* 0.9\n\n",
     ("Guide.License", "MIT", "Apache")),
    ("g.md", MD, "Guide.Install", ("## Install", "## Set up"), "Guide.Changelog", "## Usage", "## Changelog\n\n* 1.0\n* 0.9\n\n",
     ("Guide.License", "MIT", "Apache")),
    ("s.yaml", YAML, "server.host", ("  host: localhost\n", ""), "server.name", "  port:", "  name: api\n", ("db.url", "url: x", "url: y")),
    ("s.yaml", YAML, "server.host", ("host:", "hostname:"), "server.name", "  port:", "  name: api\n", ("db.url", "url: x", "url: y")),
    ("s.json", OBJECT, "server.host", ('    "host": "localhost",\n', ""), "server.name", '    "port"', '    "name": "api",\n', ("db", "5", "500")),
    ("s.json", OBJECT, "server.host", ('"host"', '"hostname"'), "server.name", '    "port"', '    "name": "api",\n', ("db", "5", "500")),
]


@pytest.mark.parametrize("leased", [False, True])
@pytest.mark.parametrize(("name", "text", "mine", "change", "new", "before", "added", "else_"), BESIDE, ids=lambda one: str(one)[:14])
def test_what_another_adds_beside_what_its_holder_renames_or_removes_stays(
    world: World, name: str, text: str, mine: str, change: tuple[str, str], new: str, before: str, added: str,
    else_: tuple[str, str, str], leased: bool,
) -> None:
    """A review has what its holder did, and a revert takes out that alone, whatever others did right beside it."""
    world.write(name, text)
    world.acquire("ann", f"{name}::{mine}")
    other, old, now = else_
    world.acquire("bob", f"{name}::{other}")
    assert text.count(change[0]) == 1 and text.count(before) == 1
    world.write(name, text.replace(*change))
    if leased and change[1]:
        called = f"{mine.rpartition('.')[0]}.".lstrip(".") + {"def m2(self)": "m2", "def owner()": "owner", "  m2() {": "m2",
                                                             "## Set up": "Set up", "hostname:": "hostname", '"hostname"': "hostname"}[change[1]]
        world.acquire("ann", f"{name}::{called}")
    world.ask(rq.Acquire(agent="bob", resources=[f"{name}::{new}"], new=True))
    place = before if before in text.replace(*change) else before.replace("user", "owner")
    done = text.replace(*change).replace(place, added + place, 1).replace(old, now, 1)
    world.write(name, done)
    world.ask(rq.Release(agent="bob", resources=[f"{name}::{new}", f"{name}::{other}"]))
    held = [row.file_path for row in world.live() if row.locked_by == "ann"]
    world.ask(rq.Release(agent="ann", resources=held, force=True))
    (review,) = [one.review for one in world.ask(rq.Reviews()).items]
    diff = shown(world, review)[name][1]
    world.ask(rq.ReviewDecide(review=review, verdict="revert"))
    assert (world.root / name).read_text() in {kept.replace(old, now, 1) for kept in (
        text.replace(before, added + before, 1), text.replace(before, f"{added}{before}", 1),
        _behind(text, change[0], added))}, diff
    assert added.strip().splitlines()[0] not in {line[1:].strip() for line in diff.splitlines() if line[:1] in "+-"}, diff


def _behind(text: str, cut: str, added: str) -> str:
    """Where a part is gone, what came in its place may stand before or behind it when it is back."""
    return text.replace(cut, added + cut, 1)


THREE = "function one() {\n  return 1;\n}\n\nfunction two() {\n  return 2;\n}\n\nfunction three() {\n  return 3;\n}\n"


@pytest.mark.parametrize(("mine", "gone"), [("one", "function one() {\n  return 1;\n}\n\n"), ("three", "\nfunction three() {\n  return 3;\n}\n")])
@pytest.mark.parametrize("theirs", ["function deux() {", "function two(a, b = (1 {", "function two(a) {"])
def test_what_was_removed_comes_back_beside_what_another_has_renamed(world: World, mine: str, gone: str, theirs: str) -> None:
    world.write("a.js", THREE)
    world.acquire("ann", f"a.js::{mine}")
    world.acquire("bob", "a.js::two")
    done = THREE.replace("function two() {", theirs)
    world.write("a.js", done.replace(gone, ""))
    world.ask(rq.Release(agent="bob", resources=["a.js::two"]))
    [review] = lapse(world)
    assert "two" not in shown(world, review)["a.js"][1].replace(f" {theirs}", "")
    world.ask(rq.ReviewDecide(review=review, verdict="revert"))
    assert (world.root / "a.js").read_text() == done


@pytest.mark.parametrize("cut", [26, 32, 60])
@pytest.mark.parametrize("name", ["a.py", "a.js"])
def test_what_cannot_be_told_apart_is_shown_whole_and_said_so(world: World, name: str, cut: int) -> None:
    text = (THREE if name == "a.js" else "def one():\n    return 1\n\n\ndef two():\n    return 2\n\n\ndef three():\n    return 3\n") + "// a person's\n"
    world.write(name, text)
    world.acquire("ann", f"{name}::two")
    world.write(name, text[:cut])
    for review in lapse(world):
        (file,) = world.ask(rq.ReviewShow(review=review, content=True)).files
        assert file.baseline and file.flagged and file.diff
        whole = "the whole of it is here" in world.ask(rq.Reviews()).items[0].summary
        world.ask(rq.ReviewDecide(review=review, verdict="revert"))
        now = (world.root / name).read_text()
        assert now == text if whole else "two" in now


def test_what_another_has_added_behind_a_broken_part_stays(world: World) -> None:
    world.write("a.js", THREE)
    world.acquire("ann", "a.js::three")
    world.write("a.js", THREE.rstrip()[:-1] + "}}\n\nfunction four() {\n  return 4;\n}\n")
    [review] = lapse(world)
    (told,) = [one.summary for one in world.ask(rq.Reviews()).items]
    world.ask(rq.ReviewDecide(review=review, verdict="revert"))
    assert "four" in (world.root / "a.js").read_text() or "the whole of it is here" in told


@pytest.mark.parametrize("where", ["behind h", "behind f"])
def test_what_was_removed_takes_nothing_that_came_with_it(world: World, where: str) -> None:
    """Of functions that look alike, nobody knows by their lines which is which."""
    f, g, h, new = (f"def {name}():\n    return 1\n" for name in ("f", "g", "h", "pers"))
    world.write("r.py", "\n\n".join((f, g, h)))
    world.acquire("ann", "r.py::g")
    now = "\n\n".join((f, h, new) if where == "behind h" else (f, new, h))
    world.write("r.py", now)
    [review] = lapse(world)
    diff = shown(world, review)["r.py"][1]
    world.ask(rq.ReviewDecide(review=review, verdict="revert"))
    text = (world.root / "r.py").read_text()
    assert "def g" in text and "def h" in text and "def f" in text
    assert "def pers" in text or (where == "behind f" and "-def g():\n+def pers():\n" in diff), "in its place: that is a rename"


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("language", ["py", "js"])
def test_what_another_has_added_in_the_place_of_what_was_removed_is_no_rename(world: World, language: str, ended: bool) -> None:
    """However much it looks like it: who has leased its name is known, also after the end of that."""
    begins, ends = ("def {}():\n", "") if language == "py" else ("function {}() {{\n", "}}\n")
    f, g, h, new = ((begins + "    return 1\n" + ends).format(name) for name in ("f", "gone", "h", "goes"))
    name = f"r.{language}"
    world.write(name, "\n\n".join((f, g, h)))
    world.acquire("ann", f"{name}::gone")
    world.ask(rq.Acquire(agent="bob", resources=[f"{name}::goes"], new=True))
    world.write(name, "\n\n".join((f, new, h)))
    if ended:
        world.ask(rq.Release(agent="bob", resources=[f"{name}::goes"]))
    world.ask(rq.Release(agent="ann", resources=[f"{name}::gone"], force=True))
    (review,) = [one.review for one in world.ask(rq.Reviews()).items]
    diff = shown(world, review)[name][1]
    assert "gone" in diff and "goes" not in diff.replace(" def goes", "").replace(" function goes", ""), diff
    if not ended:
        world.ask(rq.Release(agent="bob", resources=[f"{name}::goes"]))
    world.ask(rq.ReviewDecide(review=review, verdict="revert"))
    text = (world.root / name).read_text()
    assert all(one.strip() in text for one in (f, g, h, new)), text
