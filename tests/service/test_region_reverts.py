"""Whatever two do to their own parts of one file, side by side: a revert of the one's work takes out that, and nothing of the other's."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from tests.effort import EFFORT, examples
from tests.files.faults import Crash, FaultyKernel
from tests.service.test_verdicts import between_plan_and_begin
from tests.world import World

#: How a function is written, and found, in a language; what stands between two.
SHAPES = {
    "py": ("def {}():\n    # {}\n    x = {}\n    return x\n", r"def (\w+)\(\):\n    # (.+)\n    x = (\d+)\n    return x\n", "\n\n",
           "import os\n\n\n", ""),
    "js": ("function {}() {{\n  // {}\n  const x = {};\n  return x;\n}}\n",
           r"function (\w+)\(\) \{\n  // (.+)\n  const x = (\d+);\n  return x;\n\}\n", "\n", "", ""),
    "class.py": ("    def {}(self):\n        # {}\n        x = {}\n        return x\n",
                 r"    def (\w+)\(self\):\n        # (.+)\n        x = (\d+)\n        return x\n", "\n",
                 "class C:\n", "\n\ndef last():\n    return 0\n"),
    "md": ("## {}\n\n{}\n\nx = {}\n", r"## (\w+)\n\n(.+)\n\nx = (\d+)\n", "\n", "# Guide\n\n", ""),
    "toml": ("[{}]\nabout = '{}'\nx = {}\n", r"\[(\w+)\]\nabout = '(.+)'\nx = (\d+)\n", "\n", "", ""),
    "yaml": ("{}:\n  about: {}\n  x: {}\n", r"(\w+):\n  about: (.+)\n  x: (\d+)\n", "", "", ""),
    "json": ('    "{}": ["{}", {}]', r'    "(\w+)": \["(.+)", (\d+)\]', ",\n", '{\n  "C": {\n', '\n  },\n  "last": 0\n}\n'),
}
NAMES = ["alpha", "beta", "gamma", "delta", "epsilon"]
#: What each is about: by that one is known, whatever it is called.
ABOUT = ["sums of orders by country", "who may log in, and when", "colours of the night theme", "retries after a timeout", "paths of uploads",
         "how long a cart lives", "the words of an error", "tax for books", "what a robot reads", "sizes of shoes", "old links"]
#: Its name, what it is about, and its body.
Part = tuple[str, str, int]


class File:
    """A file of functions; what is in it now, and what would be without ann's work."""

    def __init__(self, world: World, shape: str, about: list[str], names: Sequence[str] = NAMES, ends: bool = True) -> None:
        self.world, self.about, self.ends = world, about, ends  # (whether its last line has an end)
        self.write_one, self.find_one, self.between, self.head, self.tail = SHAPES[shape]
        self.name = f"m.{shape.rpartition('.')[2]}"
        self.inside = {"class.py": "C.", "json": "C.", "md": "Guide."}.get(shape, "")
        self.parts: list[Part] = [(name, about[n % len(about)], n) for n, name in enumerate(names)]
        self.others: list[Part] = list(self.parts)
        self.first = list(self.parts)
        self.count = 15
        self.save()

    def save(self) -> None:
        text = self.head + self.between.join(self.write_one.format(*one) for one in self.parts) + self.tail
        self.world.write(self.name, text if self.ends else text.removesuffix("\n"))

    def read(self) -> list[Part]:
        text = (self.world.root / self.name).read_text()
        return [(name, about, int(n)) for name, about, n in re.findall(self.find_one, text if self.ends else f"{text}\n")]

    def lease(self, agent: str, name: str, *, new: bool = False) -> None:
        self.world.ask(rq.Acquire(agent=agent, resources=[f"{self.name}::{self.inside}{name}"], new=new, retry=False))

    def fresh(self) -> int:
        self.count += 1
        return self.count


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=examples(15), deadline=None)
@given(data=st.data())
def test_a_revert_takes_out_what_one_has_done_and_nothing_else(shape: str, alike: bool, data: st.DataObject) -> None:
    """`alike`: but for their names and numbers all functions are the same."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        try:
            # (Where there is nothing at first, or one thing that is renamed, nothing of it may be left.)
            names = NAMES[:data.draw(st.sampled_from([0, 1, 2, len(NAMES)]), label="at first")]
            ends = data.draw(st.booleans(), label="its last line has an end")
            _two_at_work(File(world, shape, ["the same"] if alike else ABOUT, names, ends), names, data)
        finally:
            world.close()


def _two_at_work(file: File, names: Sequence[str], data: st.DataObject) -> None:
    own: dict[str, str | None] = dict.fromkeys(names)
    for name in names:
        own[name] = data.draw(st.sampled_from(["ann", "bob", None]), label=name)
        if own[name] is not None:
            file.lease(str(own[name]), name)
    done = False
    for _ in range(data.draw(st.integers(1, 6), label="steps")):
        agent = data.draw(st.sampled_from(["ann", "bob", "a person"]), label="who")
        if agent == "a person":  # adds something at the end, and has leased nothing
            if not names or names[-1] not in [one[0] for one in file.parts]:
                continue  # (in the place of what is gone it would be taken for that)
            n = file.fresh()
            file.parts.append((f"p{n}", file.about[n % len(file.about)], n))
            file.others.append(file.parts[-1])
            file.save()
            continue
        mine = [one[0] for one in file.parts if own.get(one) == agent]
        act = data.draw(st.sampled_from(["edit", "rename", "rename and lease", "remove", "add"]), label="act")
        if act == "add":
            n = file.fresh()
            name = f"{data.draw(st.sampled_from(['new', 'shop', 'beta']), label='called')}{n}"
            file.lease(agent, name, new=True)
            own[name] = agent
            at = data.draw(st.integers(0, len(file.parts)), label="at")
            before = file.parts[at - 1][0] if at else None
            part = (name, file.about[n % len(file.about)], n)
            file.parts.insert(at, part)
            if agent == "bob":
                places = [one[0] for one in file.others]
                file.others.insert(places.index(before) + 1 if before in places else len(places), part)
        elif mine:
            name = data.draw(st.sampled_from(mine), label="which")
            if name not in NAMES and act.startswith("rename"):
                act = "edit"  # (what is new and renamed is known by nothing but its lease)
            at = [one[0] for one in file.parts].index(name)
            now = _changed(file, act, *file.parts[at])
            file.parts[at:at + 1] = [now] if now else []
            if agent == "bob":
                there = [one[0] for one in file.others].index(name)
                file.others[there:there + 1] = [now] if now else []
            if now and now[0] != name:
                own[now[0]] = agent
        else:
            continue
        done = done or agent == "ann"
        file.save()
        if act == "rename and lease":
            with contextlib.suppress(Refusal):  # (while another's is gone, it may be that one)
                file.lease(agent, next(one for one, by in reversed(own.items()) if by == agent))
    world = file.world
    both = data.draw(st.booleans(), label="both")
    stays = data.draw(st.booleans(), label="bob is at work still")
    for agent in ("ann",) if stays else ("bob", "ann"):
        _release(world, agent, force=both or agent == "ann")
    reviews = [one for one in world.ask(rq.Reviews()).items if one.agent == "ann"]
    if sorted(file.parts) == sorted(file.others):
        return
    (review,) = reviews
    assert "the whole of it is here" not in review.summary, review.summary
    if stays:
        was = file.read()
        try:
            world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
        except Refusal as refusal:
            assert refusal.code is Code.LOCKED and "by bob" in refusal.message and file.read() == was
        _release(world, "bob", force=both)
    if world.ask(rq.ReviewShow(review=review.review)).state == "open":
        world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert sorted(file.read()) == sorted(file.others), file.read()
    if file.name.endswith("json"):
        json.loads((world.root / file.name).read_text())
    for other in [one.review for one in world.ask(rq.Reviews()).items if one.agent == "bob"]:
        was = file.read()
        try:
            world.ask(rq.ReviewDecide(review=other, verdict="revert"))
        except Refusal as refusal:
            assert refusal.code is Code.VERSION_CHANGED and file.read() == was
        else:
            assert sorted(file.read()) == sorted([*file.first, *(one for one in file.others if one[0].startswith("p"))])


def _release(world: World, agent: str, *, force: bool) -> None:
    held = [row.file_path for row in world.live() if row.locked_by == agent]
    if held:
        world.ask(rq.Release(agent=agent, resources=held, force=force))


def _changed(file: File, act: str, name: str, about: str, body: int) -> Part | None:
    if act == "edit":
        return name, about, file.fresh()
    return None if act == "remove" else (f"{name}R{file.fresh()}", about, body)


@pytest.mark.parametrize("text", ["", "\n", "import os\n", "def f(a):\n    return a\n"])
@pytest.mark.parametrize("order", [("ann", "bob"), ("bob", "ann")])
def test_where_nothing_of_the_file_is_left_others_keep_what_they_have_done(world: World, text: str, order: tuple[str, str]) -> None:
    """It had no parts at first; or its one was renamed, and written anew, by who holds it."""
    world.write("e.py", text)
    names = {"ann": ["e.py::q"], "bob": ["e.py::r"]}
    if "def f" in text:
        names["bob"] = ["e.py::f", "e.py::compute"]
    mine = "def q():\n    return 1\n"
    theirs = "def compute(values, scale):\n    total = sum(values)\n    return total * scale\n" if "def f" in text else "def r():\n    return 2\n"
    for agent in order:
        world.ask(rq.Acquire(agent=agent, resources=names[agent], new=True))
    now = text.replace("def f(a):\n    return a\n", "")
    for agent in order:
        now += ("\n\n" if now.strip() else "") + (mine if agent == "ann" else theirs)
        world.write("e.py", now)
    world.ask(rq.Release(agent="bob", resources=names["bob"]))
    world.ask(rq.Release(agent="ann", resources=names["ann"], force=True))
    (review,) = world.ask(rq.Reviews()).items
    world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
    left = (world.root / "e.py").read_text()
    assert theirs.strip() in left and "def q" not in left and ("import os" in left) == ("import os" in text), left
    assert "def f" not in left


PLAIN = ["the same"]


@pytest.mark.parametrize("renamed", [True, False])
@pytest.mark.parametrize("shape", ["py", "js"])
def test_what_has_come_elsewhere_is_not_what_was_renamed_however_alike(world: World, shape: str, renamed: bool) -> None:
    file = File(world, shape, PLAIN)
    file.lease("ann", "alpha")
    file.parts[:1] = [("omega", PLAIN[0], 100)] if renamed else []
    file.parts.append(("alpaca", PLAIN[0], 0))  # a person's
    file.others.append(file.parts[-1])
    file.save()
    assert _reverted(file) == file.others


@pytest.mark.parametrize("shape", ["py", "js"])
def test_what_was_renamed_is_not_there_twice_where_others_have_removed_theirs(world: World, shape: str) -> None:
    file = File(world, shape, PLAIN)
    for agent, names in (("ann", ("alpha", "beta")), ("bob", ("gamma",))):
        for name in names:
            file.lease(agent, name)
    file.parts[:3] = [("betaR13", PLAIN[0], 12)]  # hers, for alpha and beta; and bob has removed gamma
    file.others.pop(2)
    file.save()
    world.ask(rq.Release(agent="bob", resources=[f"{file.name}::gamma"]))
    assert _reverted(file) == file.others


def _reverted(file: File) -> list[Part]:
    """What is in the file when all that ann has done is reverted."""
    world = file.world
    held = [row.file_path for row in world.live() if row.locked_by == "ann"]
    world.ask(rq.Release(agent="ann", resources=held, force=True))
    (review,) = world.ask(rq.Reviews()).items
    assert "the whole of it is here" not in review.summary
    world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
    return file.read()


@pytest.mark.parametrize("order", [("ann", "bob"), ("bob", "ann")])
@pytest.mark.parametrize("shape", ["py", "js", "md", "toml", "yaml"])
def test_two_that_stand_side_by_side_can_be_reverted_one_after_the_other(world: World, shape: str, order: tuple[str, str]) -> None:
    """Of lines alone the second could not be told: what stood next to it has gone since."""
    file = File(world, shape, ABOUT, ["alpha"])
    for agent, name in (("ann", "first"), ("bob", "second")):
        file.lease(agent, name, new=True)
        file.parts.append((name, f"what {agent} does", file.fresh()))
    file.save()
    for agent in order:
        world.ask(rq.Release(agent=agent, resources=[row.file_path for row in world.live() if row.locked_by == agent], force=True))
    for agent, left in zip(order, [[file.parts[0], file.parts[2 if order[0] == "ann" else 1]], [file.parts[0]]], strict=True):
        (review,) = [one.review for one in world.ask(rq.Reviews()).items if one.agent == agent]
        world.ask(rq.ReviewDecide(review=review, verdict="revert"))
        assert file.read() == left


def test_what_comes_below_a_last_line_without_an_end_stays_on_lines_of_its_own(world: World) -> None:
    world.write("e.py", "def one():\n    return 1")
    world.acquire("ann", "e.py::one")
    world.write("e.py", "def one():\n    return 11")
    world.ask(rq.Acquire(agent="bob", resources=["e.py::two"], new=True))
    two = "\n\n\ndef two():\n    return 2\n"
    world.write("e.py", "def one():\n    return 11" + two)
    world.ask(rq.Release(agent="bob", resources=["e.py::two"]))
    world.ask(rq.Release(agent="ann", resources=["e.py::one"], force=True))
    (review,) = world.ask(rq.Reviews()).items
    world.ask(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert (world.root / "e.py").read_text() == "def one():\n    return 1" + two


def test_who_holds_a_last_part_is_not_accused_of_the_lines_below_it(world: World) -> None:
    world.write("e.py", "def one():\n    return 1")
    world.acquire("ann", "e.py::one")
    world.ask(rq.Acquire(agent="bob", resources=["e.py::two"], new=True))
    world.write("e.py", "def one():\n    return 1\n\n\ndef two():\n    return 2\n")
    world.ask(rq.Release(agent="ann", resources=["e.py::one"], force=True))
    assert world.ask(rq.Reviews()).items == []


THREE = "def a():\n    return 1\n\n\ndef b():\n    return 2\n\n\ndef c():\n    return 3\n"


def test_a_part_is_reverted_and_undone_beside_parts_that_others_hold(world: World) -> None:
    world.write("m.py", THREE)
    world.acquire("ann", "m.py::a")
    world.acquire("bob", "m.py::b")
    half = THREE.replace("return 1", "return 11").replace("return 2", "return 22")
    world.write("m.py", half)
    world.ask(rq.Release(agent="ann", resources=["m.py::a"], force=True))
    revert, undo = rq.ReviewDecide(review="R-1", verdict="revert"), rq.ReviewUndo(review="R-1")
    for request, text in ((revert, half.replace("return 11", "return 1")), (undo, half), (revert, half.replace("return 11", "return 1"))):
        world.ask(request)
        assert (world.root / "m.py").read_text() == text
        assert [(row.file_path, row.locked_by) for row in world.live()] == [("m.py::b", "bob")], "nothing of the verdict's is left"
    world.acquire("cyd", "m.py::c")
    world.ask(rq.Release(agent="bob", resources=["m.py::b"], force=True))
    (theirs,) = world.ask(rq.Reviews()).items
    world.ask(rq.ReviewDecide(review=theirs.review, verdict="revert"))
    assert (world.root / "m.py").read_text() == THREE, "of bob's work nothing else was a part"
    assert world.replay_differs() == []


@pytest.mark.parametrize(("holds", "named"), [("m.py::a", "m.py::a"), ("m.py", "m.py"), ("./", "m.py"), ("m.py::<header>", "m.py::<header>")])
@pytest.mark.parametrize("undo", [False, True])
def test_what_somebody_holds_by_now_is_not_reverted(world: World, holds: str, named: str, undo: bool) -> None:
    world.write("m.py", THREE)
    world.acquire("ann", "m.py::a")
    half = THREE.replace("return 1", "return 11")
    world.write("m.py", half)
    world.ask(rq.Release(agent="ann", resources=["m.py::a"], force=True))
    if undo:
        world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    world.acquire("bob", holds)
    refused = world.refused(rq.ReviewUndo(review="R-1") if undo else rq.ReviewDecide(review="R-1", verdict="revert"))
    assert refused.code is Code.LOCKED and refused.message.startswith(f"{named} is leased by bob until"), refused
    assert ("undone" if undo else "reverted") in refused.message and (world.root / "m.py").read_text() == (THREE if undo else half)


def test_work_on_a_whole_file_is_not_taken_out_beneath_those_who_hold_parts_of_what_it_changed(world: World) -> None:
    """Of it what they hold would change, too; and a file that goes is no part."""
    world.write("m.py", THREE)
    world.acquire("ann", "m.py", "new.py")
    world.write("m.py", THREE.replace("return", "return 1 +"))
    world.write("new.py", "def n():\n    return 1\n")
    world.ask(rq.Release(agent="ann", resources=["m.py", "new.py"], force=True))
    for file, part in (("m.py", "m.py::b"), ("new.py", "new.py::n")):
        world.acquire("bob", part)
        refused = world.refused(rq.ReviewDecide(review="R-1", verdict="revert", files=[file]))
        assert refused.code is Code.LOCKED and part in refused.message, refused
        world.ask(rq.Release(agent="bob", resources=[part]))
        world.ask(rq.ReviewDecide(review="R-1", verdict="revert", files=[file]))
    assert (world.root / "m.py").read_text() == THREE and not (world.root / "new.py").exists()


def half_of_a(world: World) -> None:
    """R-1, of ann's work on one part, while bob is at work on another."""
    world.write("m.py", THREE)
    world.acquire("ann", "m.py::a")
    world.acquire("bob", "m.py::b")
    world.write("m.py", THREE.replace("return 1", "return 11"))
    world.ask(rq.Release(agent="ann", resources=["m.py::a"], force=True))


