"""Each way in which a merge by region went wrong, or could: kept apart as a case."""

from __future__ import annotations

import ast

import pytest

from coordinator.merging import checks
from coordinator.merging.model import Side
from tests.merging.asked import by_regions, clean, conflict, merged
from tests.regions.asked import read

FILE = '''\
"""About it."""
import os
import re

LIMIT = 1


def first(a, b):
    """What it does."""
    x = a + 1
    return x


class Thing:
    """A thing."""

    size = 1

    def one(self):
        return 1

    def two(self):
        return 2


def last():
    return os, re
'''


def changed(text: str, *edits: tuple[str, str]) -> str:
    for before, after in edits:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


def test_two_additions_at_one_place() -> None:
    end = "    return os, re\n"
    done = by_regions(FILE, FILE + "\n\ndef mine():\n    return 1\n", FILE + "\n\ndef other():\n    return 2\n")
    assert done == FILE + "\n\ndef mine():\n    return 1\n\n\ndef other():\n    return 2\n"
    method = "        return 2\n"
    done = by_regions(FILE, changed(FILE, (method, method + "\n    def mine(self):\n        return 3\n")),
                      changed(FILE, (method, method + "\n    def other(self):\n        return 4\n")))
    assert done == changed(FILE, (method, method + "\n    def mine(self):\n        return 3\n"
                                  "\n    def other(self):\n        return 4\n"))
    assert end in done


def test_the_same_addition_twice_is_one() -> None:
    more = "\n\ndef mine():\n    return 1\n"
    done = by_regions(FILE, FILE + more + "\n\ndef other():\n    return 2\n", FILE + more + "\n\ndef third():\n    return 3\n")
    assert done.count("def mine") == 1 and "other" in done and "third" in done


def test_one_name_for_two_things_is_a_conflict() -> None:
    done = conflict(FILE, FILE + "\n\ndef mine():\n    return 1\n", FILE + "\n\ndef mine():\n    return 2\n")
    assert [one.name for one in done.conflicts] == ["mine"] and done.markers == 1


def test_one_name_added_in_two_places_is_not_there_twice() -> None:
    """git finds no conflict, and the second would silently be the one that counts."""
    ours = changed(FILE, ("LIMIT = 1\n", "LIMIT = 1\n\n\ndef mine():\n    return 1\n"))
    done = conflict(FILE, ours, FILE + "\n\ndef mine():\n    return 2\n")
    assert "mine" in str(done.notes) and b"return 1" in done.data and b"return 2" in done.data


def test_branches_are_one_region() -> None:
    base = "import os\n\nif os.name == 'nt':\n    def f():\n        return 1\nelse:\n    def f():\n        return 2\n"
    ours = base.replace("        return 1\n", "        return 1\n\n    def g():\n        return 3\n")
    theirs = base.replace("        return 2\n", "        return 2\n\n    def h():\n        return 4\n")
    done = clean(base, ours, theirs)
    tree = ast.parse(done)
    branch = next(node for node in tree.body if isinstance(node, ast.If))
    assert [one.name for one in branch.body if isinstance(one, ast.FunctionDef)] == ["f", "g"]
    assert [one.name for one in branch.orelse if isinstance(one, ast.FunctionDef)] == ["f", "h"]


def test_an_empty_else_is_no_python() -> None:
    """The grammar reads it without a fault; Python does not."""
    good = "try:\n    a = 1\nexcept ImportError:\n    b = 2\nelse:\n    c = 3\nz = 1\n"
    readings = [read(good.encode(), "python")] * 3
    empty = read(good.replace("    c = 3\n", "").encode(), "python")
    assert not empty.errors and [one.why for one in checks.sound(readings, empty)] == ["the result is no Python"]
    # Where a side is none already, nothing can be shown.
    broken = good.replace("    c = 3\n", "")
    done = merged(good, broken + "p = 1\n", good + "q = 1\n")
    assert done.by == "conflict" and "not all three are Python" in str(done.notes)


