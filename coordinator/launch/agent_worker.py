"""One launched agent: takes a task, runs its program, reports how it ended, takes the next.

Its name and its connection are enrolment.py's. A person may take its conversation over in between
(take_over.py).
"""

from __future__ import annotations

import itertools
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from coordinator.dialects.stream import Told
from coordinator.files import runs
from coordinator.files.runs import Worker as Recorded
from coordinator.launch.attempt import LOST, UNHOOKED, Attempted, Claim, Ended, How, supervise
from coordinator.launch.door import Visitor
from coordinator.launch.enrolment import Enrolment
from coordinator.launch.launch_state import LaunchState
from coordinator.launch.programs import Beating, Post, Programs
from coordinator.launch.progress import Signs
from coordinator.launch.prompt import Isolated
from coordinator.launch.report import Attempt, last_event
from coordinator.launch.resting import Resting
from coordinator.launch.take_over import Seat, accompany
from coordinator.launch.worktrees import Workplace
from coordinator.profiles import Profile, agent_logs
from coordinator.rules.backlog import told_state
from coordinator.words import requests as rq
from coordinator.words.refusals import Code, Refusal
from coordinator.words.texts import WORDS_MAX
from coordinator.workers.process_group import Running

#: Characters of output that go with a failure.
LOG_TAIL_CHARS = 4_000
#: While its provider's limit is reached, it looks so often whether the launch is over (s).
RESTING_S = 2.0
#: The report's word for an attempt that ended so; all other unsuccessful ones have failed.
OUTCOMES: dict[How, str] = {"lapsed": "lapsed", "gave up": "gave up", "unhooked": "unguarded"}