def test_who_leases_the_part_while_the_revert_is_planned_is_heeded(world: World) -> None:
    half_of_a(world)
    refused = between_plan_and_begin(world, lambda: world.acquire("cyd", "m.py::a"))
    assert refused.code is Code.LOCKED and refused.message.startswith("m.py::a is leased by cyd"), refused


def test_the_part_is_given_to_nobody_and_the_file_written_by_nobody_while_it_is_reverted(world: World) -> None:
    half_of_a(world)
    world.checked = False  # which looks at the disk, between the parts of a verdict
    asked: list[Refusal] = []
    held: list[tuple[str, str]] = []

    def ask() -> None:
        if not asked and any(row.locked_by == "coord/R-1" for row in world.live()):
            asked.extend(world.refused(rq.Acquire(agent="cyd", resources=[one], retry=False)) for one in ("m.py::a", "m.py"))
            held.extend((row.file_path, row.locked_by) for row in world.live())
            world.acquire("cyd", "m.py::c")

    with FaultyKernel(1, ask, for_good=True):
        world.ask(rq.ReviewDecide(review="R-1", verdict="revert"))
    assert [one.code for one in asked] == [Code.LOCKED] * 2
    assert sorted(held) == [("edit:m.py", "coord/R-1"), ("m.py::a", "coord/R-1"), ("m.py::b", "bob")]
    assert [row.file_path for row in world.live()] == ["m.py::b", "m.py::c"]


