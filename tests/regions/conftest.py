"""Where the Python files of this interpreter are."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest


def python_files() -> list[Path]:
    """Those of the standard library and of what is installed beside it."""
    places = {Path(sysconfig.get_paths()[name]) for name in ("stdlib", "platstdlib", "purelib")}
    return sorted({file for place in places for file in place.rglob("*.py") if file.is_file()})


@pytest.fixture(scope="session")
def corpus() -> list[Path]:
    return python_files()
