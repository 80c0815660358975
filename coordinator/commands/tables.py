"""What is made from the program's own definition and lies here as data (`make docs`)."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def table(name: str) -> dict[str, dict[str, Any]]:
    """The file of this name: a command or group a line."""
    made: dict[str, dict[str, Any]] = json.loads(
        files("coordinator.commands").joinpath(name).read_text("utf-8"))
    return made
