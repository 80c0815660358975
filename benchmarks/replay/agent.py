"""The stand-in agent under coord: carries one task, leases what it discovers, takes redirects.

    python -P -m benchmarks.replay.agent T-3    (started by the launcher, in its environment)

It behaves as an agent is asked to: it writes only what it holds; told LOCKED, it takes the task
that it is offered and comes back; chosen out of a circle to give way, it gives its own task back
before it has written anything. The client is imported only when there is something to ask: most
tasks need nothing, and then this program costs hardly more than Python's own start.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.replay.changes import Change, segments
from benchmarks.replay.edits import applied, with_hunks
from benchmarks.replay.plan import Plan, Task, path_of
from benchmarks.replay.worker import carry
from coordinator.words.pickled import Pickled

if TYPE_CHECKING:
    from coordinator.client.client import Client

#: Redirects within redirects.
DEPTH_MAX = 2
#: One wait in line, and all waits for one acquisition, in seconds.
WAIT_S = 15.0
PATIENCE_S = 60.0
TTL_S = 120.0
#: How often a commit of regions is made anew on what others have made of the file meanwhile.
COMMITS_MAX = 20
#: What a task that was given back exits with (EX_TEMPFAIL).
GIVEN_BACK = 75
#: How long an agent that is to be killed in mid-edit waits for it (seconds).
DOOMED_S = 30.0
#: Begins the lines of output that the benchmark reads.
SIGN = "replay-record "
REDIRECTED = "redirected to "


class GivenBack(Pickled, Exception):
    """The task cannot be finished now; nothing was written."""

    def __init__(self, files: list[str]) -> None:
        super().__init__(", ".join(files))
        self.files = files


def plans(root: Path) -> Path:
    """Where a replay keeps the plans of its tasks: `T-3.json` each with that one task. Beside the
    repository: its agents note there how far they are, and `.coord` is read-only for them."""
    return root.with_name(f"{root.name}.replay")


class StandIn:
    """One agent's process."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._client: Client | None = None
        self.waited_s = 0.0

    def carry_out(self, task_id: str, depth: int = 0) -> None:
        """Carry one claimed task to its end; says what it cost on a line of its own.

        Raises:
            GivenBack: it cannot be finished now.
        """
        plan = Plan.load(plans(self.root) / f"{task_id}.json")
        task = plan.tasks[0]
        spent = {"think": 0.0, "nested": 0.0, "waited": 0.0}
        started = time.perf_counter()

        def think(seconds: float) -> None:
            at = time.perf_counter()
            time.sleep(seconds)
            spent["think"] += time.perf_counter() - at

        def before_files(files: list[str]) -> bool:
            at = time.perf_counter()
            nested = self._acquire(task_id, files, depth)
            spent["nested"] += nested
            spent["waited"] += time.perf_counter() - at - nested
            return nested > 0  # the other task may have been in the very files it holds

        carry(
            task, plan, self.root, before_files=before_files, think=think, say=_say,
            baseline=lambda path: self._baseline(plan, path),
            halfway=lambda path: self._halfway(task_id, path),
            write_regions=lambda change, hunks: self._write_regions(
                task._replace(id=task_id), change, hunks),
        )
        whole = time.perf_counter() - started
        _say(SIGN + json.dumps({
            "task": task_id, "think_s": spent["think"], "waited_s": spent["waited"],
            "write_s": whole - sum(spent.values()),
        }))

    def _write_regions(self, task: Task, change: Change, hunks: tuple[int, ...]) -> bool:
        """Commit the regions that these hunks change in the file as it is now; false: they are not
        all leased, and it has to be written whole (which is leased then).

        Raises:
            GivenBack: the whole file is not to be had.
        """
        own = {one for one in (*task.files, *task.discovered) if path_of(one) == change.path}
        if own == {change.path} or not own:
            return False
        from benchmarks.replay import by_region
        from coordinator.words import requests as rq
        from coordinator.words.refusals import HELD, Code, Refusal

        client = self.client()
        for _ in range(COMMITS_MAX):
            now = (self.root / change.path).read_bytes()
            made = with_hunks(now, change, hunks or tuple(range(len(change.hunks))))
            if made == now:
                return True
            names = by_region.regions(change.path, now, made)
            if names is None or any(not _held(f"{change.path}::{name}", own) for name in names):
                break
            try:
                client.call(rq.CommitRegion(agent=str(client.agent), regions=[
                    rq.RegionText(resource=f"{change.path}::{one.name}", text=one.text,
                                  content_hash=one.was)
                    for one in by_region.texts(change.path, now, made, names)]))
                return True
            except Refusal as refusal:
                _say(f"{refusal.code}: {refusal.message}")
                if refusal.code not in (Code.REGION_CHANGED, *HELD, Code.VERSION_CHANGED):
                    raise
        self._acquire(task.id, [change.path], DEPTH_MAX)
        now = (self.root / change.path).read_bytes()
        made = with_hunks(now, change, hunks or tuple(range(len(change.hunks))))
        (self.root / change.path).write_bytes(made)
        return True

    def client(self) -> Client:
        """The connection to coord, made when it is first needed."""
        if self._client is None:
            from coordinator.client.client import Client

            self._client = Client(self.root)
        return self._client

    def _acquire(self, task_id: str, files: list[str], depth: int) -> float:
        """Lease discovered files; seconds that went into other tasks meanwhile.

        Raises:
            GivenBack: they are under review, or it gives way in a circle, or waits for too long.
        """
        from coordinator.words import requests as rq
        from coordinator.words.refusals import HELD, Code, Refusal

        client, nested, wait_s = self.client(), 0.0, 0.0
        agent, deadline = str(client.agent), time.monotonic() + PATIENCE_S
        while True:
            try:
                client.call(rq.Acquire(
                    agent=agent, resources=files, task=task_id, ttl_s=TTL_S, wait_s=wait_s,
                    description=f"discovered while on {task_id}", reentrant=True,
                ))
                return nested
            except Refusal as refusal:
                if refusal.code is Code.REGION_UNKNOWN:
                    files = [path_of(one) for one in files]  # another has removed it
                    continue
                if refusal.code not in (*HELD, Code.REVIEW_OPEN):
                    raise
                _say(f"{refusal.code}: {refusal.message}")
                place = refusal.facts.get("acquisition_id")
                stuck = refusal.code is Code.REVIEW_OPEN or refusal.facts.get("give_way")
                if stuck or time.monotonic() > deadline:
                    self._step_out(place)
                    raise GivenBack(files) from None
                offered = refusal.facts.get("redirect")
                at = time.perf_counter()
                if offered and depth < DEPTH_MAX and self._take(offered["task"], depth + 1):
                    nested += time.perf_counter() - at
                    deadline = time.monotonic() + PATIENCE_S
                wait_s = WAIT_S

    def _take(self, task_id: str, depth: int) -> bool:
        """Do the offered task meanwhile; whether it was still to be had."""
        from coordinator.words import requests as rq
        from coordinator.words.refusals import Refusal

        client = self.client()
        agent = str(client.agent)
        try:
            client.call(rq.TaskClaim(agent=agent, task=task_id, ttl_s=TTL_S))
        except Refusal as refusal:
            _say(f"{task_id} is gone: {refusal.message}")
            return False
        _say(REDIRECTED + task_id)
        try:
            self.carry_out(task_id, depth)
            client.call(rq.TaskDone(agent=agent, task=task_id, result="done on a redirect"))
        except GivenBack as back:
            self.give_back(task_id, back.files)
        return True

    def give_back(self, task_id: str, files: list[str]) -> None:
        """Return a task to the backlog, with what it turned out to need."""
        from coordinator.words import requests as rq

        _say(f"giving back {task_id}: it needs {', '.join(files)}")
        client = self.client()
        client.call(rq.TaskFail(agent=str(client.agent), task=task_id, blocked=files,
                                reason="met files that others hold"))

    def _step_out(self, place: Any) -> None:
        from coordinator.words import requests as rq
        from coordinator.words.refusals import Refusal

        if place:
            client = self.client()
            try:
                client.call(rq.Withdraw(agent=str(client.agent), acquisition_id=str(place)))
            except Refusal as refusal:
                _say(refusal.message)

    def _baseline(self, plan: Plan, path: str) -> bytes | None:
        """What a torn file was before: from the latest review that knows it whole."""
        import base64

        from coordinator.words import requests as rq

        client = self.client()
        found = client.call(rq.Reviews(state="all", limit=1000)).items
        change = next(c for c in plan.changes.values() if path in c.paths)
        parts = segments(change.old.data if change.old else b"", change.hunks)
        for row in reversed(found):
            if not any(file.path == path for file in row.files):
                continue
            shown = client.call(rq.ReviewShow(review=row.review, content=True))
            for file in shown.files:
                if file.path == path and file.baseline is not None:
                    data = base64.b64decode(file.baseline)
                    if applied(data, parts) is not None:
                        return data
        return None

    def _halfway(self, task_id: str, path: str) -> None:
        """Half of the file is on disk. If the benchmark wants this agent dead, say so and wait."""
        armed = plans(self.root) / "kill" / task_id
        if not armed.exists() or armed.read_text("utf-8") != path:
            return
        ready = armed.with_suffix(".ready")
        new = armed.with_suffix(".new")
        new.write_text(json.dumps({"pid": os.getpid(), "path": path}), "utf-8")
        armed.unlink()
        new.rename(ready)
        time.sleep(DOOMED_S)


def _held(name: str, own: set[str]) -> bool:
    return any(f"{name}.".startswith(f"{one}.") for one in own)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """0: done; 75: given back; 2: usage."""
    if len(arguments) != 1 or "COORD_ROOT" not in os.environ:
        sys.stderr.write(
            "usage: python -P -m benchmarks.replay.agent TASK (started by coord)\n"
        )
        return 2
    agent = StandIn(Path(os.environ["COORD_ROOT"]))
    try:
        agent.carry_out(arguments[0])
    except GivenBack as back:
        agent.give_back(arguments[0], back.files)
        return GIVEN_BACK
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
