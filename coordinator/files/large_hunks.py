"""`window` compares two contents that are too large for memory, by `git diff --no-index`.

`window` reads git's output line by line. Hunks outside the window are counted and not kept.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Timer
from typing import IO, NamedTuple

from coordinator.files.git import clean_environment
from coordinator.files.verdict_steps import Source

#: Neither content may be larger (bytes).
SIDE_BYTES_MAX = 64 * 1024 * 1024
#: The time limit of git (seconds).
SECONDS = 20.0
#: The longest hunk, and the longest line of a hunk (bytes); the rest is cut.
HUNK_BYTES_MAX, LINE_BYTES_MAX = 40_000, 8_000
_GIT = ("git", "-c", "core.safecrlf=false", "diff", "--no-index", "--no-ext-diff", "--no-textconv",
        "--no-color", "--diff-algorithm=histogram", "--unified=3", "--")


class Hunk(NamedTuple):
    """One hunk: its number, its heading with its lines, and whether lines were cut off."""

    number: int
    text: str
    cut: bool


class Hunks(NamedTuple):
    """The hunks in a window, and the number of all hunks. `said` tells why there are none."""

    items: list[Hunk]
    total: int
    said: str = ""


class TooLarge(Exception):
    """A content is larger than SIDE_BYTES_MAX, or git failed or took too long."""


def window(before: Source, after: Source, skip: int, limit: int) -> Hunks:
    """Return at most `limit` hunks of the change, after the first `skip` ones.

    Raises:
        TooLarge, OSError
    """
    with ExitStack() as stack:
        names = [_make_file(stack, side) for side in (before, after)]
        if any(Path(name).stat().st_size > SIDE_BYTES_MAX for name in names):
            raise TooLarge
        process = subprocess.Popen(
            [*_GIT, *names], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, cwd=tempfile.gettempdir(), env=clean_environment())
        assert process.stdout is not None  # `stdout` is a pipe
        timer = Timer(SECONDS, process.kill)
        timer.start()
        try:
            hunks = _read_hunks(process.stdout, skip, limit)
            process.stdout.close()
            code = process.wait()
        finally:
            timer.cancel()
            with suppress(OSError):
                process.kill()
            process.wait()
        if code not in (0, 1):
            raise TooLarge
    return hunks


def _make_file(stack: ExitStack, side: Source) -> str:
    """Return the path of a file with this content. Bytes go into a temporary file first."""
    if isinstance(side, Path):
        return str(side)
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="coord-hunks-"))
    place = Path(folder) / "side"
    place.write_bytes(side)
    return str(place)


def _read_hunks(output: IO[bytes], skip: int, limit: int) -> Hunks:
    items: list[Hunk] = []
    total, reason, size = 0, "", 0
    kept_lines: list[bytes] | None = None
    cut = False

    def finish_hunk() -> None:
        if kept_lines is not None:
            text = b"".join(kept_lines).decode("utf-8", "backslashreplace")
            items.append(Hunk(total, text, cut))

    for line, is_whole in _read_lines(output):
        if line.startswith(b"@@ "):
            finish_hunk()
            total += 1
            kept_lines, cut, size = ([] if skip < total <= skip + limit else None), False, 0
        elif total == 0:
            reason = "It is no text." if line.startswith(b"Binary files ") else reason
            continue
        if kept_lines is not None:
            size += len(line)
            cut = cut or not is_whole or size > HUNK_BYTES_MAX
            if size <= HUNK_BYTES_MAX:
                kept_lines.append(line)
    finish_hunk()
    return Hunks(items, total, reason)


def _read_lines(output: IO[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield each line with a newline at its end, cut if long, and whether the line is whole."""
    while line := output.readline(LINE_BYTES_MAX):
        is_whole = line.endswith(b"\n")
        rest = line
        while not rest.endswith(b"\n"):
            rest = output.readline(1 << 20)
            if not rest:
                break
        yield (line if is_whole else line + b"\n"), is_whole
