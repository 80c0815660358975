"""Two releases of a made-up package, large enough that files are shared by several tasks."""

import random
from pathlib import Path

import pytest


def _module(chance: random.Random, name: str, functions: int) -> list[str]:
    lines = [f'"""Module {name}."""\n', "\n", "import os\n"]
    for n in range(functions):
        lines += ["\n", "\n", f"def {name}_{n}(value):\n"]
        lines += [f"    value = value + {chance.randrange(5)}\n" for _ in range(6)]
        lines.append("    return value\n")
    return lines


def release(root: Path, seed: int) -> tuple[Path, Path]:
    """Write OLD and NEW below `root`; the same seed gives the same trees."""
    chance = random.Random(seed)
    old, new = root / "old", root / "new"
    for name in ("core", "types", "parser", "report", "moved", "dropped", "cli"):
        lines = _module(chance, name, 12 if name == "core" else 6)
        edited = [
            line.replace("value", "item") if chance.random() < 0.12 else line for line in lines
        ]
        for tree, content in ((old, lines), (new, edited)):
            path = tree / "pack" / f"{name}.py"
            if tree is new and name == "moved":
                path = tree / "pack" / "sub" / "renamed.py"
            if tree is new and name == "dropped":
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            end = "\r\n" if name == "types" else "\n"
            path.write_bytes("".join(content).replace("\n", end).encode())
    (old / "pack" / "data.bin").write_bytes(bytes(range(256)))
    (new / "pack" / "data.bin").write_bytes(bytes(reversed(range(256))))
    # A file where a directory was, and the reverse.
    (old / "pack" / "shape").write_text("a file\n")
    (new / "pack" / "shape").mkdir()
    (new / "pack" / "shape" / "__init__.py").write_text("# a package\n")
    (old / "docs").mkdir()
    (old / "docs" / "index.txt").write_text("one\ntwo\n")
    (new / "docs").write_text("all of it\n")
    (new / "run.sh").write_text("#!/bin/sh\n")
    (new / "run.sh").chmod(0o755)
    (new / "latest").symlink_to("pack/core.py")
    return old, new


@pytest.fixture
def releases(tmp_path: Path) -> tuple[Path, Path]:
    return release(tmp_path, seed=3)
