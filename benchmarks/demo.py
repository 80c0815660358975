"""`make demo`: four agents carry one release of a real package to the next; one is killed.

Fetches two releases of click with pip (without a network: a small made-up package that travels with
coord), lets four agent processes bring the one to the other through coord, shows `coord status` as
they go, kills one in the middle of a file, shows the review that holds its partial work, hands that
to the next agent, and compares the result with the newer release byte by byte. Exit code 1 if an
edit was lost, no review appeared, or no agent had to be redirected.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.command_line import end
from benchmarks.releases import download_wheel, unpack_wheel
from benchmarks.replay.command import describe
from benchmarks.replay.driver import Asked, Result, run
from coordinator.words import requests as rq

PACKAGE, OLD, NEW = "click", "8.1.3", "8.1.7"
VENDORED = Path(__file__).resolve().parent.parent / "tests" / "data" / "replay"
#: With this seed agents do get in each other's way, whichever data is used.
SEED = 3
STATUS_EVERY_S, STATUS_MOST = 1.5, 3
DIFF_LINES_MAX = 60


def fetch_releases(folder: Path) -> tuple[Path, Path] | None:
    """Two releases, unpacked below `folder`; None when pip cannot get them."""
    hasty = ("--retries", "1", "--timeout", "5")
    try:
        old, new = (
            unpack_wheel(download_wheel(PACKAGE, version, folder, options=hasty, seconds=30),
                         folder / version)
            for version in (OLD, NEW))
    except (OSError, subprocess.SubprocessError, zipfile.BadZipFile):
        return None
    return old, new


class Audience:
    """Shows what a person would look at meanwhile, with the same commands."""

    def __init__(self) -> None:
        self.root = Path()
        self._over = threading.Event()
        self._talking = threading.Lock()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def started(self, root: Path) -> None:
        self.root = root
        self._thread.start()

    def stop(self) -> None:
        """Look no more, and wait for a look that has begun: it would start the coordinator again
        that is about to be stopped."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def show(self, review: rq.Review) -> None:
        """The partial work of the killed agent, just before it is handed on."""
        self._coord("review", "show", review.review)
        self._coord_line(f"coord review reassign {review.review}",
                         "the next agent starts from this")

    def _look(self) -> None:
        for _ in range(STATUS_MOST):
            if self._over.wait(STATUS_EVERY_S):
                return
            self._coord("status")

    def _coord(self, *words: str) -> None:
        env = {**os.environ, "COORD_ROOT": str(self.root)}
        done = subprocess.run(
            [sys.executable, "-P", "-m", "coordinator.cli.main", *words], env=env,
            capture_output=True, text=True, check=False,
        )
        if self._over.is_set():
            return
        lines = (done.stdout + done.stderr).rstrip().splitlines()
        if len(lines) > DIFF_LINES_MAX:
            lines = [*lines[:DIFF_LINES_MAX], f"… {len(lines) - DIFF_LINES_MAX} more lines"]
        with self._talking:
            print(f"\n$ coord {' '.join(words)}")
            print("\n".join(lines), flush=True)

    def _coord_line(self, command: str, meaning: str) -> None:
        with self._talking:
            print(f"\n$ {command}    # {meaning}", flush=True)


def judge(result: Result) -> list[str]:
    """What the demonstration did not show."""
    missing = list(result.problems)
    if result.lost_edits or not result.equal:
        missing.append(f"{result.lost_edits} edits were lost")
    if not result.reviews or not result.killed:
        missing.append("no review of a killed agent appeared")
    if not result.redirects_taken:
        missing.append("no agent was redirected")
    return missing


def show_demo(
    offline: Annotated[
        bool, typer.Option("--offline", help="Use the data that comes along.")
    ] = False,
    think: Annotated[str, typer.Option(help="How long agents think.")] = "lognormal:1s",
) -> None:
    """Four agents carry one release of a real package to the next; one is killed."""
    with tempfile.TemporaryDirectory(prefix="coord-demo-") as folder:
        releases = None if offline else fetch_releases(Path(folder))
        if releases is None:
            releases = VENDORED / "old", VENDORED / "new"
            print("Two versions of a made-up package, tidemark (pip could not be asked).")
        else:
            print(f"{PACKAGE} {OLD} -> {NEW}, as pip fetched them.")
        print("Four agents, each a process of its own; one will be killed in the middle of a file.")
        audience = Audience()
        try:
            result = run(
                Asked(old=releases[0], new=releases[1], agents=4, think=think, seed=SEED, kill=1,
                      discovered=0.7),
                say=lambda line: print(f"  {line}", flush=True), started=audience.started,
                show=audience.show, ending=audience.stop,
            )
        finally:
            audience.stop()
    print()
    print("\n".join(describe(result)))
    missing = judge(result)
    for line in missing:
        print(f"FAILED: {line}", file=sys.stderr)
    end(good=not missing)
