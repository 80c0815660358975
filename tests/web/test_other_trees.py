"""What two working trees change both, and who has which value of a pool, on the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.daemon.test_overlaps import F2, SOURCE, F, git, put
from tests.web.conftest import Person

pytestmark = pytest.mark.web


@pytest.fixture
def repo(make_repo: Callable[..., Repo], tmp_path: Path) -> Repo:
    """With two linked trees, and two pools."""
    repo = make_repo(config='[pools.db]\nvalues = ["app_1", "app_2"]\nenv = "DB"\n[pools.gpu]\nvalues = ["0", "1", "2", "3"]\nenv = "GPU"\n')
    git(repo.root, "symbolic-ref", "HEAD", "refs/heads/main")
    repo.write(".gitignore", ".coord\n")
    repo.write("m.py", SOURCE)
    git(repo.root, "add", "-A")
    git(repo.root, "commit", "-qm", "x")
    for name in ("one", "two"):
        git(repo.root, "worktree", "add", "-q", "-b", name, str(tmp_path / name))
    return repo


@pytest.mark.parametrize("width", [360, 1000])
def test_overlaps_have_a_screen_of_their_own(person: Person, repo: Repo, tmp_path: Path, width: int) -> None:
    person.page.set_viewport_size({"width": width, "height": 800})
    page = person.open()
    person.go("More")
    page.get_by_role("tab", name="Overlaps").click()
    page.get_by_text("No two working trees change the same.").wait_for()
    person.check_accessible()
    put(tmp_path / "one", "m.py", F)
    put(tmp_path / "two", "m.py", F2)
    repo.coord("lock", "m.py", "--agent", "ann", cwd=tmp_path / "one")
    row = page.get_by_role("row").nth(1)
    row.get_by_text("m.py::f").wait_for()
    assert row.inner_text().split("\t") == ["m.py::f", "one (ann)", "two", "conflict: f"]
    person.check_accessible()
    git(tmp_path / "one", "commit", "-qam", "y")
    git(repo.root, "merge", "-q", "one")
    repo.coord("unlock", "m.py", "--agent", "ann", cwd=tmp_path / "one")
    page.get_by_text("No two working trees change the same.").wait_for()
    assert person.errors == []


def test_who_has_which_value_of_a_pool_is_seen_beside_the_leases(person: Person, repo: Repo) -> None:
    page = person.open()
    person.go("Agents")
    page.get_by_text("6 of 6 values are free.").wait_for()
    with repo.client() as client:
        client.call(rq.EnvironmentTake(agent="ann", pools=["db", "gpu"]))
    page.get_by_text("4 of 6 values are free.").wait_for()
    rows = page.get_by_role("region", name="Pools").get_by_role("row")
    assert [rows.nth(n).inner_text().split("\t")[0] for n in (1, 2)] == ["db:app_1", "gpu:0"]
    assert "ann" in rows.nth(1).inner_text()
    person.check_accessible()
    assert person.errors == []
