"""Draw `coord status` as it is in the middle of a day's work: `make screenshot`.

A real coordinator in a temporary repository, real requests; only the agents' thinking is left out.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from coordinator.cli.status import svg
from coordinator.client.client import Client
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal

PICTURE = Path(__file__).resolve().parent.parent / "context_archive" / "status.svg"
TASKS = [
    ("Refactor the normalization constants", ["utils/constants.py", "utils/units.py"]),
    ("Add the AOI report parser", ["parsers/aoi.py"]),
    ("Move the SQL into named queries", ["store/**/*.sql"]),
    ("Teach the importer about time zones", ["importer/dates.py", "utils/constants.py"]),
    ("Type the payment module", ["pay/charge.py"]),
    ("Document the retry rules", ["docs/"]),
    ("Drop the legacy client", ["client/legacy.py"]),
    ("Speed up the index", ["search/index.py"]),
]


def draw_status() -> None:
    """Draw the picture of `coord status` in the documents."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "shop"
        for _, names in TASKS:
            for name in names:
                if name.endswith(".py"):
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    (root / name).write_text("# before\n", "utf-8")
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        boss = Client(root)
        for title, names in TASKS:
            boss.call(rq.TaskAdd(title=title, resources=names))
        dead = Client(root, agent="codex-1")
        dead.claim("T-5")
        (root / "pay/charge.py").write_text("# before\ndef charge() -> None: ...\n", "utf-8")
        dead.call(rq.Leave(agent="codex-1", clean=False, reason="killed", log_tail="thinking …\n"))
        for name, task, doing in (
            ("claude-1", "T-1", "editing utils/constants.py"),
            ("claude-2", "T-2", "running the parser's tests"),
            ("gemini-1", "T-3", "reading store/queries"),
        ):
            agent = Client(root, agent=name)
            agent.claim(task)
            agent.heartbeat(doing)
        try:
            Client(root, agent="codex-2").acquire("utils/constants.py")
        except Refusal as refusal:
            offered = refusal.facts["redirect"]["task"]
            second = Client(root, agent="codex-2")
            second.claim(offered)
            second.done(offered)
        reply = boss.call(rq.Status(events=8))
        reply.root = "~/shop"  # the temporary folder's name tells nobody anything
        svg(reply, str(PICTURE))
        boss.call(rq.Shutdown())
