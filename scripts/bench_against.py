"""This checkout beside an older one, in turn, in one run: `make bench-against REV=b1912ff`.

The older one is cloned and installed below the user's cache once. Each round measures one after the
other; what is printed is the median of the rounds, and this one over that one. How long this disk
takes to flush stands beside them, for figures of two disks are not alike.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "coord" / "revisions"
OURS = "coord"
SQLITE = "sqlite, a transaction each"


def install_revision(revision: str) -> Path:
    """The interpreter of an installed older checkout."""
    full = subprocess.run(["git", "rev-parse", f"{revision}^{{commit}}"], cwd=ROOT, check=True,
                          capture_output=True, text=True).stdout.strip()
    place = CACHE / full
    python = place / ".venv" / "bin" / "python"
    if not (place / ".ready").exists():
        subprocess.run(["git", "clone", "--quiet", "--no-checkout", str(ROOT), str(place)],
                       check=True)
        subprocess.run(["git", "checkout", "--quiet", full], cwd=place, check=True)
        subprocess.run([sys.executable, "-m", "venv", str(python.parent.parent)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet",
                        "--disable-pip-version-check", "--editable", str(place)], check=True)
        (place / ".ready").touch()
    return python


def list_commands(python: Path) -> list[str]:
    """How that checkout's benchmarks are run: they were a command of the program once."""
    if (python.parent.parent.parent / "benchmarks" / "__main__.py").exists():
        return [str(python), "-m", "benchmarks"]
    return [str(python.with_name("coord")), "bench"]


def measure(command: list[str], where: Path, *words: str) -> Any:
    """What one benchmark reports."""
    ran = subprocess.run([*command, *words, "--json"], cwd=where, capture_output=True, text=True,
                         check=True)
    return json.loads(ran.stdout)


def measure_locks(command: list[str], where: Path, clients: str, seconds: str) -> dict[str, float]:
    """Lock pairs a second, and how often SQLite with a transaction each does that, by clients."""
    report = measure(command, where, "locks", "--clients", clients, "--seconds", seconds)
    rates = {(row["contender"], row["clients"]): row["rate"] for row in report["figures"]}
    figures: dict[str, float] = {}
    for count in (int(text) for text in clients.split(",")):
        figures[f"lock pairs a second, {count} clients"] = rates[OURS, count]
        figures[f"times SQLite, {count} clients"] = rates[OURS, count] / rates[SQLITE, count]
    return figures


def measure_hook(command: list[str], where: Path) -> dict[str, float]:
    """A guarded write over a bare interpreter (less is better)."""
    return {"guarded write over a bare interpreter": measure(command, where, "hook")["ratio"]}


def measure_growth(command: list[str], where: Path) -> dict[str, float]:
    """Decisions in process, in microseconds (less is better)."""
    figures: dict[str, float] = {}
    for words, name in ((("dispatch", "--tasks", "10000", "--held", "0"), "dispatch"),
                        (("overlap", "--leases", "10000"), "overlap")):
        report = measure(command, where, *words)
        for row in report.get("points") or report.get("items", []):
            label = row.get("kind") or row.get("what") or row.get("name") or ""
            for key, value in row.items():
                if key.endswith("_us") or key == "us":
                    figures[f"{name} {label} {key}".replace("  ", " ")] = value
    return figures


def measure_flush() -> float:
    """How long this disk takes to flush a page (ms, median)."""
    import time

    taken = []
    with tempfile.NamedTemporaryFile(dir=tempfile.gettempdir()) as file:
        for _ in range(200):
            file.write(b"x" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(1000 * (time.perf_counter() - began))
    return statistics.median(taken)


def main() -> int:
    """Measure both in turn, and print them side by side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", default="1,8,64")
    parser.add_argument("--seconds", default="3")
    parser.add_argument("--only", choices=("locks", "hook", "growth"), default=None)
    given = parser.parse_args()
    theirs, ours = install_revision(given.revision), ROOT / ".venv" / "bin" / "python"
    sides = {given.revision: (list_commands(theirs), theirs.parent.parent.parent),
             "here": (list_commands(ours), ROOT)}
    found: dict[str, dict[str, list[float]]] = {name: {} for name in sides}
    for _ in range(given.rounds):
        for name, (command, where) in sides.items():
            figures: dict[str, float] = {}
            if given.only in (None, "locks"):
                figures |= measure_locks(command, where, given.clients, given.seconds)
            if given.only in (None, "hook"):
                figures |= measure_hook(command, where)
            if given.only in (None, "growth"):
                figures |= measure_growth(command, where)
            for key, value in figures.items():
                found[name].setdefault(key, []).append(value)
    print(f"median of {given.rounds} rounds in turn; this disk flushes in {measure_flush():.3f} ms")
    print(f"{'':48}{given.revision:>12}{'here':>12}{'here/that':>12}")
    for key, values in found["here"].items():
        if key in found[given.revision]:
            that, this = statistics.median(found[given.revision][key]), statistics.median(values)
            print(f"{key:48}{that:12,.2f}{this:12,.2f}{this / that:12.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
