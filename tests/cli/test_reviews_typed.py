"""Verdicts as they are typed."""

from __future__ import annotations

from coordinator.words import requests as rq
from tests.conftest import Repo


def left(repo: Repo, *paths: str) -> str:
    """A review of files that ann has left changed."""
    with repo.client() as client:
        token = client.call(rq.Register(agent="ann")).token
    with repo.client("ann", token=token) as client:
        client.call(rq.Acquire(agent="ann", resources=list(paths)))
        for path in paths:
            repo.write(path, "left\n")
        (review,) = client.call(rq.Leave(agent="ann", clean=False)).reviews
    return review


def test_a_text_is_kept_in_place_of_what_was_left(repo: Repo) -> None:
    review = left(repo, "a.py", "b.py")
    (repo.root / "mine.txt").write_bytes(b"mine\r\n")
    told = repo.coord("review", "keep", review, "--file", "a.py", "--from", "mine.txt")
    assert told.stdout.startswith("R-2 kept: a.py\n")
    assert (repo.root / "a.py").read_bytes() == b"mine\r\n" and repo.read("b.py") == "left\n"
    assert "R-2 was kept" in repo.coord("explain", "a.py").stdout
    repo.coord("review", "undo", "R-2")
    assert repo.read("a.py") == "left\n"
    several = repo.coord("review", "keep", "R-1", "R-2", "--from", "mine.txt")
    assert several.returncode == 2 and "are about one review" in several.stderr
    absent = repo.coord("review", "keep", "R-2", "--from", "nothing.txt")
    assert absent.returncode == 2 and "nothing.txt could not be read" in absent.stderr


def test_a_proposed_text_keeps_its_line_ends(repo: Repo) -> None:
    repo.there("ann")
    (repo.root / "mine.txt").write_bytes(b"mine\r\n")
    repo.coord("propose", "new.py", "--from", "mine.txt", "--agent", "ann")
    assert (repo.root / "new.py").read_bytes() == b"mine\r\n"
