"""Plain lists and names (`coordinator.commands.lists`), for commands that need a terminal."""

from __future__ import annotations

from coordinator.commands.lists import (
    ago,
    bar,
    columns,
    in_line,
    left,
    middle,
    path,
    printable,
    span,
)

__all__ = ["ago", "bar", "columns", "in_line", "left", "middle", "path", "printable", "span"]
