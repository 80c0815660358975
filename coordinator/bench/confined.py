"""`coord bench confine`: what it costs a shell command to be confined.

The command that the daemon would hand to the agent (`bash -c true`, with N files of others
read-only), against the bare `bash -c true`, turn by turn.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import msgspec

from coordinator.daemon.confinement import Confinement
from coordinator.service.enforcement.shell_commands import Held


class Figure(msgspec.Struct):
    """Milliseconds; `added_ms` is the median of paired differences."""

    held: int
    bare_p50_ms: float
    confined_p50_ms: float
    added_ms: float


def run(held: Sequence[int], runs: int, folder: Path | None = None) -> list[Figure]:
    """Both in turn, `runs` times for each number of held files.

    Raises:
        RuntimeError: commands cannot be confined on this machine, or were not.
    """
    out = []
    with tempfile.TemporaryDirectory(prefix="coord-confine-", dir=folder) as name:
        root = Path(name)
        confinement = Confinement(root / "tables", True)
        if not confinement.possible:
            raise RuntimeError("shell commands cannot be confined here (no user namespaces)")
        for count in held:
            files = [root / f"held {n}.py" for n in range(count)]
            for file in files:
                file.write_text("held\n", "utf-8")
            protect = [Held(str(f), f.name, "another", "file") for f in files]
            _check(confinement, protect, files[0])
            wrapped = confinement.wrap(protect, "true")
            bare, confined = [], []
            for number in range(-3, runs):
                bare_s, confined_s = _time(root, "true"), _time(root, wrapped)
                if number >= 0:
                    bare.append(bare_s * 1000)
                    confined.append(confined_s * 1000)
            out.append(Figure(count, median(bare), median(confined),
                              median(c - b for c, b in zip(confined, bare, strict=True))))
    return out


def _time(root: Path, command: str) -> float:
    before = time.perf_counter()
    subprocess.run(["bash", "-c", command], cwd=root, check=True)
    return time.perf_counter() - before


def _check(confinement: Confinement, protect: Sequence[Held], file: Path) -> None:
    """What is timed really protects."""
    command = confinement.wrap(protect, f"echo changed > {str(file)!r}")
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    if done.returncode == 0 or file.read_text("utf-8") != "held\n":
        raise RuntimeError("a confined command changed a held file")
