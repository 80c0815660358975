"""One holder, two working trees: each copy is kept from other sessions, and half-done work in each is flagged."""

from __future__ import annotations

import pytest

from tests.effort import crossed
from tests.namespaces.conftest import ONCE, Stand


@ONCE
@pytest.mark.parametrize(("name", "order"), crossed(["src/a.py", "src/", "src/*.py", "src/a.py::f"], [("w", "."), (".", "w")]))
def test_each_copy_is_kept_from_other_sessions(stand: Stand, name: str, order: tuple[str, str]) -> None:
    stand.write("src/a.py", "def f():\n    return 1\n")
    for words in ("add .", "-c user.name=x -c user.email=x@x commit -qm one", "worktree add -q --detach w"):
        assert stand.run("git", *words.split()).returncode == 0
    agent = stand.agent()
    for tree in order:
        stand.coord("lock", name, "-a", "bob", cwd=tree)
    for tree in order:
        assert agent.does(f"echo zz >> '{stand.root / tree}/src/a.py'") != 0, (tree, agent.said)
    assert "zz" not in stand.read("src/a.py") + stand.read("w/src/a.py")
    # And both are free again, where nothing was done
    stand.coord("unlock", name, "-a", "bob")
    for tree in order:
        assert agent.does(f"echo zz >> '{stand.root / tree}/src/a.py'") == 0, agent.said


@ONCE
def test_half_done_work_in_each_is_flagged(stand: Stand) -> None:
    stand.write("a.py", "one\n")
    for words in ("add .", "-c user.name=x -c user.email=x@x commit -qm one", "worktree add -q --detach w"):
        assert stand.run("git", *words.split()).returncode == 0
    for tree in ("w", "."):
        stand.coord("lock", "a.py", "-a", "bob", cwd=tree)
    said = stand.coord("locks")
    assert "(in the main tree)" in said and f"(in {stand.root}/w)" in said
    stand.write("a.py", "half\n")
    assert stand.coord("unlock", "a.py", "-a", "bob", "--force") .startswith("released a.py (bob)\nWhat was changed under it is flagged (R-1)")
    (review,) = stand.asks("review", "list")["items"]
    assert review["files"] == ["a.py"] or "a.py" in str(review)
