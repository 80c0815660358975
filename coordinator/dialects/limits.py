"""Recognising in an agent's last output that its provider's limit is reached, and until when. Pure.

No CLI promises how it says so. `GENERAL` holds the common ways, and a profile adds those of its
agent. An output that no pattern matches is an attempt that failed like any other. A pattern may
name the end by groups: `seconds`, `minutes`, `hours` from now, or `until`, an ISO instant with its
zone or seconds since the epoch.
"""

from __future__ import annotations

import re
from datetime import datetime

import msgspec

#: Lines at the end of an output that are looked at: what stood before has passed.
LINES_MAX = 15
#: The longest rest that an output can ask for (seconds).
REST_MAX_S = 7 * 86_400.0
_IN_SECONDS = {"seconds": 1.0, "minutes": 60.0, "hours": 3600.0}
_LIMIT = r"(?i)\b(?:usage|rate|request|token) limit\b"
_LATER = r".*\b(?:try again|retry|resets?|wait)\D{0,20}"
GENERAL = (
    rf"{_LIMIT}{_LATER}(?P<hours>\d+) ?h",
    rf"{_LIMIT}{_LATER}(?P<minutes>\d+) ?m(?!s)",
    rf"{_LIMIT}{_LATER}(?P<seconds>\d+) ?s",
    rf"{_LIMIT}.*\b(?P<until>\d{{4}}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))",
    rf"{_LIMIT}.{{0,40}}\b(?:reached|exceeded|hit)\b",
    r"(?i)\bquota\b.{0,40}\b(?:exceeded|exhausted)\b",
    r"(?i)\b429\b.{0,40}\btoo many requests\b",
)


class LimitTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The `[limits]` section of a profile.

    Attributes:
        patterns: regular expressions, looked for in each of the last lines, in their order.
        general: whether `GENERAL` is looked for, too, after them.
        rest_s: how long to rest where the output does not say (seconds).
    """

    patterns: tuple[str, ...] = ()
    general: bool = True
    rest_s: float = 1800.0


def rest_asked(table: LimitTable | None, output: str, now_ms: int) -> tuple[float, str] | None:
    """The seconds that an agent that failed with this output has to rest, and the line that says
    so. None if the output names no limit."""
    table = table or LimitTable()
    longest: tuple[float, str] | None = None
    for line in output.splitlines()[-LINES_MAX:]:
        for pattern in (*table.patterns, *(GENERAL if table.general else ())):
            met = re.search(pattern, line[:2000])
            if met is None:
                continue
            asked = _asked_s(met, now_ms)
            if asked is not None:
                return min(asked, REST_MAX_S), line.strip()[:200]
            longest = longest or (min(table.rest_s, REST_MAX_S), line.strip()[:200])
    return longest


def _asked_s(met: re.Match[str], now_ms: int) -> float | None:
    """The time in a pattern's groups, if it is in the future."""
    fields = {name: text for name, text in met.groupdict().items() if text}
    try:
        if "until" in fields:
            text = fields["until"]
            end_s = float(text) if text.replace(".", "", 1).isdigit() else _instant_s(text)
            return max(1.0, end_s - now_ms / 1000) if end_s is not None else None
        spans = [float(fields[name]) * unit for name, unit in _IN_SECONDS.items() if name in fields]
    except (ValueError, OverflowError):
        return None
    return max(1.0, sum(spans)) if spans else None


def _instant_s(text: str) -> float | None:
    instant = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return instant.timestamp() if instant.tzinfo is not None else None
