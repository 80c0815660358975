"""Rich's console for texts that agents and files have written. It sends no request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.segment import Segment

from coordinator.words import texts


class HarmlessConsole(Console):
    """A console that steers the terminal by its own colours alone: no text that it is given can."""

    def render(self, *args: Any, **kwargs: Any) -> Iterator[Segment]:
        for segment in super().render(*args, **kwargs):
            if segment.control is None and not texts.is_harmless(segment.text):
                yield Segment(texts.masked(segment.text), segment.style)
            else:
                yield segment
