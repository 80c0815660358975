"""The backlog and reviews, as people type them: several at once, and words that reach an agent."""

from __future__ import annotations

import json

from tests.conftest import Repo


def test_several_tasks_are_cancelled_and_put_back_each_by_itself(repo: Repo) -> None:
    for title in "abc":
        repo.coord("task", "add", title)
    assert repo.coord("task", "cancel", "T-1", "2", "T-2").stdout.splitlines() == ["T-1 cancelled: a", "T-2 cancelled: b"]
    some = repo.coord("task", "retry", "T-1", "T-3", "T-9", "T-2")
    assert some.stdout.splitlines() == ["T-1 ready: a", "T-2 ready: b"], "what is refused leaves the others alone"
    assert "T-3" in some.stderr and "T-9" in some.stderr and some.returncode == 8, "the first that was refused"
    both = json.loads(repo.coord("task", "cancel", "T-1", "T-2", "--json").stdout)
    assert [one["state"] for one in both["items"]] == ["cancelled"] * 2
    told = json.loads(repo.coord("task", "retry", "T-1", "T-3", "--json").stdout)["error"]
    assert [one["task"] for one in told["done"]] == ["T-1"] and told["refused"] == []


def test_a_claim_says_which_regions_are_not_there(repo: Repo) -> None:
    """They may be the task itself, or a slip of the pen."""
    repo.write("a.py", "def f():\n    return 1\n")
    repo.coord("task", "add", "two", "-r", "a.py::f", "-r", "a.py::g")
    assert "warning: a.py::g is not there yet, and leased as new; `coord regions FILE` lists what is. The nearest: a.py::f.\n" in repo.coord("task", "claim", "--agent", "ann").stdout


def test_a_person_who_takes_a_file_by_force_is_told_of_the_review(repo: Repo) -> None:
    repo.write("a.py", "one\n")
    repo.coord("lock", "a.py", "--agent", "ann")
    repo.write("a.py", "half\n")
    taken = repo.coord("unlock", "a.py", "--agent", "maria", "--force")
    assert taken.stdout == "released a.py (ann)\nWhat was changed under it is flagged (R-1): look with `coord review show R-1`.\n", taken


def test_words_for_who_goes_on_with_partial_work_reach_it(repo: Repo) -> None:
    repo.write("a.py", "one\n")
    repo.coord("task", "add", "a", "-r", "a.py")
    repo.coord("task", "claim", "--agent", "ann")
    repo.write("a.py", "half\n")
    repo.coord("task", "fail", "T-1", "--agent", "ann", "--reason", "no")
    assert repo.coord("review", "reassign", "R-1", "-m", "keep the names\nof all").returncode == 0
    assert "A person says of it:\n> keep the names\n> of all\n" in repo.coord("task", "claim", "--agent", "bob").stdout
