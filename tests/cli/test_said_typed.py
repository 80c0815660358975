"""`coord tell` and `coord messages` as people and agents type them."""

from __future__ import annotations

import json

import pytest

from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal
from tests.conftest import Repo
from tests.waiting import until


def test_an_agent_asks_a_person_and_is_answered(repo: Repo) -> None:
    repo.coord("task", "add", "tidy up")
    repo.coord("lock", "a.py", "--agent", "ann")
    asked = repo.coord("tell", "human", "may", "I delete legacy/?", "--task", "T-1", env={"COORD_AGENT": "ann"})
    assert asked.stdout.startswith("M-1  a person"), asked.stderr
    assert "1 message waits for you: coord messages --human" in repo.coord("status").stdout
    mine = repo.coord("messages", env={"COORD_AGENT": "ann"}).stdout
    assert "M-1  ann to human" in mine
    assert "new" in repo.coord("messages", "--human", "--peek").stdout
    assert "waits for you" in repo.coord("status").stdout, "--peek leaves it unread"
    shown = repo.coord("messages", "--human").stdout
    assert "ann to human" in shown and "may I delete legacy/?" in shown and "new" in shown and "T-1" in shown
    assert "for you" not in repo.coord("status").stdout
    again = repo.coord("messages", "--human").stdout
    assert again.startswith("You have read all of these:\n") and "may I delete legacy/?" in again and "new" not in again
    said = repo.coord("tell", "ann", "no, keep it", "--reply", "1")
    assert said.stdout == "M-2  ann hears of it.\n", said.stderr
    with repo.client() as client:
        (heard,) = client.call(rq.Heartbeat(agent="ann")).notices
    assert "human says (M-2, on T-1, answering M-1)" in heard.text and "> no, keep it" in heard.text
    found = json.loads(repo.coord("messages", "--search", "keep", "--json").stdout)
    assert [one["message"] for one in found["items"]] == ["M-2"]


def test_what_cannot_be_said_and_what_is_shown_is_harmless(repo: Repo) -> None:
    gone = repo.coord("tell", "nobody", "hello")
    assert gone.returncode == 7 and "UNKNOWN_AGENT" in gone.stderr and "next: " in gone.stderr
    repo.coord("lock", "a.py", "--agent", "ann")
    repo.coord("tell", "human", "a\x1b[31mred\u202e", env={"COORD_AGENT": "ann"})
    shown = repo.coord("messages").stdout
    assert "\x1b" not in shown and "\u202e" not in shown and "red" in shown
    assert "\x1b" not in repo.coord("messages", "--json").stdout


def test_a_person_may_look_at_the_newest_few_and_the_others_stay_unread(repo: Repo) -> None:
    repo.coord("lock", "a.py", "--agent", "ann")
    with repo.client("ann") as ann:
        for n in range(5):
            ann.message_send("human", f"question {n}")
    few = repo.coord("messages", "--human", "--limit", "2")
    assert "question 3" in few.stdout and "question 4" in few.stdout and "question 2" not in few.stdout
    assert "at most 2 are shown, and they stay unread" in few.stdout, few.stdout
    assert "5 messages wait for you" in repo.coord("status").stdout
    none = repo.coord("messages", "--human", "--limit", "0")
    assert none.returncode == 2 and "`--limit` must be at least 1" in none.stderr
    assert repo.coord("messages", "--human").stdout.count("question") == 5
    assert "for you" not in repo.coord("status").stdout


def test_nothing_is_told_of_an_agent_that_has_not_begun_and_of_filters_that_fit_nothing(repo: Repo) -> None:
    repo.coord("lock", "a.py", "--agent", "ann")
    early = repo.coord("messages", env={"COORD_AGENT": "maria"})
    assert (early.returncode, early.stdout) == (0, "Nothing was said.\n"), early.stderr
    assert repo.coord("messages", "--agent", "maria").returncode == 7, "one that is named may be misspelt"
    assert repo.coord("messages", "--search", "nowhere").stdout == "No message fits.\n"
    assert repo.coord("events", "--agent", "maria").stdout == "No event fits.\n"
    assert repo.coord("events", "--agent", "maria", "--json").stdout == ""


def test_the_story_of_whatever_has_an_id_is_told(repo: Repo) -> None:
    repo.there("bob")
    repo.coord("lock", "a.py", "--agent", "ann")
    repo.coord("lock", "a.py", "--agent", "bob")
    repo.coord("lock", "key:own", "--agent", "ann")
    repo.coord("state", "change", "key:own", "1", "--agent", "bob")
    assert "bob stands in line as W-1" in repo.coord("explain", "w-1").stdout
    assert "bob asked for a change of key:own (K-1)" in repo.coord("explain", "K-1").stdout
    assert "Nothing is called K-7" in repo.coord("explain", "K-7").stderr


def test_an_agent_that_types_hears_with_its_next_command(repo: Repo) -> None:
    repo.coord("lock", "a.py", "--agent", "ann")
    repo.coord("lock", "b.py", "--agent", "bob")
    repo.coord("tell", "ann", "look at the tests\nand docs", "--agent", "bob")
    assert "look at" not in repo.coord("locks").stderr, "a person is not told"
    assert "look at" not in repo.coord("lock", "c.py", "--agent", "ann", "--json").stderr, "a program reads it"
    refused = repo.coord("lock", "b.py", "--agent", "ann")
    assert refused.returncode == 3 and "LOCKED" in refused.stderr
    assert "[coord] bob says (M-1)" in refused.stderr and "\n> and docs\n" in refused.stderr, refused.stderr
    again = repo.coord("lock", "d.py", "--agent", "ann")
    assert again.returncode == 0 and not again.stderr
    repo.coord("tell", "ann", "one more", "--agent", "bob")
    late = repo.coord("unlock", "d.py", "--agent", "ann")
    assert late.stdout == "released d.py (ann)\n" and "> one more" in late.stderr


