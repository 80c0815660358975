"""A command that is kept: whatever it does, nothing of it is left when it is over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from coordinator.workers.kept_command import Ended, how, run, tail
from tests.launch.conftest import alive, pid_in
from tests.waiting import until

#: A child in the background, and one that has left its group: both write their numbers.
LEAVES = "sleep 600 & echo $! > bg; setsid sh -c 'echo $$ > away; exec sleep 600' & until [ -s away ]; do sleep 0.01; done; "


def kept(tmp_path: Path, command: str, seconds: float = 30.0, unwanted: object = None) -> Ended:
    return run(command, cwd=tmp_path, env=dict(os.environ), log=tmp_path / "log", seconds=seconds,
               unwanted=unwanted or (lambda: False))  # type: ignore[arg-type]


def test_it_tells_how_it_went_and_what_was_said_last(tmp_path: Path) -> None:
    assert kept(tmp_path, "echo fine; nice") == Ended(0)
    assert (tmp_path / "log").read_text() == f"fine\n{min(19, os.nice(0) + 10)}\n", "it goes after whoever is at work"
    bad = kept(tmp_path, "echo; printf '\\033[31mred\\033[0m'; exit 3")
    assert bad == Ended(3) and how(bad) == "failed (exit code 3)" and tail(tmp_path / "log").endswith("red")
    assert how(kept(tmp_path, "kill -9 $$")) == "was ended by signal 9"
    assert kept(tmp_path, "cat; exec no-such-program").code == 127, "nothing can be typed into it"
    assert tail(tmp_path / "none") == ""


def test_what_it_leaves_in_the_background_is_ended_with_it(tmp_path: Path) -> None:
    assert kept(tmp_path, LEAVES + "exit 0") == Ended(0), "and nothing was late"
    assert not alive(pid_in(tmp_path / "bg")) and not alive(pid_in(tmp_path / "away"))


def test_one_that_hangs_and_hears_no_signal_is_ended(tmp_path: Path) -> None:
    ended = kept(tmp_path, "trap '' TERM; " + LEAVES + "while :; do sleep 1; done", seconds=1.0)
    assert ended.late and "took over 1 s" in how(ended)
    assert not alive(pid_in(tmp_path / "bg")) and not alive(pid_in(tmp_path / "away"))


def test_one_that_nobody_wants_any_more_is_ended_at_once(tmp_path: Path) -> None:
    ended = kept(tmp_path, LEAVES + "sleep 600", unwanted=(tmp_path / "away").exists)
    assert ended.code is None and "stopped" in how(ended)
    assert not alive(pid_in(tmp_path / "bg")) and not alive(pid_in(tmp_path / "away"))


def test_nothing_is_left_when_whoever_asked_is_killed(tmp_path: Path) -> None:
    asks = f"""if True:
        import os; from pathlib import Path; from coordinator.workers.kept_command import run
        run({LEAVES + "echo $$ > sh; sleep 600"!r}, cwd=Path({str(tmp_path)!r}), env=dict(os.environ),
            log=Path({str(tmp_path / "log")!r}), seconds=600, unwanted=lambda: False)"""
    asking = subprocess.Popen([sys.executable, "-P", "-c", asks])
    pids = [pid_in(tmp_path / name) for name in ("sh", "bg", "away")]
    assert all(map(alive, pids))
    os.kill(asking.pid, signal.SIGKILL)
    asking.wait()
    until(lambda: not any(map(alive, pids)))