def test_a_name_gone_on_one_side_and_newly_used_on_the_other() -> None:
    """No line that both changed: git's merge is clean, and fails when it runs."""
    ours = changed(FILE, ("import re\n", ""), ("os, re", "os"))
    theirs = changed(FILE, ("    x = a + 1\n", "    x = re.sub(a, b, a)\n"))
    done = conflict(FILE, ours, theirs)
    assert "re is used, and bound nowhere" in str(done.notes)
    assert [one.name for one in done.conflicts] == ["first"]
    gone = changed(FILE, ("    def one(self):\n        return 1\n\n", ""))
    using = changed(FILE, ("        return 2\n", "        return self.one()\n"))
    assert "Thing.one is gone" in str(merged(FILE.replace("\n    size = 1\n", "\n    size = 1\n    more = 2\n"),
        gone.replace("\n    size = 1\n", "\n    size = 1\n    more = 2\n"),
        using.replace("\n    size = 1\n", "\n    size = 1\n    more = 2\n")).notes) or "Thing" in str(
        merged(FILE, gone, using).conflicts)


def test_a_member_that_may_come_from_a_base_is_no_fault() -> None:
    base = "class A(B):\n    def one(self):\n        return 1\n\n    x = 1\n    y = 2\n    z = 3\n\n    def two(self):\n        return 2\n"
    ours = base.replace("    def one(self):\n        return 1\n\n", "")
    theirs = base.replace("return 2", "return self.one()")
    assert merged(base, ours, theirs).by == "git"
    assert "A.one is gone" in str(merged(base.replace("(B)", ""), ours.replace("(B)", ""), theirs.replace("(B)", "")).notes)


def test_a_name_used_before_it_is_bound() -> None:
    """One side moved a function down, the other uses it above: clean, to git."""
    base = "import os\n\n\ndef make():\n    return 1\n\n\nA = 1\nB = 2\nC = 3\nD = 4\nE = 5\n\n\ndef end():\n    return 1\n"
    ours = base.replace("def make():\n    return 1\n\n\n", "") + "\n\ndef make():\n    return 1\n"
    theirs = base.replace("C = 3\n", "C = make()\n")
    done = conflict(base, ours, theirs)
    assert "make is used before it is bound" in str(done.notes)


def test_moved_by_one_and_changed_by_the_other() -> None:
    block = '    def one(self):\n        return 1\n\n'
    ours = changed(FILE, (block, ""), ("        return 2\n", "        return 2\n\n    def one(self):\n        return 1\n"))
    theirs = changed(FILE, ("        return 1\n", "        return 11\n"))
    assert by_regions(FILE, ours, theirs) == ours.replace("return 1\n", "return 11\n")


def test_renamed_by_one_and_changed_by_the_other() -> None:
    base = FILE + '\n\ndef long(a):\n    """About."""\n    b = a + 1\n    c = b + 2\n    return c\n'
    ours = base.replace("def long(a):", "def longer(a):\n    # so\n").replace("    b = a + 1\n", "    b = a + 1\n")
    theirs = base.replace("    return c\n", "    return c + 1\n") + "\n\ndef z():\n    return 1\n"
    done = clean(base, ours, theirs)
    assert "def longer(a)" in done and "def long(a)" not in done and "return c + 1" in done


def test_deleted_by_one_and_renamed_by_the_other() -> None:
    base = FILE + '\n\ndef long(a):\n    """About."""\n    b = a + 1\n    c = b + 2\n    return c\n'
    done = conflict(base, FILE, base.replace("def long(a)", "def longer(a)"))
    assert done.conflicts


def test_deleted_by_one_and_changed_by_the_other() -> None:
    ours = changed(FILE, ("    def one(self):\n        return 1\n\n", ""))
    done = conflict(FILE, ours, changed(FILE, ("        return 1\n", "        return 11\n")))
    assert [(one.name, one.why) for one in done.conflicts] == [("Thing.one", "ours deleted it, theirs changed it")]


