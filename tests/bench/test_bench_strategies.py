"""The same edits by each way to share files: none lost; and what is lost or doubled is seen."""

from __future__ import annotations

from pathlib import Path

from benchmarks import strategies
from benchmarks.strategies import Edit, compare, edits, fresh


def test_all_edits_land_once_by_each_strategy(tmp_path: Path) -> None:
    report = strategies.run([5], 2, 0.05, folder=tmp_path, files=["few"])
    assert [one.strategy for one in report.figures] == list(strategies.WAYS)
    assert report.kept and all((one.edits, one.lost, one.doubled) == (10, 0, 0) for one in report.figures)
    assert list(tmp_path.iterdir()) == []


def test_the_same_edits_for_each(tmp_path: Path) -> None:
    assert edits(3, 2, "few", 0.1, 1) == edits(3, 2, "few", 0.1, 1) != edits(3, 2, "few", 0.1, 2)


def test_what_is_lost_or_doubled_or_elsewhere_is_seen(tmp_path: Path) -> None:
    fresh(tmp_path, 1)
    file, one, other = tmp_path / "m0.py", Edit("a", "m0.py", "work_1", 0), Edit("b", "m0.py", "work_2", 0)
    assert compare(tmp_path, [one, other]) == (2, 0)
    file.write_text(one.made(file.read_text()))
    assert compare(tmp_path, [one, other]) == (1, 0)
    file.write_text(other.made(one.made(file.read_text())))
    assert compare(tmp_path, [one, other]) == (0, 1)
    fresh(tmp_path, 1)
    file.write_text(Edit("a", "m0.py", "work_3", 0).made(file.read_text()))
    assert compare(tmp_path, [one]) == (1, 0), "in another function it is not where it belongs"