class AgentWorker(threading.Thread):
    """An agent of a launch. `task`, `title` and `since` tell its present work, for the display."""

    def __init__(self, launch: LaunchState, profile: Profile, wanted: str) -> None:
        super().__init__(name=f"coord-{wanted}", daemon=True)
        self.launch = launch
        self.profile = profile
        self._enrolment = Enrolment(launch, profile, wanted, self._rest_on)
        self.doing = "starting"
        self.task: str | None = None
        self.title = ""
        self.since = time.monotonic()
        self._log: str | None = None
        self._told = 0
        self._work: Workplace | None = None
        self._resting = Resting(profile.limits)
        self._shown: agent_logs.Follower | None = None
        self._programs = Programs(launch, profile, self._enrolment.ask)
        self._number = 0
        self._seat = Seat()

    def visit(self, visitor: Visitor) -> None:
        """Let a person take it over. From any thread.

        Raises:
            Refusal: INVALID: its CLI has no way for that; BAD_TRANSITION: not now.
        """
        if not self.profile.take_over:
            raise Refusal(
                Code.INVALID, f"{self.agent} cannot be taken over: the profile {self.profile.name} "
                "says no way for that (`take_over`). It can be followed.",
                next=f"coord attach {self.agent}",
            )
        self._seat.ask(self.agent, visitor)

    @property
    def agent(self) -> str:
        """The agent's name."""
        return self._enrolment.agent

    @property
    def last_line(self) -> str:
        """The last words or action of its program."""
        log, shown = self._log, self._shown
        if self._seat.taken:
            return "taken over by a person"
        if shown is not None:
            return shown.poll().doing
        return agent_logs.last_line(self.launch.run.folder / log) if log else ""

    def run(self) -> None:
        """Work until nothing is left, or the launch is stopped."""
        try:
            self._enrolment.begin()
            if self.launch.isolation is not None:
                self.doing = "making its worktree"
                self._work = self.launch.isolation.make(self.agent)
            while not self.launch.draining.is_set():
                claimed = self._claim()
                if claimed is not None:
                    self._carry_out(claimed)
                elif self.launch.over.is_set():
                    break
            self._enrolment.end(clean=True, reason="the launch is over")
            gone = Recorded(agent=self.agent, gone=self._why_it_goes())
        except Refusal as refusal:
            self.launch.trouble(f"{self.agent}: {refusal.message}")
            gone = Recorded(agent=self.agent, gone=refusal.message, failed=True)
        except Exception as bad:
            why = f"{type(bad).__name__}: {bad}"
            self.launch.trouble(f"{self.agent}: {why}")
            gone = Recorded(agent=self.agent, gone=why, failed=True)
        finally:
            self.doing = "gone"
            if self.launch.isolation is not None and self._work is not None:
                self.launch.isolation.close(self._work)
            self._enrolment.close()
        self.launch.run.worker(gone)

    def _why_it_goes(self) -> str:
        if self.launch.hard.is_set():
            return "the launch was stopped"
        if self.launch.draining.is_set():
            return "the launch takes up no more tasks"
        return "nothing is left to do"

    # ------------------------------------------------------------ a task

    def _claim(self) -> rq.Claimed | None:
        self.doing = self._resting.doing or "waiting for a task"
        if self._resting.left_s > 0:
            self.launch.draining.wait(min(self._resting.left_s, RESTING_S))
        return self._enrolment.claim()

    def _carry_out(self, claimed: rq.Claimed) -> None:
        task, launch = claimed.task, self.launch
        started = time.monotonic()
        self.since, self.task, self.title, self.doing = started, task.task, task.title, "working"
        before = last_event(launch.steady)
        log = self._next_log(task)
        launch.say(f"{self.agent} took {task.task} '{task.title}'"
                   + (f" (attempt {task.attempts})" if task.attempts > 1 else ""))
        try:
            isolated = self._begin(claimed, self._number)
            post = Post(claimed, self._enrolment.client, self._place, isolated)
            signs = Signs(log, post.place, task.resources)  # before anything of it runs
            process, session = self._programs.begin(post, self._number)
        except (OSError, Refusal) as bad:
            ended = _not_started(bad)
        else:
            ended, log = self._stay(post, process, session, log, signs)
            self._programs.end(post)
        output = agent_logs.readable(log, self.profile.stream)[-LOG_TAIL_CHARS:]
        ended = self._checked(ended, before)
        outcome, why = self._settle(claimed, ended, output)
        if launch.isolation is not None and self._work is not None:
            self._work = launch.isolation.after(self._work, claimed, why or outcome)
            if outcome == "done" and launch.isolation.has_landed(task.task):
                ended = replace(ended, changed=True)  # work that it took over counts, too
        spent = time.monotonic() - started
        message = ended.told or Told()
        launch.note(Attempt(task=task.task, attempt=self._number, agent=self.agent,
                            seconds=round(spent, 4), outcome=outcome, why=why,
                            changed=ended.changed, turns=message.turns, cost_usd=message.cost_usd,
                            tokens_in=message.tokens_in, tokens_out=message.tokens_out))
        self.task, self._log, self._shown, self.title = None, None, None, ""
        nothing = outcome == "done" and ended.changed is False
        how = (f"{outcome} after {spent:.1f} s" + (f": {why}" if why and outcome != "done" else "")
               + (", and changed none of its files" if nothing else ""))
        launch.run.ends(log.name, how)
        launch.say(f"{self.agent}: {task.task} {how}{launch.follows(task.task, outcome)}")
        if outcome != "stopped":
            self._clear_table(outcome == "done", output)
        if outcome == "unguarded":  # so would its next attempt be, and its next task
            raise Refusal(Code.UNTRUSTED, f"{UNHOOKED}. It stops; its task stays in the backlog.")

    def _next_log(self, task: rq.Task) -> Path:
        """Begin the log of its next attempt, and return the log's path."""
        launch, stream = self.launch, self.profile.stream
        self._number = launch.number(task.task)
        log = agent_logs.log_path(launch.run.folder, task.task, self._number)
        launch.run.begins(log.name, runs.Log(self.profile.name, self.agent, task.title))
        self._log = log.name
        self._shown = agent_logs.Follower(log, stream) if stream is not None else None
        return log

    def _stay(
        self, post: Post, process: Running, session: str, log: Path, signs: Signs
    ) -> tuple[Ended, Path]:
        """Stay with its program until the end, and with each person who takes it over. Returns how
        it ended, and the last log."""
        launch, task = self.launch, post.claimed.task
        while True:
            self._record(task, process.pid, process.mark)
            self._seat.open()
            ended = supervise(
                Attempted(process, self._enrolment.client, task, log, launch.limits, post.place,
                          self.profile),
                launch.hard, lambda: self._seat.asked)
            launch.run.worker(Recorded(agent=self.agent))
            if ended.how != "taken over":
                self._seat.close(self.agent, task.task)
                if ended.changed is False:
                    ended = replace(ended, changed=signs.changed())
                return ended, log
            session = (ended.told.session if ended.told is not None else "") or session
            left, session = self._with_a_person(post, session, log)
            if left is not None:
                return left, log
            log = self._next_log(task)
            try:
                process = self._programs.go_on(post, self._number, session)
            except (OSError, Refusal) as bad:
                return _not_started(bad), log

    def _with_a_person(self, post: Post, session: str, log: Path) -> tuple[Ended | None, str]:
        """Stay while a person is at its conversation. Returns how the task ended meanwhile (None:
        it has not), and the session that continues."""
        launch, task, visitor = self.launch, post.claimed.task, self._seat.take()
        if visitor is None:
            return None, session  # the person has gone away again
        person, began = visitor.process, time.monotonic()
        heard = self._session_heard()
        try:
            role = self._programs.for_a_person(post, session)
        except (OSError, Refusal) as bad:
            visitor.refuse(bad if isinstance(bad, Refusal) else Refusal(
                Code.INVALID, f"{self.profile.take_over[0]} cannot be run: {bad.strerror}. "
                f"{self.agent} goes on."))
            self._seat.close(self.agent, task.task)
            return None, session
        self._record(task, person.pid, person.mark, taken_over=True)
        visitor.welcome(role)
        launch.say(f"{self.agent}: a person has taken {task.task} over")
        launch.run.ends(log.name, "taken over by a person")
        left = accompany(person, Claim(self._enrolment.client, task), launch.limits, launch.hard)
        self._seat.close(self.agent, task.task)
        launch.run.worker(Recorded(agent=self.agent))
        now = self._session_heard()
        if heard == session and now:
            session = now  # a person may have continued in another one
        if left is None:
            launch.say(f"{self.agent}: {task.task} goes on unattended, after a person was at it "
                       f"for {time.monotonic() - began:.0f} s")
        return left, session

    def _session_heard(self) -> str | None:
        """Return the session last reported by its hooks; None if unknown."""
        try:
            row = self._enrolment.row()
        except Refusal:
            return None
        return row.session if row is not None else None

    def _record(self, task: rq.Task, pid: int, mark: str | None, *, taken_over: bool = False
                ) -> None:
        self.launch.run.worker(Recorded(agent=self.agent, pid=pid, mark=mark, task=task.task,
                                        attempt=self._number, taken_over=taken_over))

    @property
    def _place(self) -> Path:
        """The working directory of its program: the repository's root, there or in its own
        worktree."""
        return self.launch.root if self._work is None else self._work.place

    def _begin(self, claimed: rq.Claimed, number: int) -> Isolated | None:
        """With isolation: begin a worktree at the target's tip, and return the facts for the
        prompt."""
        isolation = self.launch.isolation
        if isolation is None:
            return None
        if self._work is None:  # the last one holds something that did not land
            self._work = isolation.make(self.agent)
        isolation.begin(self._work, claimed, self.agent, number,
                        self._enrolment.ask)
        return Isolated(self._work.branch, isolation.target.name)

    # ------------------------------------------------------------ its end

    def _settle(self, claimed: rq.Claimed, ended: Ended, output: str) -> tuple[str, str]:
        """Tell the coordinator how the attempt ended: its outcome, and why in words."""
        task = claimed.task
        if ended.how == "stopped":
            self._enrolment.end(clean=False, reason=ended.why, log_tail=output)
            return "stopped", ended.why
        try:
            if self._resting.begins(ended, output):
                until = self._rest_at_limit(output)
                return "limit reached", f"it rests until {until}: {self._resting.why}"
            if ended.ok:
                self._resting.setbacks = 0
                if self._work is None:
                    text = ended.told.result[:500] if ended.told is not None else ""
                    self._finish(task, text or _last_words(output), output)
                    return "done", ""
                return self._land(claimed, self._work, output)
            self._fail(task, ended.why, output, counted=not ended.model and ended.how != "unhooked")
        except Refusal as refusal:
            if refusal.code not in LOST:
                raise
            return self._closed(task, ended, refusal)
        if ended.model:
            self.doing = "resting: its model failed"
            self.launch.hard.wait(self._resting.after_setback(self.launch.limits.rest_s))
            return "model error", ended.why
        return OUTCOMES.get(ended.how, "failed"), ended.why

    def _checked(self, ended: Ended, before: int) -> Ended:
        """Models that are refused what they need sometimes stop and call it success. An agent that
        changed nothing, and got nothing after its last refusal, has given up. `before`: the log's
        end when the attempt began."""
        if not ended.ok or ended.changed is not False:
            return ended
        items = self.launch.steady(rq.Events(agent=self.agent, tail=True, limit=1000)).items
        asked = [item for item in items
                 if item.seq > before and item.kind in ("acquisition_refused", "lease_granted")]
        if not asked or asked[-1].kind == "lease_granted":
            return ended
        names = ", ".join(str(name) for name in asked[-1].data.get("resources", [])[:3])
        return replace(ended, how="gave up", ok=False,
                       why=f"it changed none of its files, and was last refused {names}")

    def _land(self, claimed: rq.Claimed, work: Workplace, output: str) -> tuple[str, str]:
        """Land its work, so that the task is done; or keep the work, and let the task fail."""
        isolation, task = self.launch.isolation, claimed.task
        assert isolation is not None, "who has a worktree has isolation"
        left: rq.Unlanded | None = None
        self.doing = "landing"

        def finish(commit: str) -> bool:
            text = f"landed on {isolation.target.name} as {commit[:12]}: " if commit else ""
            try:
                self.launch.steady(rq.TaskDone(
                    agent=self.agent, task=task.task, landed=commit, force=bool(commit),
                    result=text + _last_words(output)))
            except Refusal as refusal:
                if not commit:
                    raise
                self.launch.trouble(f"{task.task} {text.removesuffix(': ')}, but that could not be "
                                    f"noted: {refusal.message} `coord task show {task.task}`")
                return refusal.code in LOST  # then there is nothing left to note
            return True

        numbers = itertools.count(1)

        def alive() -> None:  # the landing may be queued, and verified, for long
            self.launch.operator.call(rq.Heartbeat(
                agent=self.agent, progress=f"its work is about to land ({next(numbers)})"))

        def verifying(process: Running) -> None:
            self._record(task, process.pid, process.mark)

        try:
            self._enrolment.ask(
                rq.Heartbeat(agent=self.agent, progress="its work is about to land"))
            left = isolation.gather(work, claimed, self.agent)
            self._tell_overlaps(task, work)
            with Beating(alive, self.launch.limits.beat_s):
                isolation.land(work, claimed, self.agent, left.commit, finish, verifying)
        except Refusal as refusal:
            why = f"{refusal.message} ({isolation.where(work)})"
            self._fail(task, why, output, left, outcome=refusal.code)
            self._tells("its work did not land")
            return "not landed", why
        self._tells("its work has landed")
        return "done", ""

    def _tell_overlaps(self, task: rq.Task, work: Workplace) -> None:
        """Tell what other working trees change, too, of what is about to land."""
        with suppress(Refusal):
            for line in self.launch.operator.call(
                    rq.Overlaps(cwd=str(work.place), unasked=True)).describe():
                self.launch.say(f"{task.task} is about to land: {line}")

    def _tells(self, progress: str) -> None:
        """Report its progress for viewers. A failure does not matter."""
        with suppress(Refusal):
            self._enrolment.ask(rq.Heartbeat(agent=self.agent, progress=progress))

    def _finish(self, task: rq.Task, result: str, output: str) -> None:
        try:
            self._enrolment.ask(rq.TaskDone(agent=self.agent, task=task.task, result=result))
        except Refusal as refusal:
            if refusal.code is Code.STALE_TOKEN:
                self._fail(task, "its claim had ended before it finished", output)
            raise

    def _fail(self, task: rq.Task, why: str, output: str,
              unlanded: rq.Unlanded | None = None, *, counted: bool = True,
              outcome: str | None = None) -> None:
        self._enrolment.ask(rq.TaskFail(
            agent=self.agent, task=task.task, reason=why[:WORDS_MAX], log_tail=output,
            unlanded=unlanded, model_error=not counted, outcome=outcome))

    def _rest_at_limit(self, output: str) -> str:
        """Tell the coordinator of its provider's limit, which gives its tasks to others. Return the
        end of the limit."""
        done = self._enrolment.ask(self._resting.told(self.agent, output))
        until = f"{str(done.rests_until)[:16]}Z"
        self.launch.say(f"{self.agent} rests until {until}: its provider's limit is reached")
        return until

    def _closed(self, task: rq.Task, ended: Ended, refusal: Refusal) -> tuple[str, str]:
        """How a task left this agent: finished or given back by the agent itself, or expired."""
        now = self.launch.steady(rq.TaskShow(task=task.task))  # its token may be gone, too
        if now.state == "done":
            return "done", ""
        if ended.how == "lapsed" or refusal.code is Code.STALE_TOKEN:
            return "lapsed", ended.why
        return "given back", f"it is {told_state(now.state)}"

    def _clear_table(self, ok: bool, output: str) -> None:
        """End the leases and places in queues that the ended process has in this agent's name."""
        try:
            mine = self._enrolment.row()
        except Refusal as refusal:
            if refusal.code not in LOST:
                raise
            mine = None
        if mine is None or mine.leases or mine.tasks or mine.waiting_for:
            if mine is not None:
                self._enrolment.end(clean=ok, reason="its process ended", log_tail=output)
            self._enrolment.again()

    def _rest_on(self) -> None:
        """Under its new name, too: the limit is the same provider's."""
        if self._resting.left_s > 0:
            self._enrolment.ask(self._resting.told(self.agent, ""))


def _not_started(bad: OSError | Refusal) -> Ended:
    why = bad.message if isinstance(bad, Refusal) else f"it could not be started: {bad}"
    return Ended("exited", 127, why)


def _last_words(output: str) -> str:
    """Return the last line that a program said, as the result of its task."""
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1].strip()[:500] if lines else "finished"
