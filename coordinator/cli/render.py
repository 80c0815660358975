"""How instants, diffs and bars look on a terminal. Formats only; asks nobody."""

from __future__ import annotations

from rich.text import Text

from coordinator.words import filename
from coordinator.words.clock import from_iso


def left(expires_at: str, now_ms: int) -> str:
    """Time left, `29m`, `45s`, `2h10m`; `ended` when over."""
    rest = (from_iso(expires_at) - now_ms) / 1000
    return "ended" if rest <= 0 else span(rest)


def ago(at: str, now_ms: int) -> str:
    """Time since, `12s ago`."""
    return span(max(0.0, (now_ms - from_iso(at)) / 1000)) + " ago"


def span(seconds: float) -> str:
    """A duration in at most two units."""
    whole = int(seconds)
    if whole < 1:
        return "<1s"
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes}m{rest:02d}s" if minutes < 10 and rest else f"{minutes}m"
    hours, rest = divmod(whole, 3600)
    if hours >= 48:
        return f"{hours // 24}d"
    return f"{hours}h{rest // 60:02d}m" if rest >= 60 else f"{hours}h"


def bar(done: int, total: int, width: int) -> str:
    """`████░░░░ 12/24`."""
    full = 0 if total == 0 else round(width * done / total)
    return "█" * full + "░" * (width - full) + f" {done}/{total}"


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


def printable(text: str) -> str:
    """Text of strangers without what could steer a terminal; a byte of a file's name that is no
    UTF-8 as `\\xe4`."""
    return "".join(sign if sign in "\n\t" or (ord(sign) >= 32 and ord(sign) != 127) else "\ufffd"
                   for sign in filename.shown(text))


def path(name: str) -> str:
    """The name of a file, in one line."""
    return printable(name).replace("\n", "\\n").replace("\t", "\\t")