def test_decorators_signature_and_body_apart() -> None:
    base = "import d\n\n\ndef f(a):\n    return a\n\n\ndef g():\n    return 1\n"
    decorated = base.replace("def f(a)", "@d.one\ndef f(a)")
    signed = base.replace("def f(a)", "def f(a, b)")
    bodied = base.replace("return a", "return a + 1")
    assert "@d.one\ndef f(a, b):" in by_regions(base, decorated, signed)
    assert "def f(a, b):\n    return a + 1" in by_regions(base, signed, bodied)
    assert "@d.one\ndef f(a):\n    return a + 1" in clean(base, decorated, bodied)
    done = conflict(base, bodied, base.replace("return a", "return a + 2"))
    assert done.conflicts[0].why == "both changed its body"


def test_imports_are_sets() -> None:
    done = by_regions("from x import a, b\nz = 1\n", "from x import a, b, c\nz = 1\n", "from x import b, d\nz = 1\n")
    names = ast.parse(done).body[0]
    assert isinstance(names, ast.ImportFrom) and {one.name for one in names.names} == {"b", "c", "d"}
    done = by_regions(FILE, changed(FILE, ("import re\n", "import re\nimport sys\n")),
                      changed(FILE, ("import re\n", "import re\nimport json\n")))
    assert "import re\nimport sys\nimport json\n\nLIMIT" in done
    # What is written beside a name is not lost: then it stays with git.
    conflict("from x import (\n    a,  # so\n    b,\n)\n", "from x import (\n    a,  # so\n    b,\n    c,\n)\n",
             "from x import (\n    a,  # so\n    b,\n    d,\n)\n")


def test_the_first_of_a_file_stay_first() -> None:
    base = "import os\n\nA = 1\n"
    ours = '"""About."""\nfrom __future__ import annotations\nimport os\n\nA = 1\n'
    theirs = "import abc\nimport os\n\nA = 1\n"
    for one, other in ((ours, theirs), (theirs, ours)):
        done = by_regions(base, one, other)
        assert done.startswith('"""About."""\nfrom __future__ import annotations\n') and "import abc\n" in done


def test_statements_at_one_place_are_a_conflict() -> None:
    """Nothing says which is to be done first."""
    base = "import app\n\napp.start()\n"
    done = conflict(base, base + "app.one()\n", base + "app.two()\n")
    assert "order" in done.conflicts[0].why
    plain = "class A:\n    x: int\n    y = 1\n"
    assert by_regions(plain, plain + "    p: int\n", plain + "    q: int\n") == plain + "    p: int\n    q: int\n"
    for fields in ("@dataclass\n" + plain, plain.replace("A", "A(typing.NamedTuple)")):
        conflict(fields, fields + "    p: int\n", fields + "    q: int\n")


def test_neighbouring_lines_of_one_body() -> None:
    """Conflicts to git, for it knows nothing of lines but that they are near."""
    base = "def f():\n    a = 1\n    b = 2\n    c = 3\n    return a\n"
    assert by_regions(base, base.replace("a = 1", "a = 11"), base.replace("b = 2", "b = 12")) == base.replace(
        "a = 1", "a = 11").replace("b = 2", "b = 12")
    put = base.replace("    b = 2\n", "    x = 0\n    b = 2\n")
    assert by_regions(base, put, base.replace("b = 2", "b = 12")) == put.replace("b = 2", "b = 12")
    assert by_regions(base, put, base.replace("a = 1", "a = 11")) == put.replace("a = 1", "a = 11")
    conflict(base, put, base.replace("    b = 2\n", "    y = 0\n    b = 2\n"))  # which of the two is first?
    conflict(base, put, base.replace("    b = 2\n", ""))
    conflict(base, put, base.replace("    b = 2\n", "    if b:\n        b = 2\n"))  # in whose place is what?
    conflict(base, base.replace("b = 2", "b = 3"), base.replace("b = 2", "b = 4"))