@pytest.mark.parametrize("back", list(itertools.permutations("abc")))
@pytest.mark.parametrize("out", ["abc", "cab", "bca"])
def test_verdicts_on_parts_of_a_file_are_undone_in_any_order(world: World, out: str, back: tuple[str, ...]) -> None:
    """And each again reverted, also beside what another has done in another part since."""
    world.write("m.py", THREE + "\n\ndef d():\n    return 4\n")
    returns = dict(zip("abc", "123", strict=True))

    def text(parts: Iterable[str], last: str = "4") -> str:
        made = THREE + f"\n\ndef d():\n    return {last}\n"
        for one in parts:
            made = made.replace(f"return {returns[one]}\n", f"if {one}:\n        work()\n    return {returns[one] * 2}\n")
        return made

    for one in "abc":
        world.acquire(one, f"m.py::{one}")
    world.write("m.py", text("abc"))
    reviews = {}
    for one in "abc":
        world.ask(rq.Release(agent=one, resources=[f"m.py::{one}"], force=True))
        (new,) = {row.review for row in world.ask(rq.Reviews()).items} - set(reviews.values())
        reviews[one] = new
    there = set("abc")
    for n, (one, verdict) in enumerate([*((one, "revert") for one in out), *((one, "undo") for one in back), *((one, "revert") for one in back)]):
        world.ask(rq.ReviewUndo(review=reviews[one]) if verdict == "undo" else rq.ReviewDecide(review=reviews[one], verdict="revert"))
        there ^= {one}
        last = "4" if n < 4 else "44"
        assert (world.root / "m.py").read_text() == text(there, last), (n, one, verdict)
        if n == 4 - 1:  # somebody works in a part that nobody had
            world.write("m.py", text(there, "44"))
    assert (world.root / "m.py").read_text() == text("", "44") and world.replay_differs() == []


