"""An edit of an agent's own tool leases, with what it changes, what breaks by it elsewhere: nothing is felt of
that but where another holds it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.settings import Leases, Settings
from coordinator.slices.guard import broken_callers
from coordinator.slices.impact.impact import Impact
from coordinator.source.meaning import Meaning
from coordinator.words import requests as rq
from tests.service.test_region_edits import edits, proposes
from tests.sessions import Session, holders
from tests.waiting import until
from tests.world import World

PAY = "def charge(account, amount):\n    return amount\n\n\ndef refund(account):\n    return charge(account, -1)\n\n\ndef note(text):\n    return text\n"
ORDERS = "from pay import charge\n\n\ndef a(account):\n    return charge(account, 1)\n\n\ndef b():\n    return 2\n"
SHOP = "import orders\nimport pay\n\n\nclass Shop:\n    def close(self):\n        return pay.charge(self, 3)\n"


def prepared(world: World, *, known: bool = True) -> World:
    for path, text in (("pay.py", PAY), ("orders.py", ORDERS), ("shop.py", SHOP), ("other.py", "x = 1\n")):
        world.write(path, text)
    meaning = Meaning(str(world.root), ":memory:")
    world.service.impact = Impact(meaning)
    if known:
        world.service.impact.judge("pay.py", b"", b"", ())
        until(lambda: meaning.progress().state == "done")
    return world


@pytest.fixture
def judged(world: World) -> Iterator[World]:
    yield prepared(world)
    assert world.service.impact is not None
    world.service.impact.close()


@pytest.fixture
def ann(judged: World) -> Session:
    return Session(judged, "ann")


@pytest.fixture
def bob(judged: World) -> Session:
    return Session(judged, "bob")


NEEDS_MORE = ("def charge(account, amount):", "def charge(account, amount, currency):")


def test_what_breaks_is_leased_with_it_and_told(judged: World, ann: Session) -> None:
    judged.acquire("eve", "other.py")
    heeded = proposes(ann, *NEEDS_MORE, path="pay.py")
    mine = {name for name, who in holders(judged).items() if who == ann.name and not name.startswith("edit:")}
    assert not heeded.deny and mine == {"pay.py::charge", "pay.py::refund", "orders.py::a", "shop.py::Shop.close"}
    assert "a() in orders.py calls charge() with two arguments" in heeded.context and "orders.py::a" in heeded.context
    assert judged.replay_differs() == []


@pytest.mark.parametrize(("held", "sentence"), [
    ("orders.py::a", "a() in orders.py calls charge() with two arguments"),
    ("orders.py", "a() in orders.py calls charge() with two arguments"),
    ("shop.py::Shop", "Shop.close() in shop.py calls pay.charge() with two arguments; it needs 'currency' now"),
    ("pay.py::refund", "refund() in pay.py calls charge() with two arguments"),
    ("*.py", "With this edit"),
])
def test_who_holds_what_breaks_is_not_broken_under_its_hands(judged: World, ann: Session, held: str, sentence: str) -> None:
    judged.acquire("eve", held)
    before = holders(judged)
    denied = proposes(ann, *NEEDS_MORE, path="pay.py").deny
    assert f"{held} is leased by eve" in denied and sentence in denied
    assert {n: w for n, w in holders(judged).items() if not n.startswith("edit:")} == before, "all or none"
    if held != "*.py":
        assert not proposes(ann, "return amount", "return amount + 1", path="pay.py").deny


@pytest.mark.parametrize(("old", "new", "also"), [
    ("def charge(account, amount):", "def charge(account, amount, note=None):", []),
    ("def charge(account, amount):\n    return amount", "def charge(account, amount):\n    return 2 * amount", []),
    ("def note(text):", "def note(text, more):", []),  # nobody calls it
    ("def charge(account, amount):", "def take(account, amount):", ["orders.py::<header>", "orders.py::a", "pay.py::refund", "shop.py::Shop.close"]),
])
def test_what_breaks_nobody_passes(judged: World, ann: Session, old: str, new: str, also: list[str]) -> None:
    judged.acquire("eve", "other.py")
    assert not proposes(ann, old, new, path="pay.py").deny
    extra = {name for name, who in holders(judged).items() if who == ann.name and not name.startswith(("edit:", "pay.py::charge", "pay.py::take", "pay.py::note"))}
    assert extra == set(also)


def test_other_languages_are_judged_too(world: World) -> None:
    world.write("src/pay.ts", "export function charge(account: string) {\n    return 1;\n}\n")
    world.write("src/use.ts", "import { charge } from './pay';\n\nexport function a() {\n    return charge('x');\n}\n")
    prepared(world)
    world.acquire("eve", "src/use.ts::a")
    ann = Session(world, "ann")
    assert not proposes(ann, "return 1;", "return 2;", path="src/pay.ts").deny
    denied = proposes(ann, "charge(account: string)", "charge(account: string, amount: number)", path="src/pay.ts").deny
    assert "a() in use.ts calls charge() with one argument; it needs 'amount' now. src/use.ts::a is leased by eve" in denied
    assert world.service.impact is not None
    world.service.impact.close()


def test_what_is_taken_for_a_caller_by_its_name_alone_is_not_leased(judged: World, ann: Session) -> None:
    judged.write("door.py", "class Door:\n    def shut_it(self, how):\n        return how\n")
    judged.write("hall.py", "def leave(thing):\n    return thing.shut_it(1)\n")
    assert judged.service.impact is not None
    judged.service.impact.note(["door.py", "hall.py"])
    judged.acquire("eve", "hall.py::leave")
    edit = "def shut_it(self, how):", "def shut_it(self, how, more):"
    found = judged.service.impact.judge("door.py", (judged.root / "door.py").read_bytes(),
                                        (judged.root / "door.py").read_bytes().replace(*(one.encode() for one in edit)), ())
    assert not isinstance(found, str) and [one.sure for one in found.breaks] == [False]
    assert not proposes(ann, *edit, path="door.py").deny
    assert {name for name, who in holders(judged).items() if who == ann.name and not name.startswith("edit:")} == {"door.py::Door.shut_it"}


def test_who_is_alone_is_not_asked(judged: World, ann: Session) -> None:
    """Of what one alone does nobody's work can break, and no callers are taken."""
    assert not proposes(ann, *NEEDS_MORE, path="pay.py").deny
    assert {name for name in holders(judged) if not name.startswith("edit:")} == {"pay.py::charge"}


