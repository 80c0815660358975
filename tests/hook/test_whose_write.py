"""Whose write was it? What a command changes that nobody held is its session's; what it changes of others is found."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from coordinator.client.client import Client
from coordinator.files.content import digest
from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.effort import crossed
from tests.hook.test_sessions import Claude, held
from tests.waiting import until

QUICK = "[watch]\ndebounce_s = 0.05\n"
#: Commands that do not tell from their words which file they write.
WRITES = ("python3 w.py", "sh w.sh", "f=a; echo two > $f.py")


@pytest.fixture
def repo(make_repo: Callable[..., Repo]) -> Repo:
    return prepared(make_repo(config=QUICK))


def prepared(repo: Repo) -> Repo:
    repo.write("a.py", "one\n")
    repo.write("w.py", "open('a.py', 'w').write('two\\n')\n")
    repo.write("w.sh", "f=a; printf 'two\\n' > t.tmp; mv t.tmp $f.py\n")
    repo.write("build.sh", "mkdir -p out; echo x > out/built\n")
    repo.write(".gitignore", "out/\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "one")
    with repo.client() as client:
        client.call(rq.Health())
    return repo


def git(repo: Repo, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=P", "-c", "user.email=p@x", *words], cwd=repo.root, check=True, capture_output=True)


def said_to(repo: Repo, agent: str) -> str:
    with repo.client() as client:
        return "\n".join(one.text for one in client.call(rq.Heartbeat(agent=agent)).notices)


def last_event(client: Client) -> int:
    return max((one.seq for one in client.call(rq.Events(tail=True, limit=1)).items), default=0)


@pytest.mark.parametrize("command", WRITES)
def test_what_a_command_changes_is_its_sessions(repo: Repo, command: str) -> None:
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    bob.read("a.py")
    assert ann.shell(command)[1] == 0
    until(lambda: held(repo).get("a.py") == ann.name)
    assert ann.name in bob.edit("a.py", "bob's\n"), "so the next one is refused"
    assert ann.edit("a.py", "three\n") == ""
    ann.hook("SessionEnd")
    assert "Your environment changed" in bob.edit("a.py", "bob's\n"), "and what it has read is old by now"
    assert repo.client().call(rq.Replay()).equal


@pytest.mark.parametrize("named", ["'new 1/a.tar'", "new\\ 1/a.tar", '"$PWD/new 1/a.tar"'])
def test_beside_another_command_it_is_whose_command_names_it(repo: Repo, named: str) -> None:
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    ann._call("Bash", {"command": "sleep 8"})
    assert bob.shell(f"mkdir 'new 1' && tar cf {named} a.py")[1] == 0
    until(lambda: held(repo).get("new 1/a.tar") == bob.name)
    assert said_to(repo, ann.name) == ""


def test_it_is_theirs_at_once_where_others_work(make_repo: Callable[..., Repo]) -> None:
    """However long the watcher usually waits for quiet: another would overwrite it meanwhile."""
    repo = prepared(make_repo(config="[watch]\ndebounce_s = 600\n"))
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    bob.read("w.sh")
    assert ann.shell("python3 w.py")[1] == 0
    until(lambda: held(repo).get("a.py") == ann.name)
    assert ann.name in bob.edit("a.py", "bob's\n")


def test_who_dies_leaves_what_its_command_did_for_a_person(repo: Repo) -> None:
    """With what was there before it, though the lease came after."""
    ann = Claude(repo, "ann")
    assert ann.shell("python3 w.py; sh -c 'n=new; echo x > $n.py'")[1] == 0
    until(lambda: set(held(repo)) == {"a.py", "new.py"})
    with repo.client() as client:
        client.call(rq.Leave(agent=ann.name, clean=False))
        (review,) = client.call(rq.Reviews()).items
        shown = client.call(rq.ReviewShow(review=review.review))
        assert [(one.path, one.change) for one in shown.files] == [("a.py", "modified"), ("new.py", "created")]
        assert "-one" in shown.files[0].diff and "+two" in shown.files[0].diff
        client.call(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert (repo.root / "a.py").read_text() == "one\n" and not (repo.root / "new.py").exists()


def test_what_nobody_should_notice_is_not_adopted(repo: Repo) -> None:
    """What git ignores, what a person writes, what came before, and nothing at all where that is switched off."""
    ann = Claude(repo, "ann")
    ann.read("a.py")
    repo.write("a.py", "a person's\n")
    time.sleep(0.1)
    assert ann.shell("sh build.sh; sleep 0.3")[1] == 0
    time.sleep(0.05)  # the kernel's clock for files runs behind
    repo.write("b.py", "a person's, too\n")
    with repo.client() as client:
        until(lambda: {one.resource for one in client.call(rq.Events(kind="unleased_write", limit=100)).items} >= {"a.py", "b.py"})
    assert held(repo) == {}


def test_adoption_can_be_switched_off(make_repo: Callable[..., Repo]) -> None:
    repo = prepared(make_repo(config=QUICK + "[hooks]\nadopt = false\n"))
    ann = Claude(repo, "ann")
    assert ann.shell("python3 w.py")[1] == 0
    with repo.client() as client:
        until(lambda: [one.resource for one in client.call(rq.Events(kind="unleased_write", limit=100)).items] == ["a.py"])
    assert held(repo) == {}


def begins(agent: Claude, command: str) -> dict[str, Any]:
    given = {"command": command, "description": "x"}
    assert agent._call("Bash", given).get("permissionDecision") != "deny"
    return given


def test_two_commands_at_once(repo: Repo) -> None:
    """Where the words of one tell, it is its own; else both are told, and it is nobody's."""
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    first, second = begins(ann, "make tests"), begins(bob, "python3 gen.py b.py")
    repo.write("b.py", "bob's\n")
    until(lambda: held(repo).get("b.py") == bob.name)
    repo.write("c.py", "whose?\n")
    until(lambda: "c.py was changed while commands of yours and of claude-code-bob ran" in said_to(repo, ann.name))
    assert "c.py was changed while commands of yours and of claude-code-ann ran" in said_to(repo, bob.name)
    for agent, given in ((ann, first), (bob, second)):
        agent._call("Bash", given, "PostToolUse", tool_response={})
    assert set(held(repo)) == {"b.py"}