def test_points_of_a_list_in_markdown() -> None:
    base = "# Changes\n\n## New\n\n* One.\n"
    ours, theirs = base + "* Two,\n  and more.\n", base + "* Three.\n"
    assert by_regions(base, ours, theirs, "markdown") == ours + "* Three.\n"
    conflict(base, base + "\nText.\n", base + "\nOther.\n", "markdown")
    conflict(base, ours, base + "Other.\n", "markdown")


def test_a_docstring_and_what_is_imported_first() -> None:
    """Behind an import a text is no docstring."""
    base = "# Licence.\n\nimport os\n\nA = 1\n"
    documented = base.replace("import os", '"""About."""\n\nimport os')
    future = base.replace("import os", "from __future__ import annotations\n\nimport os")
    for ours, theirs in ((documented, future), (future, documented)):
        done = by_regions(base, ours, theirs)
        assert ast.get_docstring(ast.parse(done)) == "About." and "from __future__" in done


def test_what_a_file_begins_with_stays_first() -> None:
    base = "#!/usr/bin/env python\n# Licence.\nimport os\n\nA = 1\n"
    for ours in (base.replace("import os", "from __future__ import annotations\nimport os"),
                 base.replace("import os", '"""About."""\nimport os')):
        theirs = base.replace("import os", "import abc\nimport os")
        done = by_regions(base, ours, theirs)
        assert done.startswith(ours.partition("import os")[0]) and "import abc\nimport os" in done


def test_a_name_in_more_places_than_before() -> None:
    base = "A = 1\n\n\ndef f():\n    return A\n\n\nB = 2\n"
    ours = base + "A = 3\n"  # the same name again, further down
    theirs = base.replace("A = 1\n", "A = 1\nC = 4\n").replace("B = 2\n", "B = 2\nD = 4\n")
    done = by_regions(base, ours, theirs)
    assert [line for line in done.split("\n") if line[:1] in "ABCD" and line] in (
        ["A = 1", "C = 4", "B = 2", "A = 3", "D = 4"], ["A = 1", "C = 4", "B = 2", "D = 4", "A = 3"])


def test_a_text_below_a_field_goes_with_it() -> None:
    base = 'class A:\n    """About A."""\n\n    x = 1\n    """About x."""\n    y = 2\n    """About y."""\n'
    ours = base.replace("    y = 2\n", '    p = 1\n    """About p."""\n    y = 2\n').replace("class A", "class A(B)")
    theirs = base.replace("    y = 2\n", '    q = 1\n    """About q."""\n    y = 2\n').replace("About A.", "About it.")
    assert by_regions(base, ours, theirs) == base.replace("class A", "class A(B)").replace("About A.", "About it.").replace(
        "    y = 2\n", '    p = 1\n    """About p."""\n    q = 1\n    """About q."""\n    y = 2\n')


def test_a_text_at_the_end_of_a_class() -> None:
    """It was taken for a closing brace, and went to the end."""
    base = "class A:\n    x = 1\n\n\ndef f():\n    return 1\n"
    ours = base.replace("    x = 1\n", '    x = 1\n    y = 2\n    """About y."""\n')
    theirs = base.replace("    x = 1\n", "    x = 9\n\n    def m(self):\n        return 1\n")
    assert 'y = 2\n    """About y."""\n\n    def m(self)' in by_regions(base, ours, theirs)


def test_one_name_from_two_places_is_a_conflict() -> None:
    """Merged as sets, the later import would silently win."""
    base = "from x import a\nfrom y import b\n\nz = a, b\n"
    ours = base.replace("import a", "import a, Word").replace("z = a, b", "z = a, b, Word")
    theirs = base.replace("import b", "import b, Word").replace("\nz", "\nq = Word\nz")
    done = conflict(base, ours, theirs)
    assert "Word is imported from two places" in str(done.notes)


def test_imports_for_the_type_checker() -> None:
    base = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from a import A\n    from b import B\n\nx = 1\n"
    ours = base.replace("    from b import B\n", "    from b import B\n    from c import C\n")
    theirs = base.replace("    from b import B\n", "    from d import D\n")
    assert "if TYPE_CHECKING:\n    from a import A\n    from c import C\n    from d import D\n\n" in by_regions(base, ours, theirs)


