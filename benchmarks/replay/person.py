"""The person of a replay: kills agents in mid-edit, looks at the reviews, reassigns the work.

A thread beside the launch. It checks that the review of a killed agent holds the very bytes that
the agent left on disk; an agent's death without such a review is a failure of coord.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.replay.agent import plans
from coordinator.client.client import Client
from coordinator.words import requests as rq
from coordinator.words.refusals import Refusal

LOOK_S = 0.05


class Killed(NamedTuple):
    """An agent that was killed with a file half written."""

    task: str
    path: str
    torn: bytes
    at: float


class Person(threading.Thread):
    """Kills the doomed, settles every review. `stop()` and `join()` at the end."""

    def __init__(
        self, root: Path, doomed: Mapping[str, str],
        show: Callable[[rq.Review], None] = lambda review: None,
    ) -> None:
        super().__init__(name="replay-human", daemon=True)
        self.root = root
        self.doomed = dict(doomed)
        self.killed: list[Killed] = []
        self.settled: list[str] = []
        self.proved: set[str] = set()
        self.complaints: list[str] = []
        self._show = show
        self._enough = threading.Event()
        self._client = Client(root)

    def stop(self) -> None:
        """The launch is over."""
        self._enough.set()

    def run(self) -> None:
        """Until stopped."""
        with self._client:
            while not self._enough.wait(LOOK_S):
                try:
                    self._kill()
                    self._settle()
                except Refusal as refusal:
                    self.complaints.append(refusal.message)
                    return

    def verdict(self) -> list[str]:
        """What went wrong, if anything."""
        out = list(self.complaints)
        for one in self.killed:
            if one.task not in self.proved:
                out.append(f"{one.task}'s agent was killed while it wrote {one.path}, but no "
                           "review held what it left")
        for task in self.doomed:
            if not any(one.task == task for one in self.killed):
                out.append(f"{task}'s agent was to be killed, but never got that far")
        return out

    def _kill(self) -> None:
        for ready in sorted((plans(self.root) / "kill").glob("*.ready")):
            said = json.loads(ready.read_text("utf-8"))
            task, path = ready.stem, said["path"]
            # Read before it dies: its launcher may have flagged, and another repaired, the file
            # a moment after. The doomed one does not move any more.
            torn = (self.root / path).read_bytes()
            ready.unlink()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(os.getpgid(said["pid"]), signal.SIGKILL)
            self.killed.append(Killed(task, path, torn, time.monotonic()))

    def _settle(self) -> None:
        for row in self._client.call(rq.Reviews()).items:
            shown = self._client.call(rq.ReviewShow(review=row.review, content=True))
            for one in self.killed:
                if one.task == row.task and any(
                    file.path == one.path and file.kept and file.diff
                    and file.flagged is not None and base64.b64decode(file.flagged) == one.torn
                    for file in shown.files
                ):
                    self.proved.add(one.task)
            self._show(shown)
            task = self._client.call(rq.TaskShow(task=row.task)) if row.task else None
            waits = task is not None and task.state == "review" and task.partial == row.review
            self._client.call(rq.ReviewDecide(
                review=row.review, verdict="reassign" if waits else "keep", by="replay",
                note="settled by the replay",
            ))
            self.settled.append(row.review)
