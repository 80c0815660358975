"""A holder is asked, and an asker answered, through the real hook program: each once, in order."""

from __future__ import annotations

import shlex

from coordinator.words import requests as rq
from tests.conftest import Repo
from tests.hook.test_sessions import Claude, held


def coord(repo: Repo) -> str:
    """As it is typed in a shell that has none on its PATH."""
    return shlex.quote(f"{repo.state.bin}/coord")


def ask(repo: Repo, agent: Claude, resource: str, reason: str) -> str:
    with repo.client() as client:
        made = client.call(rq.RequestFile(agent=agent.name, resource=resource, reason=reason))
        return made.request


def test_asked_and_answered_with_the_next_hooks(up: Repo) -> None:
    ann, bob = Claude(up, "ann"), Claude(up, "bob")
    up.write("hot.py", "one\n")
    bob.read("hot.py")
    assert ann.edit("hot.py", "one\ntwo\n") == ""
    assert "leased by claude-code-ann" in bob.edit("hot.py", "x\n")
    # Typed in bob's own shell, which knows who it is
    _, code, output = bob.shell(f"{coord(up)} request file hot.py --reason 'the build is red'")
    assert code == 0 and "claude-code-ann is asked to release hot.py" in output, output
    assert held(up) == {"hot.py": ann.name}
    # The holder is told with its next hook, once
    said = ann.hook("UserPromptSubmit", prompt="x")["additionalContext"]
    assert 'claude-code-bob asks you to release hot.py: "the build is red".' in said
    assert ann.hook("UserPromptSubmit", prompt="x") == {}
    # It types what it was told, as it stands
    _, code, output = ann.shell(next(w for w in said.split("`") if "coord request approve" in w or "coord' request approve" in w))
    assert code == 0 and "claude-code-bob has hot.py now" in output, output
    assert held(up) == {"hot.py": bob.name}
    # The asker is told with its next hook, once, with what changed since it read the file
    said = bob.hook("UserPromptSubmit", prompt="x")["additionalContext"]
    assert "claude-code-ann gave up hot.py, as you asked (U-1)" in said and "+two" in said
    assert "what is there now is what you start from" in said
    assert bob.hook("UserPromptSubmit", prompt="x") == {}
    assert bob.edit("hot.py", "one\ntwo\nthree\n") == ""
    assert "claude-code-bob" in ann.edit("hot.py", "four\n")
    assert up.read("hot.py") == "one\ntwo\nthree\n"


def test_a_holder_that_is_about_to_stop_is_asked_first(up: Repo) -> None:
    ann, bob = Claude(up, "ann"), Claude(up, "bob")
    ann.edit("hot.py", "1\n")
    bob.hook("SessionStart")
    request = ask(up, bob, "hot.py", "I need it")
    said = ann.hook("Stop", stop_hook_active=False)
    assert said["decision"] == "block" and f"coord request reject {request}" in said["reason"]
    command = f"{coord(up)} request reject {request} --agent {ann.name} --answer 'two more tests'"
    assert ann.shell(command)[1] == 0
    said = bob.hook("Stop", stop_hook_active=False)
    assert "two more tests" in said["reason"] and "stays with claude-code-ann" in said["reason"]
    assert held(up) == {"hot.py": ann.name}


def test_messages_come_in_order(up: Repo) -> None:
    ann, bob, cyd = Claude(up, "ann"), Claude(up, "bob"), Claude(up, "cyd")
    for name in ("a.py", "b.py"):
        ann.edit(name, "1\n")
    bob.hook("SessionStart")
    cyd.hook("SessionStart")
    ask(up, bob, "a.py", "first")
    ask(up, cyd, "b.py", "second")
    with up.client() as client:
        client.call(rq.RequestWithdraw(agent=bob.name, request="U-1"))
    said = ann.hook("UserPromptSubmit", prompt="x")["additionalContext"]
    places = [said.index(part) for part in ("first", "second", "U-1 needs no answer")]
    assert places == sorted(places)


def test_a_sub_agent_is_asked_for_what_it_holds(up: Repo) -> None:
    parent, sub, bob = Claude(up, "ann"), Claude(up, "ann", "s1"), Claude(up, "bob")
    parent.edit("hot.py", "1\n")
    bob.hook("SessionStart")
    ask(up, bob, "hot.py", "mine next")
    assert "mine next" in parent.hook("UserPromptSubmit", prompt="x")["additionalContext"]
    given = {"file_path": str(up.root / "hot.py"), "content": "2\n"}
    said = sub._call("Write", given)  # the parent's lease is handed down, and the question with it
    assert held(up) == {"hot.py": sub.name} and "mine next" in said["additionalContext"]
    up.write("hot.py", "2\n")
    with up.client() as client:
        client.call(rq.RequestAnswer(agent=parent.name, request="U-1", verdict="approve"))
    assert held(up) == {"hot.py": bob.name}
    said = bob.hook("UserPromptSubmit", prompt="x")
    assert "claude-code-ann gave up hot.py" in said["additionalContext"]
