"""`python -m tests.agents.cost [AGENT]`: what coord costs a coding agent's edit, command and conversation.

The same script runs by the CLI alone, typed in a wired repository, and in a session, in turn. A time is that
between the model's wish for a call and the model's hearing of its result. Medians, and ratios to the CLI alone.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.agents import offline
from tests.agents.conversation import Edit, Read, Say, Script, Scripted, Shell
from tests.agents.model_server import ModelServer
from tests.agents.stand import Stand
from tests.agents.wired import PROFILES, Wired

WAYS = ("bare", "typed", "session")
#: Rounds of each way, and calls of each kind in a round.
ROUNDS, CALLS = 3, 10
EDIT, COMMAND, TALK = "edit", "shell command", "conversation"


def made(folder: Path, stand: Stand, agent: str, way: str) -> Wired:
    """A repository of 50 files, wired unless the CLI is to be alone."""
    folder.mkdir()
    for number in range(50):
        (folder / f"f{number}.txt").write_text("".join(f"line {line}\n" for line in range(20)))
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("-c", "user.name=A", "-c", "user.email=a@localhost", "commit", "-qm", "one")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    wired = Wired(folder, stand)
    if way != "bare":
        wired.coord("init", "--agent", PROFILES[agent], "--yes", "--no-shims")
        wired.coord("up")
    return wired


def measured(wired: Wired, agent: str, way: str) -> dict[str, list[float]]:
    """Milliseconds of each call by its kind, and the characters of the last request to the model."""
    result: dict[str, list[float]] = {EDIT: [], COMMAND: [], TALK: []}

    def script(_: Scripted) -> Script:
        yield Read("f1.txt")
        yield Shell("true")  # the first command of a typed session makes it
        for number in range(CALLS):
            began = time.perf_counter()
            yield Edit("f1.txt", f"line {number}", f"changed {number}")
            result[EDIT].append(1000 * (time.perf_counter() - began))
        for number in range(CALLS):
            began = time.perf_counter()
            yield Shell(f"echo {number}")
            result[COMMAND].append(1000 * (time.perf_counter() - began))
        yield Say("Done.")

    ran = (wired.run_in_session if way == "session" else wired.run)(agent, script)
    assert ran.code == 0, ran.tail()
    result[TALK].append(max(len(json.dumps(turn.body)) for turn in ran.model.log))
    return result


def main(agent: str) -> None:
    offline.cut_off()
    figures: dict[str, dict[str, list[float]]] = {way: {EDIT: [], COMMAND: [], TALK: []} for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="coord-cost-") as folder, ModelServer() as server:
        stand = Stand(Path(folder) / "runs", server)
        for number in range(ROUNDS):
            for way in WAYS:
                wired = made(Path(folder) / f"{way}{number}", stand, agent, way)
                for kind, values in measured(wired, agent, way).items():
                    figures[way][kind] += values
                if way != "bare":
                    wired.coord("down")
        stand.close()
    sys.stdout.write(f"{agent:<8} {EDIT:>20} {COMMAND:>20} {TALK:>26}\n")
    for way in WAYS:
        cells = []
        for kind, unit in ((EDIT, "ms"), (COMMAND, "ms"), (TALK, "characters")):
            value, alone = statistics.median(figures[way][kind]), statistics.median(figures["bare"][kind])
            cells.append(f"{value:.0f} {unit} {value / alone:.2f}x")
        sys.stdout.write(f"{way:<8} {cells[0]:>20} {cells[1]:>20} {cells[2]:>26}\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "claude")
