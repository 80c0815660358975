"""`coord request …` as a person and an agent type it, and what the dashboard shows of it."""

from __future__ import annotations

import json
import shlex
import subprocess

from coordinator.words import requests as rq
from tests.conftest import Repo

LONG = "a reason that goes on for so long that no terminal of eighty columns has room for it, "


def test_asked_listed_and_granted(repo: Repo) -> None:
    repo.write("src/a.py", "1\n")
    repo.coord("lock", "src/a.py", "--agent", "ann")
    made = repo.coord("request", "file", "a.py", "--agent", "bob", "--reason", "the build is red",
                      cwd=repo.root / "src")
    assert made.stdout.startswith("U-1  ann is asked to release src/a.py\n"), made.stderr
    listed = json.loads(repo.coord("request", "list", "--json").stdout)
    assert [row["request"] for row in listed["items"]] == ["U-1"] and listed["next"] is None
    shown = repo.coord("request", "list").stdout
    assert shown.splitlines()[1].split()[:6] == ["U-1", "pending", "<1s", "ago", "ann", "bob"] and "the build is red" in shown
    no = repo.coord("request", "approve", "U-1", "--agent", "bob")
    assert no.returncode == 6 and "NOT_HOLDER" in no.stderr and "next: " in no.stderr
    done = repo.coord("request", "approve", "1", "--answer", "done with it",
                      env={"COORD_AGENT": "ann"})
    assert done.stdout == "U-1 approved. Released src/a.py; bob has src/a.py now.\n", done.stderr
    with repo.client() as client:
        assert [one.locked_by for one in client.call(rq.Locks()).items] == ["bob"]
    assert repo.coord("request", "list").stdout == "Nobody waits for an answer.\n"
    assert "approved by ann: done with it" in repo.coord("request", "list", "--state", "all").stdout
    story = repo.coord("explain", "U-1").stdout
    assert "bob asked ann to release src/a.py" in story and "approved by ann" in story


def test_refused_taken_back_and_overridden(repo: Repo) -> None:
    repo.coord("lock", "a.py", "--agent", "ann")
    ask = ("request", "file", "a.py", "--agent", "bob", "-m", "now")
    repo.coord(*ask)
    done = repo.coord("request", "reject", "U-1", "--agent", "ann", "-m", "not yet", "--json")
    assert json.loads(done.stdout)["unlock"]["status"] == "rejected"
    repo.coord(*ask)
    taken = repo.coord("request", "withdraw", "U-2", "--agent", "bob")
    assert taken.stdout == "U-2 withdrawn; bob stands in line for a.py no more.\n", taken.stderr
    closed = repo.coord("request", "approve", "U-2", "--agent", "ann")
    assert closed.returncode == 8 and "withdrawn by bob" in closed.stderr
    repo.coord(*ask)
    forced = repo.coord("request", "approve", "U-3", "--force")
    assert forced.returncode == 0 and "bob has a.py now" in forced.stdout, forced.stderr
    assert "(override)" in repo.coord("request", "list", "--state", "approved").stdout
    token = repo.client().call(rq.Register(agent="cyd")).token
    held = repo.coord("request", "file", "a.py", "--agent", "ann", "-m", "x",
                      env={"COORD_AGENT_TOKEN": token})
    assert held.returncode == 6 and "UNAUTHORIZED" in held.stderr


def following(refused: subprocess.CompletedProcess[str]) -> list[str]:
    """What a refusal says to type next, with words of one's own in place of its capitals."""
    assert refused.returncode and refused.stdout == "", refused
    said = refused.stderr.split("next: ")[1]
    command = said[said.index("`coord ") + len("`coord "):].partition("`")[0]
    return [{"WHY": "because", "PART": "d/b b.py"}.get(word, word) for word in shlex.split(command)]


def test_what_a_refusal_says_next_is_taken(repo: Repo) -> None:
    """In a terminal where nothing says which agent one is."""
    repo.write("d/a a.py", "1\n")
    repo.write("d/b b.py", "1\n")
    repo.coord("lock", "d/", "--agent", "ann")
    repo.coord("lock", "other.py", "--agent", "cyd")
    # asked of a wrong holder, from a folder below: of the right one
    wrong = repo.coord("request", "file", "a a.py", "--holder", "cyd", "--agent", "bob", "-m", "now", cwd=repo.root / "d")
    done = repo.coord(*following(wrong), cwd=repo.root / "d")
    assert done.stdout.startswith("U-1  ann is asked to release d/a a.py\n"), (wrong.stderr, done.stderr)
    # another is asked meanwhile: the first question is taken back
    already = repo.coord("request", "file", "d/a a.py", "--holder", "cyd", "--agent", "bob", "-m", "now")
    assert "bob" in repo.coord(*following(already)).stdout
    # answers that cannot be given so
    for words in (("coexist", "U-2"), ("narrow", "U-3", "-k", "nowhere.py")):
        repo.coord("request", "file", "d/a a.py", "--agent", "bob", "-m", "now")
        no = repo.coord("request", *words, "--agent", "ann")
        done = repo.coord(*following(no))
        assert done.returncode == 0 and words[1] in done.stdout, (no.stderr, done.stderr)
        repo.coord("unlock", "d/a a.py", "--agent", "bob")
        repo.coord("lock", "d/", "--agent", "ann")
    # and in a person's name, who forces it
    repo.coord("request", "file", "d/a a.py", "--agent", "bob", "-m", "now")
    no = repo.coord("request", "narrow", "U-4", "-k", "nowhere.py", "--force")
    done = repo.coord(*following(no))
    assert done.returncode == 0 and "U-4" in done.stdout, (no.stderr, done.stderr)


def test_words_that_are_wrong_are_said_so(repo: Repo) -> None:
    repo.coord("lock", "a.py", "--agent", "ann")
    for words, part in (
        (("file", "a.py", "-a", "bob"), "reason"),
        (("file", "a.py", "-a", "bob", "-m", " "), "why"),
        (("file", "a.py", "-m", "x"), "--agent"),
        (("file", "a.py", "-a", "bob", "-m", "x", "--mode", "own"), "own"),
        (("list", "--state", "lost"), "lost"),
    ):
        done = repo.coord("request", *words)
        assert done.returncode == 2 and part in done.stderr, done.stderr
        assert "Traceback" not in done.stderr


def test_questions_are_on_the_dashboard_and_fit(repo: Repo) -> None:
    assert "unlock requests" not in repo.coord("status").stdout
    names = [f"some/deep/folder/with/a/long/name/file_{i}.py" for i in range(7)]
    repo.coord("lock", *names, "--agent", "an-agent-with-a-long-name")
    for name in names:
        repo.coord("request", "file", name, "--agent", "another-agent-with-a-name", "-m", LONG * 3)
    for words in (("status",), ("request", "list")):
        shown = repo.coord(*words, env={"COLUMNS": "80"}).stdout
        assert max(map(len, shown.splitlines())) <= 80, shown
        assert "U-1" in shown
    shown = repo.coord("status").stdout
    assert "unlock requests (7)" in shown and "… and 2 more" in shown
    assert len(json.loads(repo.coord("status", "--json").stdout)["requests"]) == 7
