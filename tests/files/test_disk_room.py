"""Whether little room is left is told in words."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from coordinator.daemon import health


@pytest.mark.parametrize(("blocks", "inodes", "said"), [
    (0, 100, "0 KB left"), (400, 100, "1,638 KB left"), (10_000, 0, "no inode"), (10_000, 100, None), (600, 1, None)])
def test_what_is_left(blocks: int, inodes: int, said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda folder: SimpleNamespace(f_bavail=blocks, f_frsize=4096, f_favail=inodes, f_files=1000))
    told = health.warn_of_little_room(tmp_path)
    assert told is None if said is None else said in str(told) and str(tmp_path) in str(told)


def test_where_nobody_counts_inodes_or_can_tell_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert health.warn_of_little_room(tmp_path / "absent") is None
    monkeypatch.setattr(os, "statvfs", lambda folder: SimpleNamespace(f_bavail=10_000, f_frsize=4096, f_favail=0, f_files=0))
    assert health.warn_of_little_room(tmp_path) is None
