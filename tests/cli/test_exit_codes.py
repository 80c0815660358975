"""What commands exit with has a name, all of it."""

from __future__ import annotations

import ast
from pathlib import Path

import coordinator.cli
from coordinator.words.refusals import MEANING, Code, Exit, codes

#: `merge-file` counts its conflicts up to this.
CONFLICTS_MAX = 127


def test_each_number_has_a_name_and_a_meaning() -> None:
    assert {code.row.exit for code in Code} <= set(Exit) and set(MEANING) == set(Exit)
    assert sorted(code for number in Exit for code in codes(number)) == sorted(code.value for code in Code)


def test_no_command_ends_with_a_bare_number() -> None:
    """Of functions that give an exit code: 0, or a name."""
    seen = 0
    for name in ("attach", "daemon", "guard", "launch", "main", "merging", "reviews", "run", "trust", "verify"):
        tree = ast.parse((Path(coordinator.cli.__file__).parent / f"{name}.py").read_text("utf-8"))
        for function in (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)):
            if not isinstance(function.returns, ast.Name) or function.returns.id != "int":
                continue
            backs = [back for back in ast.walk(function) if isinstance(back, ast.Return)]
            seen += len(backs)
            bare = [one.value for back in backs for one in ast.walk(back)
                    if isinstance(one, ast.Constant) and type(one.value) is int and one.value not in (0, CONFLICTS_MAX)]
            assert not bare, (name, function.name, bare)
    assert seen > 20
