"""Texts that are kept whole beside the tests (tests/data/golden/), and held against what is said today.

Where what is said was changed on purpose: `COORD_TEST_WRITE=1 pytest …` writes them anew; the diff
is to be read like code.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from coordinator.words.refusals import Refusal

FOLDER = Path(__file__).parent / "data/golden"


def assert_golden(name: str, text: str) -> None:
    """That this is the text which is kept under the name."""
    kept = FOLDER / name
    if os.environ.get("COORD_TEST_WRITE"):
        kept.write_text(text, "utf-8")
    assert text.splitlines() == kept.read_text("utf-8").splitlines()


def said(case: Any, refusal: Refusal) -> str:
    """All that a refusal tells, in lines."""
    facts = "".join(f"  {name}: {value!r}\n" for name, value in sorted(refusal.facts.items()))
    return f"{case}\n  {refusal.code.value}: {refusal.message}\n  next: {refusal.next}\n{facts}\n"