@pytest.mark.parametrize("away_ms", [0, 3 * 86_400_000])
@pytest.mark.parametrize("undo", [False, True])
def test_a_crash_in_the_middle_of_a_revert_beside_another_is_gone_on_from(tmp_path: Path, undo: bool, away_ms: int) -> None:
    half = THREE.replace("return 1", "return 11").replace("return 2", "return 22")
    without, ended = half.replace("return 11", "return 1"), set()
    for nth in itertools.count(1, max(1, round(9 / EFFORT))):
        world = World(tmp_path / str(nth))
        world.write("m.py", THREE)
        world.acquire("ann", "m.py::a")
        world.acquire("bob", "m.py::b")
        world.write("m.py", half)
        world.ask(rq.Release(agent="ann", resources=["m.py::a"], force=True))
        request: rq.ReviewDecide | rq.ReviewUndo = rq.ReviewDecide(review="R-1", verdict="revert")
        if undo:
            world.ask(request)
            request = rq.ReviewUndo(review="R-1")
        with FaultyKernel(nth, _crash) as faults, contextlib.suppress(Crash, Refusal):
            world.ask(request)
        if not faults.struck:
            world.close()
            break
        world.clock.advance(away_ms)
        world.restart()
        state = world.ask(rq.ReviewShow(review="R-1")).state
        ended.add(state)
        assert (world.root / "m.py").read_text() == (half if state == "open" else without), faults.said
        held = [(row.file_path, row.locked_by) for row in world.live()]
        assert held == ([] if away_ms else [("m.py::b", "bob")]), faults.said
        assert world.replay_differs() == []
        world.acquire("cyd", "m.py::a", "m.py::c")
        world.ask(rq.Sweep() if away_ms else rq.Release(agent="bob", resources=["m.py::b"], force=True))
        (theirs,) = [one for one in world.ask(rq.Reviews()).items if one.agent != "ann"]
        (file,) = world.ask(rq.ReviewShow(review=theirs.review)).files
        assert "return 22" in file.diff and "11" not in file.diff, "of bob's work nothing else is a part"
        world.close()
    assert ended == {"open", "reverted"} and nth > 10


def _crash() -> None:
    raise Crash