@pytest.mark.parametrize("size", [10, 200_000])
def test_what_one_of_two_commands_overwrote_is_kept(repo: Repo, size: int) -> None:
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    texts = [f"{name}'s\n" * size for name in ("ann", "bob")]
    given = [(agent, begins(agent, "make all")) for agent in (ann, bob)]
    with repo.client() as client:
        repo.write("c.py", texts[0])
        until(lambda: "c.py was changed while commands of yours" in said_to(repo, ann.name))
        repo.write("c.py", texts[1])
        (review,) = until(lambda: client.call(rq.Reviews()).items)
        assert "written twice" in review.summary
        client.call(rq.ReviewDecide(review=review.review, verdict="revert"))
        until(lambda: repo.read("c.py") == texts[0])
        repo.write("last.py", "x\n")
        until(lambda: "last.py was changed" in said_to(repo, bob.name))
        assert not client.call(rq.Reviews()).items, "what coord writes is nobody's"
    for agent, one in given:
        agent._call("Bash", one, "PostToolUse", tool_response={})


def test_what_was_committed_is_not_kept_once_more(repo: Repo) -> None:
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x"]
    for agent in (ann, bob):
        begins(agent, "make all")
    repo.write("c.py", "one\n")
    until(lambda: "c.py was changed while commands of yours" in said_to(repo, ann.name))
    for words in (["add", "c.py"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], cwd=repo.root, check=True)
    repo.write("c.py", "two\n")
    repo.write("last.py", "x\n")
    until(lambda: "last.py was changed" in said_to(repo, bob.name))
    with repo.client() as client:
        assert not client.call(rq.Reviews()).items


def test_a_sub_agents_command_is_its_own(repo: Repo) -> None:
    ann, sub = Claude(repo, "ann"), Claude(repo, "ann", sub="s1")
    ann.hook("SessionStart", source="startup")
    given = begins(sub, "python3 w.py")
    repo.write("a.py", "two\n")
    until(lambda: held(repo).get("a.py") == sub.name)
    sub._call("Bash", given, "PostToolUse", tool_response={})
    assert ann.edit("a.py", "three\n") != "", "its parent waits until it is done"


