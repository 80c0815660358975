"""A replay from its beginning to its result, with coord or without.

Owns the figures. What agents do is in `agent` (with coord) and `worker` (without); how they are run
is the launcher's business, and nothing in the coordinator knows that it is being measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from benchmarks.replay import best_possible
from benchmarks.replay.agent import REDIRECTED, SIGN, TTL_S
from benchmarks.replay.by_region import by_region
from benchmarks.replay.outcome import Score, compare
from benchmarks.replay.person import Person
from benchmarks.replay.plan import Plan
from benchmarks.replay.plan_making import DISCOVERED_SHARE
from benchmarks.replay.plan_making import plan as draw_up
from benchmarks.replay.scratch_repository import OWN_FILES, ScratchRepository
from coordinator.client.client import Client
from coordinator.launch.attempt import Limits
from coordinator.launch.launcher import Launcher
from coordinator.launch.report import Report
from coordinator.profiles import Profile, agent_logs
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal

#: Where the package of the benchmarks is: the program that the agents are is not installed.
CHECKOUT = Path(__file__).resolve().parents[2]
#: The stand-in agent: it reads, thinks, and writes whole files back.
STAND_IN = Profile(
    name="replay", command=("{python}", "-P", "-m", "benchmarks.replay.agent", "{task}"),
    env={"PYTHONPATH": str(CHECKOUT)}, source=__file__,
)
#: A replay that takes this many times its serial time has hung.
_SLACK, _SLACK_S = 3.0, 120.0


class Asked(msgspec.Struct, kw_only=True, frozen=True):
    """What is to be replayed, and how."""

    old: Path
    new: Path
    agents: int = 6
    tasks_per_agent: int = 4
    think: str = "lognormal:2s"
    seed: int = 1
    uncoordinated: bool = False
    kill: int = 0
    discovered: float = DISCOVERED_SHARE
    granularity: Literal["file", "region"] = "file"
    keep: Path | None = None


class Result(msgspec.Struct, kw_only=True):
    """The figures. Seconds, but for `overhead_ms`: per task, from the granted claim to the answered
    completion, without thinking and without standing in line (`waited_s`, in all)."""

    lost_edits: int
    wall_s: float
    serial_s: float
    speedup: float
    best_speedup: float
    best_by_file: float
    conflicts: int
    redirects: int
    redirects_taken: int
    reviews: int
    overhead_ms: float
    waited_s: float
    edits: int
    tasks: int
    shared_files: int
    agents: int
    seed: int
    killed: int
    equal: bool
    coordinated: bool
    given_back: int
    lost: list[str]
    differing_files: list[str]
    problems: list[str]

    @property
    def good(self) -> bool:
        """Whether coord kept its promise."""
        return self.equal and not self.lost_edits and not self.problems


class _Record(msgspec.Struct):
    task: str
    think_s: float
    waited_s: float
    write_s: float


def run(
    asked: Asked,
    say: Callable[[str], None] = lambda line: None,
    started: Callable[[Path], None] = lambda root: None,
    show: Callable[[rq.Review], None] = lambda review: None,
    ending: Callable[[], None] = lambda: None,
) -> Result:
    """Replay. `started` gets the repository once agents work in it, `show` each review before its
    verdict; `ending` is called before the coordinator is stopped and the repository goes.

    Raises:
        Refusal: INVALID: OLD or NEW cannot be read, nothing differs, a malformed option.
    """
    try:
        plan = draw_up(
            asked.old, asked.new, seed=asked.seed, tasks_per_agent=asked.tasks_per_agent,
            agents=asked.agents, think=asked.think,
            discovered_share=asked.discovered,
        )
    except (ValueError, OSError) as bad:
        raise Refusal(Code.INVALID, f"The replay cannot begin: {bad}.",
                      next="Name two directories: python -m benchmarks replay OLD NEW.") from None
    by_file = plan
    if asked.granularity == "region":
        plan = by_region(plan)
    if not plan.tasks:
        raise Refusal(Code.INVALID, f"{asked.old} and {asked.new} do not differ.",
                      next="Name two different releases.")
    say(f"{sum(c.edits for c in plan.changes.values())} edits in {len(plan.changes)} files, as "
        f"{len(plan.tasks)} tasks; {len(plan.shared_files())} files are wanted by several.")
    try:
        ground = ScratchRepository(asked.old, asked.keep)
    except (OSError, subprocess.CalledProcessError) as bad:
        raise Refusal(Code.INVALID, f"No repository could be made of {asked.old}: {bad}.",
                      next="`--keep` needs an empty folder; git must be installed.") from None
    with ground:
        if asked.uncoordinated:
            return _uncoordinated(asked, by_file, ground, started)
        return _coordinated(asked, plan, ground, say, started, show, ending)


def _uncoordinated(
    asked: Asked, plan: Plan, ground: ScratchRepository, started: Callable[[Path], None]
) -> Result:
    """Every agent works through a list of its own; nobody holds anything."""
    file = ground.beside / "plan.json"
    plan.save(file)
    problems: list[str] = []

    def agent(names: Sequence[str]) -> None:
        for name in names:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "benchmarks.replay.worker", str(file), name],
                cwd=ground.root, capture_output=True, text=True, check=False,
                env={**os.environ, **STAND_IN.env},
            )
            if done.returncode != 0:
                problems.append(f"{name}: exit code {done.returncode}: {done.stderr[-300:]}")

    lists = [[t.id for t in plan.tasks[n :: asked.agents]] for n in range(asked.agents)]
    threads = [threading.Thread(target=agent, args=(names,)) for names in lists]
    started(ground.root)
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall_s = time.monotonic() - began
    score = compare(ground.root, asked.new, plan, OWN_FILES)
    return _result(asked, plan, score, wall_s, [], None, [], problems)


def _coordinated(
    asked: Asked, plan: Plan, ground: ScratchRepository, say: Callable[[str], None],
    started: Callable[[Path], None], show: Callable[[rq.Review], None],
    ending: Callable[[], None],
) -> Result:
    with Client(ground.root) as client:
        human: Person | None = None
        launcher: Launcher | None = None
        try:
            tasks = ground.fill(client, plan)
            human = Person(ground.root, ground.arm(plan, tasks, asked.kill), show)
            launcher = Launcher(
                ground.root, {STAND_IN.name: (STAND_IN, asked.agents)},
                Limits(ttl_s=TTL_S, timeout_s=3600, stall_s=TTL_S, grace_s=2), say=say,
                expects_verdicts=human.is_alive,
            )
            launcher.prepare(None)
            human.start()
            started(ground.root)
            launcher.start()
            if not launcher.wait(best_possible.serial_s(plan.tasks) * _SLACK + _SLACK_S):
                launcher.stop()
                launcher.wait(30)
                launcher.problems.append("the replay hung and was stopped")
            human.stop()
            human.join()
            report = launcher.report()
            records, taken = _records(launcher.run.folder)
            # A problem, too: what was asked for (a kill, its review) did not come about.
            problems = [*report.problems, *human.verdict()]
            score = compare(ground.root, asked.new, plan, OWN_FILES)
            return _result(asked, plan, score, report.wall_s, records, report, human.killed,
                           problems, taken)
        finally:
            if (
                launcher is not None and not launcher.done
            ):  # interrupted: agents would start it again
                launcher.stop()
                launcher.wait(30)
            if human is not None and human.is_alive():
                human.stop()
                human.join()
            ending()
            client.call(rq.Shutdown())


def _result(
    asked: Asked, plan: Plan, score: Score, wall_s: float, records: list[_Record],
    report: Report | None, killed: Sequence[object], problems: list[str], taken: int = 0,
) -> Result:
    serial_s = best_possible.serial_s(plan.tasks) + sum(one.write_s for one in records)
    best_wall = best_possible.best_possible_wall(plan.tasks, asked.agents)
    whole = [best_possible.by_file(task) for task in plan.tasks]
    best_file = best_possible.best_possible_wall(whole, asked.agents)
    overhead_s = 0.0
    if report is not None and records:
        took = sum(one.seconds for one in report.attempts if one.outcome == "done")
        overhead_s = took - sum(one.think_s + one.waited_s for one in records)
    return Result(
        lost_edits=len(score.lost_edits), wall_s=round(wall_s, 3), serial_s=round(serial_s, 3),
        speedup=round(serial_s / wall_s, 3) if wall_s else 0.0,
        best_speedup=round(best_possible.serial_s(plan.tasks) / best_wall, 3) if best_wall else 1.0,
        best_by_file=round(best_possible.serial_s(plan.tasks) / best_file, 3) if best_file else 1.0,
        conflicts=report.conflicts if report else 0, redirects=report.redirects if report else 0,
        redirects_taken=taken,
        reviews=report.reviews if report else 0,
        overhead_ms=round(1000 * overhead_s / max(len(records), 1), 2),
        waited_s=round(sum(one.waited_s for one in records), 3), edits=score.edits,
        tasks=len(plan.tasks), shared_files=len(plan.shared_files()), agents=asked.agents,
        seed=asked.seed, killed=len(killed), equal=score.exact, coordinated=report is not None,
        given_back=sum(1 for one in report.attempts if one.outcome == "given back")
        if report else 0,
        lost=[f"{one.task} {one.file} "
              + ("as a whole" if one.hunk is None else f"edit {one.hunk + 1}")
              for one in score.lost_edits],
        differing_files=list(score.differing_files), problems=problems,
    )


def _records(folder: Path) -> tuple[list[_Record], int]:
    """What the agents said about the tasks they finished, and how many redirects they took."""
    out, taken = [], 0
    for log in folder.glob("*.log"):
        for line in agent_logs.tail(log, 1_000_000).splitlines():
            if line.startswith(SIGN):
                out.append(msgspec.convert(json.loads(line[len(SIGN):]), _Record))
            taken += line.startswith(REDIRECTED)
    return out, taken
