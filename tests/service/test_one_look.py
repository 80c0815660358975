"""How often the disk is looked at for one request: what it plainly names is looked at before it is
decided, all at once; what it holds by name is not looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coordinator.kernel.leasing import waiting_line
from coordinator.words import requests as rq
from tests.sessions import Session
from tests.world import World


@pytest.fixture
def looks(world: World, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many things each look was to look at."""
    counted: list[int] = []
    look = world.engine.look

    def counting(needs: Any, looked: Any) -> Any:
        needs = list(needs)
        if needs:
            counted.append(len(needs))
        return look(needs, looked)

    monkeypatch.setattr(world.engine, "look", counting)
    return counted


def acquire(agent: str, *resources: str, **more: Any) -> rq.Acquire:
    return rq.Acquire(agent=agent, resources=list(resources), **more)


@pytest.mark.parametrize(("request_", "expected"), [
    (acquire("ann", "a.py"), [1]),
    (acquire("ann", "a.py", "d/x.py", "new.py"), [3]),
    (acquire("ann", "key:x"), []),
    (acquire("ann", "d/x.py::C"), [1]),
    (acquire("ann", "a.py", "key:x"), [1]),
    (acquire("ann", "d/"), [1, 1]),  # what is in it is looked at once it is known that it is free
    (acquire("ann", "held.py"), [1, 2]),  # and the files of the task that it is offered
    (rq.RequestFile(agent="ann", resource="held.py", reason="why"), [1, 1]),
    (rq.Release(agent="bob", resources=["held.py", "in/"]), []),
    (rq.Release(agent="bob", resources=["./held.py"]), [1]),
    (rq.Release(agent="bob", resources=["held.py"], cwd="/"), []),
    (rq.Renew(agent="bob", resources=["held.py"]), []),
    (rq.TaskClaim(agent="ann", task="T-1"), [2, 1]),
    (rq.TaskClaim(agent="ann"), [2, 1]),
    (rq.TaskDone(agent="bob", task="T-1"), []),
    (rq.GuardCheck(paths=["a.py", "held.py", "new.py"]), [3]),
])
def test_requests(world: World, looks: list[int], request_: rq.Request[Any], expected: list[int]) -> None:
    for name in ("a.py", "held.py", "t.py"):
        world.write(name, "1\n")
    world.write("d/x.py", "class C:\n    pass\n")
    world.acquire("bob", "held.py", "in/")
    world.task("t", "t.py", "t2.py")
    looks.clear()
    try:
        world.ask(request_)
    except Exception as refused:
        assert "held.py is leased by bob" in str(refused) or "not claimed" in str(refused), refused
    assert looks == expected


def test_a_request_that_waited(world: World, looks: list[int]) -> None:
    world.acquire("bob", "a.py", "b.py")
    world.refused(acquire("ann", "a.py", "b.py", wait_s=9))
    looks.clear()
    world.decide(lambda tx: waiting_line.stop_holding(world.service, tx, "W-1", True) and None)
    assert looks == [2]


@pytest.mark.parametrize(("tool", "given", "expected"), [
    ("Write", {"file_path": "d/x.py", "content": ""}, ([2], [1])),  # the file, and what the text would change
    ("Read", {"file_path": "d/x.py"}, ([], [1])),
    # What it did not change is not asked about further; whether git ignores what it has leased is asked in passing.
    ("Bash", {"command": "echo > a.py; echo > /dev/null; touch d/x.py"}, ([2], [4, 2])),
    ("Bash", {"command": "ls"}, ([], [])),
    # Whose turn it needs is asked about the tree in which git runs, once the files are known.
    ("Bash", {"command": "git stash; echo > a.py"}, ([2, 1], [2, 1])),
    ("FutureTool", {"file_path": "d/x.py"}, ([], [])),
])
def test_hook_calls(world: World, looks: list[int], tool: str, given: dict[str, object],
                    expected: tuple[list[int], list[int]]) -> None:
    ann = Session(world, "ann")
    for name in ("a.py", "d/x.py"):
        world.write(name, "1\n")
    if "file_path" in given:
        given = {**given, "file_path": str(Path(world.root, str(given["file_path"])))}
    came = []
    for event in ("PreToolUse", "PostToolUse"):
        looks.clear()
        ann.call(tool, given, event, tool_response={})
        came.append(list(looks))
    assert (came[0], came[1]) == expected
