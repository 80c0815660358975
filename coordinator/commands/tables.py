"""What is made from the program's own definition and lies here as data (`make docs`)."""

from __future__ import annotations

from typing import Any

import msgspec


def table(name: str) -> dict[str, dict[str, Any]]:
    """The file of this name: a command or group a line."""
    with open(__file__.rpartition("/")[0] + "/" + name, "rb") as file:  # noqa: PTH123
        made: dict[str, dict[str, Any]] = msgspec.json.decode(file.read())
    return made