@pytest.mark.parametrize("by", ["nobody", "a command that began before the lease"])
def test_a_write_to_what_an_idle_agent_holds_is_not_its_own(repo: Repo, by: str) -> None:
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    if by != "nobody":
        given = begins(bob, "make tests")
    assert ann.edit("a.py", "ann's\n") == ""
    time.sleep(0.3)  # the hook has said so, and its file's own time is past
    repo.write("a.py", "HACK\n")
    if by == "nobody":
        until(lambda: "a.py, which you hold, was changed while no command of yours ran" in said_to(repo, ann.name))
        with repo.client() as client:
            assert [one.resource for one in client.call(rq.Events(kind="unleased_write", limit=100)).items] == ["a.py"]
        return
    until(lambda: "A command of claude-code-bob changed a.py" in said_to(repo, ann.name))
    with repo.client() as client:
        (review,) = client.call(rq.Reviews()).items
        assert review.agent == bob.name
    bob._call("Bash", given, "PostToolUse", tool_response={})
    with repo.client() as client:
        assert len(client.call(rq.Reviews()).items) == 1, "once is enough"


@pytest.mark.parametrize(("name", "part", "text", "old", "new", "persons"), [
    ("m.py", "f", "def f():\n    return 1\n\n\ndef g():\n    return 2\n", "return 1", "return 10", "return 100"),
    ("d.md", "D.A", "# D\n\n## A\n\naa\n\n## B\n\nbb\n", "aa", "aaa", "a person's"),
])
def test_who_holds_a_part_is_told_that_somebody_else_has_written_in_it(repo: Repo, name: str, part: str, text: str, old: str, new: str,
                                                                       persons: str) -> None:
    """Also right after its own edit: what that left is known."""
    repo.write(name, text)
    ann = Claude(repo, "ann")
    given = {"file_path": str(repo.root / name), "old_string": old, "new_string": new}
    ann._call("Edit", given)
    repo.write(name, text.replace(old, new))
    ann._call("Edit", given, "PostToolUse", tool_response={})
    time.sleep(0.6)  # (the hook's end is heard, and what it left is known)
    repo.write(name, text.replace(old, persons))
    until(lambda: f"{name}::{part}, which you hold, was changed while no command of yours ran" in said_to(repo, ann.name))


def test_of_several_who_hold_parts_those_are_told_whose_part_was_written(repo: Repo) -> None:
    text = "def f():\n    return 1\n\n\ndef g():\n    return 2\n\n\ndef h():\n    return 3\n"
    repo.write("m.py", text)
    sessions = {name: Claude(repo, name) for name in ("ann", "bob", "cy")}
    for (name, session), old in zip(sessions.items(), ("return 1", "return 2", "return 3"), strict=True):
        given = {"file_path": str(repo.root / "m.py"), "old_string": old, "new_string": f"{old}0"}
        session._call("Edit", given)
        text = text.replace(old, f"{old}0")
        repo.write("m.py", text)
        session._call("Edit", given, "PostToolUse", tool_response={})
        assert name
    time.sleep(0.6)
    repo.write("m.py", text.replace("return 20", "return 25").replace("return 30", "return 35"))
    for name, region in (("bob", "m.py::g"), ("cy", "m.py::h")):
        until(lambda name=name, region=region: f"{region}, which you hold, was changed while no command" in said_to(  # type: ignore[misc]
            repo, sessions[name].name))
    assert said_to(repo, sessions["ann"].name) == ""


@pytest.mark.parametrize(("first", "hits"), crossed(["ann", "kim"], ["ann's", "kim's", "both", "nobody's"]))
def test_who_has_no_hooks_may_not_have_written_anothers_part_unseen(repo: Repo, hits: str, first: str) -> None:
    """Of whom no hook tells every write is taken for its own; but only to what it holds. Whoever's part is the
    `first`."""
    anns, kims = ("f", "g") if first == "ann" else ("g", "f")
    text = f"def {anns}():\n    return 1\n\n\ndef {kims}():\n    return 2\n\n\ndef h():\n    return 3\n"
    repo.write("m.py", text)
    with repo.client() as client:
        client.call(rq.Register(agent="kim"))
        client.call(rq.Acquire(agent="kim", resources=[f"m.py::{kims}"]))
        ann = Claude(repo, "ann")
        given = {"file_path": str(repo.root / "m.py"), "old_string": "return 1", "new_string": "return 10"}
        ann._call("Edit", given)
        repo.write("m.py", text := text.replace("return 1", "return 10"))
        ann._call("Edit", given, "PostToolUse", tool_response={})
        time.sleep(0.6)  # (the hook's end is heard, and what it left is known)
        wanted = {"ann's": ("return 10",), "kim's": ("return 2",), "both": ("return 10", "return 2"), "nobody's": ("return 3",)}
        before = last_event(client)
        for old in wanted[hits]:
            text = text.replace(old, f"{old}5")
        repo.write("m.py", text)
        until(lambda: [one for one in client.call(rq.Events(after=before, limit=100)).items if one.kind == "versions_seen"])
        if hits in ("ann's", "both"):
            until(lambda: f"m.py::{anns}, which you hold, was changed while no command of yours ran" in said_to(repo, ann.name))
        else:
            time.sleep(0.3)
            assert said_to(repo, ann.name) == ""
        noted = [one.data["resource"] for one in client.call(rq.Events(after=before, limit=100)).items if one.kind == "unleased_write"]
        assert noted == {"nobody's": ["m.py::h"], "kim's": []}.get(hits, ["m.py"]), noted
        client.call(rq.Leave(agent=ann.name, clean=False, reason="killed"))
        reviews = client.call(rq.Reviews()).items
        (review,) = [one for one in reviews if "taken out" not in one.summary]
        assert len(reviews) == (2 if hits in ("ann's", "both") else 1), "what it had written there is kept, too"
        assert "wrote in m.py, too" in review.summary or hits not in ("ann's", "both"), review.summary
        assert said_to(repo, "kim") == ""


