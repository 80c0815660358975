"""The ground that a replay runs on: a fresh repository with OLD in it, and the backlog of its plan.

Everything lies in a directory of its own and is gone afterwards, unless it is to be kept. The
repository that the benchmark is started in is never touched.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.replay.agent import plans
from benchmarks.replay.changes import Kind
from benchmarks.replay.plan import Plan, Task
from coordinator.client.client import Client
from coordinator.words import requests as rq

CONFIG = """\
# A replay settles its reviews itself, within moments: nobody may build on torn files until then.
[review]
quarantine = true
[leases]
retry_s = 1
[sweep]
interval_s = 2
[backlog]
backoff_s = 0.2
attempts_max = 20
[watch]
unleased = "record"
"""
#: Files of the ground itself, which are in neither release.
OWN_FILES = frozenset({"coord.toml"})
_GIT = ("-c", "user.name=replay", "-c", "user.email=replay@localhost", "-c", "core.autocrlf=false",
        "-c", "commit.gpgsign=false")


class ScratchRepository:
    """A repository for one replay; a context manager."""

    def __init__(self, old: Path, keep: Path | None = None) -> None:
        """Copy OLD and commit it.

        Raises:
            OSError: OLD cannot be read, or there is no room; FileExistsError: `keep` is in use.
        """
        self._kept = keep is not None
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            self._above = keep.resolve()
        else:
            self._above = Path(tempfile.mkdtemp(prefix="coord-replay-")).resolve()
        self.root = self._above / "repo"
        try:
            shutil.copytree(old, self.root, symlinks=True,
                            ignore=shutil.ignore_patterns("__pycache__", ".git", "*.pyc"))
            self.root.chmod(0o755)
            (self.root / "coord.toml").write_text(CONFIG, "utf-8")
            for args in (("init", "-q"), ("add", "-A", "-f"), ("commit", "-q", "-m", "OLD")):
                subprocess.run(["git", *_GIT, *args], cwd=self.root, check=True,
                               capture_output=True)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ScratchRepository:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove it, unless it is kept."""
        if not self._kept:
            shutil.rmtree(self._above, ignore_errors=True)

    @property
    def beside(self) -> Path:
        """A folder outside of the repository."""
        return self._above

    def fill(self, client: Client, plan: Plan) -> dict[str, Task]:
        """Put the plan's tasks into the backlog, and each one's part of the plan where its agent
        looks; the tasks by their new ids."""
        ranks = priorities(plan)
        planned = [_leasable(plan, task) for task in plan.tasks]
        lines = [
            json.dumps({"title": task.title, "resources": task.files, "priority": ranks[task.id],
                        "prompt": f"Carry the edits of {task.id} of the replay's plan."})
            for task in planned
        ]
        made = client.call(rq.TaskImport(text="\n".join(lines), format="jsonl")).items
        folder = plans(self.root)
        (folder / "kill").mkdir(parents=True)
        tasks = {}
        for row, task in zip(made, planned, strict=True):
            changes = {path: plan.changes[path] for path in task.edits}
            plan._replace(tasks=(task,), changes=changes).save(folder / f"{row.task}.json")
            tasks[row.task] = task
        return tasks

    def arm(self, plan: Plan, tasks: Mapping[str, Task], kill: int) -> dict[str, str]:
        """Choose tasks whose agent is to be killed in mid-edit, and the file where: by the seed."""
        chance = random.Random(plan.seed)
        able = {
            name: [path for path in task.edits if _can_tear(plan, path)]
            for name, task in tasks.items()
        }
        names = sorted(name for name, paths in able.items() if paths)
        doomed = {}
        for name in chance.sample(names, min(kill, len(names))):
            doomed[name] = chance.choice(able[name])
            (plans(self.root) / "kill" / name).write_text(doomed[name], "utf-8")
        return doomed


def _leasable(plan: Plan, task: Task) -> Task:
    """The task with names that mean something in OLD: what is to lie below a path that is a file
    there goes with the lease on that file (and cannot be discovered later)."""
    files = {change.source for change in plan.changes.values() if change.old is not None}

    def above(path: str) -> str:
        parts = path.split("/")
        prefixes = ("/".join(parts[:n]) for n in range(1, len(parts)))
        return next((prefix for prefix in prefixes if prefix in files), path)

    declared = dict.fromkeys(above(path) for path in task.files)
    late = [path for path in task.discovered if above(path) == path]
    if len(late) < len(task.discovered):
        declared |= dict.fromkeys(above(path) for path in task.discovered)
        late = []
    return task._replace(files=tuple(declared), discovered=tuple(late))


def _can_tear(plan: Plan, path: str) -> bool:
    """Whether half of the file is something else than the old or the whole new one."""
    change = plan.changes[path]
    return (change.kind in (Kind.EDIT, Kind.CREATE) and change.new is not None
            and not change.new.link and len(change.new.data) > 100)


def priorities(plan: Plan) -> dict[str, int]:
    """Longest chain first: tasks of the files that are wanted for longest in all, then long ones.

    The order in which list scheduling does best when files are what tasks wait for.
    """
    wanted: dict[str, float] = {}
    for task in plan.tasks:
        for path in (*task.files, *task.discovered):
            wanted[path] = wanted.get(path, 0.0) + task.think_s

    def weight(task: Task) -> tuple[float, float, str]:
        chains = [wanted[path] for path in (*task.files, *task.discovered)]
        return max(chains), task.think_s, task.id

    order = sorted(plan.tasks, key=weight)
    step = min(1.0, 1000 / max(len(order), 1))
    return {task.id: int(n * step) for n, task in enumerate(order)}
