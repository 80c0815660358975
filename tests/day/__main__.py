"""Run the day: `python -m tests.day --seed 7`, or one kind of repository of it."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.day.hours import Day
from tests.day.judge import judge_day
from tests.day.repositories import KINDS, Repository
from tests.namespaces.conftest import Stand, can_have_sessions

COLUMNS = ("repository", "commits", "landings", "killed", "refusals", "waited s", "took s", "faults")


def main(words: list[str]) -> int:
    """Spend a day in each kind of repository, and print a line for each; 1 where something does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.day", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the order of the work, and of who is killed when")
    parser.add_argument("--hours", type=int, default=3, help="of each day")
    parser.add_argument("--only", choices=KINDS, action="append", help="one kind of repository")
    parser.add_argument("--keep", action="store_true", help="leave the repositories where they are")
    parser.add_argument("-v", "--verbose", action="store_true", help="tell of each call that fails, as it fails")
    options = parser.parse_args(words)
    if not can_have_sessions():
        print("No namespaces on this machine, so no sessions.", file=sys.stderr)
        return 2
    failed = False
    print(_line(COLUMNS), flush=True)
    for kind in options.only or KINDS:
        row, faults = spend_day(kind, options.seed, options.hours, keep=options.keep, tell=options.verbose)
        print(_line(row), flush=True)
        for fault in faults:
            print(f"FAULT: {kind}: {fault}", file=sys.stderr, flush=True)
        failed |= bool(faults)
    return int(failed)


def _line(cells: tuple[object, ...]) -> str:
    return "  ".join(f"{cell!s:>10}" for cell in cells)


def spend_day(kind: str, seed: int, hours: int, *, keep: bool, tell: bool) -> tuple[tuple[object, ...], list[str]]:
    """One day: its line of the table, and its faults."""
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="coord-day-")))
    stand = Stand(folder, os.getuid())
    began = time.monotonic()
    try:
        repository = Repository(kind, stand)
        repository.build()
        day = Day(repository, seed, tell=tell)
        day.spend(hours)
        faults = judge_day(repository, day.journal, day.alone)
        commits = sum(int(repository.git("rev-list", "--count", "--no-merges", "--branches", place=place)) - 1 for place in repository.places())
        refused = sum(attempt.locked for attempt in day.journal.attempts)
        return (kind, commits, day.journal.landings, day.journal.kills, refused, round(day.journal.waited_s),
                round(time.monotonic() - began), len(faults)), faults
    finally:
        stand.close()
        if keep:
            print(f"{kind}: {stand.root}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
