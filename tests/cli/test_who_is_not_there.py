"""A refused `coord lock` leaves the line with its process, unless its agent is there to hear of the grant."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from coordinator import Client
from tests.conftest import Repo


def test_who_typed_it_and_went_is_offered_nothing(repo: Repo) -> None:
    repo.coord("lock", "a.py", "--agent", "ann")
    refused = repo.coord("lock", "a.py", "--agent", "bob")
    assert refused.returncode == 3 and "next in line" not in refused.stderr and "Try again in" in refused.stderr
    waited = repo.coord("lock", "a.py", "--agent", "cyd", "--wait", "200ms")
    assert waited.returncode == 3
    with repo.client() as boss:
        assert boss.locks().waiters == []
    repo.coord("unlock", "a.py", "--agent", "ann")
    assert "maria" in repo.coord("lock", "a.py", "--agent", "maria").stdout


def test_an_agent_that_is_there_keeps_its_place(repo: Repo) -> None:
    with Client(repo.root, agent="session") as session, repo.client() as boss:
        session.register(silence_s=60)
        repo.coord("lock", "a.py", "--agent", "ann")
        assert repo.coord("lock", "a.py", "--agent", "session").returncode == 3
        assert [one.agent for one in boss.locks().waiters] == ["session"]
        repo.coord("unlock", "a.py", "--agent", "ann")
        assert [one.kind for one in session.heartbeat().notices] == ["granted"]


def test_racers_that_take_one_after_the_other_are_never_told_of_a_deadlock(repo: Repo) -> None:
    """Each takes what it gets of three files, in an order of its own, as scripts do that end in `|| true`."""
    files = ("a.py", "b.py", "c.py")

    def race(n: int) -> list[tuple[int, str]]:
        ends = []
        for file in (*files[n % 3:], *files[:n % 3]):
            ended = repo.coord("lock", file, "--agent", f"racer-{n}")
            ends.append((ended.returncode, ended.stderr))
        return ends

    with ThreadPoolExecutor(4) as pool:
        ends = [end for one in pool.map(race, range(8)) for end in one]
    assert sorted(code for code, _ in ends) == [0] * 3 + [3] * 21
    assert not [said for _, said in ends if "DEADLOCK" in said or "give" in said.lower()]
    with repo.client() as boss:
        assert len(boss.locks().items) == 3 and boss.locks().waiters == []
