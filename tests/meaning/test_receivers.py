"""What a receiver is, by each way in which code says so. Another class has a method of the same name, so that
nothing can be taken for it by its name alone."""

from __future__ import annotations

import pytest

from tests.meaning.made import judged

BASE = """
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Generic, Iterator, TypeVar
T = TypeVar("T")
S = TypeVar("S", bound="Box")

class Box:
    def act(self, one): ...
    def same(self: S) -> S: ...
    def own(self) -> "Self": ...
    @classmethod
    def new(cls) -> "Self": ...
    def __enter__(self) -> "Box": ...
    async def __aenter__(self) -> "Box": ...
    @property
    def twin(self) -> "Box | None": ...
    def __getitem__(self, at) -> "Box": ...
    def __iter__(self) -> "Iterator[Box]": ...
    def __call__(self) -> "Box": ...

class Small(Box): ...

class Decoy:
    def act(self, one, two): ...
    def same(self): ...

class Shelf(Generic[T]):
    first: T
    rows: list[T]
    def top(self) -> T: ...

class Boxes(Shelf[Box]): ...

@contextmanager
def opened() -> Iterator[Box]: ...
@asynccontextmanager
async def waited() -> "AsyncIterator[Box]": ...
async def made() -> Box: ...
def plain(): return Box()
def pair() -> tuple[int, Box]: ...
def table() -> dict[str, Box]: ...
def nested() -> dict[str, list[Box]]: ...
def maker() -> "Callable[[], Box]": ...
def kind() -> type[Box]: ...
def many(): yield Box()
BoxLike = Box | None
LAST = Box()
"""
FILES = {"lib/__init__.py": "from .base import *\nfrom .base import Box as Renamed\n", "lib/base.py": BASE}

RECEIVERS = [
    "Box().act(1)", "LAST.act(1)", "lib.LAST.act(1)", "lib.base.Box().act(1)", "Renamed().act(1)", "Small().act(1)",
    "Small().same().act(1)", "Small().own().act(1)", "Small.new().act(1)", "Box().twin.act(1)", "Box()[0].act(1)",
    "Box()().act(1)", "plain().act(1)", "pair()[1].act(1)", "table()['a'].act(1)", "table().get('a').act(1)",
    "nested()['a'][0].act(1)", "maker()().act(1)", "kind()().act(1)", "Boxes().top().act(1)", "Boxes().first.act(1)",
    "Boxes().rows[0].act(1)", "(await made()).act(1)", "(Box() if x else None).act(1)", "(x or Box()).act(1)",
    "cast(Box, x).act(1)", "next(iter(Boxes().rows)).act(1)", "sorted(Boxes().rows)[0].act(1)", "copy(Box()).act(1)",
    "Box.act(Box(), 1)", "getattr(Box(), 'act')(1)", "type(Box())().act(1)", "Box().__class__().act(1)",
    "with Box() as y:\n    y.act(1)", "with opened() as y:\n    y.act(1)", "async with Box() as y:\n    y.act(1)",
    "async with waited() as y:\n    y.act(1)", "for y in Box():\n    y.act(1)", "for y in Boxes().rows:\n    y.act(1)",
    "for n, y in enumerate(Boxes().rows):\n    y.act(1)", "for n, y in table().items():\n    y.act(1)",
    "for y in table().values():\n    y.act(1)", "for a, y in zip([1], Boxes().rows):\n    y.act(1)",
    "for y, a in zip_longest(Boxes().rows, [1], fillvalue=0):\n    y.act(1)", "[y.act(1) for y in Boxes().rows]", "{n: y.act(1) for n, y in table().items()}", "[z.act(1) for y in nested().values() for z in y]",
    "for y in [Box(), Small()]:\n    y.act(1)", "ys = [Box() for _ in x]\nys[0].act(1)", "n, y = pair()\ny.act(1)",
    "y, z = Box(), 1\ny.act(1)", "(y := Box()).act(1)", "y: Box = x\ny.act(1)", "y: 'Box'\ny.act(1)", "y: BoxLike = x\ny.act(1)",
    "if isinstance(x, Box):\n    x.act(1)", "if isinstance(x.y, (int, Box)):\n    x.y.act(1)",
    "match x:\n    case Box():\n        x.act(1)", "match x:\n    case Box() as y:\n        y.act(1)", "y = z = Box()\ny.act(1)",
    "def inner(y: Box):\n    y.act(1)", "def inner(y: 'list[Box] | None'):\n    y[0].act(1)", "def inner(*y: Box):\n    y[0].act(1)",
    "def inner(**y: Box):\n    y['a'].act(1)", "def inner(y: Shelf[Box]):\n    y.top().act(1)", "do = Box().act\ndo(1)",
    "class C:\n    y: Box\n    def m(self): self.y.act(1)", "class C:\n    def __init__(self): self.y = Box()\n    def m(self): self.y.act(1)",
    "class C(Small):\n    def m(self): super().act(1)", "class C(Small):\n    def m(self): self.act(1)",
    "class C(Small):\n    @classmethod\n    def m(cls): cls().act(1)", "class C(Renamed):\n    def act(self, one): return super().act(one)",
    "def inner(y):\n    return y\nlib.base.LAST.act(1)",
]