def test_equal_comments_at_two_places_are_two() -> None:
    """A comment that both added above different things was once taken for one addition."""
    base = "class A:\n    x = 1\n\n    y = 2\n"
    ours = "class A:\n    #: Used.\n\n    x = 1\n\n    y = 2\n    p = 1\n"
    theirs = "class A:\n    x = 1\n\n    #: Used.\n\n    y = 2\n    q = 1\n"
    assert by_regions(base, ours, theirs).count("#: Used.") == 2


def test_comments_go_with_what_they_stand_above() -> None:
    base = "class A:\n    #: One.\n    #: Of it.\n    x = 1\n\n    #: Two.\n    #: Of it.\n    y = 2\n"
    ours = base.replace("x = 1\n", "x = 1\n    p = 1\n").replace("Two.", "Second.")
    theirs = base.replace("x = 1\n", "x = 1\n    q = 1\n").replace("One.", "First.")
    assert by_regions(base, ours, theirs) == base.replace("One.", "First.").replace("Two.", "Second.").replace(
        "x = 1\n", "x = 1\n    p = 1\n    q = 1\n")


def test_moved_to_two_places_is_not_there_twice() -> None:
    base = "class A:\n    def m(self):\n        return 1\n\n\nclass B:\n    x = 1\n\n\nclass C:\n    x = 1\n"
    without = base.replace("    def m(self):\n        return 1\n", "    pass\n")
    method = "    x = 1\n\n    def m(self):\n        return 1\n"
    ours = without.replace("class B:\n    x = 1\n", "class B:\n" + method)
    theirs = without.replace("class C:\n    x = 1\n", "class C:\n" + method)
    done = merged(base, ours, theirs)
    assert done.by != "regions"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_and_marks_stay(end: str, bom: bytes, last: bool) -> None:
    def written(text: str) -> bytes:
        return bom + (text if last else text.removesuffix("\n")).replace("\n", end).encode()

    ours, theirs = FILE + "\n\ndef mine():\n    return 1\n", FILE + "\n\ndef other():\n    return 2\n"
    done = merged(written(FILE), written(ours), written(theirs))
    assert done.by == "regions"
    assert done.data == written(ours + "\n\ndef other():\n    return 2\n")


def test_a_side_that_changes_line_ends_or_the_mark() -> None:
    ours = (FILE + "\n\ndef mine():\n    return 1\n").replace("\n", "\r\n").encode()
    theirs = b"\xef\xbb\xbf" + FILE.removesuffix("\n").encode()
    done = merged(FILE.encode(), ours, theirs)
    assert done.by == "regions" and done.data == b"\xef\xbb\xbf" + ours.removesuffix(b"\r\n")


def test_mixed_line_ends_are_left_to_git() -> None:
    base = FILE.encode()
    ours = base + b"\r\n\r\ndef mine():\r\n    return 1\r\n"
    done = merged(base, ours, base + b"\n\ndef other():\n    return 2\n")
    assert done.by == "conflict" and "end alike" in str(done.notes)


def test_what_is_no_text_or_not_divided_is_left_to_git() -> None:
    done = merged("a\n", "a\nb\n", "a\nc\n", "none")
    assert done.by == "conflict" and done.data == b"a\n<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n"
    broken = "def f(:\n"
    done = merged(broken, broken + "x = 1\n", broken + "y = 1\n")
    assert done.markers


def test_conflicts_name_region_sides_and_intents() -> None:
    base = "def f():\n    return 1\n"
    done = merged(base, base.replace("1", "2"), base.replace("1", "3"),
                  sides=(Side("ann", "count from two"), Side("bob", "count\nfrom three")))
    text = done.data.decode()
    assert "<<<<<<< ann (count from two): f\n" in text
    assert ">>>>>>> bob (count from three): f: both changed its body\n" in text


