"""What an output says of its provider's limit: whether it is reached, and for how long."""

from __future__ import annotations

import pytest

from coordinator.dialects.limits import LINES_MAX, REST_MAX_S, LimitTable, rest_asked
from coordinator.words.clock import from_iso

NOW = from_iso("2026-11-21T12:00:00.000Z")
HALF_AN_HOUR = 1800.0


@pytest.mark.parametrize(("said", "rest_s"), [
    ("Usage limit reached.", HALF_AN_HOUR), ("Error: rate limit exceeded", HALF_AN_HOUR),
    ("rate limit hit, please try again in 20s", 20.0), ("You have hit your usage limit. Try again in 3 hours.", 3 * 3600.0),
    ("token limit: wait for 5 minutes", 300.0), ("usage limit reached; resets 2026-11-21T13:00:00Z", 3600.0),
    ("usage limit reached; resets at 2026-11-21T15:00:00+02:00", 3600.0),
    ("HTTP 429: Too Many Requests", HALF_AN_HOUR), ("Quota for this project was exceeded", HALF_AN_HOUR),
    ("rate limit: retry in 99999 hours", REST_MAX_S), ("usage limit reached, resets 2020-01-01T00:00:00Z", 1.0),
])
def test_what_is_generally_said(said: str, rest_s: float) -> None:
    assert rest_asked(None, f"working\n{said}\n", NOW) == (rest_s, said)


@pytest.mark.parametrize("said", [
    "", "done", "I have added a rate limit to the server", "tests/test_rate_limit.py passed", "the limit is 429",
    "error 42900 too", "quota is fine", "usage: limit [-h]", "\n".join(["rate limit exceeded", *["work"] * LINES_MAX]),
])
def test_what_is_none(said: str) -> None:
    assert rest_asked(None, said, NOW) is None


def test_a_profile_adds_what_its_own_cli_says() -> None:
    own = LimitTable(patterns=(r"over budget(?:, back in (?P<minutes>\d+) min)?(?: at (?P<until>\d{10}))?",), rest_s=60)
    assert rest_asked(own, "over budget, back in 7 min", NOW) == (420.0, "over budget, back in 7 min")
    assert rest_asked(own, f"over budget at {NOW // 1000 + 90}", NOW) == (90.0, f"over budget at {NOW // 1000 + 90}")
    assert rest_asked(own, "over budget", NOW) == (60.0, "over budget")
    assert rest_asked(own, "over budget\nover budget, back in 1 min", NOW) == (60.0, "over budget, back in 1 min")
    assert rest_asked(own, "rate limit exceeded", NOW) is not None
    alone = LimitTable(patterns=own.patterns, general=False)
    assert rest_asked(alone, "rate limit exceeded", NOW) is None
    assert rest_asked(None, "over budget", NOW) is None


@pytest.mark.parametrize("text", ["x" * 100_000, "rate limit " * 20_000, "429 " * 50_000, "usage limit retry " * 5_000])
def test_no_output_takes_long(text: str) -> None:
    rest_asked(None, "\n".join([text] * LINES_MAX), NOW)