def test_what_an_agent_holds_itself_is_its_own_to_mend(judged: World, ann: Session) -> None:
    judged.acquire("eve", "other.py")
    assert not proposes(ann, "return charge(account, 1)", "return charge(account, 2)", path="orders.py").deny
    ann.hook("PostToolUse", tool_name="Edit", tool_input={})
    assert "orders.py" not in proposes(ann, *NEEDS_MORE, path="pay.py").context
    judged.acquire(ann.name, "orders.py", "shop.py")
    assert list(holders(judged)).count("orders.py::a") <= 1


def test_what_cannot_be_seen_through_counts_as_broken(judged: World, ann: Session) -> None:
    judged.write("dyn.py", "from pay import charge\n\n\ndef spread(*more):\n    return charge(*more)\n\n\ndef z():\n    return 1\n")
    assert judged.service.impact is not None
    judged.service.impact.note(["dyn.py"])
    judged.acquire("eve", "dyn.py::spread")
    denied = proposes(ann, *NEEDS_MORE, path="pay.py").deny
    assert "spread() in dyn.py calls charge() with arguments that are known at run time only. dyn.py::spread is leased by eve" in denied
    judged.ask(rq.Release(agent="eve", resources=["dyn.py::spread"]))
    judged.acquire("eve", "dyn.py::z")
    assert not proposes(ann, *NEEDS_MORE, path="pay.py").deny and "dyn.py::spread" in holders(judged)


def test_what_cannot_be_read_any_more_is_one_of_the_whole_file(judged: World, ann: Session) -> None:
    judged.acquire("eve", "pay.py::note")
    denied = proposes(ann, "def charge(account, amount):", "def charge(account, amount:", path="pay.py").deny
    assert "pay.py::note is leased by eve" in denied and "nobody can tell whom it breaks (it could not be read" in denied


def test_a_whole_new_text_is_judged_too(judged: World, ann: Session) -> None:
    judged.acquire("eve", "orders.py::a")
    assert "calls charge() with two arguments" in ann.edit("pay.py", PAY.replace(*NEEDS_MORE))


def test_a_policy_has_nobody_asked(tmp_path: Path) -> None:
    world = prepared(World(tmp_path / "repo", Settings(leases=Leases(meaning="off"))), known=False)
    world.acquire("eve", "orders.py::a")
    assert not proposes(Session(world, "ann"), *NEEDS_MORE, path="pay.py").deny
    assert world.service.impact is not None
    world.service.impact.close()
    world.close()


def test_what_is_not_known_in_time_holds_nobody_up(judged: World, ann: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first question begins the reading; a judge that is busy with another's question is not waited for."""
    monkeypatch.setattr(broken_callers, "SECONDS_MAX", 0.2)
    judged.acquire("eve", "orders.py::a")
    impact = judged.service.impact
    assert impact is not None
    with impact._meaning._worker._lock:
        assert not proposes(ann, *NEEDS_MORE, path="pay.py").deny
    assert isinstance(impact.judge("pay.py", b"", b"", (), 5.0), str), "it is left alone for a while"
    impact.close()
    judged.service.impact = Impact(Meaning(str(judged.root), ":memory:"))
    assert not edits(ann, *NEEDS_MORE, path="pay.py").deny
    judged.service.impact.close()


def test_more_than_can_be_held_is_one_of_the_whole_file(judged: World, ann: Session) -> None:
    judged.write("many.py", "from pay import charge\n" + "".join(
        f"\n\ndef f{n}():\n    return charge(1, {n})\n" for n in range(broken_callers.REGIONS_MAX + 1)))
    assert judged.service.impact is not None
    judged.service.impact.note(["many.py"])
    judged.acquire("eve", "other.py")
    assert not proposes(ann, *NEEDS_MORE, path="pay.py").deny
    assert {name for name in holders(judged) if not name.startswith("edit:")} == {"other.py", "pay.py"}
