"""`python -m benchmarks stall` measures each act: only that it works, never how long it takes."""

from __future__ import annotations

import pytest

from benchmarks import stall


@pytest.mark.slow
def test_every_act_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stall, "REST_S", 0.1)
    monkeypatch.setattr(stall, "ACT_S", 0.05)
    sizes = stall.Sizes(files=30, large_bytes=200_000, parts=20, unread=50, reverted=3, events=200)
    figures = stall.run(sizes, [])
    assert [one.act for one in figures] == stall.names()
    assert all(one.outcome == "done" and one.pairs and one.rest_p99_ms > 0 for one in figures), figures