@pytest.mark.parametrize("wholly", ["", "writes", "touches"])
def test_of_a_file_that_was_held_in_parts_the_review_says_what_a_revert_leaves(repo: Repo, wholly: str) -> None:
    """Also where its agent had the whole of it later: what was written before is none of its work."""
    text = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
    repo.write("m.py", text)
    ann = Claude(repo, "ann")
    given = {"file_path": str(repo.root / "m.py"), "old_string": "return 1", "new_string": "return 10"}
    ann._call("Edit", given)
    repo.write("m.py", text.replace("return 1", "return 10"))
    ann._call("Edit", given, "PostToolUse", tool_response={})
    time.sleep(0.6)
    repo.write("m.py", text.replace("return 1", "return 10").replace("return 2", "return 20"))
    with repo.client() as client:
        until(lambda: client.call(rq.Events(kind="unleased_write", limit=100)).items)
        if wholly:
            ann.read("m.py")
            assert ann.shell("sed -i 's/return 10/return 100/' m.py" if wholly == "writes" else "touch m.py")[1] == 0
            assert "m.py" in {one.resource for one in client.call(rq.Locks()).items}
        client.call(rq.Leave(agent=ann.name, clean=False, reason="killed"))
        (review,) = client.call(rq.Reviews()).items
        assert "wrote in m.py, too, while claude-code-ann held parts of it" in review.summary
        assert "the rest it leaves" in review.summary and "last" not in review.summary
        client.call(rq.ReviewDecide(review=review.review, verdict="revert"))
    assert (repo.root / "m.py").read_text() == text.replace("return 2", "return 20")


@pytest.mark.parametrize("end", ["killed", "forced"])
def test_the_review_says_that_somebody_else_has_written_among_it(repo: Repo, end: str) -> None:
    """Also where its agent has read that, and has gone on."""
    repo.write("b.py", "b\n")
    ann = Claude(repo, "ann")
    for name in ("a.py", "b.py"):
        assert ann.edit(name, "ann's\n") == ""
    time.sleep(0.3)
    repo.write("a.py", "ann's\na person's\n")
    until(lambda: "was changed while no command of yours ran" in said_to(repo, ann.name))
    ann.read("a.py")
    assert ann.edit("a.py", "ann's\na person's\nann's again\n") == ""
    with repo.client() as client:
        if end == "killed":
            client.call(rq.Leave(agent=ann.name, clean=False, reason="killed"))
        else:
            client.call(rq.Release(agent=ann.name, resources=["a.py", "b.py"], force=True))
        (review,) = client.call(rq.Reviews()).items
    assert "wrote in a.py, too, while claude-code-ann held it" in review.summary and "last" not in review.summary


@pytest.mark.parametrize("end", ["killed", "forced"])
def test_the_review_says_that_the_last_write_was_not_its_agents(repo: Repo, end: str) -> None:
    ann = Claude(repo, "ann")
    assert ann.edit("a.py", "ann's\n") == ""
    time.sleep(0.3)
    repo.write("a.py", "ann's\na person's\n")
    until(lambda: "was changed while no command of yours ran" in said_to(repo, ann.name))
    with repo.client() as client:
        if end == "killed":
            client.call(rq.Leave(agent=ann.name, clean=False, reason="killed"))
        else:
            client.call(rq.Release(agent=ann.name, resources=["a.py"], force=True))
        (review,) = client.call(rq.Reviews()).items
    assert "did not write a.py last: a person did, or a program in the background" in review.summary


