"""What is done again and again (daemon/schedule.py); a real loop and the real scheduler."""

from __future__ import annotations

import asyncio

import pytest

from coordinator.daemon import schedule
from coordinator.daemon.schedule import Schedule
from tests.waiting import patience


def test_each_job_runs_in_the_loop_until_it_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "BEGINS_AFTER_S", 0.0)

    async def run() -> list[str]:
        ran: list[str] = []
        twice = asyncio.Event()

        def often() -> None:
            assert asyncio.get_running_loop()
            ran.append("often")
            if ran.count("often") == 3:
                twice.set()

        def seldom() -> None:
            ran.append("seldom")

        going = Schedule(asyncio.get_running_loop(), [(often, 0.05), (seldom, 3600.0)], lambda: None)
        await asyncio.wait_for(twice.wait(), patience(30))
        going.close()
        ended = list(ran)
        await asyncio.sleep(0.2)  # four of its turns, had it not ended: nothing tells of what is not run
        assert ran == ended
        return ran

    assert set(asyncio.run(run())) == {"often"}


def test_without_a_schedule_it_does_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "BEGINS_AFTER_S", 0.0)

    async def run() -> None:
        failed = asyncio.Event()
        going = Schedule(asyncio.get_running_loop(), [(failed.clear, 1.0)], failed.set)
        await asyncio.wait_for(failed.wait(), patience(30))
        going.close()

    def broken(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(schedule.importlib, "import_module", broken)
    asyncio.run(run())


def test_a_job_that_fails_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "BEGINS_AFTER_S", 0.0)

    async def run() -> None:
        again, left = asyncio.Event(), [1, 2, 3]

        def broken() -> None:
            left.pop()
            if not left:
                again.set()
            raise OSError("no")

        going = Schedule(asyncio.get_running_loop(), [(broken, 0.05)], lambda: left.clear())
        await asyncio.wait_for(again.wait(), patience(30))
        going.close()

    asyncio.run(run())


def test_closed_before_it_began_it_never_begins() -> None:
    async def run() -> None:
        ran: list[int] = []

        def job() -> None:
            ran.append(1)

        going = Schedule(asyncio.get_running_loop(), [(job, 0.01)], lambda: ran.append(2))
        going.close()
        await asyncio.sleep(schedule.BEGINS_AFTER_S + 0.2)
        assert ran == []

    asyncio.run(run())
