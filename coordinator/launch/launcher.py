"""A launch: N agents work on the backlog until nothing is left that they could do.

A launch begins with tidying up after earlier launches and with the import of the task file. It ends
with the report. Between the two a person may drain or stop it. The module prints nothing: it passes
each line to `say`.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from coordinator.files import runs
from coordinator.files.state import StateDir
from coordinator.launch import orphans, recovery, report
from coordinator.launch.agent_worker import AgentWorker
from coordinator.launch.attempt import Limits
from coordinator.launch.door import Door, Visitor
from coordinator.launch.isolation import Isolation, uncommitted
from coordinator.launch.launch_state import LaunchState
from coordinator.launch.merge_meaning import MergeMeaning
from coordinator.launch.verification import Verification
from coordinator.launch.worktrees import Target, check_at_rest, find_target
from coordinator.namespaces import orders
from coordinator.profiles import Profile
from coordinator.rules.backlog import told_state
from coordinator.settings import load
from coordinator.wiring.settings_wiring import Wirer
from coordinator.words import requests as rq
from coordinator.words.clock import SystemClock, iso
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import counted

AGENTS_MAX = 50
FORMATS: dict[str, Literal["yaml", "jsonl", "markdown"]] = {
    ".yaml": "yaml", ".yml": "yaml", ".jsonl": "jsonl", ".ndjson": "jsonl", ".md": "markdown",
    ".markdown": "markdown",
}


class Landing(NamedTuple):
    """Where the agents work, and how their work reaches the branch.

    Attributes:
        isolated: whether each agent works in a git worktree of its own, so that its work must land.
        verify: a command for the shell. Work on which it fails does not land.
    """

    isolated: bool = False
    verify: str | None = None


_IN_PLACE = Landing()


class Launcher(LaunchState):
    """One launch. `prepare`, `start`, then `done` or `drain` and `stop`; last, `report`."""

    def __init__(
        self, root: Path, agents: Mapping[str, tuple[Profile, int]], limits: Limits, *,
        say: Callable[[str], None] = lambda line: None,
        expects_verdicts: Callable[[], bool] = lambda: False,
        landing: Landing = _IN_PLACE, options: Mapping[str, str] | None = None,
    ) -> None:
        """`agents`: by the profile's name, the profile and how many agents run it.

        `expects_verdicts` returns whether a person is about to settle reviews: then work that waits
        for a verdict keeps the launch running.

        Raises:
            Refusal: INVALID: the number of agents, a missing program, hooks that are not wired, an
                option that a program cannot take, or no branch to land on.
        """
        self.agents = sum(count for _, count in agents.values())
        if not 1 <= self.agents <= AGENTS_MAX:
            raise Refusal(Code.INVALID, f"--agents must be between 1 and {AGENTS_MAX}.")
        for profile, _ in agents.values():
            profile.program()
            profile.check_options(options or {})
            _check_wired(root, profile)
        self._profiles, (isolated, verify) = agents, landing
        if verify is not None and not (isolated and verify.strip()):
            raise Refusal(Code.INVALID, "--verify needs a command, and --isolation worktree: "
                          "without it there is no landing that could wait for it. Nothing was "
                          "started.", next="coord launch … --isolation worktree --verify COMMAND")
        self._verify = verify
        self._target = find_target(root) if isolated else None
        if self._target is not None:
            check_at_rest(self._target)
        super().__init__(root, limits, say=say, expects_verdicts=expects_verdicts,
                         options=options)
        self.workers: list[AgentWorker] = []
        self._door: Door | None = None
        self.orphans = 0
        self._clock = SystemClock()
        self._began = time.monotonic()

    # ------------------------------------------------------------ the beginning

    def prepare(self, tasks: Path | None) -> None:
        """Start the coordinator, tidy up after launches that died, and import the task file.

        Raises:
            Refusal: INVALID with the place in the file; DAEMON_DOWN; STORAGE.
        """
        text = _read_text(tasks) if tasks is not None else None
        form = _find_format(tasks) if tasks is not None else "yaml"
        since = report.last_event(self.operator.call)
        self._since = since
        self._recover()
        self._tidy_up()
        self._done_before: set[str] = set()  # closed tasks that the task file names again
        self._closed_before = {
            task.task for task in report.all_tasks(self.operator)
            if task.state in ("done", "cancelled", "dead")
        }
        try:
            self.run = runs.RunFile(self.state, next(iter(self._profiles)),
                                    iso(self._clock.now_ms()))
        except OSError as bad:
            raise Refusal(
                Code.STORAGE, f"{self.state.runs} cannot be written: {bad.strerror}."
            ) from None
        self.sessions = self._can_have_sessions()
        self._caretaker = orphans.Outlives(self.root, self.run.record.run)
        self._open_door()
        self.run.outlived_by(self._caretaker.pid)
        if self._target is not None:
            self._isolate(self._target)
        if text is not None and tasks is not None:
            self._import(text, form, tasks)

    def _open_door(self) -> None:
        try:
            self._door = Door(self.state.path, str(self.state.socket()), self._pass_visitor)
        except (OSError, Refusal) as bad:
            self.say("Its agents can be followed, but not be taken over: "
                     + (bad.message if isinstance(bad, Refusal) else str(bad)))
        else:
            self.run.record.door = str(self._door.path)

    def _pass_visitor(self, agent: str, visitor: Visitor) -> None:
        """Let a person take over this agent."""
        worker = next((worker for worker in self.workers if worker.agent == agent), None)
        if worker is None:
            raise Refusal(Code.UNKNOWN_AGENT, f"This launch has no agent called {agent}.")
        worker.visit(visitor)

    def _can_have_sessions(self) -> bool:
        if not load(self.root).settings.hooks.confine:
            return False
        try:
            orders.connect(start=True).close()
        except Refusal as refusal:
            self.say(f"what their commands change is only seen afterwards: "
                     f"{refusal.facts.get('why') or refusal.message}")
            return False
        return True

    def _isolate(self, target: Target) -> None:
        run = self.run.record.run
        verification = None if self._verify is None else Verification(
            target, self.state.worktrees / run, self.run.folder, self._verify, self.hard)
        meaning = None if load(self.root).settings.leases.meaning == "off" else MergeMeaning(
            self.root, self.state.meaning)
        self.isolation = Isolation(self.root, self.state, target, run, self.steady, verification,
                                   meaning)
        self.say(f"What the agents do lands on {target.name}.")
        count = uncommitted(target)
        if count:
            self.say(f"Note: {counted(count, 'file')} in the working tree "
                     f"{'has' if count == 1 else 'have'} changes that are not committed. The "
                     f"agents begin from the last commit of {target.name}, without them.")

    def _recover(self) -> None:
        """Finish a landing that the death of an earlier launch interrupted."""
        if recovery.unfinished(self.state) is not None:
            text = recovery.recover(self.state, self.steady)
            if text is not None:
                self.say(text)

    def _tidy_up(self) -> None:
        for _, record in list(runs.records(self.state)):
            if not record.orphaned:
                continue
            try:
                done = orphans.tidy_up(self.root, self.state, self.operator, record.run)
            except OSError as bad:
                raise Refusal(Code.STORAGE, f"{self.state.runs / record.run} cannot be written: "
                              f"{bad.strerror}. Nothing was started.") from None
            if done is None:
                continue
            ended, kept = done
            self.orphans += ended
            for place in kept:
                self.say(f"Run {record.run} left work that did not land: {place}")
            self.say(f"Run {record.run} had died: " + (
                f"{counted(ended, 'agent')} of it stopped, unfinished work flagged." if ended
                else "none of its agents was left."))

    def _import(self, text: str, form: Literal["yaml", "jsonl", "markdown"], path: Path) -> None:
        """Import the tasks of this file. Tasks that an earlier launch imported are not added again.
        The lock makes one of two simultaneous launches the earlier one."""
        with (self.state.runs / "import.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._import_in_turn(text, form, path)

    def _import_in_turn(self, text: str, form: Literal["yaml", "jsonl", "markdown"],
                        path: Path) -> None:
        digest, source = runs.digest(text), str(path.resolve())
        earlier = next((record for _, record in runs.records(self.state)
                        if source == record.source or digest == record.imported), None)
        imported = self.operator.call(rq.TaskImport(
            text=text, format=form, known=[] if earlier is None else earlier.tasks))
        record = self.run.record
        record.imported, record.source = digest, source
        record.tasks = [task.task for task in (*imported.known, *imported.items)]
        self.run.save()
        if imported.known and earlier is not None:
            self._done_before = self._closed_before & set(record.tasks)
            self._closed_before -= self._done_before
            self.say(_describe_leftovers(path.name, earlier.run, imported))
        if imported.items or not imported.known:
            self.say(f"{counted(len(imported.items), 'task')} imported from {path.name}.")
        for warning in imported.warnings:
            self.say(f"{path.name}: {warning}")

    def start(self) -> None:
        """Register the agents and let them work."""
        self._began = self.last_at = time.monotonic()
        self.workers = [
            AgentWorker(self, profile, f"{name}-{n}")
            for name, (profile, count) in self._profiles.items() for n in range(1, count + 1)
        ]
        for worker in self.workers:
            worker.start()

    # ------------------------------------------------------------ going on

    @property
    def done(self) -> bool:
        """Whether every agent has gone."""
        return not any(worker.is_alive() for worker in self.workers)

    def wait(self, seconds: float) -> bool:
        """Wait at most so long until every agent has gone. Returns whether they have."""
        deadline = time.monotonic() + seconds
        for worker in self.workers:
            worker.join(max(0.0, deadline - time.monotonic()))
        return self.done

    def drain(self) -> None:
        """Claim no more tasks, and finish the running ones."""
        self.draining.set()

    def stop(self) -> None:
        """End every agent now. Their unfinished changes are flagged for a review."""
        self.draining.set()
        self.hard.set()

    def counts(self) -> dict[str, int]:
        """Return the present backlog by state."""
        return self.operator.call(rq.Tasks(limit=1)).counts

    # ------------------------------------------------------------ the end

    def report(self) -> report.Report:
        """End the run's record, and return the result of the launch."""
        text = self.isolation.end() if self.isolation is not None else ""
        if text:
            self.trouble(text)
        ended = self.last_at if self.attempts else time.monotonic()
        made = report.make(
            self.operator, report.Before(self._since, self._closed_before, self._done_before),
            report.Course(self.run.record.run, ended - self._began, self.agents, self.attempts,
                          self.orphans, self.problems))
        if self.isolation is not None:
            made.target = self.isolation.target.name
            made.landed = self.isolation.landed
            made.not_landed = report.reviewed(self.operator, self.isolation.kept)
        if self._door is not None:
            self._door.close()
        self.run.record.ended_at = iso(self._clock.now_ms())
        self.run.save()
        self._caretaker.over()
        self.operator.close()
        return made