def test_by_policy_a_persons_write_over_an_agents_is_flagged(make_repo: Callable[..., Repo]) -> None:
    """As the guides say, and told as what it is: somebody had leased it."""
    repo = prepared(make_repo(config=QUICK + 'unleased = "review"\n'))
    ann = Claude(repo, "ann")
    assert ann.edit("a.py", "ann's\n") == ""
    time.sleep(0.3)
    repo.write("a.py", "HACK\n")
    with repo.client() as client:
        (review,) = until(lambda: client.call(rq.Reviews()).items)
        assert review.summary == f"a.py, which {ann.name} holds, was changed while no command of {ann.name} ran."
        shown = client.call(rq.ReviewShow(review=review.review)).files[0].diff
        assert "-ann's" in shown and "+HACK" in shown


def test_what_an_agent_does_to_its_own_files_is_its_own(repo: Repo) -> None:
    ann = Claude(repo, "ann")
    assert ann.edit("a.py", "ann's\n") == ""
    assert ann.shell("python3 w.py; sleep 0.3")[1] == 0
    assert ann.edit("a.py", "again\n") == ""
    with repo.client() as client:
        until(lambda: any(str(version[1]).startswith("sha256") for one in client.call(rq.Events(kind="versions_seen", limit=100)).items
                          for version in one.data["versions"]))
        assert client.call(rq.Events(kind="unleased_write", limit=100)).items == []
    assert said_to(repo, ann.name) == ""


