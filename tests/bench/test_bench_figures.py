"""What the benchmarks say is computed rightly, and each runs; nothing here looks at a time."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from benchmarks import growth, guarded_write, locks, meaning, regions, session, state
from benchmarks.measuring import load
from benchmarks.measuring.inside import inside
from benchmarks.measuring.samples import exponent, paired, percentile
from coordinator.namespaces import kernel
from coordinator.words import requests as rq
from tests.waiting import until


def test_percentiles() -> None:
    assert percentile([], 0.5) == 0.0
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile(range(1, 101), 0.99) == 99
    assert percentile([7], 0.0) == 7


def test_paired_ratio_is_of_neighbours() -> None:
    assert paired([10, 1, 4], [5, 1, 1]) == 2.0
    assert paired([1, 9], [0, 3]) == 3.0
    assert paired([], []) == 0.0


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_exponent(power: float) -> None:
    sizes = [10, 100, 1000]
    assert exponent(sizes, [3 * n**power for n in sizes]) == pytest.approx(power)
    assert exponent([10], [1.0]) == 0.0


def test_locks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "SLICE_S", 0.05)
    report = locks.run([1, 3], 0.1, tmp_path)
    ours = [one for one in report.figures if one.contender == locks.OURS]
    assert [one.clients for one in ours] == [1, 3]
    assert all(one.rate > 0 for one in report.figures)
    assert set(report.p50_over_floor) == {"1", "3"}
    assert list(tmp_path.iterdir()) == []


def test_state_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "SLICE_S", 0.05)
    report = state.run(3, 0.1, 3, tmp_path)
    assert [one.contender for one in report.values] == [state.KEYED, state.BARE, state.SQLITE, state.PLAIN]
    assert [one.contender for one in report.file] == [state.PROPOSE, state.LEASED, state.FLUSHED]
    assert all(one.rate > 0 and one.ratio > 0 for one in (*report.values, *report.file))
    assert list(tmp_path.iterdir()) == []


def test_what_sqlite_writes_of_a_value_is_what_the_daemon_writes(tmp_path: Path) -> None:
    """A contender that wrote less would be beaten too dearly, and one that wrote more too cheaply."""
    count = "SELECT (SELECT count(*) FROM events WHERE kind = 'key_written'), (SELECT count(*) FROM state_versions), (SELECT count(*) FROM blobs)"
    with inside(tmp_path) as place:
        for number in range(3):
            place.serve(rq.StatePut(agent="a", key="key:bench:1", version=number,
                                    value=msgspec.Raw(msgspec.json.encode(load.value(number, "c1")))))
        ours = place.db.execute(count).get
    puts = state.SqlitePuts(tmp_path)
    for number in range(3):
        puts._n += 1
        puts.as_coord(1, number + 1, msgspec.json.encode(load.value(number, "c1")))
    theirs = puts._db.execute(count).get
    puts.close()
    assert ours == theirs == (3, 3, 3)


def test_growth_runs(tmp_path: Path) -> None:
    report = growth.dispatch([40, 80], [0, 10], cycles=5, folder=tmp_path)
    hinted = growth.dispatch([40, 80], [10], cycles=5, folder=tmp_path, signals=True)
    assert [(p.size, p.held) for p in hinted.points] == [(40, 10), (80, 10)]
    assert [(p.size, p.held) for p in report.points] == [(40, 0), (80, 0), (40, 10), (80, 10)]
    seen = growth.overlap([300, 900], checks=20, folder=tmp_path)
    assert len(seen.points) == 6
    assert list(tmp_path.iterdir()) == []


def test_hook_runs(tmp_path: Path) -> None:
    assert guarded_write.run(2, tmp_path).ratio > 0


@pytest.mark.skipif(bool(kernel.refused()), reason="no namespaces on this machine")
def test_session_runs(tmp_path: Path) -> None:
    report = session.run([1, 3], 5, tmp_path)
    assert report.joined_ms > report.command_bare_ms
    assert report.command_ratio > 0 and report.start_ms > report.start_bare_ms
    assert [one.sessions for one in report.grants] == [1, 3] and all(one.lock_ms > 0 for one in report.grants)
    until(lambda: not [one for one in Path("/proc").glob("[0-9]*/cwd") if _is_below(one, tmp_path)])


def _is_below(link: Path, folder: Path) -> bool:
    try:
        return str(link.readlink()).startswith(str(folder))
    except OSError:
        return False


def test_a_benchmark_that_is_ended_leaves_no_coordinator_behind(tmp_path: Path) -> None:
    # If the benchmark is ended from outside (a script's time limit, say) once its daemon is up
    run = subprocess.Popen(
        [sys.executable, "-m", "benchmarks", "rest", "--dir", str(tmp_path)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )
    try:
        until(lambda: any(tmp_path.glob("*/repository/src/d49")))
        run.terminate()
        said = run.communicate(timeout=30)[1]
    finally:
        run.kill()
    # I expect it to clean up as it always does, and no traceback
    assert list(tmp_path.iterdir()) == []
    assert run.returncode == 128 + signal.SIGTERM
    assert said == b""


def test_meaning_tells_the_same_breaks_at_each_size(tmp_path: Path) -> None:
    report = meaning.run([5, 40], 3, tmp_path)
    assert [one.files for one in report.sizes] == [5, 40]
    assert [one.breaks for one in report.sizes] == [3, 3]
    assert all(one.peak_mb > 0 < one.index_bytes for one in report.sizes)
    assert list(tmp_path.iterdir()) == []


def test_regions_tells_ratios_over_the_bare_parse() -> None:
    assert regions.made(200) == regions.made(200)
    report = regions.run(200, 2)
    assert report.regions == 51 and 190 <= report.lines <= 210
    assert report.outline_ratio > 0 and report.asked_ratio > 0 and report.parse_ms < report.started_ms


@pytest.mark.parametrize("signals", [False, True])
def test_a_task_is_chosen_behind_a_thousand_that_are_blocked(tmp_path: Path, signals: bool) -> None:
    """All of them are looked at for the first choice, which has so many looks and no more."""
    report = growth.dispatch([2000], [1000], cycles=3, folder=tmp_path, signals=signals)
    assert [(p.size, p.held) for p in report.points] == [(2000, 1000)]
