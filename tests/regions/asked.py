"""`outline` and `read`, asked of the worker: what tests throw at a grammar may end its process, not
theirs. One worker for all of them, and for each `FileRegions` of the test process: it remembers
nothing from one question to the next. `close` ends it when the tests are over (tests/conftest.py),
and who runs them again in the same process gets another."""

from __future__ import annotations

from coordinator.regions.outline import Outline
from coordinator.regions.reading import Reading
from coordinator.source.outlines import Outlines

_open: list[Outlines] = []


class Shared(Outlines):
    """What a `FileRegions` takes for a worker of its own; who closes it leaves it to the others."""

    def __init__(self) -> None:
        super().__init__()
        self._worker = _asked()._worker

    def close(self) -> None:
        """Nothing is its own."""


def _asked() -> Outlines:
    if not _open:
        _open.append(Outlines(60.0))
    return _open[0]


def outline(data: bytes, language: str | None, *, nested: bool = False) -> Outline:
    return _asked().of(data, language, nested=nested)


def read(data: bytes, language: str | None) -> Reading:
    return _asked().read(data, language)


def close() -> None:
    while _open:
        _open.pop().close()
