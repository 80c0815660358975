"""Run by test_bad_disk on a small disk of its own: what a start says there. Prints JSON."""

import json
import os
import subprocess
import sys
from pathlib import Path

mount, kind = Path(sys.argv[1]), sys.argv[2]
COORD = [sys.executable, "-P", "-m", "coordinator.cli.main"]
env = {**os.environ, "XDG_STATE_HOME": str(mount / "state")}


def coord(root: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run([*COORD, *words], cwd=root, capture_output=True, text=True, env=env, check=False)
    return done.returncode, done.stderr


def fill() -> None:
    """No byte, or no inode, is left."""
    number = 0
    try:
        while True:
            number += 1
            if kind == "inodes":
                (mount / f"ballast{number}").touch()
            else:
                with (mount / "ballast").open("ab", buffering=0) as file:
                    file.write(b"\0" * 4096)
    except OSError:
        pass


old, new = mount / "old", mount / "new"
for root in (old, new):
    root.mkdir()
    (root / "sub").mkdir()
    if root == old:
        for words in (["init"], ["lock", "a.py", "--agent", "ann"], ["down"]):
            code, said = coord(root, *words)
            assert code == 0, (words, code, said)
        for part in root.glob(".coord/coord.sqlite3-*"):
            part.unlink()  # it cannot be written to without them
before = (old / ".coord/coord.sqlite3").read_bytes()
fill()
told = {"fresh": coord(new, "lock", "a.py", "--agent", "ann"), "prepared": coord(old, "locks")}
for ballast in mount.glob("ballast*"):
    ballast.unlink()
told["after"] = coord(old, "locks")
coord(old, "down")
told["whole"] = (0 if len(before) > 100_000 else 1, "")
print(json.dumps(told))
