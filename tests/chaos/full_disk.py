"""Run by test_full_disk on a small disk of its own: its agent fills it; room is made a little later.
Prints JSON."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from tests.waiting import until

mount = Path(sys.argv[1])
COORD = [sys.executable, "-P", "-m", "coordinator.cli.main"]
env = {**os.environ, "XDG_STATE_HOME": str(mount / "state")}
root, ballast, refused = mount / "repo", mount / "ballast", mount / "refused"
root.mkdir()
(root / "coord.toml").write_text("[watch]\nenabled = false\n")
log = root / ".coord/daemon.log"


def coord(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COORD, *words], cwd=root, capture_output=True, text=True, env=env, check=False)


def make_room() -> None:
    """Once the coordinator was refused by the disk, too."""
    until(lambda: ballast.exists() and coord("lock", "b.py", "--agent", "ann").returncode == 9, 60)
    ballast.unlink()


coord("task", "add", "x", "--resource", "a.py")
room = threading.Thread(target=make_room, daemon=True)
room.start()
done = coord("launch", "-", "--agent", "shell", "--command", f"sh -c 'cat /dev/zero > \"{ballast}\"; exit 0'", "-n", "1")
room.join(60)
state = coord("task", "show", "T-1").stdout.split()[1]
coord("down")
print(json.dumps({"code": done.returncode, "said": done.stdout + done.stderr, "state": state}))
