"""A unified diff applied to a text, exactly or not at all. Pure.

The form is GNU diff's: hunks of ` `, `-` and `+` lines behind `@@ -a,b +c,d @@`. A hunk goes where
its lines say, or to the one other place with its old lines; nothing is guessed beyond that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_NEWLINE = "\\ No newline"
#: Hunks of one patch.
HUNKS_MAX = 2_000


class DoesNotApply(Exception):
    """Why a patch cannot be applied, in words that end a sentence."""


@dataclass(slots=True)
class _Hunk:
    at: int
    old: list[str]
    new: list[str]

    def add(self, line: str, is_old: bool, is_new: bool) -> None:
        """Add a line of the patch to the text that it is in."""
        text = line if line == "\n" else line[1:]
        if is_old:
            self.old.append(text)
        if is_new:
            self.new.append(text)


def applied(text: str, patch: str) -> str:
    """The text with the patch applied. Its line ends are the text's own.

    Raises:
        DoesNotApply.
    """
    ending = "\r\n" if "\r\n" in text else "\n"
    lines = text.replace("\r\n", "\n").splitlines(keepends=True)
    hunks = _hunks(patch.replace("\r\n", "\n"))
    result: list[str] = []
    done = 0
    for n, hunk in enumerate(hunks, 1):
        position = _place(lines, hunk, done, n)
        result += lines[done:position]
        result += hunk.new
        done = position + len(hunk.old)
    made = "".join([*result, *lines[done:]])
    return made if ending == "\n" else made.replace("\n", "\r\n")


def _hunks(patch: str) -> list[_Hunk]:
    hunks: list[_Hunk] = []
    left_old = left_new = 0
    for line in patch.splitlines(keepends=True):
        if line.startswith(_NO_NEWLINE):
            continue
        if left_old > 0 or left_new > 0:
            is_old, is_new = line[:1] in ("-", " ", "\n"), line[:1] in ("+", " ", "\n")
            if not is_old and not is_new:
                raise DoesNotApply(f"its hunk {len(hunks)} has a line that begins with "
                                   f"{line[:1]!r}")
            hunks[-1].add(line, is_old, is_new)
            left_old -= is_old
            left_new -= is_new
        elif match := _HUNK.match(line):
            if len(hunks) == HUNKS_MAX:
                raise DoesNotApply(f"it has more than {HUNKS_MAX} hunks")
            hunks.append(_Hunk(int(match[1]), [], []))
            left_old, left_new = int(match[2] or 1), int(match[4] or 1)
    if left_old > 0 or left_new > 0:
        raise DoesNotApply(f"its hunk {len(hunks)} is shorter than its head says")
    if not hunks:
        raise DoesNotApply("it has no hunk (`@@ -1,2 +1,3 @@`)")
    _end_of_file(patch, hunks)
    return hunks


def _end_of_file(patch: str, hunks: list[_Hunk]) -> None:
    """A line before `\\ No newline at end of file` has none."""
    lines = patch.splitlines()
    for position, line in enumerate(lines):
        if line.startswith(_NO_NEWLINE) and position:
            last = hunks[-1]
            if lines[position - 1][:1] in ("-", " ") and last.old:
                last.old[-1] = last.old[-1].rstrip("\n")
            if lines[position - 1][:1] in ("+", " ") and last.new:
                last.new[-1] = last.new[-1].rstrip("\n")


def _place(lines: list[str], hunk: _Hunk, done: int, n: int) -> int:
    """The place of a hunk: at or behind `done`."""
    size = len(hunk.old)
    expected = hunk.at - 1 if size else hunk.at
    if expected >= done and lines[expected : expected
                                  + size] == hunk.old and expected <= len(lines):
        return expected
    if not size:
        raise DoesNotApply(f"its hunk {n} stands at line {hunk.at}, which is not there")
    matches = [position for position in range(done, len(lines) - size + 1)
               if lines[position : position + size] == hunk.old]
    if len(matches) == 1:
        return matches[0]
    why = "are not in the file" if not matches else f"stand at {len(matches)} places"
    raise DoesNotApply(f"the lines that its hunk {n} takes out or goes by {why}")
