"""An exception at any instant (Ctrl-C that is caught, an alarm, a soft time limit): nothing stays held longer than its
TTL, and nothing is renewed for nobody."""

from __future__ import annotations

import contextlib
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
        return met >= line
    finally:
        sys.settrace(None)
    return met >= line


def leases(client: Client, kept: list[Any]) -> None:
    manager = client.lease("key:a", ttl=TTL)
    kept.append(manager)  # as a traceback that somebody keeps
    with manager as held:
        kept.append(held)


def holds(client: Client, kept: list[Any]) -> None:
    held = client.hold(client.acquire("key:a", ttl=TTL, retry=False), ttl=TTL)
    try:
        held.check()
    finally:
        held.end()


def locks(client: Client, kept: list[Any]) -> None:
    with acquire_agent_lock("a", lock_timeout=TTL, client=client) as held:
        kept.append(held)


def updates(client: Client, kept: list[Any]) -> None:
    update(client, "key:a", lambda value: (value or 0) + 1, tries=0, wait=0.0)


def claims(client: Client, kept: list[Any]) -> None:
    got = client.claim(ttl=TTL)
    client.task_fail(got.task.task, reason="x", model_error=True)


@pytest.mark.parametrize("work", [leases, holds, locks, updates, claims])
def test_nothing_is_held_for_longer_than_its_ttl(repo: Repo, work: Callable[[Client, list[Any]], None]) -> None:
    step = 1 if examples(10) > 10 else 7  # of the lines; all of them with the slow tests
    kept: list[Any] = []
    with repo.client("ann") as ann, repo.client() as boss:
        for n in range(3):
            boss.task_add(f"t{n}", resources=[f"{n}.py"], attempts_max=1000)
        with contextlib.suppress(Refusal):
            work(ann, kept)
        line, reached = 1, True
        while reached:
            reached = raised_at(line, lambda: work(ann, kept))
            line += step
        assert line > 10 * step
        until(lambda: not boss.locks().items, seconds=TTL * 6)
        kept.clear()