def test_a_git_command_of_ones_own_is_not_adopted_file_by_file(repo: Repo) -> None:
    git(repo, "switch", "-qc", "topic")
    for number in range(30):
        repo.write(f"n{number}.py", "x\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "many")
    git(repo, "switch", "-q", "-")
    ann = Claude(repo, "ann")
    assert ann.shell("git merge -q topic; sleep 0.5")[1] == 0
    with repo.client() as client:
        until(lambda: sum(len(one.data["versions"]) for one in client.call(rq.Events(kind="versions_seen", limit=100)).items) >= 30)
        assert client.call(rq.Events(kind="unleased_write", limit=100)).items == []
    assert held(repo) == {}


@pytest.mark.parametrize(("command", "told"), [
    ("timeout 60 git commit -nqm x -- a.py", 'committed a.py, which you hold ("commit: x")'),
    ("make -s topic", 'moved the branch that all work on ("checkout: moving from'),
    ("timeout 60 git commit -nqm x -- w.py", ""),
])
def test_where_git_does_not_ask_its_moves_are_told(repo: Repo, command: str, told: str) -> None:
    """In a session that a person typed; what others had nothing to do with is not told to them."""
    git(repo, "branch", "topic")
    repo.write("Makefile", "topic:\n\tgit checkout -q topic\n")
    for key in ("user.name", "user.email"):
        git(repo, "config", key, "p@x")
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    assert ann.edit("a.py", "half of it\n") == "" and bob.edit("w.py", "bob's\n") == ""
    said, code, _ = bob.shell(command)
    assert code == 0
    heard = said_to(repo, ann.name)
    assert told in heard and ("HEAD" in said) == bool(told), (heard, said)
    assert told or heard == ""


def test_what_a_lease_began_with_is_kept_beside_what_another_made_of_it(repo: Repo) -> None:
    """Though nobody has seen the file written before."""
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    bob.hook("SessionStart", source="startup")
    given = begins(ann, "make tests")
    with repo.client() as client:
        client.call(rq.Acquire(agent=bob.name, resources=["a.py"]))
        time.sleep(0.1)
        repo.write("a.py", "HACK\n")
        (review,) = until(lambda: client.call(rq.Reviews()).items)
        (file,) = client.call(rq.ReviewShow(review=review.review)).files
    assert (file.change, file.kept) == ("modified", True) and "-one" in file.diff
    ann._call("Bash", given, "PostToolUse", tool_response={})


MAPS = """import mmap, os, time
f = open('a.py', 'r+b')
m = mmap.mmap(f.fileno(), 0)
f.close()
open('ready', 'w').close()
while not os.path.exists('go'):
    time.sleep(0.01)
m[:3] = b'HAC'
m.flush()
"""


def test_what_a_command_left_running_writes_is_found_though_nothing_tells_of_it(repo: Repo) -> None:
    """Through a map: no watcher hears of that. So soon after a command it is that command's doing."""
    repo.write("maps.py", MAPS)
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    bob.hook("SessionStart", source="startup")
    assert ann.shell("python3 maps.py > /dev/null 2>&1 & while [ ! -e ready ]; do sleep 0.01; done")[1] == 0
    with repo.client() as client:
        client.call(rq.Acquire(agent=bob.name, resources=["a.py"]))
        assert ann.shell("true")[1] == 0
        repo.write("go", "")
        (review,) = until(lambda: client.call(rq.Reviews()).items)
        (file,) = client.call(rq.ReviewShow(review=review.review)).files
    assert (review.agent, file.path, file.change, file.kept) == (ann.name, "a.py", "modified", True)
    assert "+HAC" in file.diff and "A command of claude-code-ann changed a.py" in said_to(repo, bob.name)


@pytest.mark.parametrize("beside", [False, True], ids=["", "while another edit of the agent waits for its permission"])
def test_what_a_person_writes_over_a_holder_is_not_undone(repo: Repo, beside: bool) -> None:
    repo.write("n.txt", "one\n")
    repo.write("free.txt", "one\n")
    ann = Claude(repo, "ann")
    ann.read("n.txt")
    assert ann.edit("n.txt", "two\n") == "" and held(repo)["n.txt"] == ann.name
    if beside:
        ann.hook("PreToolUse", tool_name="Write", tool_use_id="open", tool_input={"file_path": str(repo.root / "free.txt"), "content": "two\n"})
    time.sleep(0.1)
    repo.write("n.txt", "two\na person's\n")
    with repo.client() as client:
        until(lambda: digest(b"two\na person's\n") in [
            one.data["hash"] for one in client.call(rq.Events(kind="unleased_write", limit=100)).items])
    said = ann.edit("n.txt", "three\n")
    assert "Your environment changed" in said and "+a person's" in said
    assert "n.txt, which you hold, was changed" in said
    assert ann.edit("n.txt", "three\na person's\n") == "", "it knows it by now"
    assert ann.edit("n.txt", "four\na person's\n") == ""


@pytest.mark.parametrize("was", ["", "one\n"], ids=["new", "there"])
def test_who_was_refused_a_file_that_it_never_read_does_not_undo_what_came_of_it(repo: Repo, was: str) -> None:
    """Not every CLI asks its model to read a file before it writes it."""
    if was:
        repo.write("plan.md", was)
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "plan")
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    assert ann.edit("plan.md", "ann's plan\n") == ""
    assert "leased by" in bob.edit("plan.md", "bob's plan\n")
    ann.hook("SessionEnd")
    said = bob.edit("plan.md", "bob's plan\n")
    assert "Your environment changed" in said and "+ann's plan" in said
    assert (repo.root / "plan.md").read_text() == "ann's plan\n"
    assert bob.edit("plan.md", "ann's plan\nbob's plan\n") == "", "it knows it by now"


def test_who_was_refused_what_did_not_change_writes_it_at_its_turn(repo: Repo) -> None:
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    ann.hook("PreToolUse", tool_name="Write", tool_use_id="x", tool_input={"file_path": str(repo.root / "a.py"), "content": "two\n"})
    assert "leased by" in bob.edit("a.py", "bob's\n")
    ann.hook("SessionEnd")
    assert bob.edit("a.py", "bob's\n") == ""


def test_what_an_edit_writes_is_its_agents_however_late_that_is_seen(repo: Repo) -> None:
    ann = Claude(repo, "ann")
    for number in range(5):
        assert ann.edit("n.txt", f"{number}\n") == "" and ann.edit("a.py", f"{number}\n") == ""
        time.sleep(0.1 * number)
    assert "changed while" not in said_to(repo, ann.name)


