"""What of a change others may see, told from its text."""

from __future__ import annotations

import pytest

from coordinator.rules.function_bodies import is_body_alone

ARROW = "const f = async (a: string, {b, c} = {b: 1, c: 2}): Promise<void> => {\n  go(a);\n};\n"
GO = "// Total { of( it\nfunc (o *Order) Total(net int) (int, error) {\n\treturn net, nil\n}\n"
JAVA = "/* (a { */\n@Override\npublic int charge(final int amount) throws E {\n  this.n += 1;\n  return 1;\n}\n"


@pytest.mark.parametrize(("path", "before", "old", "new", "alone"), [
    ("a.ts", ARROW, "go(a);", "go(a, b);", True),
    ("a.ts", ARROW, "a: string", "a: number", False),
    ("a.ts", ARROW, "c: 2}", "c: 3}", False),
    ("a.ts", ARROW, "Promise<void>", "Promise<string>", False),
    ("a.ts", ARROW, "go(a);", "this.x = a;", False),
    ("a.ts", ARROW, "go(a);", "this.x == a;", True),
    ("a.go", GO, "return net, nil", "return 0, nil", True),
    ("a.go", GO, "\treturn net", "\tnet++\n\treturn net", True),
    ("a.go", GO, "net int)", "net, tax int)", False),
    ("a.go", GO, "(int, error)", "int", False),
    ("a.go", GO, "// Total { of( it", "// Total", True),
    ("a.java", JAVA, "this.n += 1;", "this.n += 2;", True),
    ("a.java", JAVA, "this.n += 1;", "n = 2;", True),
    ("a.java", JAVA, "final int amount", "final int amount, int tax", False),
    ("a.java", JAVA, "public int", "private int", False),
    ("a.ts", "type T = { a: string };\n", "a: string", "b: string", False),
    ("a.ts", "class C { m(a) { return 1; } }\n", "return 1", "return 2", False),  # it is not one function
    ("a.ts", "const f = (a) => a + 1;\n", "+ 1", "+ 2", False),
    ("a.py", "def f(a):\n    return a\n", "return a", "return {a: (1)}", True),
    ("a.py", "def f(a):\n    return a\n", "f(a)", "f(a, b)", False),
])
def test_what_stays_within_a_body(path: str, before: str, old: str, new: str, alone: bool) -> None:
    assert old in before
    assert is_body_alone(path, before.encode(), before.replace(old, new, 1).encode()) is alone
