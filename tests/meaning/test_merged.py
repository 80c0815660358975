"""What fits on both sides of a merge, and not in it."""

from __future__ import annotations

import pytest

from coordinator.meaning.merged import misfits
from coordinator.meaning.outcomes import Versions
from tests.meaning.made import indexed

PAY = "def charge(account):\n    return 1\n"
MORE = "def charge(account, amount):\n    return 1\n"
USES = "from pay import charge\ndef a():\n    return charge(1)\n"
MENDED = USES.replace("charge(1)", "charge(1, 2)")
Files = dict[str, str | None]


def why(base: Files, ours: Files, theirs: Files, merged: Files | None = None) -> list[str]:
    """The sentences for a merge of these; the index has what the target (`ours`) has."""
    paths = sorted({*ours, *theirs})
    now = {**base, **ours}

    def data(files: Files, path: str) -> bytes | None:
        text = files.get(path, base.get(path))
        return None if text is None else text.encode()

    both: Files = merged or {**ours, **theirs}
    versions = [Versions(path, data({}, path), data(ours, path), data(theirs, path), data(both, path)) for path in paths]
    with indexed({path: text for path, text in now.items() if text is not None}) as index:
        return [one.why for one in misfits(index, versions)]


NEW_USE: Files = {"b.py": "import pay\ndef b():\n    return pay.charge(2)\n"}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("one", "other", "said"), [
    ({"pay.py": MORE, "a.py": MENDED}, NEW_USE, "b() in b.py calls pay.charge() with one argument; it needs 'amount' now"),
    ({"pay.py": "def take(account):\n    return 1\n", "a.py": "from pay import take\ndef a():\n    return take(1)\n"}, NEW_USE, "gone"),
    ({"pay.py": None, "a.py": "def a():\n    pass\n"}, NEW_USE, "gone"),
    ({"pay.py": PAY + "class C:\n    def m(self, x):\n        return x\n"}, NEW_USE, ""),
    ({"pay.py": PAY.replace("1", "2")}, NEW_USE, ""),
    ({"pay.py": MORE, "a.py": MENDED}, {"b.py": "import pay\ndef b():\n    return pay.charge(2, 3)\n"}, ""),  # it did not fit before
])
def test_what_one_changed_and_the_other_began_to_use(one: Files, other: Files, said: str, turned: bool) -> None:
    base: Files = {"pay.py": PAY, "a.py": USES}
    found = why(base, other, one) if turned else why(base, one, other)
    assert bool(found) == bool(said) and said in "".join(found)


@pytest.mark.parametrize("turned", [False, True])
def test_what_a_side_broke_by_itself_is_its_own(turned: bool) -> None:
    """Whoever left a caller behind had it before the merge, too."""
    base: Files = {"pay.py": PAY, "a.py": USES, "c.py": "x = 1\n"}
    sides: list[Files] = [{"pay.py": MORE}, {"c.py": "x = 2\n"}]
    assert why(base, *(sides[::-1] if turned else sides)) == []


@pytest.mark.parametrize("turned", [False, True])
def test_of_a_file_that_both_changed_the_merge_counts(turned: bool) -> None:
    base: Files = {"pay.py": PAY + "\n\ndef free():\n    return 0\n"}
    one: Files = {"pay.py": MORE + "\n\ndef free():\n    return 0\n"}
    other: Files = {"pay.py": PAY + "\n\ndef free():\n    return charge(0)\n"}
    merged: Files = {"pay.py": MORE + "\n\ndef free():\n    return charge(0)\n"}
    found = why(base, *((other, one) if turned else (one, other)), merged)
    assert found == ["free() in pay.py calls charge() with one argument; it needs 'amount' now"]


def test_two_changes_that_belong_together_are_no_misfit() -> None:
    """Both sides changed several files, each a whole that fits."""
    base: Files = {"pay.py": PAY, "a.py": USES, "n.py": "def n(x):\n    return x\n", "m.py": "from n import n\nn(1)\n"}
    one: Files = {"pay.py": MORE, "a.py": MENDED}
    other: Files = {"n.py": "def n(x, y):\n    return x\n", "m.py": "from n import n\nn(1, 2)\n"}
    assert why(base, one, other) == why(base, other, one) == []


def test_what_cannot_be_read_is_told_by_others() -> None:
    assert why({"pay.py": PAY}, {"pay.py": "def charge(:\n"}, NEW_USE) == []
    assert why({}, {}, {}) == []
