"""What only a terminal shows: a diff in colours. (Plain lists: `coordinator.commands.lists`.)"""

from __future__ import annotations

from rich.text import Text

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

__all__ = [
    "ago", "bar", "columns", "diff", "in_line", "left", "middle", "path", "printable", "span",
]


def diff(text: str) -> Text:
    """A unified diff in colours that also read well beside each other without them."""
    shown = Text()
    for line in text.splitlines():
        style = ""
        if line.startswith(("+++", "---")):
            style = "bold"
        elif line.startswith("@@"):
            style = "cyan"
        elif line.startswith("+"):
            style = "green"
        elif line.startswith("-"):
            style = "red"
        shown.append(line + "\n", style=style)
    return shown
