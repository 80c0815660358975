"""A sign of life every few seconds, while something runs that gives none itself."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from coordinator.words.refusals import Refusal


class Beating:
    """Calls `beat` every few seconds, in a thread, as long as the `with` lasts."""

    def __init__(self, beat: Callable[[], object], every_s: float) -> None:
        self._beat, self._every_s, self._over = beat, every_s, threading.Event()
        self._thread = threading.Thread(target=self._run, name="coord-landing", daemon=True)

    def __enter__(self) -> Beating:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            with contextlib.suppress(Refusal):  # whether its claim holds is asked later
                self._beat()
