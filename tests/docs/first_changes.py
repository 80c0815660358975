"""What CONTRIBUTING.md tells of a first change, as a person carries it out: by the line above each block.

`FILE`:                     the block is the file.
`FILE`, empty.
`FILE`, at the end:
`FILE`, before `TEXT`:      above the one line that begins with this text; `after`: below it.
`FILE`, one more after `TEXT`.   The number there goes up.
A block of `sh` is what is typed in the sources, one of `console` what is typed in a repository and comes out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
_STEP = re.compile(r"^`(?P<file>[^`\n]+)`(?:, (?P<how>empty|at the end|before|after|one more after)(?: `(?P<text>[^`\n]+)`)?)?"
                   r"(?:\.$|:\n\n```\w+\n(?P<block>.*?)^```$)", re.M | re.S)


@dataclass(frozen=True)
class Change:
    """One of them. `typed`: commands, and what comes out."""

    steps: list[dict[str, str]]
    run: list[str]
    typed: list[tuple[str, str]]
    files: list[str] = field(default_factory=list)


def read_change(title: str) -> Change:
    """What stands below this title."""
    _, _, rest = TEXT.partition(f"\n### {title}\n")
    text = re.split(r"^##+ ", rest, maxsplit=1, flags=re.M)[0]
    assert text, f"CONTRIBUTING.md tells of no {title!r}"
    steps = [{name: value or "" for name, value in step.groupdict().items()} for step in _STEP.finditer(text)]
    assert len(re.findall(r"^```\w", text, re.M)) == sum(bool(step["block"]) for step in steps) + len(
        re.findall(r"^```(?:sh|console)$", text, re.M)), "a block of which nothing says where it goes"
    run = [line for block in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S) for line in block.splitlines()]
    typed = [(command, shown) for block in re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S)
             for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M)]
    return Change(steps, run, typed, list(dict.fromkeys(step["file"] for step in steps)))


def carry_out(change: Change, copy: Path) -> None:
    """Do it in a copy of the sources."""
    for step in change.steps:
        file = copy / step["file"]
        how, block = step["how"], step["block"]
        if how in ("", "empty"):
            assert not file.exists(), f"{file} is there already"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block, "utf-8")
            continue
        lines = file.read_text("utf-8").splitlines(keepends=True)
        if how == "at the end":
            lines.append(block)
        else:
            (place,) = [n for n, line in enumerate(lines) if line.strip().startswith(step["text"].strip())]
            if how == "one more after":
                lines[place] = re.sub(r"\d+", lambda number: str(int(number[0]) + 1), lines[place])
            else:
                lines.insert(place + (how == "after"), block)
        file.write_text("".join(lines), "utf-8")