def _check_wired(root: Path, profile: Profile) -> None:
    """Check that the profile's hooks are wired: without them its agents are not launched."""
    if profile.wire and not Wirer(StateDir(root), Path.home()).is_wired(profile):
        raise Refusal(
            Code.INVALID, f"The hooks of {profile.name} are not wired in this repository, so its "
            "writes would not be guarded. Nothing was started.",
            next=f"coord init --agent {profile.name}",
        )


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        raise Refusal(Code.INVALID, f"{path} is not UTF-8 text. Nothing was started.") from None
    except OSError as bad:
        raise Refusal(
            Code.INVALID, f"{path} cannot be read: {bad.strerror}. Nothing was started.",
            next="Name a task file (.yaml, .jsonl or .md), or `-` for the backlog as it is.",
        ) from None


def _describe_leftovers(name: str, run: str, imported: rq.Imported) -> str:
    """The sentence about the tasks that an earlier run imported from this file."""
    left = {task.task: task.state for task in imported.known
            if task.state not in ("done", "cancelled")}
    count = len(imported.known)
    if left:
        return (f"{name} was imported by run {run}; {len(left)} of its {count} tasks "
                f"{_describe_left(left)}.")
    whole = "its task is" if count == 1 else f"all its {count} tasks are"
    again = "" if imported.items else f" `coord task import {name}` adds them anew."
    return f"{name} was imported by run {run}; {whole} done.{again}"


def _describe_left(left: dict[str, str]) -> str:
    """The words for the unfinished tasks: which need a person, or that they continue."""
    verb = "is" if len(left) == 1 else "are"
    stuck = [f"{task} {told_state(state)}" for task, state in left.items()
             if state in ("review", "dead")]
    if len(stuck) < len(left):
        return f"{verb} left, and go{'es' if len(left) == 1 else ''} on"
    more = f" and {len(stuck) - 5} more" if len(stuck) > 5 else ""
    return f"{verb} left: {', '.join(stuck[:5])}{more}"


def _find_format(path: Path) -> Literal["yaml", "jsonl", "markdown"]:
    format_name = FORMATS.get(path.suffix.lower())
    if format_name is None:
        raise Refusal(
            Code.INVALID, f"The kind of {path.name} cannot be told from its name. "
            "Nothing was started.", next=f"Name it {' or '.join(('.yaml', '.jsonl', '.md'))}.",
        )
    return format_name