@pytest.mark.parametrize("code", RECEIVERS)
def test_each_receiver_is_known(code: str) -> None:
    body = "".join(f"    {line}\n" for line in code.split("\n"))
    use = ("import lib\nfrom copy import copy\nfrom typing import cast\nfrom lib import *\nfrom lib import Renamed\n"
           f"async def go(x):\n{body}")
    outcome = judged({**FILES, "use.py": use}, "lib/base.py", "    def act(self, one): ...\n", "    def act(self, one, more): ...\n")
    said = [one for one in outcome.breaks if one.path == "use.py" and one.kind != "override"]
    assert said and all(one.sure for one in said), code


@pytest.mark.parametrize("code", [
    "Decoy().act(1, 2)", "x.act(1)", "for y in x:\n    y.act(1)", "y: Decoy = x\ny.act(1, 2)", "import sys\nsys.act(1)",
    "def inner(y: 'Missing'):\n    y.act(1)", "class C:\n    def act(self): ...\n    def m(self): self.act()", "'text'.act(1)",
    "with open(x) as y:\n    y.act(1)",
])
def test_nothing_else_is_taken_for_it(code: str) -> None:
    body = "".join(f"    {line}\n" for line in code.split("\n"))
    use = f"from lib import *\nasync def go(x):\n{body}"
    outcome = judged({**FILES, "use.py": use}, "lib/base.py", "    def act(self, one): ...\n", "    def act(self, one, more): ...\n")
    assert not [one for one in outcome.breaks if one.path == "use.py"], code


def test_a_base_that_goes_takes_its_members_along() -> None:
    files = {**FILES, "use.py": "from lib.base import Small\nSmall().act(1)\nSmall()\n"}
    outcome = judged(files, "lib/base.py", "class Small(Box): ...", "class Small: ...")
    assert [(one.path, one.line) for one in outcome.breaks] == [("use.py", 2)]


def test_a_module_of_a_package_does_not_hide_one_of_pythons_own() -> None:
    files = {"pkg/__init__.py": "", "pkg/logging.py": "def info(text): ...\n",
             "pkg/use.py": "import logging\nfrom . import logging as own\nlogging.info('a')\nown.info('a')\n"}
    outcome = judged(files, "pkg/logging.py", "(text)", "(text, more)")
    assert [one.line for one in outcome.breaks] == [4]


@pytest.mark.parametrize("code", ["Small().same().only(1)", "Small().own().only(1)", "Small.new().only(1)"])
def test_what_gives_back_its_own_kind(code: str) -> None:
    base = BASE.replace("class Small(Box): ...", "class Small(Box):\n    def only(self, one): ...").replace(
        "def act(self, one, two)", "def only(self, one, two)")
    outcome = judged({**FILES, "lib/base.py": base, "use.py": f"from lib import *\n{code}\n"}, "lib/base.py",
                     "only(self, one): ...", "only(self, one, more): ...")
    assert [(one.path, one.sure) for one in outcome.breaks] == [("use.py", True)]
