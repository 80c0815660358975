"""An exception at any instant (Ctrl-C that is caught, an alarm, a soft time limit): nothing stays held longer than its
TTL, and nothing is renewed for nobody."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from coordinator import Client, LeaseLost, Refusal
from coordinator.client.owner import update
from coordinator.frameworks.mutex import acquire_agent_lock
from coordinator.frameworks.postponing import StepPostponed
from tests.conftest import Repo
from tests.effort import examples
from tests.waiting import until

TTL = 1.0
#: Where an exception may come: at each line of these that runs in the thread that is interrupted.
PLACES = ("coordinator/client/", "coordinator/frameworks/", "contextlib.py")


class SoftLimit(Exception):
    """What a signal handler raises."""


def raised_at(line: int, work: Callable[[], object]) -> bool:
    """Run it, and raise at its line of this number; whether it had so many."""
    met = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal met
        if event == "call":
            return trace if any(place in frame.f_code.co_filename for place in PLACES) else None
        if event == "line":
            met += 1
            if met == line:
                sys.settrace(None)
                raise SoftLimit
        return trace

    sys.settrace(trace)
    try:
        work()
    except SoftLimit:
        return True
    except (Refusal, LeaseLost, StepPostponed):  # of what the one before has left for a moment
        return line == 0 or met >= line
    finally:
        sys.settrace(None)
    return line == 0 or met >= line


def leases(client: Client, name: str, kept: list[Any]) -> None:
    with client.lease(f"key:{name}", ttl=TTL) as held:
        kept.append(held)  # as a function's variable, which is there for as long as that runs


def holds(client: Client, name: str, kept: list[Any]) -> None:
    held = client.hold(client.acquire(f"key:{name}", ttl=TTL, retry=False), ttl=TTL)
    try:
        held.check()
    finally:
        held.end()


def locks(client: Client, name: str, kept: list[Any]) -> None:
    with acquire_agent_lock(name, lock_timeout=TTL, client=client) as held:
        kept.append(held)


def updates(client: Client, name: str, kept: list[Any]) -> None:
    update(client, f"key:{name}", lambda value: (value or 0) + 1, tries=0, wait=0.0)


def claims(client: Client, name: str, kept: list[Any]) -> None:
    got = client.claim(ttl=TTL)
    client.done(got.task.task, "done")


@pytest.mark.parametrize("work", [leases, holds, locks, updates, claims])
def test_nothing_is_held_for_longer_than_its_ttl(repo: Repo, work: Callable[[Client, str, list[Any]], None]) -> None:
    step = 3 if examples(10) > 10 else 13
    kept: list[Any] = []
    with repo.client("ann") as ann, repo.client() as boss:
        line, reached = 0, True
        while reached:  # each time with a name of its own: what one has left is in no other's way
            if work is claims:
                boss.task_add("t", resources=[f"{line}.py"])
            reached = raised_at(line, lambda name=f"n{line}": work(ann, name, kept))  # type: ignore[misc]
            line += step if line else 1
        assert line > 60, "so many lines it has at least"
        until(lambda: not boss.locks().items, seconds=TTL * 6)
        kept.clear()
