"""One launched agent: takes a task, runs its program, reports how it ended, takes the next.

Each has its own connection, name and token. A coordinator that restarts meanwhile costs it nothing:
what may have been done already is looked up before it is asked again.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from coordinator import profiles
from coordinator.client.client import Client
from coordinator.dialects.stream import StreamTable, Told
from coordinator.launch import attempt as one_attempt
from coordinator.launch import logs, runs
from coordinator.launch.attempt import LOST, PASSING, Ended
from coordinator.launch.launch_state import RETRY_S, LaunchState
from coordinator.launch.process import Running
from coordinator.launch.prompt import Isolated, compose
from coordinator.launch.report import Attempt, last_event
from coordinator.launch.runs import Hand as Recorded
from coordinator.launch.worktrees import Workplace
from coordinator.namespaces import orders
from coordinator.profiles import Profile
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import WORDS_MAX

T = TypeVar("T")
#: How long one request for a task waits; also how soon an idle agent sees that all is done.
IDLE_S = 0.5
#: Characters of output that go with a failure.
LOG_TAIL_CHARS = 4_000
#: An agent whose model fails so often in a row stops; until then it rests, at most so long (s).
SETBACKS_MAX = 6
REST_MAX_S = 300.0
#: What an agent that was cut off is told before its task, in its own session.
INTERRUPTED = (
    "You were interrupted in the middle of this task, and your process was started anew. Files may "
    "have changed meanwhile, also by others: read them again before you go on. The task:\n\n"
)


class AgentWorker(threading.Thread):
    """An agent of a launch. `task`, `title` and `since` say what it does now, for the display."""

    def __init__(self, launch: LaunchState, profile: Profile, wanted: str) -> None:
        super().__init__(name=f"coord-{wanted}", daemon=True)
        self.launch = launch
        self.profile = profile
        self.client = Client(launch.root, agent=wanted, profile=profile.name)
        self.agent = wanted
        self.doing = "starting"
        self.task: str | None = None
        self.title = ""
        self.since = time.monotonic()
        self._log: str | None = None
        self._told = 0
        self._wanted = wanted
        self._work: Workplace | None = None
        self._setbacks = 0
        self._shown: logs.Follower | None = None

    @property
    def last_line(self) -> str:
        """What its program said or did last."""
        log, shown = self._log, self._shown
        if shown is not None:
            return shown.poll().doing
        return logs.last_line(self.launch.run.folder / log) if log else ""

    def run(self) -> None:
        """Work until nothing is left, or the launch is stopped."""
        try:
            self.enrol()
            if self.launch.isolation is not None:
                self.doing = "making its worktree"
                self._work = self.launch.isolation.make(self.agent)
            while not self.launch.draining.is_set():
                claimed = self._claim()
                if claimed is not None:
                    self._carry_out(claimed)
                elif self.launch.over.is_set():
                    break
            self._leave(clean=True, reason="the launch is over")
        except Refusal as refusal:
            self.launch.trouble(f"{self.agent}: {refusal.message}")
        except Exception as bad:
            self.launch.trouble(f"{self.agent}: {type(bad).__name__}: {bad}")
        finally:
            self.doing = "gone"
            if self.launch.isolation is not None and self._work is not None:
                self.launch.isolation.close(self._work)
            self.client.close()

    def enrol(self) -> None:
        """Register, under the wanted name or the next that is free; once."""
        if self.client.token is not None:
            return
        self.client.agent = self._wanted
        self.agent = self._steady(
            lambda: self.client.register(
                unique=True, silence_s=max(60.0, self.launch.limits.ttl_s),
                description=f"launched by run {self.launch.run.record.run}",
            )
        )
        self.launch.run.worker(Recorded(agent=self.agent))

    # ------------------------------------------------------------ a task

    def _claim(self) -> rq.Claimed | None:
        self.doing = "waiting for a task"
        request = rq.TaskClaim(agent=self.agent, ttl_s=self.launch.limits.ttl_s)
        try:
            # Without a wait first: the answer says at once when nothing is left.
            return self._ask_for_task(request)
        except Refusal as refusal:
            if refusal.code is not Code.NOTHING_TO_DO:
                raise
            if self.launch.nothing_left(self.client, refusal.facts.get("counts", {})):
                return None
        request.wait_s = IDLE_S
        try:
            return self._ask_for_task(request)
        except Refusal as refusal:
            if refusal.code is not Code.NOTHING_TO_DO:
                raise
            return None

    def _ask_for_task(self, request: rq.TaskClaim) -> rq.Claimed:
        deadline = time.monotonic() + self.launch.limits.patience_s
        while True:
            try:
                return self.client.call(request)
            except Refusal as refusal:
                if refusal.code in (Code.UNKNOWN_AGENT, Code.UNAUTHORIZED):
                    self._enrol_again()  # a person removed it
                    request.agent = self.agent
                elif refusal.code not in PASSING or time.monotonic() > deadline:
                    raise
                else:
                    self.launch.hard.wait(RETRY_S)
                    # The claim may have been granted and its answer lost: then it is told again.
                    request.task = self._held()

    def _held(self) -> str | None:
        held = self._steady(lambda: self.client.call(rq.Tasks(state="claimed", limit=5000)))
        return next((t.task for t in held.items if t.claimed_by == self.agent), None)

    def _carry_out(self, claimed: rq.Claimed) -> None:
        task, launch = claimed.task, self.launch
        started = time.monotonic()
        self.since, self.task, self.title, self.doing = started, task.task, task.title, "working"
        number = launch.number(task.task)
        before = last_event(launch.steady)
        log = logs.log_path(launch.run.folder, task.task, number)
        self._log = log.name
        stream = self.profile.stream
        launch.run.wrote(log.name, self.profile.name)
        self._shown = logs.Follower(log, stream) if stream is not None else None
        launch.say(f"{self.agent} took {task.task} '{task.title}'"
                 + (f" (attempt {task.attempts})" if task.attempts > 1 else ""))
        try:
            process = self._start(claimed, number)
        except (OSError, Refusal) as bad:
            why = bad.message if isinstance(bad, Refusal) else f"it could not be started: {bad}"
            ended = Ended("exited", 127, why)
        else:
            launch.run.worker(Recorded(agent=self.agent, pid=process.pid, mark=process.mark,
                                     task=task.task, attempt=number))
            ended = one_attempt.supervise(process, self.client, task, log, launch.limits,
                                          launch.hard, self._place, self.profile)
            launch.run.worker(Recorded(agent=self.agent))
        output = logs.readable(log, stream)[-LOG_TAIL_CHARS:]
        ended = self._checked(ended, before)
        outcome, why = self._settle(claimed, ended, output)
        if launch.isolation is not None and self._work is not None:
            self._work = launch.isolation.after(self._work, claimed, why or outcome)
        spent = time.monotonic() - started
        told = ended.told or Told()
        launch.note(Attempt(task=task.task, attempt=number, agent=self.agent,
                          seconds=round(spent, 4), outcome=outcome, why=why,
                          changed=ended.changed, turns=told.turns, cost_usd=told.cost_usd,
                          tokens_in=told.tokens_in, tokens_out=told.tokens_out))
        self.task, self._log, self._shown, self.title = None, None, None, ""
        nothing = outcome == "done" and ended.changed is False
        launch.say(f"{self.agent}: {task.task} {outcome} after {spent:.1f} s"
                 + (f": {why}" if why and outcome != "done" else "")
                 + (", and changed none of its files" if nothing else ""))
        if outcome != "stopped":
            self._clear_table(outcome == "done", output)

    @property
    def _place(self) -> Path:
        """Where its program works: the repository's root, there or in its own worktree."""
        return self.launch.root if self._work is None else self._work.place

    def _begin(self, claimed: rq.Claimed, number: int) -> Isolated | None:
        """With isolation: a worktree that begins at the target's tip, and what to say of it."""
        isolation = self.launch.isolation
        if isolation is None:
            return None
        if self._work is None:  # the last one holds something that did not land
            self._work = isolation.make(self.agent)
        isolation.begin(self._work, claimed, self.agent, number,
                        lambda request: self._steady(lambda: self.client.call(request)))
        return Isolated(self._work.branch, isolation.target.name)

    def _start(self, claimed: rq.Claimed, number: int) -> Running:
        launch, task = self.launch, claimed.task
        isolated = self._begin(claimed, number)
        before = logs.log_path(launch.run.folder, task.task, number - 1)
        prompt = compose(claimed, self.agent, self._said(before)[-2_000:] if number > 1 else "",
                         isolated, hooked=self.profile.hooks is not None)
        file = logs.prompt_path(launch.run.folder, task.task, number)
        file.write_text(prompt, "utf-8")
        facts = {
            "prompt": prompt, "prompt_file": str(file), "task": task.task,
            "root": str(self._place), "agent": self.agent, "python": sys.executable,
        }
        if isolated is None and self.profile.resume and self.profile.stream is not None:
            facts["session"] = self._interrupted(task.task, self.profile.stream)
            if facts["session"]:
                facts["prompt"] = INTERRUPTED + prompt
        env = one_attempt.environment(self.client, task, launch.state.socket())
        env |= self.profile.environment(facts)
        argv = self.profile.argv(facts, launch.options, _files(claimed))
        return Running(
            self._in_session(argv, env) if launch.sessions else argv, cwd=self._place, env=env,
            log=logs.log_path(launch.run.folder, task.task, number),
            stdin=file if self.profile.prompt == "stdin" else None,
        )

    def _in_session(self, argv: list[str], env: dict[str, str]) -> list[str]:
        """The command, run so that it cannot write what others hold."""
        if shutil.which(self._place / argv[0] if "/" in argv[0] else argv[0],
                        path=env["PATH"]) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
        orders.connect(start=True).close()  # it may have been killed
        request = rq.OpenSession(agent=self.agent, ends=False, path=env["PATH"])
        opened = self._steady(lambda: self.client.call(request))
        return [*orders.entrance(opened, self._place), *argv]

    def _said(self, log: Path) -> str:
        """What an earlier attempt said, read by the rules of whoever wrote it."""
        own = self.launch.run.record.logs.get(log.name) == self.profile.name
        return logs.readable(log, self.profile.stream if own else _stream_of(log, self.launch.root))

    def _interrupted(self, task: str, stream: StreamTable) -> str:
        """The session of the last attempt, if that was cut off and was one of the same program."""
        found = logs.find(self.launch.state, task)
        if not found or runs.profile_of(found[-1]) != self.profile.name:
            return ""
        return logs.interrupted(found[-1], stream)

    # ------------------------------------------------------------ its end

    def _settle(self, claimed: rq.Claimed, ended: Ended, output: str) -> tuple[str, str]:
        """Tell the coordinator how the attempt ended: its outcome, and why in words."""
        task = claimed.task
        if ended.how == "stopped":
            self._leave(clean=False, reason=ended.why, log_tail=output)
            return "stopped", ended.why
        try:
            if ended.ok:
                self._setbacks = 0
                if self._work is None:
                    said = ended.told.result[:500] if ended.told is not None else ""
                    self._finish(task, said or _last_words(output), output)
                    return "done", ""
                return self._land(claimed, self._work, output)
            self._fail(task, ended.why, output, model=ended.model)
        except Refusal as refusal:
            if refusal.code not in LOST:
                raise
            return self._closed(task, ended, refusal)
        if ended.model:
            self._rest()
            return "model error", ended.why
        return {"lapsed": "lapsed", "gave up": "gave up"}.get(ended.how, "failed"), ended.why

    def _checked(self, ended: Ended, before: int) -> Ended:
        """Models that are refused what they need sometimes stop and call it success: who changed
        nothing, and got nothing after it was last refused, has given up. `before`: the log's end
        when the attempt began."""
        if not ended.ok or ended.changed is not False:
            return ended
        told = self.launch.steady(rq.Events(agent=self.agent, tail=True, limit=1000)).items
        asked = [one for one in told
                 if one.seq > before and one.kind in ("acquisition_refused", "lease_granted")]
        if not asked or asked[-1].kind == "lease_granted":
            return ended
        names = ", ".join(str(name) for name in asked[-1].data.get("resources", [])[:3])
        return replace(ended, how="gave up", ok=False,
                       why=f"it changed none of its files, and was last refused {names}")

    def _land(self, claimed: rq.Claimed, work: Workplace, output: str) -> tuple[str, str]:
        """Let what it did land, and the task be done; or keep it, and let the task fail."""
        isolation, task = self.launch.isolation, claimed.task
        assert isolation is not None, "who has a worktree has isolation"
        left: rq.Unlanded | None = None
        self.doing = "landing"

        def finish(commit: str) -> bool:
            said = f"landed on {isolation.target.name} as {commit[:12]}: " if commit else ""
            try:
                self.launch.steady(rq.TaskDone(
                    agent=self.agent, task=task.task, landed=commit, force=bool(commit),
                    result=said + _last_words(output)))
            except Refusal as refusal:
                if not commit:
                    raise
                self.launch.trouble(f"{task.task} {said.removesuffix(': ')}, but that could not be "
                                  f"noted: {refusal.message} `coord task show {task.task}`")
                return refusal.code in LOST  # then there is nothing left to note
            return True

        try:
            self._steady(lambda: self.client.call(
                rq.Heartbeat(agent=self.agent, progress="its work is about to land")))
            left = isolation.gather(work, claimed, self.agent)
            isolation.land(work, claimed, self.agent, left.commit, finish)
        except Refusal as refusal:
            why = f"{refusal.message} ({isolation.where(work)})"
            self._fail(task, why, output, left)
            return "not landed", why
        return "done", ""

    def _finish(self, task: rq.Task, result: str, output: str) -> None:
        try:
            self._steady(lambda: self.client.call(
                rq.TaskDone(agent=self.agent, task=task.task, result=result)))
        except Refusal as refusal:
            if refusal.code is Code.STALE_TOKEN:
                self._fail(task, "its claim had ended before it finished", output)
            raise

    def _fail(self, task: rq.Task, why: str, output: str,
              unlanded: rq.Unlanded | None = None, *, model: bool = False) -> None:
        self._steady(lambda: self.client.call(
            rq.TaskFail(agent=self.agent, task=task.task, reason=why[:WORDS_MAX], log_tail=output,
                        unlanded=unlanded, model_error=model)))

    def _rest(self) -> None:
        """Its model failed: wait, longer each time, and give up after a while.

        Raises:
            Refusal: LIMIT: it failed so often that going on makes no sense.
        """
        self._setbacks += 1
        if self._setbacks >= SETBACKS_MAX:
            raise Refusal(
                Code.LIMIT, f"its model failed {self._setbacks} times in a row; it stops. Its "
                "tasks stay in the backlog.", next="Check the model's key and server.",
            )
        self.doing = "resting: its model failed"
        rest_s = self.launch.limits.rest_s * 2 ** (self._setbacks - 1)
        self.launch.hard.wait(min(rest_s, REST_MAX_S))

    def _closed(self, task: rq.Task, ended: Ended, refusal: Refusal) -> tuple[str, str]:
        """The task was not this agent's any more: finished or given back by itself, or lapsed."""
        now = self.launch.steady(rq.TaskShow(task=task.task))  # its token may be gone, too
        if now.state == "done":
            return "done", ""
        if ended.how == "lapsed" or refusal.code is Code.STALE_TOKEN:
            return "lapsed", ended.why
        return "given back", f"it is {now.state}"

    def _clear_table(self, ok: bool, output: str) -> None:
        """Whatever the ended process still holds or waits for in this agent's name is ended too."""
        try:
            rows = self._steady(lambda: self.client.call(rq.Agents())).items
        except Refusal as refusal:
            if refusal.code not in LOST:
                raise
            rows = []
        mine = next((row for row in rows if row.agent == self.agent), None)
        if mine is None or mine.leases or mine.tasks or mine.waiting_for:
            if mine is not None:
                self._leave(clean=ok, reason="its process ended", log_tail=output)
            self._enrol_again()

    def _leave(self, *, clean: bool, reason: str, log_tail: str = "") -> None:
        try:
            self._steady(lambda: self.client.call(
                rq.Leave(agent=self.agent, clean=clean, reason=reason[:WORDS_MAX],
                         log_tail=log_tail)))
        except Refusal as refusal:
            if refusal.code not in LOST:
                raise

    def _enrol_again(self) -> None:
        self.client.close()
        self.client = Client(self.launch.root, agent=self._wanted, profile=self.profile.name)
        self.enrol()

    def _steady(self, ask: Callable[[], T]) -> T:
        """Ask until the coordinator answers, however often it restarts.

        Raises:
            Refusal: its answer; or that it could not be reached for too long.
        """
        deadline = time.monotonic() + self.launch.limits.patience_s
        while True:
            try:
                return ask()
            except Refusal as refusal:
                if refusal.code not in PASSING or time.monotonic() > deadline:
                    raise
                self.launch.hard.wait(RETRY_S)
                if self.launch.hard.is_set() and time.monotonic() > deadline - 50:
                    raise


def _stream_of(log: Path, root: Path) -> StreamTable | None:
    name = runs.profile_of(log)
    try:
        return profiles.load(name, root).stream if name is not None else None
    except Refusal:  # it is not there any more
        return None


def _files(claimed: rq.Claimed) -> list[str]:
    return [lease.resource for lease in claimed.leases
            if lease.kind == "file" and lease.mode == "exclusive"]


def _last_words(output: str) -> str:
    """The last line that a program said, as the result of its task."""
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1].strip()[:500] if lines else "finished"