@pytest.mark.parametrize("same", [False, True])
def test_an_edits_window_closes_with_it_whatever_else_its_agent_edits(repo: Repo, same: bool) -> None:
    repo.write("two.py", "def f():\n    return 1\n\n\ndef g():\n    return 2\n\n\ndef h():\n    return 3\n")
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")

    def edit(agent: Claude, event: str, old: str, number: int) -> str:
        """Its edit's hook; why not, if it was denied."""
        given = {"file_path": str(repo.root / "two.py"), "old_string": old, "new_string": f"{old}0"}
        said = agent.hook(event, tool_name="Edit", tool_use_id=f"{agent.session}-{number}", tool_input=given)
        return str(said.get("permissionDecisionReason", ""))

    if same:
        assert edit(ann, "PreToolUse", "return 3", 0) == ""
    else:
        ann.hook("PreToolUse", tool_name="Write", tool_use_id="open", tool_input={"file_path": str(repo.root / "a.py"), "content": "two\n"})
    assert edit(ann, "PreToolUse", "return 1", 1) == ""
    repo.write("two.py", (repo.root / "two.py").read_text().replace("return 1", "return 10"))
    edit(ann, "PostToolUse", "return 1", 1)
    assert ("edit:two.py" in held(repo)) == same, "another edit of the same file goes on"
    if same:
        edit(ann, "PostToolUse", "return 3", 0)
    assert edit(bob, "PreToolUse", "return 2", 2) == ""


def restarts(repo: Repo, how: str) -> None:
    time.sleep(0.3)  # a call that runs is noted a moment later
    stops(repo, how)
    repo.coord("up")


def stops(repo: Repo, how: str) -> None:
    pid = repo.pid()
    if how == "down":
        repo.down()
    else:
        os.kill(pid, signal.SIGKILL)
    until(lambda: not os.path.exists(f"/proc/{pid}"))


@pytest.mark.parametrize("how", ["down", "killed"])
def test_a_command_is_known_after_a_restart_in_the_middle_of_it(repo: Repo, how: str) -> None:
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    assert ann.edit("a.py", "ann's\n") == "" and bob.edit("b.py", "bob's\n") == ""
    given = begins(ann, "make tests")
    restarts(repo, how)
    time.sleep(0.3)
    repo.write("a.py", "built\n")
    repo.write("new.py", "built\n")
    repo.write("b.py", "built\n")
    until(lambda: held(repo).get("new.py") == ann.name)
    until(lambda: "A command of claude-code-ann changed b.py" in said_to(repo, bob.name))
    with repo.client() as client:
        (review,) = client.call(rq.Reviews()).items
        assert review.agent == ann.name and [one.path for one in review.files] == ["b.py"]
    ann._call("Bash", given, "PostToolUse", tool_response={})
    assert "while no command of yours ran" not in said_to(repo, ann.name)
    assert ann.edit("a.py", "more\n") == "", "what its own command did is its own"


@pytest.mark.parametrize(("in_git", "how"), crossed([True, False], ["down", "killed"]))
def test_what_a_command_does_to_files_while_no_coordinator_runs_is_known(make_repo: Callable[..., Repo], how: str,
                                                                          in_git: bool) -> None:
    repo = make_repo("r", git=in_git)
    repo.write("old.py", "old\n")
    repo.coord("up")
    ann, bob = Claude(repo, "ann"), Claude(repo, "bob")
    for name in ("b.py", "gone.py"):
        repo.write(name, "as it was\n")
        assert bob.edit(name, "bob's\n") == ""
    time.sleep(0.2)
    given = begins(ann, "make tests")
    time.sleep(0.3)
    stops(repo, how)
    repo.write("new.py", "built\n")
    repo.write("b.py", "built\n")
    (repo.root / "gone.py").unlink()
    ann._call("Bash", given, "PostToolUse", tool_response={})
    until(lambda: held(repo).get("new.py") == ann.name)
    until(lambda: "A command of claude-code-ann changed b.py" in said_to(repo, bob.name))
    with repo.client() as client:
        found = {(one.agent, file.path) for one in client.call(rq.Reviews()).items for file in one.files}
        assert found == {(ann.name, "b.py"), (ann.name, "gone.py")}
    assert "old.py" not in held(repo) and "while no command of yours ran" not in said_to(repo, bob.name)


@pytest.mark.parametrize("how", ["down", "killed"])
def test_what_a_command_writes_while_no_coordinator_runs_is_its_own(repo: Repo, how: str) -> None:
    ann = Claude(repo, "ann")
    assert ann.edit("a.py", "ann's\n") == ""
    given = begins(ann, "make tests")
    time.sleep(0.3)
    stops(repo, how)
    repo.write("a.py", "built\n")
    ann._call("Bash", given, "PostToolUse", tool_response={})
    assert ann.edit("a.py", "more\n") == ""
    assert "while no command of yours ran" not in said_to(repo, ann.name)