def test_whoever_looks_as_an_agent_hears_and_a_person_who_overrides_does_not(repo: Repo) -> None:
    repo.coord("lock", "a.py", "b.py", "--agent", "ann")
    forced = repo.coord("unlock", "a.py", "--agent", "ann", "--force")
    assert forced.returncode == 0 and not forced.stderr
    assert not repo.coord("locks", "--agent", "ann").stderr, "a filter is no agent that acts"
    looked = repo.coord("locks", env={"COORD_AGENT": "ann"})
    assert "b.py" in looked.stdout and "[coord] Your lease on a.py was released by a person" in looked.stderr
    assert not repo.coord("locks", env={"COORD_AGENT": "ann"}).stderr
    assert not repo.coord("locks", env={"COORD_AGENT": "nobody"}).stderr


def test_what_an_agent_with_a_token_is_to_know_waits_for_itself(repo: Repo) -> None:
    with repo.client() as client:
        token = client.call(rq.Register(agent="ann")).token
        client.call(rq.Acquire(agent="ann", resources=["a.py"]))
        repo.coord("tell", "ann", "look at the tests")
        assert not repo.coord("unlock", "a.py", "--agent", "ann").stderr, "a person types that"
        own = repo.coord("lock", "a.py", env={"COORD_AGENT": "ann", "COORD_AGENT_TOKEN": token})
        assert own.returncode == 0 and "> look at the tests" in own.stderr
        assert not client.call(rq.Heartbeat(agent="ann")).notices


def test_changes_without_a_lease_and_of_regions_tell_news_too(repo: Repo) -> None:
    repo.write("f.py", "def f():\n    return 1\n")
    repo.write("new", "def f():\n    return 2\n")
    repo.coord("lock", "f.py::f", "--agent", "ann")
    repo.coord("tell", "ann", "first")
    done = repo.coord("commit-region", "f.py::f", "--from", "new", "--agent", "ann")
    assert done.returncode == 0 and "> first" in done.stderr, done
    repo.coord("tell", "ann", "second")
    made = repo.coord("propose", "g.py", "--from", "new", "--agent", "ann")
    assert made.returncode == 0 and "> second" in made.stderr, made


def test_what_is_settled_by_a_command_is_not_told_after_it(repo: Repo) -> None:
    """It would advise what is refused by now, or name a file that the agent has not any more."""
    for name in ("a.py", "b.py", "c.py"):
        repo.coord("lock", name, "--agent", "ann")
    repo.coord("request", "file", "a.py", "--agent", "bob", "-m", "please")
    for words in (("unlock", "a.py"), ("request", "approve", "U-2")):
        done = repo.coord(*words, "--agent", "ann")
        repo.coord("request", "file", "b.py", "--agent", "bob", "-m", "please")
        assert done.returncode == 0 and "asks you" not in done.stderr, done
    repo.coord("renew", "--agent", "bob")  # hears what it has
    stands_in_line(repo, "bob", "c.py")
    repo.coord("unlock", "c.py", "--agent", "ann")
    given = repo.coord("unlock", "c.py", "--agent", "bob")
    assert given.returncode == 0 and "is yours" not in given.stderr, given
    repo.coord("request", "file", "a.py", "--agent", "ann", "-m", "mine again")
    assert "ann asks you to release a.py" in repo.coord("renew", "--agent", "bob").stderr


def stands_in_line(repo: Repo, agent: str, name: str) -> None:
    """As a tool asks for it, that comes again; whoever types it has gone."""
    with repo.client() as client, pytest.raises(Refusal):
        client.call(rq.Acquire(agent=agent, resources=[name]))


def test_what_was_given_and_lost_again_is_told_in_order(repo: Repo) -> None:
    repo.coord("lock", "a.py", "--agent", "ann")
    stands_in_line(repo, "bob", "a.py")
    repo.coord("unlock", "a.py", "--agent", "ann")
    repo.coord("unlock", "a.py", "--agent", "bob", "--force")
    heard = repo.coord("renew", "--agent", "bob").stderr
    assert heard.index("You waited for a.py: it is yours") < heard.index("Your lease on a.py was released")


def test_settled_messages_keep_no_other_from_being_told(repo: Repo) -> None:
    with repo.client() as client:
        client.call(rq.Register(agent="ann"))
        client.call(rq.Register(agent="bob"))
        for _ in range(101):  # of so many at most an agent is told at once
            client.call(rq.Acquire(agent="ann", resources=["a.py"]))
            client.call(rq.RequestFile(agent="bob", resource="a.py", reason="please"))
            client.call(rq.Release(agent="ann", resources=["a.py"]))
            until(lambda: client.call(rq.Locks(agent="bob")).items)
            client.call(rq.Release(agent="bob", resources=["a.py"]))
        client.call(rq.MessageSend(agent="human", to="ann", text="at last"))
        heard = [client.call(rq.Heartbeat(agent="ann")).notices for _ in range(2)]
        assert ["at last" in one.text for one in heard[1]] == [True], heard


def test_who_claims_a_task_is_told_that_another_asks_for_it(repo: Repo) -> None:
    repo.coord("task", "add", "t")
    repo.coord("task", "claim", "T-1", "--agent", "ann")
    asked = repo.coord("request", "file", "task:T-1", "--agent", "bob", "-m", "mine")
    assert asked.returncode == 0, asked
    assert "bob asks you to release task:T-1" in repo.coord("tell", "human", "x", "--agent", "ann").stderr
