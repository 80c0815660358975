"""One side took a name away, the other newly uses it: lines that fit, and code that cannot work."""

from __future__ import annotations

import pytest

from coordinator.merging import taken_away
from tests.merging.asked import by_regions, conflict

#: Language -> base, ours, theirs. Each is two edits next to each other, on no line that both changed.
APART: dict[str, tuple[str, str, str, str]] = {
    "python renamed": ("python", "def f(r):\n    while r.ok:\n        r = r.call_next()\n    return r\n",
                       "def f(r):\n    while r.ok:\n        assert r.call_next is not None\n        r = r.call_next()\n    return r\n",
                       "def f(r):\n    while r.ok:\n        r = r.next()\n    return r\n"),
    "python mended twice": ("python", "def f(n):\n    limit = 10\n    if n > limit:\n        raise X\n",
                            "def f(n):\n    limit = 10 * 1024\n    if n > limit:\n        raise X\n",
                            "def f(n):\n    limit = 10\n    if n * 1024 > limit:\n        raise X\n"),
    "go replaced": ("go", "package a\n\nfunc F(s int) {\n\tvar colorFn func()\n\tswitch s {\n\tcase 1:\n\t\tcolorFn = red\n\tcase 2:\n\t\tcolorFn = blue\n\t}\n\tcolorFn()\n}\n",
                    "package a\n\nfunc F(s int) {\n\tvar title string\n\tswitch s {\n\tcase 1:\n\t\ttitle = Red()\n\tcase 2:\n\t\ttitle = Blue()\n\t}\n\tprint(title)\n}\n",
                    "package a\n\nfunc F(s int) {\n\tvar colorFn func()\n\tswitch s {\n\tcase 1:\n\t\tcolorFn = red\n\tcase 3:\n\t\tcolorFn = cyan\n\tcase 2:\n\t\tcolorFn = blue\n\t}\n\tcolorFn()\n}\n"),
    "rust renamed": ("rust", "fn f(a: T) {\n    let current = a.get();\n    log(1);\n    done();\n}\n",
                     "fn f(a: T) {\n    let current = a.get();\n    log(current);\n    done();\n}\n",
                     "fn f(a: T) {\n    let entered = a.get();\n    log(1);\n    done();\n}\n"),
    "javascript renamed": ("javascript", "function f(box) {\n  const width = box.w;\n  log(1);\n  done();\n}\n",
                           "function f(box) {\n  const width = box.w;\n  log(width);\n  done();\n}\n",
                           "function f(box) {\n  const size = box.w;\n  log(1);\n  done();\n}\n"),
    "java renamed": ("java", "class A {\n  void f() {\n    int total = g();\n    log(1);\n    done();\n  }\n}\n",
                     "class A {\n  void f() {\n    int total = g();\n    log(total);\n    done();\n  }\n}\n",
                     "class A {\n  void f() {\n    int sum = g();\n    log(1);\n    done();\n  }\n}\n"),
    "python imports renamed": ("python", "from w import (Widget, TextWidget,\n    BoxWidget)\n\nx = 1\n",
                               "from w import (Widget, TextWidget,\n    BoxWidget, ButtonWidget)\n\nx = ButtonWidget()\n",
                               "from w import (Widget, Text,\n    Box)\n\nx = 1\n"),
    "python imports moved": ("python", "import os\nfrom shop.api.v1 import pay\n\nx = 1\n",
                             "import os\nfrom shop.api.v1 import pay\nfrom shop.api.v1.fees import fee\n\nx = 1\n",
                             "import os\nfrom shop.v2.api import pay\n\nx = 1\n"),
    "go imports moved": ("go", 'package a\n\nimport (\n\t"x/y/snapshot"\n)\n\nfunc F() {}\n',
                         'package a\n\nimport (\n\t"x/y/client"\n\t"x/y/snapshot"\n)\n\nfunc F() { client.X() }\n',
                         'package a\n\nimport (\n\t"x/v3/y/snapshot"\n)\n\nfunc F() {}\n'),
}


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("case", APART)
def test_it_is_a_conflict(case: str, swapped: bool) -> None:
    language, base, *sides = APART[case]
    conflict(base, *(sides[::-1] if swapped else sides), language)


def test_what_fits_stays_merged() -> None:
    base = "def f(a):\n    width = a.w\n    height = a.h\n    return width * height\n"
    assert by_regions(base, base.replace("a.w", "a.w or 1"), base.replace("a.h\n", "a.h or 2\n")) == (
        "def f(a):\n    width = a.w or 1\n    height = a.h or 2\n    return width * height\n")
    assert by_regions("from t import List, Tuple\n\nx = 1\n", "from t import Sequence, Tuple\n\nx = 1\n",
                      "from t import Any, List, Tuple\n\nx = 1\n") == "from t import Any, Sequence, Tuple\n\nx = 1\n"


@pytest.mark.parametrize("base, ours, theirs, names", [
    (b"a.total = 1", b"a.sum = 1", b"a.total = 1\nb.total", ["total"]),
    (b"total", b"", b"total", []),
    (b"total", b"", b"total # total, 'total' // total", []),
    (b"if x: return", b"", b"if x: return\nif y: return", []),
    (b"f(a)", b"f(a * 1024)", b"f(a)\ng(1024)", ["1024"]),
    (b"f(1024)", b"f(a * 1024)", b"g(1024)", []),
])
def test_which_names_are_taken_away_and_newly_used(base: bytes, ours: bytes, theirs: bytes, names: list[str]) -> None:
    assert taken_away.names(base, ours, theirs) == taken_away.names(base, theirs, ours) == names
