"""What meets a person at the edges of a command: no standard input, a setting from elsewhere, a program that is not there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.waiting import until


@pytest.mark.parametrize("words", ["review", "init --agent claude-code", "task import -", "state put key:x - --agent a", "mcp"])
def test_a_closed_standard_input_is_an_empty_one(repo: Repo, words: str) -> None:
    repo.coord("up")
    line = f"exec '{sys.executable}' -m coordinator.cli.main {words} <&-"
    done = subprocess.run(["sh", "-c", line], cwd=repo.root, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (0, 2) and "INTERNAL" not in done.stderr, done.stderr


def test_a_setting_is_looked_for_where_it_stands(repo: Repo) -> None:
    done = repo.coord("up", env={"COORD_HTTP_PORT": "70000"})
    assert done.returncode == 2 and "COORD_HTTP_PORT: `http.port` must be at most 65,535" in done.stderr
    assert "unset COORD_HTTP_PORT" in done.stderr and "coord.toml" not in done.stderr
    done = repo.coord("up", env={"COORD_LEASES_TTL_S": "100", "COORD_LEASES_TTL_MAX_S": "10"})
    assert done.returncode == 2 and "no lease could be taken" in done.stderr


def test_a_port_that_there_is_not_is_refused(repo: Repo) -> None:
    for words in (("up", "--http", "70000"), ("serve", "--http", "-1")):
        done = repo.coord(*words)
        assert done.returncode == 2 and "65535" in done.stderr.replace("65_535", "65535"), done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_owner_that_is_ended_gives_its_key_back(repo: Repo, number: int) -> None:
    repo.coord("up")
    assert repo.coord("state", "own", "key:k", "--agent", "own", "--", "no-such-program").returncode == 127
    going = subprocess.Popen([sys.executable, "-m", "coordinator.cli.main", "state", "own", "key:k", "--agent", "own", "--", "cat"],
                             cwd=repo.root, env={**os.environ}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with repo.client() as boss:
        until(lambda: boss.call(rq.Locks()).items != [])
        going.send_signal(number)
        told, said = going.communicate(timeout=30)
        assert going.returncode == 0 and "0 changes applied" in told and "owns key:k" in said
        assert boss.call(rq.Locks()).items == []


@pytest.mark.parametrize("in_a_shell", [False, True])
def test_an_owner_that_is_ended_at_a_change_ends_after_it(repo: Repo, in_a_shell: bool) -> None:
    repo.coord("up")
    with repo.client("boss") as boss, repo.client("agent") as agent:
        agent.register()
        env = {**os.environ, "COORD_AGENT": "agent", "COORD_AGENT_TOKEN": str(agent.token)} if in_a_shell else dict(os.environ)
        change = "touch at; while [ ! -e goes-on ]; do sleep 0.02; done; echo 7"
        going = subprocess.Popen([sys.executable, "-m", "coordinator.cli.main", "state", "own", "key:k", "--", "sh", "-c", change],
                                 cwd=repo.root, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until(lambda: boss.locks(resource="key:k").items)
        repo.coord("state", "change", "key:k", "1", "--agent", "boss")
        until((repo.root / "at").exists)
        going.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert going.poll() is None
        repo.write("goes-on", "")
        told, said = going.communicate(timeout=30)
        assert going.returncode == 0 and "1 change applied" in told and "ends after K-1; once more" in said
        assert boss.state_get("key:k").decoded() == 7 and not boss.locks(resource="key:k").items


def test_an_owner_that_is_ended_twice_does_not_wait_for_its_change(repo: Repo) -> None:
    repo.coord("up")
    going = subprocess.Popen([sys.executable, "-m", "coordinator.cli.main", "state", "own", "key:k", "--", "sh", "-c", "touch at; sleep 50"],
                             cwd=repo.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with repo.client("boss") as boss:
        until(lambda: boss.locks(resource="key:k").items)
        repo.coord("state", "change", "key:k", "1", "--agent", "boss")
        until((repo.root / "at").exists)
        for _ in range(2):
            going.send_signal(signal.SIGINT)
            time.sleep(0.3)
        _, said = going.communicate(timeout=10)
        assert going.returncode == 130 and "Traceback" not in said, said
        assert not boss.locks(resource="key:k").items
        (change,) = boss.call(rq.Changes()).items
        assert change.state == "given", "the next owner is given it again"


def test_why_an_owner_failed_and_under_which_name_it_works(repo: Repo) -> None:
    repo.coord("lock", "key:o", "--agent", "own")
    repo.coord("unlock", "key:o", "--agent", "own")
    assert repo.coord("state", "change", "key:o", "1", "--agent", "ann").returncode == 0
    done = repo.coord("state", "own", "key:o", "--agent", "own", "--until-idle", "--", "false")
    assert "own-2 owns key:o (own is another agent)" in done.stderr, done
    assert "was not applied: exit code 1" in done.stderr and "Error:" not in repo.coord("state", "changes", "key:o").stdout, done


def test_lists_say_what_was_asked_for(repo: Repo) -> None:
    """A filter that fits nothing is no sign that there is nothing."""
    repo.write("a.py", "1\n")
    repo.coord("lock", "a.py", "--agent", "ann")
    repo.coord("request", "file", "a.py", "--agent", "bob", "--reason", "x")
    for words, said in (("locks --agent amn", "amn holds nothing"), ("locks docs/", "Nobody holds docs/"),
                        ("locks --waiting --agent amn", "amn neither waits"), ("review list --agent amn", "Nothing of amn"),
                        ("request list --agent amn", "amn neither waits")):
        assert said in repo.coord(*words.split()).stdout


@pytest.mark.parametrize("words", ["run shell -- {}", "state own key:a --agent ann -- {}"])
def test_what_cannot_be_started_is_told_as_a_shell_tells_it(repo: Repo, words: str) -> None:
    repo.coord("up")
    plain = repo.root / "no program"
    plain.write_text("echo")
    for name, code, said, then in ((f"{plain}", 126, "is not executable", f"chmod +x '{plain}'"), ("./", 126, "./ is a directory", "ls ./"),
                                   ("no-such", 127, "There is no program called no-such", "Install it"),
                                   ("./no-such", 127, "There is no program called ./no-such", "Install it")):
        done = repo.coord(*(name if word == "{}" else word for word in words.split()))
        assert done.returncode == code and said in done.stderr and then in done.stderr, (name, done)


@pytest.mark.parametrize(("words", "said"), [("run --agent bob -- true", "`coord run` has no option --agent."), ("run shell --name bob -- true", "--name stands where a program is to be."),
                                             ("run shell -- --name", "--name stands where a program is to be.")])
def test_an_option_is_taken_for_no_profile_and_no_program(repo: Repo, words: str, said: str) -> None:
    done = repo.coord(*words.split())
    assert done.returncode == 2 and said in done.stderr and "Nothing was started." in done.stderr, done


def test_a_version_that_never_was_leads_to_those_that_were(repo: Repo) -> None:
    repo.coord("state", "put", "key:a", "1", "--version", "0", "--agent", "ann")
    done = repo.coord("state", "get", "key:a", "--version", "9")
    assert done.returncode == 7 and "`coord state history key:a` lists the versions." in done.stderr, done


def test_whoever_asks_again_is_told_that_the_first_question_stays(repo: Repo) -> None:
    repo.coord("lock", "a.py", "--agent", "ann")
    first = repo.coord("request", "file", "a.py", "--reason", "a  hot fix", "--agent", "bob").stdout
    again = repo.coord("request", "file", "a.py", "--reason", "a hot\tfix", "--agent", "bob").stdout
    assert first == again and first.startswith("U-1  ann is asked")
    other = repo.coord("request", "file", "a.py", "--reason", "another", "--agent", "bob").stdout
    assert 'You asked before, and that stays the question: "a hot fix". To ask anew: coord request withdraw U-1 --agent bob\n' in other
    repo.coord("request", "coexist", "U-1", "--agent", "ann")
    assert "U-1 of bob on a.py was agreed to be shared by ann" in repo.coord("explain", "U-1").stdout
