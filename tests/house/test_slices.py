"""Each slice can be taken away: its folder. The kernel and the others go on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.operations.listing import SLICES
from coordinator.words.requests.table import MODULES

ROOT = Path(__file__).resolve().parent.parent.parent
SLICE_FOLDERS = sorted(p.name for p in (ROOT / "coordinator" / "slices").iterdir() if (p / "__init__.py").exists())


def take_away(name: str, place: Path) -> None:
    """A copy of the program without this slice."""
    for source, copy in ((ROOT, place), (ROOT / "coordinator", place / "coordinator")):
        copy.mkdir(exist_ok=True)
        for entry in source.iterdir():
            if entry.name not in ("coordinator", "slices", "words", "__pycache__", ".git", ".venv"):
                (copy / entry.name).symlink_to(entry)
    slices = place / "coordinator" / "slices"
    slices.mkdir()
    for entry in (ROOT / "coordinator" / "slices").iterdir():
        if entry.name not in (name, "__pycache__"):
            (slices / entry.name).symlink_to(entry)
    words = place / "coordinator" / "words"  # it looks for the slices beside itself
    words.mkdir()
    for entry in (ROOT / "coordinator" / "words").iterdir():
        if entry.name != "__pycache__":
            (words / entry.name).symlink_to(entry)


@pytest.mark.parametrize("name", SLICE_FOLDERS)
def test_a_slice_can_be_taken_away(name: str, tmp_path: Path) -> None:
    take_away(name, tmp_path)
    (tmp_path / "repository").mkdir()
    script = ROOT / "tests" / "house" / "without_a_slice.py"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run([sys.executable, "-P", str(script), name, str(tmp_path / "repository")], env=environment,
                         cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert f"without {name}: {len(SLICES) - (name != 'impact')} slices" in ran.stdout


def test_each_folder_but_one_has_operations() -> None:
    """`impact` hangs in as the judge of changes (`Service.impact`), and has no operation."""
    assert sorted([*(type(part).__name__.lower() for part in SLICES), "impact"]) == SLICE_FOLDERS


def test_a_slice_knows_no_shape_of_another() -> None:
    """All shapes go by `rq.NAME`, which no import contract sees."""
    module_of = {name: module for module, names in MODULES.items() for name in names.split()}
    foreign = []
    for path in (ROOT / "coordinator").rglob("*.py"):
        parts = path.relative_to(ROOT / "coordinator").parts
        if parts[0] in ("slices", "kernel", "store", "rules", "words"):
            home = f"coordinator.slices.{parts[1]}." if parts[0] == "slices" else "coordinator.words."
            for name in re.findall(r"\brq\.(\w+)", path.read_text("utf-8")):
                module = module_of.get(name, "coordinator.words.")
                if not module.startswith((home, "coordinator.words.")):
                    foreign.append(f"{path}: {name}")
    assert not foreign
