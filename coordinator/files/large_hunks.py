"""The hunks of two contents that are too large to be compared in memory, by `git diff --no-index`.

Its output is read as it comes: of hunks that nobody asked for only their number is kept.
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

#: No side may be larger (bytes).
SIDE_BYTES_MAX = 64 * 1024 * 1024
#: Git may take so long (seconds).
SECONDS = 20.0
#: Of one hunk, and of one of its lines, no more is kept (bytes).
HUNK_BYTES_MAX, LINE_BYTES_MAX = 40_000, 8_000
_GIT = ("git", "-c", "core.safecrlf=false", "diff", "--no-index", "--no-ext-diff", "--no-textconv",
        "--no-color", "--diff-algorithm=histogram", "--unified=3", "--")


class Hunk(NamedTuple):
    """One of them: its lines with its heading, and whether that is not all of it."""

    number: int
    text: str
    cut: bool


class Hunks(NamedTuple):
    """Those that were asked for, and how many there are. `said`: why there are none."""

    items: list[Hunk]
    total: int
    said: str = ""


class TooLarge(Exception):
    """A side is larger than SIDE_BYTES_MAX, or git took too long."""


def window(before: Source, after: Source, skip: int, limit: int) -> Hunks:
    """So many hunks of the change after the first `skip`.

    Raises:
        TooLarge, OSError
    """
    with ExitStack() as stack:
        names = [_file(stack, side) for side in (before, after)]
        if any(Path(name).stat().st_size > SIDE_BYTES_MAX for name in names):
            raise TooLarge
        process = subprocess.Popen(
            [*_GIT, *names], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, cwd=tempfile.gettempdir(), env=clean_environment())
        assert process.stdout is not None  # it is a pipe
        timer = Timer(SECONDS, process.kill)
        timer.start()
        try:
            hunks = _read(process.stdout, skip, limit)
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


def _file(stack: ExitStack, side: Source) -> str:
    if isinstance(side, Path):
        return str(side)
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="coord-hunks-"))
    place = Path(folder) / "side"
    place.write_bytes(side)
    return str(place)


def _read(output: IO[bytes], skip: int, limit: int) -> Hunks:
    items: list[Hunk] = []
    total, text, size = 0, "", 0
    open_: list[bytes] | None = None
    cut = False

    def close() -> None:
        if open_ is not None:
            items.append(Hunk(total, b"".join(open_).decode("utf-8", "backslashreplace"), cut))

    for line, whole in _lines(output):
        if line.startswith(b"@@ "):
            close()
            total += 1
            open_, cut, size = ([] if skip < total <= skip + limit else None), False, 0
        elif total == 0:
            text = "It is no text." if line.startswith(b"Binary files ") else text
            continue
        if open_ is not None:
            size += len(line)
            cut = cut or not whole or size > HUNK_BYTES_MAX
            if size <= HUNK_BYTES_MAX:
                open_.append(line)
    close()
    return Hunks(items, total, text)


def _lines(output: IO[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The lines, each with its end; of long ones the beginning, and whether it is the whole."""
    while line := output.readline(LINE_BYTES_MAX):
        whole = line.endswith(b"\n")
        rest = line
        while not rest.endswith(b"\n"):
            rest = output.readline(1 << 20)
            if not rest:
                break
        yield (line if whole else line + b"\n"), whole
