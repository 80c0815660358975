"""Who breaks by a change: each kind of change with a caller of each kind, and none by what only adds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.meaning.facts import Param, Shape
from coordinator.meaning.judging import judge
from coordinator.meaning.outcomes import BREAKS_MAX, Break, Unseen, conclude
from coordinator.meaning.signatures import misfit
from coordinator.slices.impact.impact import refused
from coordinator.words.refusals import Code
from tests.effort import examples
from tests.meaning.made import broken, indexed, judged, signatures, written

SHOP = {
    "shop/__init__.py": "from .orders import pay, Order as Bill\nfrom .prices import *\n",
    "shop/prices.py": "__all__ = ['tax', 'RATE']\nRATE = 0.2\ndef tax(value, rate=RATE):\n    return value * rate\n",
    "shop/orders.py": """
        from dataclasses import dataclass
        from shop.prices import tax

        def pay(amount, currency="EUR"):
            return tax(amount)

        class Order:
            def __init__(self, number):
                self.number = number
                self.parent: "Order | None" = None

            def total(self, net):
                return self.total(1)

            @classmethod
            def empty(cls):
                return cls(0)

            @staticmethod
            def parse(text):
                return Order.parse(text)

            @property
            def size(self):
                return 1

            def twin(self) -> "Order":
                return self

        class Bulk(Order):
            def total(self, net):
                return super().total(net)

        @dataclass
        class Line:
            name: str
            count: int = 1

        def orders() -> list[Order]:
            return []

        def make():
            return Order(1)
        """,
    "app/use.py": """
        import shop
        import shop.orders as so
        from shop import Bill, pay, tax
        from shop.orders import Line, Order, make, orders
        from typing import Optional

        def by_name():
            pay(1)

        def by_name_twice():
            pay(1, "USD"); pay(amount=1)

        def by_module():
            so.pay(1); shop.pay(1)

        def from_all():
            tax(1)

        def alias():
            p = pay
            p(1)

        def annotated(order: Order):
            order.total(1)

        def optional(order: "Optional[Bill]"):
            order.total(1)

        def assigned():
            order = Bill(3)
            order.total(1)

        def looped():
            for order in orders():
                order.total(1)
            return [one.total(1) for one in orders()]

        def unpacked():
            first, second = Order(1), 2
            first.total(1)

        def chained(order: Order):
            order.twin().parent.total(1)

        def inferred():
            make().total(1)

        def narrowed(thing):
            if isinstance(thing, Order):
                thing.total(1)

        def unknown(thing):
            thing.total(1)

        def line():
            Line("a"); Line(name="a", count=2)

        def reads(order: Order):
            return order.size, order.number

        class Desk:
            current: Order

            def __init__(self, order: Order):
                self.mine = order

            def work(self):
                self.current.total(1)
                self.mine.total(1)

        class Special(Bill):
            def more(self):
                self.total(1)
                return self.empty(), self.parse("")

        class Own(Bill):
            def total(self, net):
                return 0

        def made():
            Special(1)

        @pay
        def decorated(): ...
        """,
}
ORDERS = "shop/orders.py"


def within(resources: set[tuple[str, str]], path: str = "app/use.py") -> set[str]:
    return {resource.partition("::")[2] for resource, _ in resources if resource.startswith(path + "::")}


TOTAL = {"annotated", "optional", "assigned", "looped", "unpacked", "chained", "inferred", "narrowed", "unknown",
         "Desk.work", "Special.more"}
PAY = {"by_name", "by_name_twice", "by_module", "alias"}


@pytest.mark.parametrize(("before", "after", "expected"), [
    ('currency="EUR"', "currency", {"by_name", "by_name_twice", "by_module", "alias", "decorated"}),
    ('currency="EUR"', 'currency="EUR", *, who', PAY | {"decorated"}),
    ('amount, currency="EUR"', 'currency="EUR"', PAY | {"decorated"}),
    ('amount, currency="EUR"', 'sum, currency="EUR"', {"by_name_twice"}),
    ('amount, currency="EUR"', 'amount, *, currency="EUR"', {"by_name_twice"}),
    ('amount, currency="EUR"', 'amount, /, currency="EUR"', {"by_name_twice"}),
    ('amount, currency="EUR"', 'currency, amount', PAY | {"decorated"}),
    ("def pay(", "def pay_now(", PAY | {"decorated", "<header>"}),
    ("def total(self, net):\n        return self", "def total(self, net, tax):\n        return self", TOTAL | {"Own.total"}),
    ("def total(self, net):\n        return self", "def sum(self, net):\n        return self",
     (TOTAL - {"unknown"}) | {"unknown"}),
    ("def __init__(self, number):", "def __init__(self, number, who):", {"assigned", "unpacked", "made"}),
    ("def empty(cls):", "def empty(cls, who):", {"Special.more"}),
    ("def parse(text):", "def parse(text, how):", {"Special.more"}),
    ("def size(", "def length(", {"reads"}),
    ("self.number = number", "pass", {"reads"}),
    ("count: int = 1", "count: int", {"line"}),
    ("count: int = 1", "number: int = 1", {"line"}),
    ("class Order:", "class Command:", None),
    ("def make():", "def made():", {"inferred", "<header>"}),
    ("def make():\n    return Order(1)", "async def make():\n    return Order(1)", {"inferred"}),
])
def test_each_kind_of_change_with_each_kind_of_caller(before: str, after: str, expected: set[str] | None) -> None:
    outcome = judged(SHOP, ORDERS, before, after)
    assert outcome.outcome == "REQUIRE_ADDITIONAL_LOCKS"
    found = within(broken(outcome))
    assert found == expected if expected is not None else {"<header>", "Special", "Own", "annotated"} <= found
    for one in outcome.breaks:
        assert one.resource == f"{one.path}::{one.region}" and one.target.startswith("shop/")
        assert one.path.rpartition("/")[2] in one.why
    assert set(outcome.required) == {one.resource for one in outcome.breaks}


def test_the_sentence() -> None:
    (one,) = judged(SHOP, "shop/prices.py", "rate=RATE", "rate").breaks[:1]
    assert one.why == "from_all() in use.py calls tax() with one argument; it needs 'rate' now"


def test_breaks_across_reexports_and_wildcards() -> None:
    outcome = judged(SHOP, "shop/prices.py", "def tax(", "def vat(")
    assert {"from_all", "<header>"} == within(broken(outcome))
    assert {"pay", "<header>"} == within(broken(outcome), ORDERS)
    outcome = judged(SHOP, "shop/prices.py", "RATE = 0.2\n", "")
    assert ("shop/prices.py::tax", "name") in broken(outcome)
    outcome = judged(SHOP, "shop/__init__.py", "pay, ", "")
    assert "by_module" in within(broken(outcome)) and "<header>" in within(broken(outcome))


def test_overrides_both_ways() -> None:
    outcome = judged(SHOP, ORDERS, "def total(self, net):\n        return self", "def total(self, net, tax):\n        return self")
    assert (ORDERS + "::Bulk.total", "override") in broken(outcome)
    outcome = judged(SHOP, ORDERS, "def total(self, net):\n        return super", "def total(self):\n        return super")
    assert (ORDERS + "::Bulk.total", "override") in broken(outcome)


@pytest.mark.parametrize(("before", "after"), [
    ('currency="EUR"', 'currency="EUR", who=None'),
    ('currency="EUR"', 'currency="EUR", *, who=None'),
    ('currency="EUR"', 'currency="USD", **more'),
    ('amount, currency="EUR"', 'amount=1, currency="EUR"'),
    ('amount, currency="EUR"', 'amount: "int", currency: str = "EUR"'),
    ("return tax(amount)", "value = tax(amount); return value"),
    ("def total(self, net):\n        return self", "def total(self, net, tax=0):\n        return self"),
    ("def __init__(self, number):", "def __init__(self, number, who=None):"),
    ("count: int = 1", "count: int = 2\n    more: int = 3"),
    ("def make():", "def new(): ...\ndef make():"),
    ("class Order:", "class Base: ...\nclass Order(Base):"),
    ("def size(", "def length(self): ...\n    @property\n    def size("),
    ("from dataclasses import dataclass", "from dataclasses import dataclass, field"),
    ("def orders() -> list[Order]:", "def orders() -> 'list[Order]':"),
])
def test_what_only_adds_never_alarms(before: str, after: str) -> None:
    outcome = judged(SHOP, ORDERS, before, after)
    assert outcome.outcome == "ALLOW" and not outcome.breaks and not outcome.unseen, outcome


@settings(max_examples=examples(60))
@given(signatures(), signatures(), st.lists(st.builds(
    Shape, st.integers(0, 4), st.lists(st.sampled_from("abcde"), unique=True, max_size=3).map(tuple)), max_size=4))
def test_a_caller_is_named_exactly_if_it_fitted_and_does_not(
    old: list[Param], new: list[Param], shapes: list[Shape],
) -> None:
    """For any two signatures and any calls. (Arguments that change their parameter are told apart.)"""
    given_ = [
        ", ".join([*map(str, range(one.positional)), *(f"{name}=0" for name in one.keywords)]) for one in shapes]
    calls = "".join(f"def call{at}():\n    f({text})\n" for at, text in enumerate(given_))
    files = {"a.py": f"def f({written(old)}): ...\n", "b.py": "from a import f\n" + calls}
    with indexed(files) as index:
        found = judge(index, "a.py", files["a.py"].encode(), f"def f({written(new)}): ...\n".encode())
    said = {one.region for one in found.breaks if " and is '" not in one.why}
    assert said == {
        f"call{at}" for at, one in enumerate(shapes) if not misfit(old, one) and misfit(new, one)}
    assert (found.outcome == "ALLOW") == (not found.breaks)


def test_what_the_asker_holds_is_its_own_to_mend() -> None:
    change = (SHOP, ORDERS, 'currency="EUR"', "currency")
    whole = judged(*change)
    held = judged(*change, "app/use.py::by_name", "app/use.py::by_module")
    assert set(whole.required) - set(held.required) == {"app/use.py::by_name", "app/use.py::by_module"}
    assert held.breaks == whole.breaks
    for all_of_it in (("app/use.py",), ("app/",), ("./",)):
        assert judged(*change, *all_of_it).outcome == "ALLOW"
    assert judged(*change, "app/use.pyx", "ap/").outcome == "REQUIRE_ADDITIONAL_LOCKS"


def test_callers_in_the_same_file_that_were_mended_with_it_do_not_break() -> None:
    files = {"a.py": "def f(x): ...\ndef g():\n    f(1)\n"}
    with indexed(files) as index:
        old = files["a.py"].encode()
        assert judge(index, "a.py", old, b"def f(x, y): ...\ndef g():\n    f(1, 2)\n").outcome == "ALLOW"
        left = judge(index, "a.py", old, b"def f(x, y): ...\ndef g():\n    f(1)\n")
        assert left.required == ["a.py::g"]
        assert judge(index, "a.py", old, b"def h(x): ...\ndef g():\n    h(1)\n").outcome == "ALLOW"


@pytest.mark.parametrize("use", [
    "def go(m):\n    f(*m)\n", "def go(m):\n    f(**m)\n", "def go(name):\n    eval(name)\n",
    "import a\ndef go(name):\n    getattr(a, name)()\n", "def go(thing, name):\n    getattr(thing, f'fac_{name}')\n",
])
def test_what_cannot_be_seen_through_is_for_somebody_to_look_at(use: str) -> None:
    files = {"a.py": "def f(x): ...\ndef fac_1(): ...\n", "b.py": "from a import f\n" + use,
             "far.py": "def other(m):\n    g(*m)\n    eval(m)\n"}
    with indexed(files) as index:
        found = judge(index, "a.py", files["a.py"].encode(), b"def f(x, y): ...\n")
        assert found.outcome == "ESCALATION_REQUIRED" and {one.path for one in found.unseen} == {"b.py"}
        same = judge(index, "a.py", files["a.py"].encode(), b"def f(x, y=1): ...\ndef fac_1(): ...\n")
        assert same.outcome == "ALLOW" and not same.unseen


def test_too_many_breaks_are_for_somebody_to_look_at() -> None:
    files = {"a.py": "def f(): ...\n", "b.py": "from a import f\n" + "f()\n" * (BREAKS_MAX + 1)}
    with indexed(files) as index:
        found = judge(index, "a.py", b"def f(): ...\n", b"def f(x): ...\n")
    assert found.outcome == "ESCALATION_REQUIRED" and len(found.breaks) == BREAKS_MAX + 1 and found.note


def test_a_file_that_goes_or_cannot_be_read() -> None:
    files = {"a.py": "def f(): ...\n", "b.py": "import a\nfrom a import f\ndef g():\n    a.f()\n"}
    with indexed(files) as index:
        gone = judge(index, "a.py", files["a.py"].encode(), None)
        assert {one.region for one in gone.breaks} >= {"<header>"}
        assert judge(index, "a.py", files["a.py"].encode(), b"def f(:\n").outcome == "ESCALATION_REQUIRED"
        for new in (b"def f(x): ...\n", b"def f(:\n", None):
            unknown = judge(index, "a.py", b"def f(:\n", new)
            assert unknown.outcome == "ALLOW" and "could not be read" in unknown.note
        assert judge(index, "a.txt", b"f()\n", b"").note
        assert judge(index, "new.py", None, b"def f(x): ...\n").outcome == "ALLOW"


def test_names_of_the_same_spelling_elsewhere_are_nobodys_business() -> None:
    files = {
        "a.py": "class A:\n    def run(self): ...\ndef f(): ...\n",
        "b.py": "class B:\n    def run(self): ...\ndef f(): ...\nB().run(); f()\n",
        "c.py": "import subprocess\nfrom b import f, B\nsubprocess.run(); f()\ndef g(x: B):\n    x.run()\ndef h(y):\n    y.run()\n",
    }
    with indexed(files) as index:
        old = files["a.py"].encode()
        assert judge(index, "a.py", old, b"class A:\n    def run(self, x): ...\ndef f(x): ...\n").outcome == "ALLOW"
        assert judge(index, "a.py", old, b"").outcome == "ALLOW"


def test_circles_come_to_an_end() -> None:
    files = {
        "a.py": "from b import *\nfrom b import x\nclass A(B): ...\nx = y\ny = x\n",
        "b.py": "from a import *\nfrom a import x\nclass B(A): ...\nz = z.z()\nfor z in z: z.x(1)\n",
    }
    with indexed(files) as index:
        for path in files:
            judge(index, path, files[path].encode(), b"")


@pytest.mark.parametrize(("unseen", "places"), [(0, 1), (1, 1), (0, BREAKS_MAX + 1), (2, BREAKS_MAX + 1)])
def test_who_holds_the_whole_file_leases_what_breaks_for_certain(unseen: int, places: int) -> None:
    """Dynamic uses, or many, are its own to decide; that a place breaks for certain is refused all the same."""
    breaks = [Break(f"b.py::f{n}", "b.py", f"f{n}", n, "name", "a.py::g", "it calls g") for n in range(places)]
    dynamic = [Unseen("c.py", "c.py", n, "getattr") for n in range(unseen)]
    for held, code in (({"a.py"}, Code.REQUIRE_ADDITIONAL_LOCKS), ({"a.py", "b.py"}, None), (set[str](), ...)):
        outcome = conclude("a.py", [("a.py::g", "takes more")], breaks, dynamic, held)
        refusal = refused(outcome, held)
        if code is ...:
            escalates = bool(unseen) or places > BREAKS_MAX
            assert refusal is not None and refusal.code is (Code.ESCALATION_REQUIRED if escalates else Code.REQUIRE_ADDITIONAL_LOCKS)
        else:
            assert (refusal.code if refusal else None) is code, (held, refusal)
