"""Fees and credits of one customer: kept by each strategy, whatever is killed; and lost without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from benchmarks import billing
from benchmarks.billing_agent import Step, merged, nothing_owed, stepped

WITH_COORD = ["pessimistic", "optimistic", "isolated", "owner"]


def test_a_copy_lands_as_what_it_changed() -> None:
    base = stepped(nothing_owed(100), Step("first", "a", 5))
    mine = stepped(base, Step("fee", "b", 50))
    now = stepped(base, Step("credit", "c", -20))
    assert merged(base, mine, now) == {"owed": 135, "steps": ["first", "credit", "fee"]}


def test_two_agents_end_at_130_and_without_coord_they_do_not(tmp_path: Path) -> None:
    report = billing.run([2], 0.15, folder=tmp_path)
    kept = {one.strategy: one for one in report.figures}
    for strategy in WITH_COORD:
        assert (kept[strategy].result, kept[strategy].lost, kept[strategy].doubled) == (130, 0, 0)
    assert report.kept
    assert kept["none"].lost == 1
    assert kept["none"].result in (150, 80)
    assert kept["optimistic"].wasted_s > 0.05, "one of the two thinks again"
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_five_agents_a_kill_of_the_daemon_and_one_of_an_agent(tmp_path: Path) -> None:
    report = billing.run([5], 0.2, kills=1, folder=tmp_path)
    assert report.kept, report.figures
    for one in report.figures:
        if one.strategy != "none":
            assert (one.result, one.expected, one.lost, one.doubled, one.kills) == (210, 210, 0, 0, 1)
            assert one.wasted_s > 0, "what the killed agent had thought"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("lost", "doubled", "result"), [(1, 0, 130), (0, 1, 130), (0, 0, 131)])
def test_what_is_not_right_is_not_good(lost: int, doubled: int, result: int) -> None:
    right = billing.Figure("owner", 2, 130, 130, 0, 0, 1.0, 1.0, 0.0, 0)
    assert right.good
    assert not msgspec.structs.replace(right, lost=lost, doubled=doubled, result=result).good


def test_the_command_tells_what_was_lost() -> None:
    command = [sys.executable, "-c", """
import sys
from benchmarks import billing
from benchmarks.__main__ import main
broken = billing.Figure("owner", 2, 150, 130, 1, 0, 1.0, 1.0, 0.0, 0)
billing.run = lambda *given: billing.Report(0.2, [broken], False)

sys.exit(main(["billing", "--agents", "2"]))
"""]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stderr
    assert "owner" in ran.stdout