SAMPLES = {
    "javascript": ("import a from 'a';\n\nclass A {\n  one() { return 1; }\n}\n\nfunction f() {\n  return 1;\n}\n",
                   ("}\n\nfunction f", "\n  %s() { return 2; }\n}\n\nfunction f"), "\nfunction %s() {\n  return 3;\n}\n"),
    "go": ("package m\n\nfunc F() int {\n\treturn 1\n}\n", ("func F", "func %s() {\n}\n\nfunc F"), "\nfunc Z%s() int {\n\treturn 2\n}\n"),
    "java": ("class A {\n    int one() {\n        return 1;\n    }\n}\n", ("class A {\n", "class A {\n    int %s() {\n        return 2;\n    }\n\n"), ""),
    "rust": ("use a;\n\nfn f() -> i32 {\n    1\n}\n", ("use a;\n", "use a;\nuse %s;\n"), "\nfn z%s() {\n}\n"),
    "toml": ("[a]\nx = 1\n\n[b]\ny = 2\n", ("[b]\n", "[b]\n%s = 1\n"), "\n[z%s]\nq = 1\n"),
    "markdown": ("# A\n\nText.\n\n## B\n\nMore.\n", ("## B", "## %s\n\nNew.\n\n## B"), "\n## Z%s\n\nEnd.\n"),
    "ruby": ("class A\n  def one\n    1\n  end\nend\n", ("class A\n", "class A\n  def %s\n    2\n  end\n\n"), "\ndef z%s\n  3\nend\n"),
}


def test_imports_of_other_languages_are_not_there_twice() -> None:
    """Known by their text, a changed import was one taken out and another put in, on both sides."""
    base = "import a from 'a';\nimport React from 'react';\nimport { b } from 'b';\n\nfoo();\n"
    for old, mine, other in (("{ b }", "{ b, c }", "{ b, d }"), ("{ b }", "{ x, y, z, w }", "{ p, q, r, s }"),
                             ("React", "React, { one }", "React, { two }")):
        done = conflict(base, base.replace(old, mine), base.replace(old, other), "javascript")
        assert done.conflicts or done.notes
    block = "package m\n\nimport (\n\t\"a\"\n)\n\nfunc F() {\n}\n"
    conflict(block, block.replace('"a"', '"a"\n\t"b"'), block.replace('"a"', '"a"\n\t"c"'), "go")
    include = "#include <a.h>\n\nint f(void) {\n    return 1;\n}\n"
    assert by_regions(include, include.replace("<a.h>", "<a.h>\n#include <b.h>"), include.replace("<a.h>", "<a.h>\n#include <c.h>"),
                      "c") == include.replace("<a.h>", "<a.h>\n#include <b.h>\n#include <c.h>")


@pytest.mark.parametrize("language", sorted(SAMPLES))
def test_other_languages(language: str) -> None:
    base, (before, after), end = SAMPLES[language]
    sides = [base.replace(before, after % name) + (end % name if end else "") for name in ("mine", "other")]
    assert base not in sides
    done = by_regions(base, *sides, language)
    lines = [one for one in done.split("\n") if one.strip()]
    for side in sides:
        assert not [one for one in side.split("\n") if one.strip() and one not in lines]


@pytest.mark.parametrize(("moved", "language"), [
    ("beta = 0\n", "python"), ("def beta():\n    return 1\n", "python"), ("class Beta:\n    a = 1\n", "python"),
    ("function beta() {\n  return 1;\n}\n", "javascript"),
])
def test_what_both_sides_moved_is_there_once(moved: str, language: str) -> None:
    """git's merge by lines is clean there, and has it twice, next to each other."""
    top, other = ("import os\n", "def alpha(a):\n    x = 0\n    return x + 0\n") if language == "python" else (
        'import os from "os";\n', "function alpha(a) {\n  return 0;\n}\n")
    base, ours, theirs = ("\n\n".join(parts) for parts in ((top, other, moved), (top, moved, other), (moved, other)))
    assert clean(base, ours, theirs, language).count(moved) == 1
