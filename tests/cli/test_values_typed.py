"""Values of keys as people and scripts give them, who owns a key, and what stands beside them."""

from __future__ import annotations

import json

import msgspec
import pytest

from coordinator.words import requests as rq
from coordinator.words.refusals import Code
from tests.conftest import Repo
from tests.world import World

LAID_OUT = '{"a": 1,\n "b": [1,\r\n  "x\\ny"]}\n'


def test_a_value_may_be_laid_out_in_lines(repo: Repo) -> None:
    done = repo.coord("state", "put", "key:x", "-", "--agent", "a", "--version", "0", text=LAID_OUT)
    assert done.returncode == 0, done
    assert json.loads(repo.coord("state", "get", "key:x", "--json").stdout)["value"] == {"a": 1, "b": [1, "x\ny"]}
    assert repo.coord("state", "patch", "key:x", "-", "--agent", "a", "--version", "1", text='{\n"c": 2\n}\n').returncode == 0
    with repo.client("b") as client:
        assert client.state_put("key:y", msgspec.Raw(LAID_OUT.encode()), version=0).version == 1
        assert client.state_get("key:y").decoded() == {"a": 1, "b": [1, "x\ny"]}


def test_what_an_owner_is_told_to_type_can_be_typed(repo: Repo) -> None:
    repo.coord("state", "change", "key:q", '{"add": 5}', "--agent", "b")
    repo.coord("lock", "key:q", "--agent", "own")
    told = repo.coord("state", "next", "key:q", "--agent", "own").stdout
    line = told.split("then: coord ")[1].strip().replace("VALUE", "5").split()
    assert repo.coord(*line).returncode == 0, line
    done = repo.coord("state", "own", "key:q", "--agent", "own", "--until-idle", "--", "cat")
    assert done.returncode == 3 and "own holds key:q already" in done.stderr and "`coord unlock key:q --agent own`" in done.stderr, done
    repo.coord("unlock", "key:q", "--agent", "own")
    assert repo.coord("state", "own", "key:q", "--agent", "own", "--until-idle", "--", "cat").returncode == 0
    assert {one.agent for one in repo.client().agents().items if one.state == "active"} == {"b", "own"}


def test_the_story_of_a_file_has_what_was_held_of_and_around_it(world: World) -> None:
    world.write("src/pay.py", "def total():\n    return 1\n")
    for agent, name in (("ann", "src/pay.py::total"), ("bob", "docs/"), ("cyd", "src/pay.pyx")):
        world.acquire(agent, name)
    said = "\n".join(world.ask(rq.Explain(subject="src/pay.py")).sentences)
    assert "ann got src/pay.py::total" in said and "docs/" not in said and "pyx" not in said
    assert "bob got docs/" in "\n".join(world.ask(rq.Explain(subject="docs/deep/api.md")).sentences)
    world.ask(rq.Release(agent="bob", resources=["docs/"]))
    world.ask(rq.Release(agent="ann", resources=["src/pay.py::total"]))
    world.ask(rq.Release(agent="cyd", resources=["src/pay.pyx"]))
    world.acquire("dan", "./")
    assert "dan got ./" in "\n".join(world.ask(rq.Explain(subject="src/pay.py")).sentences)


def test_a_page_goes_on_with_what_the_one_before_says(world: World) -> None:
    for n in range(5):
        world.acquire("ann", f"f{n}")
        world.task(f"t{n}")
    for first in (rq.Locks(limit=2), rq.Tasks(limit=2)):
        seen, asked = [], first
        while True:
            page = world.ask(asked)
            seen += page.items
            if page.next is None:
                break
            asked = msgspec.structs.replace(first, after=page.next)
        assert len(seen) == 5


def test_a_deletion_says_what_is_deleted(world: World) -> None:
    refusal = world.refused(rq.Propose(agent="z", changes=[rq.ProposedChange(resource="never.py", delete=True)]))
    assert refusal.code is Code.INVALID and "has a version" in refusal.message


@pytest.mark.parametrize("words", ["help lock --json", "help task add --json"])
def test_the_help_of_a_command_is_no_json(repo: Repo, words: str) -> None:
    done = repo.coord(*words.split())
    assert done.returncode == 2 and json.loads(done.stdout)["error"]["code"] == "INVALID", done
