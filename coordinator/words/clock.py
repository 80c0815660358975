"""Instants: milliseconds since the epoch inside, UTC ISO-8601 text outside.

The only module that reads a clock. Everything that decides takes `now_ms` as a parameter.
A `Clock` also tells how much wall time passed that the machine did not live through (asleep,
or the wall clock was set): that time is given back to live leases by the service.
"""

import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

#: A difference between wall and monotonic time below this is drift, not a jump.
JUMP_MS = 5_000


class Clock(Protocol):
    """The daemon's source of time; tests pass in one that they move."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, UTC."""
        ...

    def jumped_ms(self) -> int:
        """Wall time (ms, may be negative) that passed without monotonic time since the last call.

        0 when the two clocks agree to within `JUMP_MS`.
        """
        ...


class SystemClock:
    """The machine's clocks. `CLOCK_MONOTONIC` stops while Linux sleeps."""

    def __init__(self) -> None:
        self._wall_ms = time.time_ns() // 1_000_000
        self._mono_ms = time.monotonic_ns() // 1_000_000

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def jumped_ms(self) -> int:
        wall, mono = time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000
        gap = (wall - self._wall_ms) - (mono - self._mono_ms)
        if abs(gap) < JUMP_MS:
            return 0
        self._wall_ms, self._mono_ms = wall, mono
        return gap


@lru_cache(maxsize=4096)
def iso(at_ms: int) -> str:
    """`2026-11-21T14:32:00.000Z`: sorts as text in the order of time."""
    seconds, ms = divmod(at_ms, 1000)
    return f"{_second(seconds)}{ms:03d}Z"


def now_iso() -> str:
    """The machine's time now, as replies tell it."""
    return iso(time.time_ns() // 1_000_000)


@lru_cache(maxsize=256)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.")


@lru_cache(maxsize=4096)
def from_iso(text: str) -> int:
    """Milliseconds since the epoch of what `iso` wrote.

    Raises:
        ValueError: the text is not an ISO-8601 instant.
    """
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def utc_offset_s() -> int:
    """The seconds by which this process's local time is ahead of UTC now."""
    return time.localtime().tm_gmtoff


def local_time(at: str, utc_offset_s: int) -> str:
    """`14:32:07`, in the local time of whoever reads it. `at`: an instant as `iso` writes it."""
    return _second(from_iso(at) // 1000 + utc_offset_s)[11:19]


def short(at_ms: int) -> str:
    """`14:32Z`, for sentences."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%H:%MZ")
