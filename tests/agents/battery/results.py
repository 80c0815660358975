"""The results that the repository keeps: `tests/data/battery/CLI.json`, one line for each entry."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "data" / "battery"
#: Results are written only where somebody asked for that (`make battery`).
WRITES = "COORD_TEST_BATTERY_WRITE"


def recorded(agent: str, user: str, part: str) -> dict[str, str]:
    """What is kept of one CLI, as `root` or `user`: its `attacks` or `actions`."""
    file = FOLDER / f"{agent}.json"
    kept = json.loads(file.read_text()) if file.exists() else {}
    return dict(kept.get(user, {}).get(part, {}))


def record(agent: str, version: str, user: str, part: str, outcomes: Mapping[str, str]) -> None:
    """As root and as a user may end at once: one writes at a time."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{agent}.json"
    turn = os.open(FOLDER, os.O_RDONLY)
    try:
        fcntl.flock(turn, fcntl.LOCK_EX)
        kept = json.loads(file.read_text()) if file.exists() else {}
        kept["version"] = version
        kept.setdefault(user, {})[part] = dict(outcomes)
        users = {name: dict(sorted(kept[name].items(), reverse=True)) for name in ("root", "user") if name in kept}
        file.write_text(json.dumps({"version": version, **users}, indent=1, ensure_ascii=False) + "\n")
    finally:
        os.close(turn)


def worse(agent: str, user: str, part: str, outcomes: Mapping[str, str], why: Mapping[str, str], rank: Mapping[str, int]) -> list[str]:
    """What came out worse than is kept, in words. What is not kept must be as good as can be.

    What is being written down anew is compared with nothing.
    """
    if writes():
        return []
    kept = recorded(agent, user, part)
    best = min(rank, key=lambda one: rank[one])
    return [f"{name}: {outcome}, kept is {kept.get(name, 'nothing')}; {why.get(name, '')}"
            for name, outcome in outcomes.items() if rank[outcome] > rank[kept.get(name, best)]]


def writes() -> bool:
    return bool(os.environ.get(WRITES))
